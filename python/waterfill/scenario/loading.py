"""Readers of scenarios from a file, a TOML text or a dictionary, with `--set` overrides."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from waterfill.errors import InputError, nearest, shortened, shown
from waterfill.scenario import collective
from waterfill.scenario.bulk import uncollected
from waterfill.scenario.document import COMMAND_LINE, SECTIONS, Link, Scenario, file_of, labels
from waterfill.scenario.fabric import Fabric, end_nodes, entries, fault_of
from waterfill.scenario.validation import (
    FormerKey,
    RateInBytes,
    contradictions,
    former,
    key_errors,
    rates_in_bytes,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Sets: TypeAlias = "Iterable[str] | Mapping[str, Any]"
"""Overrides: texts KEY=VALUE of the command line, or a dictionary of keys and values."""

# What messages name instead of the file, for a key of such a dictionary.
SET = "set"
_MAX_FILE_BYTES = 1 << 28
# Larger texts are parsed by rtoml, in a sixth of the time; importing it costs what this many take.
_SMALL_CHARS = 1 << 18
# A parser quotes keys of any length.
_MAX_ERROR_CHARS = 300
# What tomllib says of a key that is repeated, and of a table in a value's place.
_REPEATED = re.compile(
    r"Cannot overwrite a value"
    r"(?P<place> \((at line (?P<line>\d+), column \d+|at end of document)\))"
)
_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY = re.compile(rf"\s*(?:\[+\s*)?({_PART}(?:\s*\.\s*{_PART})*)")
# For a key without a value.
_EXAMPLES = {
    "duration": "duration='10 s'",
    "measure": 'measure=\'["5 s", "10 s"]\'',
    "protocol": "protocol=maxnet",
    "sample": "sample='10 ms'",
    "seed": "seed=2",
}
# A repeated key's value of more lines is not searched for its key.
_MAX_VALUE_LINES = 100


def load(path: str | os.PathLike[str], sets: Sets = ()) -> Scenario:
    """Read a scenario from a TOML file, with overrides (`link.link1.rate="1 Gbit/s"`).

    Raises InputError when the file cannot be read, is not TOML, or has a wrong key or value.
    """
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise InputError(source, *_no_file(source)) from None
    except IsADirectoryError:
        raise InputError(source, "", *_directory(Path(source))) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(source, "", f"cannot read the scenario file: {reason}") from None
    if len(data) > _MAX_FILE_BYTES:
        raise InputError(source, "", f"the file has more than {_MAX_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(source, "", f"not UTF-8: invalid byte at offset {error.start}") from None
    return from_toml(text, source, sets)


def _no_file(source: str) -> tuple[str, str, str]:
    """Return the key, the problem and the advice of a scenario file that does not exist."""
    path = Path(source)
    with suppress(OSError, ValueError):
        near = [one.name for one in path.parent.glob("*.toml")]
        close = nearest(path.name, near) if near else ""
        if "did you mean" in close:
            return "", f"no such file{close}", ""
    return "", "no such file", "`waterfill new` lists scenarios to start from"


def _directory(path: Path) -> tuple[str, str]:
    """Return the problem and the advice of a directory in place of a scenario file."""
    if (path / "summary.json").is_file():
        file = path / "scenario.toml"
        return "the result of a run, not a scenario file", f"type plot, report, or run {file}"
    return "a directory, not a scenario file", "type the path of a scenario file in it"


@uncollected()
def from_toml(text: str, source: str = "<toml>", sets: Sets = ()) -> Scenario:
    """Read a scenario from a TOML text. Messages name `source` as the file."""
    try:
        document = read_toml(text)
    except (ValueError, RecursionError) as error:
        got = shortened(toml_error(error, text), _MAX_ERROR_CHARS)
        raise InputError(source, "", f"not valid TOML: {got}", _hint(text, source)) from None
    return _scenario(document, source, sets)


def read_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text; raise ValueError or RecursionError with the standard library's message."""
    text = text.replace("\r\n", "\n")
    if len(text) > _SMALL_CHARS:
        try:
            import rtoml

            found: dict[str, Any] = rtoml.loads(text)
            return found
        except (ImportError, ValueError):
            pass  # tomllib reads it too, or says what is wrong
    return tomllib.loads(text)


