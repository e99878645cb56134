"""Commands about scenario files: `new`, `check` and `maxmin`."""

from __future__ import annotations

from typing import Annotated

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
)
from waterfill.cli.console import print_json, print_text, show
from waterfill.errors import InputError


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
    scenario: ScenarioFile,
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
    """Check a scenario without a run; print all values in force."""
    from waterfill.cli import tables
    from waterfill.runs import backends, effective
    from waterfill.scenario.loading import load

    backends.check(on)
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


def maxmin(
    scenario: ScenarioFile, protocol: Protocol = None, sets: Sets = None, json: Json = False
) -> None:
    """Compute the exact max-min rates of a scenario over time."""
    from waterfill.cli import tables
    from waterfill.network import shares
    from waterfill.runs import backends
    from waterfill.scenario.loading import load

    loaded = load(scenario, overrides(protocol, sets))
    backends.refuse_idle([(loaded, backend) for backend in backends.BACKENDS])
    document = shares.document(loaded)
    if json:
        print_json(document)
    else:
        show(*tables.maxmin(document))
