"""The `waterfill` command: its subcommands, tables, live display and console."""

from __future__ import annotations

from waterfill.cli import process


def main() -> None:
    """Run the command given on the command line and exit."""
    process.begin()

    import gc
    import warnings

    from waterfill.errors import one_line

    # What starting builds stays to the end: looking for cycles in it takes a tenth of a small run.
    gc.disable()
    # A warning is a line, as an error is: no file, category or source.
    warnings.formatwarning = lambda message, *_, **__: f"warning: {one_line(str(message))}\n"
    from waterfill.cli.commands import main as run

    gc.freeze()
    gc.enable()
    try:
        run()
    except SystemExit as end:
        if isinstance(end.code, int):
            end.code = process.exit_code(end.code)
        raise
    finally:
        process.finish()


__all__ = ["main"]