def toml_error(error: Exception, text: str) -> str:
    """Return a TOML parser's message. If the message lacks the name of a repeated key, add the key
    if it can be found.

    A value's end is where the parser is then; its key begins the last line before which the text
    has no error.
    """
    found = _REPEATED.fullmatch(str(error))
    if found is None:
        return str(error)
    lines = text.replace("\r\n", "\n").split("\n")
    end = int(found["line"] or len(lines))
    searched = _MAX_VALUE_LINES if len(text) <= _SMALL_CHARS else 1
    for first in range(end - 1, max(end - searched, 0) - 1, -1):
        key = _KEY.match(lines[first])
        if key is not None and _parses("\n".join(lines[:first])):
            return f"{key[1]} has a value already{found['place']}"
    return str(error)


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# Formats of `waterfill import` by the end of a file's name.
_IMPORTED = {".gml": "gml", ".graphml": "graphml", ".cm": "htsim"}


def _hint(text: str, source: str) -> str:
    """Return advice for a law in Python, for a topology or for a section that is a table instead of
    a list of tables, or an empty text.
    """
    if Path(source).suffix.lower() == ".py":
        return f"for laws in Python: waterfill check --law {source}"
    if (name := _IMPORTED.get(Path(source).suffix.lower())) is not None:
        return f"for a topology: waterfill import {name} {source} -o S.toml"
    for section in SECTIONS:
        if re.search(rf"(?m)^\s*\[{section}\]", text):
            return f"each {section} starts with [[{section}]], not [{section}]"
    return ""


@uncollected()
def from_dict(
    document: Mapping[str, Any],
    source: str = "<dict>",
    sets: Sets = (),
    places: Mapping[str, str] | None = None,
) -> Scenario:
    """Read a scenario from a dictionary with the structure of the TOML file, and leave the
    dictionary unchanged.

    Messages about a key of `places` name its value instead of `source`.
    """
    try:
        own = copied(dict(document))
    except RecursionError:
        raise InputError(source, "", "tables and lists are nested too deeply") from None
    return _scenario(own, source, sets, places)


def _scenario(
    raw: dict[str, Any], source: str, sets: Sets, places: Mapping[str, str] | None = None
) -> Scenario:
    """Build a scenario from a dictionary, which this function may change."""
    raw.setdefault("name", Path(source).stem if not source.startswith("<") else "scenario")
    first, others = _split(sets)
    set_keys = override(raw, first) | dict(places or {})
    _build_fabric(raw, source, set_keys)
    set_keys = override(raw, others) | set_keys
    _build_collectives(raw, source, set_keys)
    _fill_links(raw, source, set_keys)
    try:
        scenario = Scenario.model_validate(raw, context={"folder": Path(source).parent})
    except ValidationError as error:
        key, message = next(key_errors(raw, error))
        raise InputError(file_of(key, source, set_keys), key, message) from None
    scenario.set_origin(source, set_keys)
    for key, message in contradictions(scenario):
        raise scenario.error(key, message)
    for kind, found in ((FormerKey, former(scenario)), (RateInBytes, rates_in_bytes(raw))):
        for key, message in found:
            warnings.warn(f"{file_of(key, source, set_keys)}: {key}: {message}", kind, 3)
    return scenario


def _split(sets: Sets) -> tuple[Sets, Sets]:
    """Return the overrides of `[fabric]`, which decides on the names of links, and the others."""
    if isinstance(sets, Mapping):
        own = {key: value for key, value in sets.items() if str(key).split(".")[0] == "fabric"}
        return own, {key: value for key, value in sets.items() if key not in own}
    texts = list(sets)
    chosen = [text for text in texts if re.split(r"[.=]", text.strip())[0].strip() == "fabric"]
    return chosen, [text for text in texts if text not in chosen]


