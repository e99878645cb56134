"""The parameters of a link's queue and faults: names, units, defaults, checks.

The keys of `queue_params`, `loss_model` and `reorder` depend on the kind of queue or fault. They
are checked here when a scenario is read, and kept as written. `network.links` resolves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from waterfill.errors import nearest, shown
from waterfill.scenario import queue_params
from waterfill.scenario.distributions import PartError
from waterfill.scenario.units import (
    PACKETS,
    RATE,
    SPAN,
    TIME,
    VOLUME,
    Buffer,
    Quantity,
    number,
    whole,
)

# The RTT of a link that no flow crosses.
NOMINAL_RTT_S = 0.1
# As in tc-fq_codel.
_MAX_QUEUES = 65_536

_LEVELS: Mapping[str, Quantity] = {
    "packets": replace(PACKETS, name="a queue length"),
    "bytes": replace(VOLUME, name="a queue length", whole=True),
}


@dataclass(frozen=True)
class _Param:
    """One parameter of a queue or fault: its parser, its default and its JSON Schema.

    A parameter without a default is required.
    """

    read: Callable[[object], Any]
    default: Any
    schema: Mapping[str, Any]


def level(value: object) -> Buffer:
    """Parse a queue length, `"65 packets"` or `"100 kB"`; raise ValueError for other values."""
    if isinstance(value, Buffer):
        return value
    for unit, quantity in _LEVELS.items():
        if isinstance(value, str) and quantity.matches(value):
            return Buffer(quantity.parse(value), "packets" if unit == "packets" else "bytes")
    wanted = 'a queue length such as "65 packets" or "100 kB"'
    raise ValueError(f"must be {wanted}, got {shown(value)}")


LEVEL_SCHEMA: Mapping[str, Any] = {
    "anyOf": [{"type": "string", "pattern": q.ecma_pattern} for q in _LEVELS.values()]
}


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, got {shown(value)}")
    return value


def _text(quantity: Quantity) -> dict[str, Any]:
    return {"type": "string", "pattern": quantity.ecma_pattern, "examples": [quantity.example]}


def _level(default: str) -> _Param:
    return _Param(level, default, LEVEL_SCHEMA)


def _share(default: float | None, *, zero: bool = True) -> _Param:
    bounds = {"minimum": 0, "maximum": 1} if zero else {"exclusiveMinimum": 0, "maximum": 1}

    def read(value: object) -> float:
        return number(value, minimum=0, maximum=1) if zero else number(value, above=0, maximum=1)

    return _Param(read, default, {"type": "number", **bounds})


def _time(default: str) -> _Param:
    quantity = replace(SPAN, example=default)
    return _Param(quantity.parse, default, _text(quantity))


def _count(default: int | None, most: int) -> _Param:
    schema = {"type": "integer", "minimum": 1, "maximum": most}
    return _Param(lambda value: whole(value, minimum=1, maximum=most), default, schema)


def _update(value: object) -> float:
    # The simulator computes each update.
    seconds = SPAN.parse(value)
    if seconds < 1e-6:
        raise ValueError(f"must be at least 1 us, got {shown(value)}")
    return seconds


def _rtt_max(value: object) -> float:
    seconds = SPAN.parse(value)
    if seconds < 3e-6:
        raise ValueError(f"must be at least 3 us, got {shown(value)}")
    return seconds


def _between_0_and_1(value: object) -> float:
    share = number(value, above=0, maximum=1)
    if share == 1:
        raise ValueError(f"must be below 1, got {shown(value)}")
    return share


def _gain(default: float) -> _Param:
    schema = {"type": "number", "minimum": 0, "maximum": 1e9}
    return _Param(lambda value: number(value, minimum=0, maximum=1e9), default, schema)


_ECN = _Param(_flag, True, {"type": "boolean"})
# S. Floyd's advice of 1997 (thresholds 5 and 15 packets, weight 0.002, 1 in 10) and 2000 (gentle).
_RED = {
    "min_threshold": _level("5 packets"),
    "max_threshold": _level("15 packets"),
    "max_p": _share(0.1, zero=False),
    "weight": _share(0.002, zero=False),
    "gentle": _Param(_flag, True, {"type": "boolean"}),
    "ecn": _ECN,
}
# RFC 8289 §4, RFC 8290 §5.
_CODEL = {"target": _time("5 ms"), "interval": _time("100 ms"), "ecn": _ECN}
# RFC 8033 §4.1, §4.2, §4.4, §5.1.
_UPDATE = replace(SPAN, example="15 ms")
_PIE = {
    "target": _time("15 ms"),
    "update": _Param(_update, "15 ms", _text(_UPDATE)),
    "alpha": _gain(0.125),
    "beta": _gain(1.25),
    "max_burst": _Param(TIME.parse, "150 ms", _text(replace(TIME, example="150 ms"))),
    "ecn": _ECN,
    "mark_below": _share(0.1),
}
_QUANTUM = replace(VOLUME, example="1514 B", zero=False, whole=True, at_most=2.0**31)
# RFC 9332 Appendix A.1; the share is Linux's.
DUALPI2_TIMES = ("target", "rtt_max", "ramp_start", "ramp_range")
_DUALPI2 = {
    "target": _Param(_update, "15 ms", _text(_UPDATE)),
    "rtt_max": _Param(_rtt_max, "100 ms", _text(replace(SPAN, example="100 ms"))),
    "coupling": _Param(
        lambda value: number(value, minimum=0.01, maximum=1e3),
        2.0,
        {"type": "number", "minimum": 0.01, "maximum": 1e3},
    ),
    "ramp_start": _Param(TIME.parse, "800 us", _text(replace(TIME, example="800 us"))),
    "ramp_range": _Param(TIME.parse, "400 us", _text(replace(TIME, example="400 us"))),
    "ramp_packets": _Param(
        lambda value: whole(value, minimum=0, maximum=2**31),
        1,
        {"type": "integer", "minimum": 0, "maximum": 2**31},
    ),
    "classic_share": _Param(
        _between_0_and_1, 0.1, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    ),
}
_FLOW_QUEUES = {
    "quantum": _Param(_QUANTUM.parse, "1514 B", _text(_QUANTUM)),
    "flows": _count(1024, _MAX_QUEUES),
}
QueueName: TypeAlias = Literal[
    "droptail", "red", "codel", "fq_codel", "pie", "fq_pie", "dualpi2", "choke", "cohabit"
]
QUEUES: tuple[str, ...] = get_args(QueueName)
"""Queue disciplines of a link."""
_QUEUES: Mapping[str, Mapping[str, _Param]] = {
    "red": _RED,
    "choke": _RED,
    "codel": _CODEL,
    "fq_codel": {**_CODEL, **_FLOW_QUEUES},
    "pie": _PIE,
    "fq_pie": {**_PIE, **_FLOW_QUEUES},
    "dualpi2": _DUALPI2,
}
_LOSSES: Mapping[str, Mapping[str, _Param]] = {
    "independent": {"p": _share(None)},
    "gilbert-elliott": {
        "p": _share(None),
        "r": _share(None),
        "loss_good": _share(0.0),
        "loss_bad": _share(1.0),
    },
    "periodic": {"every": _count(None, 2**63 - 1)},
}
_DEPTH = replace(VOLUME, example="64 kB", zero=False)
# Linux's smallest HZ was 100; beyond a second a bucket is no shaper any more.
_TICK = replace(TIME, example="1 ms", at_most=1.0)
_SHAPER = {
    "rate": _Param(RATE.parse, None, _text(RATE)),
    "depth": _Param(_DEPTH.parse, None, _text(_DEPTH)),
    "timer": _Param(_TICK.parse, "0 s", _text(_TICK)),
}
_LATE = {"share": _share(None), "delay": _Param(SPAN.parse, "", _text(SPAN))}
_RELEASE = replace(SPAN, example="20 ms")
_AGGREGATION = {
    "every": _Param(_RELEASE.parse, None, _text(_RELEASE)),
    "at": _Param(TIME.parse, "0 s", _text(TIME)),
    "until": _Param(SPAN.parse, "", _text(SPAN)),
}


def _read(params: Mapping[str, _Param], given: Mapping[str, Any], of: str) -> dict[str, Any]:
    """Return the values of all parameters, including defaults; raise PartError for a wrong one."""
    for name in given:
        if name not in params:
            known = nearest(name, params)
            raise PartError(str(name), f"unknown parameter{of}{known}")
    values = {}
    for name, param in params.items():
        if name not in given and param.default is None:
            raise PartError(name, f"missing; write {_wanted(param)}")
        if name not in given and param.default == "":
            continue
        try:
            values[name] = param.read(given.get(name, param.default))
        except ValueError as error:
            raise PartError(name, str(error)) from None
    return values


def _wanted(param: _Param) -> str:
    if param.schema["type"] == "string":
        return f'a quantity such as "{param.schema["examples"][0]}"'
    return "a whole number above 0" if param.schema["type"] == "integer" else "a number from 0 to 1"


def read_queue(kind: str, given: object) -> dict[str, Any]:
    """Check the parameters of a queue discipline; return them in SI units, or as written for a
    cohabit queue.

    Raises PartError.
    """
    if not isinstance(given, Mapping):
        raise PartError("", f"must be a table, got {shown(given)}")
    if kind == "cohabit":
        try:
            queue_params.read(given)
        except ValueError as error:
            name, _, message = str(error).partition(": ")
            raise PartError(name, message) from None
        return dict(given)
    if kind not in _QUEUES:
        if given:
            raise PartError("", f'not allowed with queue = "{kind}", got {shown(given)}')
        return {}
    values = _read(_QUEUES[kind], given, f' of queue = "{kind}"')
    if kind in ("red", "choke"):
        low, high = values["min_threshold"], values["max_threshold"]
        got = f"got {high.format()}"
        if low.unit != high.unit:
            raise PartError("max_threshold", f"must be in {low.unit}, as min_threshold is, {got}")
        if low.amount >= high.amount:
            message = f"must be above min_threshold, {low.format()}, {got}"
            raise PartError("max_threshold", message)
    elif "interval" in values and values["target"] >= values["interval"]:
        limit, got = (SPAN.format(values[name]) for name in ("interval", "target"))
        raise PartError("target", f"must be below interval, {limit}, got {got}")
    return values


def read_loss(given: object) -> dict[str, Any]:
    """Return a loss model including its `kind`; raise PartError if the model is invalid."""
    if not isinstance(given, Mapping):
        example = '{kind = "gilbert-elliott", p = 0.001, r = 0.1}'
        raise PartError("", f"must be a table such as {example}, got {shown(given)}")
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in _LOSSES:
        got = "nothing" if kind is None else shown(kind)
        known = ", ".join(f'"{name}"' for name in _LOSSES)
        raise PartError("kind", f"must be one of {known}, got {got}")
    rest = {name: value for name, value in given.items() if name != "kind"}
    return {"kind": kind, **_read(_LOSSES[kind], rest, f' of kind = "{kind}"')}


def read_late(given: object) -> dict[str, float]:
    """Return `share` and, if given, `delay` (s) of late packets; raise PartError for wrong ones."""
    if isinstance(given, Mapping):
        return _read(_LATE, given, "")
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return {"share": number(given, minimum=0, maximum=1)}
    example = '0.01, or a table such as {share = 0.01, delay = "5 ms"}'
    raise PartError("", f"must be {example}, got {shown(given)}")


def read_shaper(given: object) -> dict[str, float]:
    """Return `rate` (bit/s), `depth` (bytes) and `timer` (s) of a token bucket.

    Raises PartError.
    """
    if not isinstance(given, Mapping):
        example = '{rate = "500 Mbit/s", depth = "64 kB", timer = "1 ms"}'
        raise PartError("", f"must be a table such as {example}, got {shown(given)}")
    return _read(_SHAPER, given, "")


def read_aggregation(given: object) -> dict[str, float]:
    """Return `every`, `at` and, if given, `until` (s) of held acknowledgements.

    Raises PartError.
    """
    if isinstance(given, Mapping):
        return _read(_AGGREGATION, given, "")
    if isinstance(given, str):
        try:
            return {"every": _RELEASE.parse(given), "at": 0.0}
        except ValueError as error:
            raise PartError("", str(error)) from None
    example = '"20 ms", or a table such as {every = "20 ms", at = "5 s", until = "8 s"}'
    raise PartError("", f"must be {example}, got {shown(given)}")


def _table(params: Mapping[str, _Param], kind: str | None = None) -> dict[str, Any]:
    properties = {name: dict(param.schema) for name, param in params.items()}
    required = [name for name, param in params.items() if param.default is None]
    if kind is not None:
        properties = {"kind": {"const": kind}, **properties}
        required = ["kind", *required]
    for name, param in params.items():
        if param.default not in (None, ""):
            properties[name]["default"] = param.default
    table = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**table, "required": required} if required else table


def queue_schema() -> dict[str, Any]:
    """Return the JSON Schema of `queue_params`."""
    # CHOKe's parameters are RED's.
    tables = [
        _table(_QUEUES[kind]) for kind in ("red", "codel", "fq_codel", "pie", "fq_pie", "dualpi2")
    ]
    return {"anyOf": [*tables, queue_params.schema()]}


def loss_schema() -> dict[str, Any]:
    """Return the JSON Schema of `loss_model`."""
    return {"anyOf": [_table(params, kind) for kind, params in _LOSSES.items()]}


def shaper_schema() -> dict[str, Any]:
    """Return the JSON Schema of `shaper`."""
    return _table(_SHAPER)


def aggregation_schema() -> dict[str, Any]:
    """Return the JSON Schema of `ack_aggregation`."""
    return {"anyOf": [_text(_RELEASE), _table(_AGGREGATION)]}


def late_schema() -> dict[str, Any]:
    """Return the JSON Schema of `reorder`."""
    return {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, _table(_LATE)]}
