"""Subject of a `theory` command: a single protocol, or a scenario's network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from waterfill.contract.network import Network, ParamValue
from waterfill.errors import InputError, nearest, shown
from waterfill.network import protocols, resolve
from waterfill.runs.backends import Checkable
from waterfill.scenario import given
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import Sets, from_dict, load
from waterfill.scenario.units import SPAN

_P = ParamSpec("_P")
_T = TypeVar("_T")

# At a shorter RTT the loops' frequencies lie beyond what the solvers resolve.
MIN_TIME_S = 1e-6

# The scenario of a protocol by itself, which only holds the parameters given by --set.
_PLACEHOLDER: Mapping[str, Any] = {
    "name": "theory",
    "duration": "1 s",
    "link": [{"name": "link", "from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "1 ms"}],
    "flow": [{"name": "flow", "path": ["link"]}],
}


# Keys that make a network change with time; the analysis has one state.
_CHANGING: Mapping[str, Sequence[str]] = {
    "link": ("event", "rate_trace", "rate_trace_reverse", "delay_trace", "delay_trace_reverse"),
    "flow": ("route", "demand_trace", "application"),
}
# Keys of flows and links that the analysis does not use.
_TIMES = ("start", "stop", "stagger", "start_jitter", "size", "after")
_DISTURBING: Mapping[str, Sequence[str]] = {
    "link": ("loss", "loss_reverse", "loss_model", "reorder", "duplicate", "fault"),
    "flow": ("fault", "claimed_rtt"),
}


class Subject(NamedTuple):
    """A protocol and its parameters in SI units. `network` is None for a law without a scenario.

    `chosen` has the names of the parameters that are not defaults.
    """

    protocol: str
    params: dict[str, ParamValue | None]
    network: Network | None
    scenario: Scenario | None
    chosen: frozenset[str] = frozenset()


def parse(
    what: str | Checkable, sets: Sets, supported: Sequence[str], protocol: str | None = None
) -> Subject:
    """Load the subject that a command's argument names: a supported protocol or a scenario file.

    From Python, it may also be a `waterfill.Scenario`, and `sets` a dictionary.

    Raises InputError if it is neither, or if a parameter is wrong.
    """
    if not isinstance(what, str):
        return _on_network(what.checked(_with(sets, protocol)), supported)
    if what in supported:
        if protocol is not None:
            why = f"no effect, because {what} is a protocol, got {shown(protocol)}"
            raise InputError("command line", "protocol", why, "remove it")
        for assignment in sets:
            key = assignment.partition("=")[0]
            if not key.startswith(f"params.{what}."):
                advice = f"set a parameter such as params.{what}.…, or name a scenario file"
                raise InputError("command line", key, f"not a parameter of {what}", advice)
        placeholder = from_dict(_PLACEHOLDER, "command line", _with(sets, what))
        return _subject(placeholder, what, None)
    if not what.endswith(".toml") and not Path(what).exists():
        if what in protocols.load():
            if protocols.load()[what].kind == "explicit":
                why = "not covered by this command"
            else:
                why = "no router computes its rate, and this command covers only loops of routers"
            raise InputError("command line", what, why, f"choose one of {', '.join(supported)}")
        known = nearest(what, supported)
        raise InputError("command line", what, f"neither a protocol nor a scenario file{known}")
    return _on_network(load(what, _with(sets, protocol)), supported)


def _with(sets: Sets, protocol: str | None) -> Sets:
    """Return overrides with that of the protocol before them, if there is one."""
    if isinstance(sets, Mapping):
        return dict(sets) if protocol is None else {"protocol": protocol, **sets}
    return list(sets) if protocol is None else [f"protocol={protocol}", *sets]


def _on_network(scenario: Scenario, supported: Sequence[str]) -> Subject:
    """Return the subject of a scenario whose flows all have one supported protocol."""
    network = resolve.to_core(scenario, protocols.load())
    if network.has_switched:
        why = f'"{scenario.ecmp}" lets switches choose links in a run, and theory needs fixed paths'
        raise scenario.error("ecmp", why, 'use ecmp = "pair"')
    _refuse_changes(scenario)
    if scenario.collective:
        why = "its messages wait for each other, and theory has all flows at the same time"
        raise scenario.error(f"collective.{scenario.collective[0].name}", why, "remove it")
    used = list(dict.fromkeys(flow.protocol for flow in network.flows))
    if len(used) != 1 or used[0] not in supported:
        raise scenario.error(
            "protocol",
            f"all flows must have one protocol of {', '.join(supported)}, got {', '.join(used)}",
        )
    _refuse_other_routers(scenario, used[0])
    return _subject(scenario, used[0], network)


def _refuse_changes(scenario: Scenario) -> None:
    """Raise InputError for a network that changes during a run."""
    for section, names in _CHANGING.items():
        for key in given.keys(scenario, section, names):
            why = "theory needs a network that does not change"
            instead = {
                "route": "`path`",
                "demand_trace": "`demand`",
                "application": "`demand`",
                "event": "`rate` and `delay`",
            }
            name = key.rpartition(".")[2]
            other = "`rate`" if name.startswith("rate") else "`delay`"
            wanted = instead.get(name, other)
            raise scenario.error(key, why, f"remove it, and write the state to analyse as {wanted}")


def _refuse_other_routers(scenario: Scenario, protocol: str) -> None:
    """Raise InputError for a link without a router of the protocol, which no equation has."""
    for index, link in enumerate(scenario.link):
        if link.routers is not None and protocol not in link.routers:
            why = f"theory needs a router of {protocol} on every link, got {shown(link.routers)}"
            raise scenario.error(f"{scenario.key('link', index)}.routers", why, "remove it")


def notes(scenario: Scenario) -> list[str]:
    """Return a sentence for each kind of value of a scenario that the analysis does not use."""
    found = []
    times = list(given.keys(scenario, "flow", _TIMES))
    if times:
        found.append(f"All flows count as active at once; not used: {given.listed(times)}.")
    disturbing = [
        key
        for section, names in _DISTURBING.items()
        for key in given.keys(scenario, section, names)
    ]
    if disturbing:
        found.append(f"Nothing is lost or late; not used: {given.listed(disturbing)}.")
    sources = given.flow_sources(scenario)
    if sources:
        found.append(f"Flows that arrive at random are not used: {given.listed(sources)}.")
    return found


def _subject(scenario: Scenario, protocol: str, network: Network | None) -> Subject:
    known = protocols.load()
    given = resolve.set_params(scenario, known)
    try:
        protocols.targets(given)  # the core checks ranges and combinations
    except ValueError as error:
        raise scenario.core_error(error) from None
    params = protocols.with_defaults([protocol], given, known)[protocol]
    by_itself = network is None
    chosen = frozenset(given.get(protocol, ()))
    return Subject(protocol, params, network, None if by_itself else scenario, chosen)


def time_s(option: str, text: str) -> float:
    """Return the time (s) in an option's text; raise InputError if the time is invalid or below
    `MIN_TIME_S`.
    """
    try:
        found = SPAN.parse(text)
    except ValueError as error:
        raise InputError("command line", option, str(error)) from None
    if found < MIN_TIME_S:
        limit = f"must be at least {SPAN.format(MIN_TIME_S)}"
        raise InputError("command line", option, f"{limit}, got {shown(text)}")
    return found


def computed(make: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a function that raises InputError when its numerical computation fails.

    Parameters may be as large as floats are; then an equation has no root, or its terms overflow.
    """

    @wraps(make)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            with np.errstate(divide="raise", invalid="raise", over="ignore", under="ignore"):
                return make(*args, **kwargs)
        except InputError:
            raise
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            message = f"cannot be computed for these times and parameters: {error}"
            raise InputError("theory", "", message) from error

    return checked
