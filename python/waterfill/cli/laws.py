"""Commands about the protocols themselves: `protocols`, `response` and `verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterfill.cli import completion
from waterfill.cli.arguments import INTERRUPTED, Json
from waterfill.cli.console import print_json, show
from waterfill.errors import InputError, nearest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from waterfill.verify import Verdict


def protocols(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROTOCOL",
            help="Protocols to show with their parameters.",
            autocompletion=completion.protocol,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the protocols; show the parameters, defaults and sources of those named."""
    from waterfill.cli import tables
    from waterfill.runs import backends

    # This host's list: the protocols that its kernel has run on linux, too.
    known = backends.known("linux" if sys.platform == "linux" else "sim")
    for name in names or []:
        if name not in known:
            raise InputError("protocols", name, f"unknown protocol{nearest(name, known)}")
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    if json:
        print_json(tables.protocols_document(chosen))
    elif names:
        show(*tables.protocols(chosen))
    else:
        show(*tables.protocol_list(chosen))


def response(
    losses: Annotated[
        int, typer.Option(min=20, metavar="N", help="Losses per case after the warm-up.")
    ] = 300,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only loss rates of 1e-3 and above.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare Reno's and CUBIC's windows under loss with theory.

    Takes minutes, with --quick seconds.
    """
    from waterfill.analysis import response
    from waterfill.cli import tables
    from waterfill.runs.progress import Bars

    chosen = [p for p in response.PROBABILITIES if p >= 1e-3 or not quick]
    with Bars([]) as bars:
        found = response.cells(probabilities=chosen, losses=losses, progress=bars.show)
    document = response.document(found)
    if json:
        print_json(document)
    else:
        show(*tables.response(document))
    planned = len(response.TABLES) * len(chosen) * len(response.RTTS_S)
    if len(found) < planned:
        raise typer.Exit(INTERRUPTED)


def verify(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="A log of steps, or a run's directory with one.")
    ],
    json: Json = False,
) -> None:
    """Check a log of laws' steps against the papers' equations, computed again."""
    from waterfill.verify import verify as check

    verdict = check(log)
    if json:
        print_json(_steps_document(verdict))
    elif verdict.wrong is None:
        show(*_steps_table(verdict))
    if verdict.wrong is not None:
        print(verdict.wrong, file=sys.stderr)
        raise typer.Exit(1)


def _steps_document(verdict: Verdict) -> dict[str, Any]:
    counts = sorted(verdict.counts.items())
    return {
        "accepted": verdict.wrong is None,
        "rows": verdict.rows,
        "not_logged": verdict.dropped,
        "steps": [
            {"law": law, "part": part, "call": call, "rows": rows}
            for (law, part, call), rows in counts
        ],
        "wrong": None if verdict.wrong is None else str(verdict.wrong),
    }


def _steps_table(verdict: Verdict) -> list[RenderableType]:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("law", "part", "call"):
        table.add_column(name)
    table.add_column("steps", justify="right")
    for (law, part, call), rows in sorted(verdict.counts.items()):
        table.add_row(law, part, call, str(rows))
    text = f"accepted: {verdict.rows} steps agree with the papers' equations"
    if verdict.dropped:
        text += f"; {verdict.dropped} steps were not logged"
    return [table, Text(text)]
