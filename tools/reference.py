"""Generate the pages of scenario keys, commands and claims from their definitions.

Keys come from the scenario's JSON Schema, commands from the typer app, claims from the papers'
claims.toml. Run by `make docs`, with the protocols' pages (tools/docs.py); a test keeps them
current.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from waterfill.cli import commands
from waterfill.formats import build, effects
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import VERDICTS, Claim
from waterfill.papers.claims.sentences import tally
from waterfill.papers.claims.verdict import state
from waterfill.scenario.schema import json_schema

REFERENCE = Path("docs/reference")
VALIDATION = Path("docs/validation")
_MADE = "<!-- Made from {source} by tools/reference.py (make docs). Change it there. -->"

# The units' patterns in the schema end in what the quantity is, as units.rs and units.py name it.
_QUANTITIES = {
    "bit/s": "rate",
    "packets": "packets",
    "bdp": "multiple of the BDP",
    "ps": "time",
    "Pbit": "volume",
    "/s": "frequency",
    "%": "percentage",
}
# What the file calls each model, and the page that explains it.
_TABLES = {
    "Scenario": ("The file", "Keys above the first table."),
    "Fabric": ("`[fabric]`", "More: [simulate a fabric](../howto/simulate-a-fabric.md)."),
    "SeriesKeys": (
        "`series`",
        "A table, or only its size as text. More: "
        "[what a run needs](../howto/write-a-scenario.md#what-a-run-needs).",
    ),
    "Switch": ("`[switch]`", "More: [switches](switches.md)."),
    "Link": ("`[[link]]`", "More: [queues and faults](queues.md)."),
    "LinkEvent": (
        "`[[link.event]]`",
        "Belongs to the link above it. More: [links that follow time](links.md).",
    ),
    "LinkFault": (
        "`[[link.fault]]`",
        "Belongs to the link above it. More: [faults](faults.md).",
    ),
    "Flow": ("`[[flow]]`", "With `count`, an entry stands for that many flows."),
    "FlowRoute": (
        "`[[flow.route]]`",
        "Belongs to the flow above it. More: [routes that change](traffic.md#routes-that-change).",
    ),
    "FlowFault": (
        "`[[flow.fault]]`",
        "Belongs to the flow above it. More: [faults](faults.md).",
    ),
    "Application": (
        "`application`",
        "A flow's table. Each kind takes the keys that name it. "
        "More: [applications](applications.md).",
    ),
    "AckFrequency": (
        "`ack_frequency`",
        "A table of a flow or of traffic. More: [acknowledgements of QUIC](recovery.md#quic).",
    ),
    "Traffic": ("`[[traffic]]`", "More: [traffic](traffic.md)."),
    "Collective": (
        "`[[collective]]`",
        "Its messages are flows. More: [collectives](traffic.md#collectives).",
    ),
}


def cell(text: str) -> str:
    """Return a text escaped as one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def filled(text: str) -> str:
    """Return a paragraph wrapped at 120 columns. Tables, code and comments stay unchanged."""
    if text.startswith(("|", "```", "<!--", "#", "`")):
        return text
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table with the given headings and rows."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell(entry) for entry in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def expected(schema: Mapping[str, Any]) -> str:
    """Describe the values that a schema allows, in a few words."""
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        name = _TABLES[schema["$ref"].rpartition("/")[2]][0]
        return f"table {name}" if name in ("`application`", "`ack_frequency`", "`series`") else name
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(expected(one) for one in schema["anyOf"]))
    match schema.get("type"):
        case "string":
            return _quantity(schema.get("pattern")) or "text"
        case "array":
            return _array(schema)
        case "object":
            return "table"
        case "integer" | "number" as kind:
            return f"{'integer' if kind == 'integer' else 'number'}{_bounds(schema)}"
        case "boolean":
            return "`true` or `false`"
    return "any value"


def _quantity(pattern: str | None) -> str | None:
    """Return the quantity whose units a pattern lists, such as time for `s`. Return `text` for any
    other pattern, and None for no pattern.
    """
    if pattern is None:
        return None
    units = re.split(r"[|()]+", pattern.rstrip("$").removesuffix("\\s*"))
    return next((name for unit, name in _QUANTITIES.items() if unit in units), "text")


def _array(schema: Mapping[str, Any]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(expected(item) for item in schema['prefixItems'])}]"
    item = expected(schema.get("items", {}))
    if item.startswith("`[["):
        return f"entries {item}"
    size = schema.get("minItems")
    same = size is not None and size == schema.get("maxItems")
    return f"list of {f'{size} values: ' if same else ''}{item}"


