"""Laws that a user has written in Python: their interface, their checks, and their runs.

A run has a table of laws by name, `laws={"ours-1": …, "ours-2": …}`. Flows refer to a law by its
name, as to a built-in protocol; the core refers to it by its place in the table. Everything that
lists or checks protocols takes the descriptions of these laws (`infos`) together with those of
the registry. A stored run has the same descriptions in its summary, so that it can be read without
the laws. `runs.law_files` finds laws: in files and in installed packages.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

from waterfill.contract.network import ParamValue
from waterfill.contract.summary import BaseRttEntry, LawParamEntry, LawSummary
from waterfill.errors import InputError, shown
from waterfill.network.protocols import UNITS, ParamInfo, ProtocolInfo
from waterfill.scenario.document import RECOVERIES, Scenario
from waterfill.scenario.units import RATE, TIME, VOLUME

# The numbers in a header, and their bytes.
MAX_FIELDS = 4
HEADER_BYTES = 16
MAX_LAWS = 255
KEY = "laws"
# Set by the core on an exception: the name of the law that raised it.
_RAISED_BY = "__waterfill_law__"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# A unit written for the quantity that a parameter's `unit` names.
_UNITS_OF = {"rate": (*RATE.units, "bps"), "time": TIME.units, "volume": (*VOLUME.units, "bytes")}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "ecn": ("off", "classic", "accurate", "l4s"),
    "reduction": ("law", "proportional"),
    "recovery": RECOVERIES,
}


class RouterLaw(Protocol):
    """Interface of a router's law in Python. A run creates one instance per link direction."""

    def on_arrival(self, link: Any, passing: Any) -> None:
        """Count a packet as load, and update `passing.header`, which is None in packets of other
        protocols.
        """
        ...


class SourceLaw(Protocol):
    """Interface of a sender's law in Python. A run creates one instance per connection.

    Optional calls: `stamp(sending)` returns the header fields of a packet about to be sent,
    `on_event(now_s, event)` handles a loss and the like, `observe()` returns the law's signals.
    """

    def on_ack(self, ack: Any) -> None:
        """Process an acknowledgement. Its `echo` is the header that the receiver returned."""
        ...

    def limit(self) -> tuple[float | None, float | None]:
        """Return the window (bytes) and the pacing rate (bit/s). None means no limit."""
        ...


@dataclass(frozen=True)
class LawParam:
    """A parameter of a law in Python, which scenarios set as `params.NAME.PARAMETER`.

    `unit` is one of ratio, rate (bit/s), time (s), volume (bytes), packets, count, choice, flag.
    `default`, `min` and `max` are numbers in the SI unit; `default` may also be a text such as
    "100 ms". A choice has `choices`, a flag is True or False.
    """

    default: ParamValue
    unit: str = "ratio"
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    doc: str = ""


@dataclass(frozen=True)
class PythonLaw:
    """A user's own law, for `waterfill.run(…, laws={"name": law})` on sim only.

    `source` is a class with the calls of a sender; `router` and `receiver` are optional. Without a
    receiver the last header is echoed. `header` names up to four numbers of single precision that
    packets carry; a law without a header and a router adds no bytes to packets. `params` are the
    law's parameters by name, `signals` the units of its own series by name. `ecn` says how the
    law wants marks: off, classic, accurate, or l4s (ECT(1), counted by AccECN); `reduction` who
    lowers the data in flight after a loss: law or proportional (the host, by PRR); `recovery` how
    the host finds losses, unless a flow's `recovery` says otherwise. `target` is the utilization,
    in (0, 1], of which max-min shares are computed. See docs/reference/laws-in-python.md.

    >>> import waterfill
    >>> class Fixed:
    ...     def __init__(self, connection):
    ...         self.window_bytes = connection.params.packets * connection.packet_bytes
    ...     def on_ack(self, ack):
    ...         pass
    ...     def limit(self):
    ...         return self.window_bytes, None
    >>> packets = waterfill.LawParam(5, "count", min=1)
    >>> law = waterfill.PythonLaw(source=Fixed, params={"packets": packets}, paced=False)
    >>> one = waterfill.Scenario("one", duration="10 s", protocol="fixed")
    >>> one = one.link("l", "a", "b", "10 Mbit/s", "50 ms").flow("f", "a", "b")
    >>> result = one.run(laws={"fixed": law})
    >>> round(result.summary["flows"][0]["rate_bps"] / 1e6, 1)
    0.6
    >>> result = one.params("fixed", packets=10).run(laws={"fixed": law})
    >>> round(result.summary["flows"][0]["rate_bps"] / 1e6, 1)
    1.2
    """

    source: type[SourceLaw]
    router: type[RouterLaw] | None = None
    receiver: type[Any] | None = None
    header: tuple[str, ...] = ()
    target: float = 1.0
    paced: bool = True
    ecn: str = "off"
    reduction: str = "law"
    recovery: str = "rfc6675"
    params: Mapping[str, LawParam] = field(default_factory=dict)
    signals: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""


