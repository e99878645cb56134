"""The command `report`, which writes one page about a directory of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from waterfill.cli.arguments import place
from waterfill.cli.console import print_text


def report(
    directory: Annotated[
        Path,
        Argument(
            metavar="DIR",
            help="Directory written by run -o, compare -o, sweep -o or reproduce.",
            parser=place,
        ),
    ],
) -> None:
    """Write a report of results into their directory.

    DIR/report.html has charts, tables and configuration in one file for a browser. For a
    reproduction, report.md is written too.
    """
    from waterfill.report import write

    for path in write.write(directory):
        print_text(f"written to {path}")
