"""The command `report`, which writes one page about a directory of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from waterfill.cli.arguments import place
from waterfill.cli.console import print_text


def report(
    directories: Annotated[
        list[Path],
        Argument(
            metavar="DIR…",
            help="Directories written by run -o, compare -o, sweep -o, evaluate -o or reproduce, "
            "or one that holds these.",
            parser=place,
        ),
    ],
) -> None:
    """Write a report of results into their directory.

    DIR/report.html has charts, tables and configuration in one file for a browser. For a
    reproduction, report.md is written too. A directory without a result of its own stands for
    the results one level down.
    """
    from waterfill.report import detect, write

    # All are checked before the first page is written.
    for directory in [found for given in directories for found in detect.results(given)]:
        for path in write.write(directory):
            print_text(f"written to {path}")