class BoundLaw(NamedTuple):
    """A law with the values of its parameters, as the core reads it.

    `params` has one attribute per parameter, in SI units, or is None for a law without parameters.
    """

    source: Any
    router: Any
    receiver: Any
    header: list[str]
    target: float
    paced: bool
    ecn: str
    reduction: str
    signals: list[str]
    params: SimpleNamespace | None


# --- checks ------------------------------------------------------------------------------------


def check(laws: Mapping[Any, Any], known: Mapping[str, ProtocolInfo], file: str = "run") -> None:
    """Raise InputError for a law that cannot be run, or whose name is that of a protocol."""
    if len(laws) > MAX_LAWS:
        raise InputError(file, KEY, f"must be at most {MAX_LAWS} laws, got {len(laws)}")
    for name, law in laws.items():
        key = f"{KEY}.{name}"
        if name in known:
            raise InputError(file, key, "is the name of a protocol", "choose another")
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            wanted = "must be a name of letters, digits, _ and -"
            raise InputError(file, key, f"{wanted}, got {shown(name)}")
        if not isinstance(law, PythonLaw):
            got = shown(type(law).__name__)
            raise InputError(file, key, f"must be a waterfill.PythonLaw, got {got}")
        for part, problem in _problems(law):
            raise InputError(file, f"{key}.{part}", problem)
        for param in law.params:
            _check_param(file, f"{key}.params.{param}", law.params[param])


def _problems(law: PythonLaw) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for each field of a law that is wrong by itself."""
    if type(law.header) is not tuple or len(law.header) > MAX_FIELDS:
        yield "header", f"must be a tuple of up to {MAX_FIELDS} names, got {shown(law.header)}"
    for part in ("source", "router", "receiver"):
        end = getattr(law, part)
        if not callable(end) and (end is not None or part == "source"):
            yield part, f"must be a class, got {shown(end)}"
    target: Any = law.target
    if isinstance(target, bool) or not isinstance(target, (int, float)) or not 0 < target <= 1:
        yield "target", f"must be above 0 and at most 1, got {shown(law.target)}"
    for part, words in _CHOICES.items():
        if getattr(law, part) not in words:
            got = shown(getattr(law, part))
            yield part, f"must be {', '.join(words[:-1])} or {words[-1]}, got {got}"
    for part in ("params", "signals"):
        given: Any = getattr(law, part)
        if not isinstance(given, Mapping):
            yield part, f"must be a dictionary by name, got {shown(given)}"
            continue
        for name, value in given.items():
            if not isinstance(name, str) or not name.isidentifier():
                yield part, f"must have names of letters, digits and _, got {shown(name)}"
            if part == "signals" and not isinstance(value, str):
                yield f"signals.{name}", f"must be the unit as a text, got {shown(value)}"


def _check_param(file: str, key: str, param: object) -> None:
    if not isinstance(param, LawParam):
        got = shown(type(param).__name__)
        raise InputError(file, key, f"must be a waterfill.LawParam, got {got}")
    if param.unit not in UNITS:
        problem = f"must be one of {', '.join(UNITS)}, got {shown(param.unit)}"
        kind = next((kind for kind, units in _UNITS_OF.items() if param.unit in units), None)
        advice = "" if kind is None else f'for {param.unit} write "{kind}"; numbers are in SI units'
        raise InputError(file, f"{key}.unit", problem, advice)
    if param.unit == "choice" and not param.choices:
        raise InputError(file, f"{key}.choices", "must not be empty for a choice")
    try:
        _default(param)
    except ValueError as error:
        raise InputError(file, f"{key}.default", str(error)) from None


def _default(param: LawParam) -> ParamValue:
    """Return a parameter's default in the SI unit; raise ValueError for a wrong default."""
    info = ParamInfo("", param.unit, None, param.choices, min=param.min, max=param.max)
    is_number = isinstance(param.default, (int, float)) and not isinstance(param.default, bool)
    if is_number and param.unit not in ("flag", "choice"):
        return info.in_range(float(param.default))
    return info.parse(param.default)


