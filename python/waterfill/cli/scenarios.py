"""Commands about scenario files: `new`, `check` and `maxmin`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import (
    Backend,
    Json,
    NewFile,
    OwnLaw,
    Protocol,
    ScenarioFile,
    Seed,
    Sets,
    laws_of,
    laws_used,
    overrides,
    place,
)
from waterfill.cli.console import print_json, print_text, show
from waterfill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from waterfill.runs.laws import PythonLaw


def new(
    template: Annotated[
        str | None,
        Argument(
            metavar="TEMPLATE",
            help="Template. Without one, list the templates.",
            autocompletion=completion.template,
        ),
    ] = None,
    output: NewFile = None,
) -> None:
    """Write a commented scenario to start from."""
    from waterfill.runs import files
    from waterfill.scenario import templates

    if template is None:
        if output is not None:
            known = ", ".join(templates.names())
            raise InputError("new", "TEMPLATE", "no template given", f"type one of {known}")
        width = max(map(len, templates.names()))
        for name in templates.names():
            print_text(f"{name:<{width}}  {templates.title(name)}")
        return
    text = templates.text(template)
    if output is None:
        print_text(text.rstrip("\n"))
        return
    files.write_new(output, text)
    print_text(f"written to {output}; run it: waterfill run {output}")


def check(
    scenario: Annotated[
        Path | None,
        Argument(
            metavar="S.toml",
            help="Scenario file. Without one, check the laws of --law by themselves.",
            parser=place,
        ),
    ] = None,
    on: Backend = "sim",
    protocol: Protocol = None,
    sets: Sets = None,
    seed: Seed = None,
    toml: Annotated[
        bool, Option("--toml", help="Print the scenario with every default written out.")
    ] = False,
    json: Json = False,
    law: OwnLaw = None,
) -> None:
    """Check a scenario without a run; print all values in force.

    With --law and without a scenario, run the conformance battery on the laws.
    """
    from waterfill.cli import tables
    from waterfill.runs import backends, effective
    from waterfill.scenario.loading import load

    backends.check(on)
    if scenario is None:
        _refuse_without_a_scenario(law, protocol or sets or seed is not None or toml or on != "sim")
        _check_laws(laws_of(law), json)
        return
    if toml and json:
        raise InputError("command line", "--toml", "not possible together with --json")
    loaded = load(scenario, overrides(protocol, sets, seed))
    every = laws_of(law)
    own = laws_used(every, [loaded], law, "--protocol")
    backends.refuse_idle([(loaded, on)], every)
    document = effective.document(loaded, on, own)
    if json:
        print_json(document)
    elif toml:
        print_text(loaded.to_toml().rstrip("\n"))
    else:
        show(*tables.effective(document))


def _refuse_without_a_scenario(law: Path | None, others: object) -> None:
    """Raise InputError for a `check` that has neither a scenario nor laws alone."""
    if law is None:
        why = "no scenario given"
        raise InputError("check", "S.toml", why, "type its file, or --law FILE.py to check laws")
    if others:
        why = "no scenario given, to which the other options apply"
        raise InputError("check", "S.toml", why, "type its file, or leave the other options out")


def _check_laws(laws: Mapping[str, PythonLaw], json: bool) -> None:
    """Run the conformance battery on laws and print its findings; exit with 1 if one fails."""
    from waterfill.analysis import conformance
    from waterfill.cli import tables

    found = {name: conformance.findings(name, law) for name, law in laws.items()}
    if json:
        print_json(
            {"laws": {name: [asdict(one) for one in lines] for name, lines in found.items()}}
        )
    else:
        show(*tables.findings(found))
    if any(one.ok is False for lines in found.values() for one in lines):
        raise typer.Exit(1)


def maxmin(
    scenario: ScenarioFile,
    protocol: Protocol = None,
    sets: Sets = None,
    json: Json = False,
    law: OwnLaw = None,
) -> None:
    """Compute the exact max-min rates of a scenario over time."""
    from waterfill.cli import tables
    from waterfill.network import protocols, shares
    from waterfill.runs import backends, law_files, laws
    from waterfill.scenario import given
    from waterfill.scenario.loading import load

    loaded = load(scenario, overrides(protocol, sets))
    jitter = any(flow.start_jitter for flow in loaded.flow)
    given.refuse_unread(loaded, "maxmin", () if jitter else ("seed",))
    every = laws_of(law)
    laws_used(every, [loaded], law, "--protocol")
    backends.refuse_idle([(loaded, backend) for backend in backends.BACKENDS], every)
    own = law_files.with_installed(every, loaded.protocols())
    known = protocols.load() | laws.infos(laws.summaries(own))
    document = shares.document(loaded, known, own={name: one.target for name, one in own.items()})
    if json:
        print_json(document)
    else:
        show(*tables.maxmin(document))
