"""Arguments and options that several commands share, and the examples in their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

INTERRUPTED = 130


def _protocol_names() -> list[str]:
    from waterfill.network import protocols

    return list(protocols.load())


def _experiment_paths() -> list[str]:
    from waterfill.papers.claims import loading

    found = loading.experiments()
    return sorted({e.paper for e in found} | {e.path for e in found})


def _template_names() -> list[str]:
    from waterfill.scenario import templates

    return templates.names()


def _from(names: list[str], typed: str) -> list[str]:
    return [name for name in names if name.startswith(typed)]


def complete_protocol(incomplete: str) -> list[str]:
    """Complete a protocol's name in the shell."""
    return _from(_protocol_names(), incomplete)


def complete_experiment(incomplete: str) -> list[str]:
    """Complete PAPER or PAPER/EXPERIMENT in the shell."""
    return _from(_experiment_paths(), incomplete)


def complete_template(incomplete: str) -> list[str]:
    """Complete a template's name in the shell."""
    return _from(_template_names(), incomplete)


def examples(*lines: str) -> str:
    """Return the examples at the end of a command's help, one line each."""
    # \b keeps click from filling the lines into a paragraph.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


ScenarioFile = Annotated[Path, typer.Argument(metavar="S.toml", help="Scenario file.")]
Protocol = Annotated[
    str | None,
    typer.Option(
        metavar="P", help="Protocol of the flows that name none.", autocompletion=complete_protocol
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key: link.link1.rate='1 Gbit/s'."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of the random streams.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="DIR", help="Output directory.")
]


def overrides(protocol: str | None, sets: list[str] | None, seed: int | None = None) -> list[str]:
    """Return all assignments, those of --protocol and --seed included; later ones win."""
    chosen = [] if protocol is None else [f"protocol={protocol}"]
    chosen += sets or []
    return chosen if seed is None else [*chosen, f"seed={seed}"]
