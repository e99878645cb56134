"""Generate the pages of the Python API in docs/reference from the docstrings, for `make docs`.

The source is parsed, not imported, so signatures read as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe

import waterfill
from tools.reference import REFERENCE

_WIDTH = 100
_MADE = (
    "<!-- Made from the docstrings by tools/python_reference.py (make docs). Change them there. -->"
)
_HEAD = f"""# Python API

{_MADE}

The names of the package `waterfill`, and the classes of what they return. A scenario goes in as a
path, a dictionary or a `waterfill.Scenario`. Results come out as documents and Arrow tables:
[use results in Python](../howto/use-results-in-python.md) shows how. Python prints the same text:
`help(waterfill.run)`. Further modules: [types and modules](python-modules.md).

## The package
"""
_MODULES_HEAD = f"""# Types and modules of the Python API

{_MADE}

The contents of a result's `network` and `summary`, and modules that a study may need. The functions
are on the page [Python API](python.md).
"""
# Classes that functions of the package return.
_RETURNED = {"Comparison": "analysis.compare", "Sweep": "sweeps.api"}
# Heading: the module whose public names follow.
_MODULES = {
    "The network that ran": "contract.network",
    "Its queues, faults and sizes": "contract.elements",
    "The summary": "contract.summary",
    "Max-min shares": "network.maxmin",
    "Completion times": "analysis.transfers",
    "Quantities with units": "scenario.units",
}


def pages() -> dict[Path, str]:
    """Return the two pages of the Python API, by path."""
    package = griffe.load("waterfill", search_paths=["python"])
    assert isinstance(package, griffe.Object)
    homes = {name: home for name, home in waterfill._HOMES.items() if name in waterfill.__all__}
    parts = [_HEAD, _text(package)]
    for name in sorted(homes, key=str.lower):
        parts += _item(package[f"{homes[name]}.{name}"], f"waterfill.{name}")
    parts.append("## What they return\n")
    for name, home in _RETURNED.items():
        parts += _item(package[f"{home}.{name}"], name)
    parts += _module(package, "Theory", "theory")
    others = [_MODULES_HEAD]
    for heading, module in _MODULES.items():
        others += _module(package, heading, module)
    return {REFERENCE / "python.md": _page(parts), REFERENCE / "python-modules.md": _page(others)}


def _page(parts: Iterable[str]) -> str:
    return "\n".join(filter(None, parts)).rstrip() + "\n"


def _module(package: griffe.Object, heading: str, module: str) -> Iterator[str]:
    """Yield a module's docstring and its public names."""
    found = package[module]
    yield f"## {heading}\n"
    yield f"Module `waterfill.{module}`.\n"
    yield _text(found)
    for name, member in found.members.items():
        if not name.startswith("_") and not member.is_alias and not member.is_module:
            yield from _item(member, name)


def _item(item: griffe.Object, name: str) -> Iterator[str]:
    """Yield the Markdown parts of a class, a function or a constant with a docstring."""
    if isinstance(item, griffe.Class):
        yield f"### `{name}`\n"
        yield from _class(item, name.rpartition(".")[2])
    elif isinstance(item, griffe.Function):
        yield f"### `{name}`\n"
        yield f"```py\n{_signature(item)}\n```\n"
        yield _text(item)
    elif item.docstring is not None:
        yield f"### `{name}`\n"
        yield _text(item)


def _class(item: griffe.Class, name: str) -> Iterator[str]:
    members = [m for n, m in item.members.items() if not n.startswith("_")]
    attributes = [m for m in members if isinstance(m, griffe.Attribute)]
    fields = [m for m in attributes if m.annotation is not None and not m.has_labels("property")]
    bases = ", ".join(str(base) for base in item.bases)
    lines = [f"class {name}({bases}):" if bases else f"class {name}:"]
    start = item.members.get("__init__")
    if isinstance(start, griffe.Function) and not fields:
        lines = [
            f"{name}{_signature(start, 'self').removeprefix('__init__').removesuffix(' -> None')}"
        ]
    for one in fields:
        default = "" if one.value is None else f" = {one.value}"
        lines.append(f"    {one.name}: {one.annotation}{default}")
    yield "```py\n" + "\n".join(lines) + "\n```\n"
    yield _text(item)
    described = [
        f"- `{one.name}`: {_joined(one.docstring.value)}"
        for one in fields
        if one.docstring is not None
    ]
    if described:
        yield "\n".join(described) + "\n"
    for member in members:
        if member.docstring is None:
            continue
        if isinstance(member, griffe.Attribute) and member.has_labels("property"):
            yield f"**`{member.name}`** → `{member.annotation}`\n"
            yield _text(member)
        elif isinstance(member, griffe.Function):
            yield f"```py\n{_signature(member, 'self', 'cls')}\n```\n"
            yield _text(member)


def _signature(function: griffe.Function, *without: str) -> str:
    """Return a signature in one line or, if that is too long, with a line for each parameter."""
    mine = function.parameters
    shown = griffe.Parameters(*(p for p in mine if p.name not in without))
    copy = griffe.Function(function.name, parameters=shown, returns=function.returns)
    text = copy.signature(name=function.name)
    if len(text) <= _WIDTH:
        return text
    arguments = re.match(r"\w+\((.*)\)( -> .*)?$", text, re.S)
    assert arguments is not None
    inner = "".join(f"    {one},\n" for one in _split(arguments[1]))
    return f"{function.name}(\n{inner}){arguments[2] or ''}"


def _split(text: str) -> list[str]:
    """Split a list of parameters at the commas outside of brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [one.strip() for one in found]


def _text(item: griffe.Object) -> str:
    """Return a docstring as Markdown: paragraphs, lists, and examples as blocks."""
    if item.docstring is None:
        return ""
    out = []
    for block in re.split(r"\n\s*\n", item.docstring.value.strip()):
        if block.startswith(">>> "):
            out.append(f"```pycon\n{block}\n```\n")
        elif block.startswith("    "):
            lines = "\n".join(line.removeprefix("    ") for line in block.splitlines())
            out.append(f"```py\n{lines}\n```\n")
        else:
            out.append(f"{block}\n")
    return "\n".join(out)


def _joined(text: str) -> str:
    return " ".join(text.split())
