"""Checks of the documents that a page is made from: who wrote them is not known.

A document is compared with the types of `waterfill.contract`, so that a page is made of what it
says or not at all: each failure is one sentence that names the file, the key and what was expected.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import (
    Any,
    Literal,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from waterfill.contract.summary import Summary
from waterfill.errors import InputError, shown
from waterfill.papers.claims.schema import Relation, Verdict
from waterfill.runs.result import Document
from waterfill.runs.stored import SUMMARY, StoredResult, load_run

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_MAX_BYTES = 2_000_000_000


class _Estimate(TypedDict):
    values: list[float | None]
    mean: float | None
    interval: list[float] | None


class _Comparison(TypedDict):
    runs: dict[str, Any]


class _Comparisons(_Comparison, total=False):
    seeds: list[int]
    over_seeds: dict[str, dict[str, _Estimate]]


class Sweep(TypedDict):
    """A sweep's document, as far as its page needs it."""

    columns: list[list[str]]
    axes: dict[str, str]
    meanings: dict[str, str]
    scenario: str
    backend: str
    version: str
    sets: list[str]


class _Seeds(TypedDict):
    runs: int
    least: float
    most: float


class _Judged(TypedDict):
    id: str
    paper: str
    experiment: str
    source: str
    statement: str
    relation: Relation
    paper_value: float | None
    tolerance: float | None
    unit: str | None
    over_seeds: _Seeds | None
    expect: Verdict
    why: str | None
    measured: float | None
    values: list[float | None]
    verdict: Verdict


class _Claim(_Judged, total=False):
    short: list[str] | None


class _Claims(TypedDict):
    claims: list[_Claim]


def comparison(path: Path) -> Document:
    """Read compare.json; raise InputError unless it names runs in folders beside it."""
    found = document(path, _Comparisons)
    if not found["runs"]:
        raise InputError(str(path), "runs", "expected at least one run, got none")
    for name in found["runs"]:
        if not name or Path(name).name != name or name in (".", ".."):
            message = f"expected names of folders beside it, got {shown(name)}"
            raise InputError(str(path), "runs", message)
    over_seeds = found.get("over_seeds", {})
    missing = [name for name in over_seeds if name not in found["runs"]]
    spans = [one["interval"] for mine in over_seeds.values() for one in mine.values()]
    if any(span is not None and len(span) != 2 for span in spans):
        raise InputError(str(path), "over_seeds", "expected intervals of two numbers")
    if missing or ("over_seeds" in found) != ("seeds" in found):
        raise InputError(str(path), "over_seeds", "expected the runs and seeds of this file")
    return found


def sweep(path: Path) -> Document:
    """Read sweep.json; raise InputError unless it describes a sweep's points."""
    found = document(path, Sweep)
    if any(len(column) != 2 for column in found["columns"]):
        raise InputError(str(path), "columns", "expected pairs of name and type")
    return found


def claims(path: Path) -> list[dict[str, Any]]:
    """Read the claims of a claims.json; raise InputError unless `reproduce` writes such ones."""
    found: list[dict[str, Any]] = document(path, _Claims)["claims"]
    extra = {name for claim in found for name in claim} - set(_hints(_Claim))
    if extra:
        message = f"expected keys that reproduce writes, got {shown(min(extra))}"
        raise InputError(str(path), "claims", message)
    return found


def run(folder: Path) -> StoredResult:
    """Read a run's directory; raise InputError unless its summary is as `run -o` writes it."""
    for part in (folder / SUMMARY, folder / "scenario.toml", *sorted(folder.glob("*.parquet"))):
        regular(part)
    document(folder / SUMMARY, Summary)
    found = load_run(folder)
    summary, path = found.summary, str(folder / SUMMARY)
    window, duration_s = summary["measure_s"], summary["duration_s"]
    if duration_s <= 0:
        raise InputError(path, "duration_s", f"expected a time, got {duration_s:g} s")
    if len(window) != 2 or not 0 <= window[0] <= window[1] <= duration_s:
        raise InputError(path, "measure_s", f"expected two times in the run, got {shown(window)}")
    network = found.network
    expected = sum(flow.count for flow in network.flows)
    counted = sum(flow.get("count", 1) for flow in summary["flows"])
    if expected != counted:
        message = f"expected the {expected} flows of scenario.toml, got {counted}"
        raise InputError(path, "flows", message)
    names = [link.name for link in network.links]
    if names != [link["name"] for link in summary["links"]]:
        raise InputError(path, "links", "expected the links of scenario.toml, got others")
    return found


def document(path: Path, shape: Any) -> Document:
    """Read a JSON document of this shape, a TypedDict; raise InputError for any other."""
    regular(path)
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text)
        if "\\ud" in text.lower():
            # An escape may be half of a character, which no page can hold: raises ValueError.
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise InputError(str(path), "", f"expected a JSON document, got: {reason}") from None
    wrong = _wrong(found, shape, "")
    if wrong is not None:
        key, expected, got = wrong
        raise InputError(str(path), key, f"expected {expected}, got {got}")
    assert isinstance(found, dict)
    return found


def regular(path: Path) -> None:
    """Raise InputError unless a path is a file that can be read whole."""
    if not path.is_file():
        found = "something else" if path.exists() else "none"
        raise InputError(str(path), "", f"expected a file, found {found}")
    if path.stat().st_size > _MAX_BYTES:
        raise InputError(str(path), "", f"expected a file below {_MAX_BYTES / 1e9:g} GB")


def _wrong(value: Any, shape: Any, key: str) -> tuple[str, str, str] | None:
    """Return the first key whose value does not fit, what was expected, and what is there."""
    if shape is Any:
        return None
    if is_typeddict(shape):
        return _wrong_table(value, shape, key)
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        return _wrong_of_several(value, arguments, key)
    if origin is Literal:
        known = f"one of {', '.join(arguments)}"
        return None if value in arguments else (key, known, shown(value))
    if origin is list:
        if not isinstance(value, list):
            return key, "a list", shown(value)
        items = (_wrong(item, arguments[0], f"{key}[{i}]") for i, item in enumerate(value))
        return next((wrong for wrong in items if wrong is not None), None)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            return key, "an object", shown(value)
        entries = (_wrong(item, arguments[1], _join(key, name)) for name, item in value.items())
        return next((wrong for wrong in entries if wrong is not None), None)
    if shape is type(None):
        return None if value is None else (key, "null", shown(value))
    fits = isinstance(value, (int, float) if shape is float else shape)
    if not fits or (isinstance(value, bool) and shape is not bool):
        return key, _WORDS[shape], shown(value)
    if shape is float and not math.isfinite(_as_float(value)):
        return key, "a finite number", shown(value)
    return None


def _wrong_table(value: Any, shape: Any, key: str) -> tuple[str, str, str] | None:
    if not isinstance(value, dict):
        return key, "an object", shown(value)
    for name, hint in _hints(shape).items():
        if name in value:
            wrong = _wrong(value[name], hint, _join(key, name))
            if wrong is not None:
                return wrong
        elif name in shape.__required_keys__:
            return _join(key, name), "a value", "none"
    return None


def _wrong_of_several(value: Any, shapes: tuple[Any, ...], key: str) -> tuple[str, str, str] | None:
    if value is None and type(None) in shapes:
        return None
    first = None
    for shape in shapes:
        if shape is not type(None):
            wrong = _wrong(value, shape, key)
            if wrong is None:
                return None
            first = first or wrong
    return first


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of JSON has any length
        return math.inf


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


@cache
def _hints(shape: Any) -> dict[str, Any]:
    return get_type_hints(shape)
