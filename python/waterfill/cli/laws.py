"""Commands about the protocols themselves: `protocols` and `response`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import INTERRUPTED, Json, OwnLaw, laws_of
from waterfill.cli.console import print_json, show
from waterfill.errors import InputError

if TYPE_CHECKING:
    pass


def protocols(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="PROTOCOL",
            help="Protocols whose parameters to show.",
            autocompletion=completion.protocol,
        ),
    ] = None,
    json: Json = False,
    law: OwnLaw = None,
) -> None:
    """List the protocols, or the parameters of the given protocols.

    Laws of installed packages are among them.
    """
    from waterfill.cli import tables
    from waterfill.network.protocols import close_to
    from waterfill.runs import laws
    from waterfill.testbed import listing

    known = listing.protocols() | laws.infos(laws.summaries(laws_of(law)))
    for name in names or []:
        if name not in known:
            raise InputError("protocols", name, f"unknown protocol{close_to(name, known)}")
    chosen = [known[name] for name in dict.fromkeys(names or known)]
    if json:
        print_json(tables.protocols_document(chosen))
    elif names:
        show(*tables.protocols(chosen))
    else:
        show(*tables.protocol_list(chosen))


def response(
    losses: Annotated[
        int, Option(min=20, metavar="N", help="Number of losses per case after warm-up.")
    ] = 300,
    quick: Annotated[bool, Option("--quick", help="Run only loss rates of at least 1e-3.")] = False,
    json: Json = False,
) -> None:
    """Compare Reno's and CUBIC's windows under loss with theory.

    It takes minutes, or seconds with --quick.
    """
    from waterfill.analysis import response
    from waterfill.cli import tables
    from waterfill.runs.progress import Bars

    chosen = [p for p in response.PROBABILITIES if p >= 1e-3 or not quick]
    with Bars([]) as bars:
        found = response.cells(probabilities=chosen, losses=losses, progress=bars.show)
    if json:
        print_json(response.document(found))
    else:
        show(*tables.response(found))
    planned = len(response.TABLES) * len(chosen) * len(response.RTTS_S)
    if len(found) < planned:
        raise typer.Exit(INTERRUPTED)


def verify() -> None:
    """Report that `verify` has been removed, with the command that replaces it."""
    command = "make validate STUDY=certificates OPTIONS=LOG"
    why = f"is not part of the package any more; in a checkout, run {command}"
    raise InputError("verify", "", why)
