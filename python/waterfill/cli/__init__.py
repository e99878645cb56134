"""The command `waterfill`: its commands, tables, live display and console."""

from __future__ import annotations


def main() -> None:
    """Run the command given on the command line and exit."""
    import gc

    # What starting builds stays to the end: looking for cycles in it takes a tenth of a small run.
    gc.disable()
    from waterfill.cli.commands import main as run

    gc.freeze()
    gc.enable()
    run()


__all__ = ["main"]