def _bounds(schema: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    found = [f"{sign} {schema[name]:.7g}" for name, sign in signs.items() if name in schema]
    return f" {' and '.join(found)}" if found else ""


def _default(key: str, schema: Mapping[str, Any], required: Iterable[str]) -> str:
    if key in required:
        return "required"
    value = schema.get("default")
    if value is None or value in ([], {}):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def keys_page(schema: Mapping[str, Any]) -> str:
    """Return the reference page of all scenario keys, from the scenario's JSON Schema."""
    out = [
        _MADE.format(source="python/waterfill/scenario/document.py"),
        "# Keys of a scenario",
        'Every key with what it takes and its default; "–" means that its meaning says what holds '
        "without it. [scenario.toml](../scenario.toml) shows them in a file that runs. "
        "`waterfill check S.toml` prints the values in force, `waterfill new` writes a commented "
        "file to start from.",
        "A quantity is text with a unit: rates in `bit/s` or `B/s`, times in `s`, volumes in `B` "
        "or `bit`, with the prefixes k M G T P, and for times m u n p. `1 Gbit/s` is 10⁹ bit/s, "
        "and `1 GB/s` is 8 Gbit/s, with a warning that repeats it in bits. Unknown keys "
        "are errors. Editors complete and check the file with "
        "[scenario.schema.json](../scenario.schema.json).",
    ]
    for model, (title, more) in _TABLES.items():
        described = schema if model == "Scenario" else schema["$defs"][model]
        required = described.get("required", ())
        rows = [
            (f"`{key}`", expected(value), _default(key, value, required), value["description"])
            for key, value in described["properties"].items()
        ]
        out += [f"## {title}", more, table(("key", "value", "default", "meaning"), rows)]
    rows = [row for model in _TABLES if model != "Scenario" for row in _inner(schema, model)]
    out += [
        "## Tables inside",
        "The keys of those values above that may be a table. Those of `queue_params` are on the "
        "pages of [queues](queues.md) and of the queue [`cohabit`](cohabitation.md).",
        table(("key", "its keys", "value", "default"), rows),
    ]
    return "\n\n".join(filled(part) for part in out) + "\n"


def _inner(schema: Mapping[str, Any], model: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield one table row for each key inside the nested tables of a model."""
    seen: list[Any] = []
    for key, value in schema["$defs"][model]["properties"].items():
        for one in value.get("anyOf", [value]):
            # As rate_trace and rate_trace_reverse.
            if key == "queue_params" or not one.get("properties") or one in seen:
                continue
            seen.append(one)
            kind = one["properties"].get("kind", {}).get("const")
            name = f"`{key}`" + (f", `{kind}`" if kind else "")
            for inner, inside in one["properties"].items():
                if "const" not in inside:
                    default = _default(inner, inside, one.get("required", ()))
                    yield name, f"`{inner}`", expected(inside), default


def commands_page(app: TyperGroup) -> str:
    """Return the reference page of all commands of the command-line app."""
    out = [
        _MADE.format(source="python/waterfill/cli"),
        "# Commands",
        "Commands write answers to standard output, and progress and errors to standard error. "
        "Exit codes: 0 done; 1 a verdict differs from the expected one, a check of a run failed, "
        "or something could not be written; 2 wrong input; 130 interrupted "
        "([all of them](files-and-signals.md)). `waterfill --install-completion` installs shell "
        "completion. `NO_COLOR=1` turns colours off. `waterfilld` has [its own page](daemon.md).",
    ]
    for name, command in _leaves(app, "waterfill"):
        out += [f"## {name}", command.help or "", _usage(name, command)]
        rows = [(_names(one), _meaning(one), _set_to(one)) for one in _visible(command)]
        if rows:
            out.append(table(("option", "meaning", "default"), rows))
        if command.epilog:
            lines = command.epilog.replace("\b", "").strip().removeprefix("Examples:")
            examples = "\n".join(f"$ {line.strip()}" for line in lines.strip().splitlines())
            out.append(f"```console\n{examples}\n```")
        if name == "waterfill generate":
            out += _effects()
    return "\n\n".join(filled(part) for part in out) + "\n"


def _effects() -> list[str]:
    """Return the tables of the options of `import` and `generate` that take effect."""

    def cell(options: Iterable[str]) -> str:
        return ", ".join(f"`{option}`" for option in options)

    sources = {f"`import {name}`": (one.options, one.flows) for name, one in build.FORMATS.items()}
    sources |= {f"`generate {name}`": (one.options, False) for name, one in build.RULES.items()}
    of_sources = [
        (name, ", ".join(filter(None, (cell(options), "" if flows else "traffic"))))
        for name, (options, flows) in sources.items()
    ]
    of_traffic = [
        (" and ".join(f"`{option}`" for option in chosen.split(" and ")), cell(options))
        for chosen, options in effects.TRAFFIC.items()
    ]
    return [
        "### Options by source and traffic",
        "An option of `import` or `generate` that has no effect is refused. `-o`, `--duration`, "
        "`--protocol` and `--seed` always have one. The others depend on the source:",
        table(("source", "options"), of_sources),
        "Where the table says *traffic*, these options choose it:",
        table(("traffic", "options"), of_traffic),
        "The options `--rate` and `--delay` are refused if each link of the file has its own. "
        "Of a network of `topohub`, `--unit` changes only the demands.",
    ]


def _leaves(group: TyperGroup, path: str) -> Iterator[tuple[str, TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _leaves(command, f"{path} {name}")
        elif isinstance(command, TyperCommand) and not command.hidden:
            yield f"{path} {name}", command


def _visible(command: TyperCommand) -> Iterator[TyperArgument | TyperOption]:
    for param in command.params:
        if isinstance(param, (TyperArgument, TyperOption)) and not param.hidden:
            yield param


def _usage(name: str, command: TyperCommand) -> str:
    words = [name]
    for param in _visible(command):
        if isinstance(param, TyperArgument):
            shown = (param.metavar or str(param.name).upper()).removesuffix("…").strip("[]")
            shown += "…" if param.nargs == -1 else ""
            words.append(shown if param.required else f"[{shown}]")
    return f"`{' '.join(words)} [OPTIONS]`"


def _names(param: TyperArgument | TyperOption) -> str:
    if isinstance(param, TyperArgument):
        return f"`{param.metavar or str(param.name).upper()}`"
    value = "" if param.is_flag else f" {param.metavar or str(param.name).upper()}"
    return ", ".join(f"`{name}{value}`" for name in param.opts)


def _meaning(param: TyperArgument | TyperOption) -> str:
    return param.help or ""


def _set_to(param: TyperArgument | TyperOption) -> str:
    if param.required:
        return "required"
    if param.default in (None, False, "", (), []) or callable(param.default):
        return "–"
    return f"`{param.default}`"


def _place(claim: Claim) -> str:
    """Return where the paper says it, and the sentence it counts for or why it does not count."""
    apart = f"; beyond the paper: {claim.beyond}" if claim.beyond else ""
    counted = f"; counts for: {claim.sentence}" if claim.sentence else ""
    return f"{claim.source}{counted}{apart}"


def _verdict(claim: Claim) -> str:
    """Return the verdict on record, why, and why it would notice no wrong law."""
    blind = f"; no wrong law changes it: {claim.insensitive}" if claim.insensitive else ""
    return claim.expect + (f": {claim.why}" if claim.why else "") + blind


def claims_page(experiments: Iterable[Experiment]) -> str:
    """Return the reference page of all claims of the given experiments."""
    known = list(experiments)
    counts: dict[str, Counter[str]] = {}
    for experiment in known:
        counts.setdefault(experiment.paper, Counter()).update(c.expect for c in experiment.claims)
    total = sum(counts.values(), Counter())
    sentences = tally((state(e, c), c.expect) for e in known for c in e.claims)
    rows = [
        [name, *(str(count[verdict]) for verdict in VERDICTS), str(count.total())]
        for name, count in {
            **{f"`{paper}`": n for paper, n in counts.items()},
            "all": total,
        }.items()
    ]
    out = [
        _MADE.format(source="papers/*/*/claims.toml"),
        "# Claims of the papers",
        "Every statement of the five papers that is checked, with the verdict on record. `make "
        "test` measures short versions of all of them, `waterfill reproduce PAPER/EXPERIMENT` the "
        "whole. Both fail when a verdict is not the one here.",
        "[Verdicts](verdicts.md) has the rules, [readings](readings.md) what was tried where a "
        "paper leaves something open, [errata](errata.md) what the papers get wrong.",
        f"By sentence: {sentences}. A sentence of a paper counts once: it is reproduced if all of "
        "its claims are, and differs if one does. A claim *beyond* its paper is our own instance, "
        "correction or refutation, or follows from other claims; it does not count.",
        "By claim, those beyond the papers included:",
        table(("paper", *VERDICTS, "claims"), rows),
    ]
    for experiment in known:
        link = f"[{experiment.path}](../../papers/{experiment.path}/README.md)"
        claims = [(f"`{c.id}`", _place(c), c.statement, _verdict(c)) for c in experiment.claims]
        out += [f"## {experiment.title}", link]
        out.append(table(("claim", "place", "statement", "verdict, and why"), claims))
    return "\n\n".join(filled(part) for part in out) + "\n"


def pages() -> dict[Path, str]:
    """Return the generated pages, by path relative to the root."""
    app = get_command(commands.app)
    assert isinstance(app, TyperGroup)
    return {
        REFERENCE / "scenario-keys.md": keys_page(json_schema()),
        REFERENCE / "commands.md": commands_page(app),
        VALIDATION / "claims.md": claims_page(loading.experiments()),
    }
