"""The command `waterfill`: its commands, tables, live display and console."""

from waterfill.cli.commands import main

__all__ = ["main"]
