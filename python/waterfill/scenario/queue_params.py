"""The parameters of `queue = "cohabit"`: keys, units and defaults.

The keys `controller` and `estimator` choose one each, and each choice has keys of its own; a key of
another choice is an error. `separate = true` replaces the controller: each class has a queue of its
own. docs/reference/cohabitation.md explains them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from waterfill.errors import nearest, shown
from waterfill.scenario.units import SPAN, number, whole

Parse = Callable[[object], Any]
Document = dict[str, Any]

_SHARE = partial(number, above=0, maximum=1)
_ABOVE = partial(number, above=0)
_MAX_ENTRIES = 2**23


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, got {shown(value)}")
    return value


def _word(*words: str) -> Parse:
    return partial(_one_of, words)


def _one_of(words: Sequence[str], value: object) -> str:
    if not isinstance(value, str) or value not in words:
        wanted = " or ".join(f'"{word}"' for word in words)
        raise ValueError(f"must be {wanted}, got {shown(value)}")
    return value


def _word_or_time(words: Sequence[str], value: object) -> str | float:
    if isinstance(value, str) and value in words:
        return value
    try:
        return SPAN.parse(value)
    except ValueError as error:
        wanted = ", ".join(f'"{word}"' for word in words)
        raise ValueError(f"{error}; or {wanted}") from None


def _between(low: float, high: float) -> Parse:
    def parse(value: object) -> float:
        result = number(value)
        if not low < result < high:
            raise ValueError(f"must be between {low:g} and {high:g}, got {shown(value)}")
        return result

    return parse


# When the paper's factor is applied: at the end of an interval, or for each packet of a class.
UPDATES = ("interval", "packet", "explicit-packet", "tcp-packet")
# `interval` with this value follows XCP's mean RTT.
LAW_INTERVAL = "xcp"
# For each choice its keys: (parser, default). In the core, keys of times end in _s.
CONTROLLERS: Mapping[str, Mapping[str, tuple[Parse, object]]] = {
    "improved": {
        "aim": (_SHARE, 0.9),
        "integral": (_ABOVE, 0.5),
        "proportional": (partial(number, minimum=0), 1.0),
        "depth": (SPAN.parse, "300 ms"),
    },
    "paper": {
        "initial": (_SHARE, 0.001),
        "decrease": (_between(0, 1), 0.9999),
        "increase": (partial(number, above=1), 1.0001),
        "threshold": (_SHARE, 0.97),
        "update": (partial(_word_or_time, UPDATES), "interval"),
    },
    "off": {},
}
ESTIMATORS: Mapping[str, Mapping[str, tuple[Parse, object]]] = {
    "sred": {
        "size": (partial(whole, minimum=1, maximum=_MAX_ENTRIES), 1000),
        "replace": (_SHARE, 0.25),
        "delta": (_SHARE, None),
        "shared": (_flag, False),
        "trials": (_word("class", "all"), "class"),
    },
    "nred": {
        "levels": (partial(whole, minimum=1, maximum=64), 4),
        "bins": (partial(whole, minimum=1, maximum=_MAX_ENTRIES), 4096),
        "period": (SPAN.parse, "2 s"),
        "hash": (_word("flow", "pair"), "flow"),
    },
    "exact": {"period": (SPAN.parse, "2 s")},
}
# With a queue per class (`separate = true`) there is no drop probability to control.
SEPARATE = "separate"
# The paper counts flows with a zombie list; the improved controller's count ignores their rates.
_ESTIMATOR_OF = {"paper": "sred", "improved": "nred", "off": "sred", SEPARATE: "nred"}
COMMON: Mapping[str, tuple[Parse, object]] = {
    "inspect": (_SHARE, 1.0),
    "interval": (partial(_word_or_time, (LAW_INTERVAL,)), None),
    "count_drops": (_word("never", "module", "router"), "never"),
    "explicit_weight": (_ABOVE, 1.0),
    "ecn": (_flag, None),
}
_TIMES = ("interval", "depth", "period")
_CHOICES = ("controller", "estimator", "separate")


class Cohabit(NamedTuple):
    """Parameters of a cohabit queue in SI units. Names of times end in `_s`.

    `common["interval_s"]` and `common["ecn"]` are None where the scenario gives none. The interval
    is then the largest base RTT across the link (XCP's is about the mean RTT), and `ecn` is true
    with the improved controller. `common["interval_s"]` is "xcp" where it follows the law's, and
    `controller_params["update"]` one of `UPDATES` or a time in seconds.
    """

    controller: str
    controller_params: Document
    estimator: str
    estimator_params: Document
    common: Document


def read(params: Mapping[str, Any]) -> Cohabit:
    """Read the parameters of a cohabit queue; raise ValueError with `KEY: PROBLEM`."""
    if _separate(params):
        controller = SEPARATE
        for key in ("controller", "ecn", *(key for keys in CONTROLLERS.values() for key in keys)):
            if key in params:
                why = "separate = true drops only from a full buffer"
                raise ValueError(f"{key}: not allowed with separate = true; {why}")
    else:
        controller = _choice(params, "controller", CONTROLLERS, "improved")
    estimator = _choice(params, "estimator", ESTIMATORS, _ESTIMATOR_OF[controller])
    own = CONTROLLERS.get(controller, {})
    known = {*COMMON, *own, *ESTIMATORS[estimator]}
    for key in params:
        if key in _CHOICES or key in known:
            continue
        for kind, choices in (("controller", CONTROLLERS), ("estimator", ESTIMATORS)):
            owners = [name for name, keys in choices.items() if key in keys]
            if owners:
                mine = " or ".join(f'"{name}"' for name in owners)
                raise ValueError(f"{key}: only allowed with {kind} = {mine}")
        names = {*known, *_CHOICES}
        raise ValueError(f"{key}: unknown key{nearest(key, names)}")
    estimator_params = _values(params, ESTIMATORS[estimator])
    if estimator == "sred" and estimator_params["delta"] is None:
        # §4.2: the probability that a packet changes the table's entry that it meets.
        estimator_params["delta"] = estimator_params["replace"] / estimator_params["size"]
    return Cohabit(
        controller,
        _values(params, own),
        estimator,
        estimator_params,
        _values(params, COMMON),
    )


def schema() -> Document:
    """Return the JSON Schema of a cohabit queue's `queue_params`. It does not check combinations of
    keys.
    """
    owners = (COMMON, *CONTROLLERS.values(), *ESTIMATORS.values())
    properties = {
        "controller": {"enum": [*CONTROLLERS], "default": "improved"},
        "estimator": {"enum": [*ESTIMATORS]},
        "separate": {"type": "boolean", "default": False},
        **{key: _type(key, parse) for keys in owners for key, (parse, _) in keys.items()},
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _type(key: str, parse: Parse) -> Document:
    if isinstance(parse, partial) and parse.func is _one_of:
        return {"type": "string", "enum": [*parse.args[0]]}
    if isinstance(parse, partial) and parse.func is _word_or_time:
        words = parse.args[0]
        pattern = f"^({'|'.join(words)})$|{SPAN.ecma_pattern}"
        return {"type": "string", "pattern": pattern, "examples": [*words, SPAN.example]}
    if key in _TIMES:
        return {"type": "string", "pattern": SPAN.ecma_pattern, "examples": [SPAN.example]}
    if parse is _flag:
        return {"type": "boolean"}
    whole_number = isinstance(parse, partial) and parse.func is whole
    return {"type": "integer" if whole_number else "number"}


def _separate(params: Mapping[str, Any]) -> bool:
    try:
        return _flag(params.get("separate", False))
    except ValueError as error:
        raise ValueError(f"separate: {error}") from None


def _choice(params: Mapping[str, Any], key: str, known: Mapping[str, Any], default: str) -> str:
    value = params.get(key, default)
    if not isinstance(value, str) or value not in known:
        wanted = " or ".join(f'"{name}"' for name in known)
        raise ValueError(f"{key}: must be {wanted}, got {shown(value)}")
    return value


def _values(params: Mapping[str, Any], keys: Mapping[str, tuple[Parse, object]]) -> Document:
    found: Document = {}
    for key, (parse, default) in keys.items():
        value = params.get(key, default)
        try:
            parsed = None if value is None else parse(value)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
        found[f"{key}_s" if key in _TIMES else key] = parsed
    return found