# --- descriptions ------------------------------------------------------------------------------


def used(laws: Mapping[str, PythonLaw], scenario: Scenario) -> dict[str, PythonLaw]:
    """Return the laws that a flow or a link of the scenario uses."""
    names = scenario.protocols()
    return {name: law for name, law in laws.items() if name in names}


def summary(law: PythonLaw) -> LawSummary:
    """Return the description of a law in a run's summary, without which a stored run cannot be
    read.
    """
    has_header = law.router is not None or bool(law.header)
    return LawSummary(
        header=list(law.header),
        target=law.target,
        kind="explicit" if has_header else "end-to-end",
        header_bytes=HEADER_BYTES if has_header else 0,
        paced=law.paced,
        about=law.summary,
        params=[
            LawParamEntry(
                name=name,
                unit=param.unit,
                default=_default(param),
                choices=list(param.choices),
                min=param.min,
                max=param.max,
                doc=param.doc,
            )
            for name, param in law.params.items()
        ],
        signals=dict(law.signals),
        recovery=law.recovery,
    )


def summaries(laws: Mapping[str, PythonLaw]) -> dict[str, LawSummary]:
    """Return the descriptions of laws by name, as a run's summary has them."""
    return {name: summary(law) for name, law in laws.items()}


def infos(laws: Mapping[str, LawSummary]) -> dict[str, ProtocolInfo]:
    """Return the protocol descriptions of laws in Python by name, in the registry's format."""
    return {name: _info(name, law) for name, law in laws.items()}


def _info(name: str, law: LawSummary) -> ProtocolInfo:
    return ProtocolInfo(
        name,
        law.kind,
        ("sim",),
        law.header_bytes,
        tuple(
            ParamInfo(p.name, p.unit, p.default, tuple(p.choices), p.doc, min=p.min, max=p.max)
            for p in law.params or ()
        ),
        echo_bytes=law.header_bytes,
        summary=law.about or "a law in Python",
        signals=tuple(law.signals or ()),
        recovery=law.recovery,
        is_python=True,
        paced=law.paced,
        base_rtt=BaseRttEntry(window_s=None, limits_rate=False),
    )


def bound(law: PythonLaw, values: Mapping[str, ParamValue | None]) -> BoundLaw:
    """Return a law with the values of its parameters, for the core."""
    return BoundLaw(
        law.source,
        law.router,
        law.receiver,
        list(law.header),
        law.target,
        law.paced,
        law.ecn,
        law.reduction,
        list(law.signals),
        SimpleNamespace(**values) if law.params else None,
    )


# --- errors ------------------------------------------------------------------------------------


class LawError(InputError):
    """Error in a law's own code: an exception, or an answer that the core refuses."""


def text_of(error: BaseException) -> str:
    """Return an exception's type and text, or only the type if the exception has no usable text."""
    kind = type(error).__name__
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a law's own exception may do anything here
        text = ""
    return f"{kind}: {text}" if text else kind


@contextmanager
def errors(names: Iterable[str], scenario: Scenario, *, building: bool) -> Iterator[None]:
    """Convert exceptions of the laws with these names, and the core's errors about them, to
    InputError.

    While the core builds a run, its own errors are the scenario's.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if type(error).__module__ == "pyo3_runtime":  # a panic of the core is no law's error
            raise
        # SystemExit too: a law's would end the command, perhaps with 0 and without an answer.
        name = getattr(error, _RAISED_BY, None)
        known = name if isinstance(name, str) else " or ".join(names)
        found = raised(known, error)
        if found is None and building and name is None and isinstance(error, ValueError):
            raise scenario.core_error(error) from None
        raise found or LawError("run", f"{KEY}.{known}", text_of(error)) from error


def raised(name: str, error: BaseException) -> LawError | None:
    """Return a LawError for an error raised in a law's code, or None for any other error."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(__file__.removesuffix("laws.py"))
        and not frame.filename.startswith("<frozen ")
    ]
    if not frames:
        return None
    place = frames[-1]
    at = f"{place.filename}:{place.lineno}"
    return LawError(at, place.name, f"the law {name} raised {text_of(error)}")
