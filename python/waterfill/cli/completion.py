"""Shell completion for names of protocols, backends, formats and others, and for --set keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

# Each imports what it needs when it is asked, so that --help starts quickly.


def _protocols() -> Iterable[str]:
    from waterfill.network import protocols

    return protocols.load()


def _explicit() -> Iterable[str]:
    from waterfill.network import protocols

    return [name for name, info in protocols.load().items() if info.kind == "explicit"]


def _experiments() -> Iterable[str]:
    from waterfill.papers.claims import loading

    found = loading.experiments()
    return sorted({e.paper for e in found} | {e.path for e in found})


def _templates() -> Iterable[str]:
    from waterfill.scenario import templates

    return templates.names()


def _styles() -> Iterable[str]:
    from waterfill.analysis.looks import LOOKS

    return LOOKS


def _backends() -> Iterable[str]:
    from waterfill.runs import backends

    return backends.BACKENDS


def _formats() -> Iterable[str]:
    from waterfill.formats import build

    return build.FORMATS


def _rules() -> Iterable[str]:
    from waterfill.formats import build

    return build.RULES


def _one(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completer for one of these names."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _several(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completer for the last of several comma-separated names, without repetition."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        used = before.split(",")
        found = (name for name in names() if name.startswith(last) and name not in used)
        return [before + comma + name for name in found]

    return complete


protocol = _one(_protocols)
explicit = _one(_explicit)
protocols = _several(_protocols)
experiment = _one(_experiments)
template = _one(_templates)
styles = _one(_styles)
backend = _one(_backends)
backends = _several(_backends)
network_format = _one(_formats)
rule = _one(_rules)


def assignment(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the key of KEY=VALUE: keys of the scenario and its entries, and parameters of the
    laws.
    """
    if "=" in incomplete:
        return []
    # Where the last option has no value yet, the words that are no options are not yet assigned.
    words = [context.params.get("scenario"), *context.args]
    keys = _keys(next((word for word in words if word), None))
    return [f"{key}=" for key in keys if key.startswith(incomplete)]


def _keys(scenario: object) -> Iterator[str]:
    from waterfill.network import protocols
    from waterfill.scenario.document import SECTIONS, TABLES, Scenario, labels
    from waterfill.scenario.table import Table

    def fields(table: type[Table]) -> list[str]:
        return [field.alias or name for name, field in table.model_fields.items()]

    yield from (key for key in fields(Scenario) if key not in {*SECTIONS, *TABLES, "params"})
    yield from (f"{name}.{key}" for name, table in TABLES.items() for key in fields(table))
    content = _content(scenario)
    for section, table in SECTIONS.items():
        entries = content.get(section)
        if isinstance(entries, list):
            yield from (
                f"{section}.{name}.{key}" for name in labels(entries) for key in fields(table)
            )
    for name, info in protocols.load().items():
        yield from (f"params.{name}.{param.name}" for param in info.params)


def _content(scenario: object) -> dict[str, Any]:
    """Return the content of a scenario file, or an empty dictionary if the file is missing or
    invalid.
    """
    from waterfill.scenario.loading import read_toml

    try:
        return read_toml(Path(str(scenario)).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