def _build_fabric(raw: dict[str, Any], source: str, set_keys: Mapping[str, str]) -> None:
    """Replace `fabric` by its links. A [[link]] of the same name changes keys of such a link."""
    if "fabric" not in raw:
        return
    given = raw.pop("fabric")

    def refused(key: str, why: str) -> InputError:
        return InputError(file_of(key, source, set_keys), key, why)

    if not isinstance(given, dict):
        raise refused("fabric", f"must be a table, got {shown(given)}; write [fabric]")
    try:
        fabric = Fabric.model_validate(given)
    except ValidationError as error:
        raise refused(*next(key_errors({"fabric": given}, error, "fabric"))) from None
    if (fault := fault_of(fabric)) is not None:
        raise refused(f"fabric.{fault[0]}", fault[1])
    try:
        links: list[dict[str, Any]] = list(map(dict, entries(fabric)))
    except ValueError as error:
        raise refused("fabric", str(error)) from None
    others = raw.get("link", [])
    named = {link["name"]: link for link in links}
    if not isinstance(others, list):  # the model says what is wrong
        return
    for other in others:
        same = named.get(other.get("name", "")) if isinstance(other, dict) else None
        if same is None:
            links.append(other)
        else:
            same.update(other)
    raw["link"] = links
    raw.setdefault("ecmp", "pair")


def _build_collectives(raw: dict[str, Any], source: str, set_keys: Mapping[str, str]) -> None:
    """Add the messages of each `[[collective]]` to the flows, and its hosts to the entry."""
    given = raw.get("collective")
    flows = raw.setdefault("flow", []) if given else None
    if not isinstance(given, list) or not isinstance(flows, list):  # the model says what is wrong
        return
    for entry in given:
        if isinstance(entry, dict) and "hosts" not in entry:
            entry["hosts"] = end_nodes(_pairs(raw.get("link")))
    try:
        found = TypeAdapter(list[collective.Collective]).validate_python(given)
    except ValidationError as error:
        key, why = next(key_errors(raw, error, "collective"))
        raise InputError(file_of(key, source, set_keys), key, why) from None
    for label, one in zip(labels(given), found, strict=True):
        if (fault := collective.fault_of(one)) is not None:
            key = f"collective.{label}.{fault[0]}"
            raise InputError(file_of(key, source, set_keys), key, fault[1])
        flows += collective.entries(one)
    raw.setdefault("ecmp", "pair")


def _pairs(given: Any) -> Iterator[tuple[str, str]]:
    """Yield the two nodes of each link of a document, of those that have them as texts."""
    for link in given if isinstance(given, list) else ():
        pair = (link.get("from"), link.get("to")) if isinstance(link, dict) else (None, None)
        if isinstance(pair[0], str) and isinstance(pair[1], str):
            yield pair[0], pair[1]


def _fill_links(raw: dict[str, Any], source: str, set_keys: Mapping[str, str]) -> None:
    """Give each link the values of `link_defaults` for the keys that it does not set."""
    defaults = raw.pop("link_defaults", {})
    if not isinstance(defaults, dict):
        where = file_of("link_defaults", source, set_keys)
        why = f"must be a table, got {shown(defaults)}"
        raise InputError(where, "link_defaults", why, "write [link_defaults], then KEY = VALUE")
    keys = [field.alias or name for name, field in Link.model_fields.items()]
    own = ("name", "from", "to")
    for key in defaults:
        if key in own or key not in keys:
            where = file_of(f"link_defaults.{key}", source, set_keys)
            near = nearest(key, [one for one in keys if one not in own])
            why = "each link has its own" if key in own else f"unknown key{near}"
            raise InputError(where, f"link_defaults.{key}", why)
    links = raw.get("link")
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict):
            for key, value in defaults.items():
                link.setdefault(key, copied(value))


def check_keys(document: Mapping[str, Any], places: Mapping[str, str], source: str) -> None:
    """Raise InputError if a key of `places` is unknown or has a wrong value.

    The document may lack keys that a run needs. `places` has what messages about a key name.
    """
    raw: dict[str, Any] = copied(dict(document))
    try:
        Scenario.model_validate(raw, context={"folder": Path(source).parent})
    except ValidationError as error:
        for key, message in key_errors(raw, error):
            if place := file_of(key, "", places):
                raise InputError(place, key, message) from None


def copied(value: Any) -> Any:
    """Copy nested tables and lists, six times as fast as `copy.deepcopy` for 100,000 flows."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def override(document: dict[str, Any], sets: Sets) -> dict[str, str]:
    """Apply overrides to a document; return the place of each key: the command line or `set`.

    Raises InputError for what is no key or no assignment.
    """
    if not isinstance(sets, Mapping):
        assignments = [_assignment(one) for one in sets]
        return {path: COMMAND_LINE for key, value in assignments
                for path in _assign(document, key, value, COMMAND_LINE)}  # fmt: skip
    for key in sets:
        if not isinstance(key, str) or not all(key.split(".")):
            advice = 'write keys such as "flow.long.count"'
            raise InputError(SET, "", f"not a key: {shown(key)}", advice)
    return {path: SET for key, value in sets.items()
            for path in _assign(document, key, _plain(value), SET)}  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a value of Python as TOML has it: no tuples, no NumPy integers."""
    if isinstance(value, tuple):
        return list(value)
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return int(value) if whole else value


def _assignment(assignment: str) -> tuple[str, Any]:
    """Return the key and the value of a text KEY=VALUE."""
    path, equals, text = (part.strip() for part in assignment.partition("="))
    if not equals or not path or not all(path.split(".")):
        example = _EXAMPLES.get(path, "flow.long.count=3")
        why = f"must be KEY=VALUE, got {shown(assignment)}"
        raise InputError(COMMAND_LINE, "set", why, f"type --set {example}")
    # Bytes of the command line that are no UTF-8 arrive as surrogates, which no file can hold.
    if not assignment.isascii() and any("\ud800" <= c <= "\udfff" for c in assignment):
        raise InputError(COMMAND_LINE, path, f"not UTF-8, got {shown(text)}")
    return path, _toml_value(text)


def _assign(document: dict[str, Any], path: str, value: Any, place: str) -> list[str]:
    """Set one key of the document and return the key; messages name `place`.

    A name with * sets the key of every entry whose name fits: `link.*.buffer`, `link.h0-*.rate`.
    """
    section, *rest = path.split(".")
    table: Any = document
    entries = document.get(section)
    if section in SECTIONS and isinstance(entries, list):
        known = labels(entries)
        if len(rest) < 2:
            advice = f"write {section}.NAME.KEY=VALUE"
            raise InputError(place, path, "incomplete key", advice)
        if "*" in rest[0]:
            fitting = fnmatch.filter(known, rest[0].replace("[", "[[]"))
            if not fitting:
                raise InputError(place, path, f"no [[{section}]] has a name like {shown(rest[0])}")
            paths = (".".join([section, name, *rest[1:]]) for name in fitting)
            return [key for one in paths for key in _assign(document, one, copied(value), place)]
        if rest[0] not in known:
            message = f"unknown [[{section}]]{nearest(rest[0], known)}"
            raise InputError(place, path, message)
        table = entries[known.index(rest[0])]
        rest = rest[1:]
    else:
        rest = [section, *rest]
    for step in rest[:-1]:
        table = table.setdefault(step, {}) if isinstance(table, dict) else None
    if not isinstance(table, dict):
        raise InputError(place, path, "not a key of a table")
    table[rest[-1]] = value
    return [path]


def _toml_value(text: str) -> Any:
    """Return a `--set` value, parsed as TOML if possible (numbers, true, lists, "…") and as text
    otherwise.
    """
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = document["value"]
    # A bare 2007-01-01 is a title, not a date; "1\nseed = 2" is one value, not two keys.
    plain = isinstance(value, (str, bool, int, float, list, dict)) and len(document) == 1
    return value if plain else text
