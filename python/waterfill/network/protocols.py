"""Descriptions of the protocols, as the Rust registry provides them.

No code here names a protocol. Functions that need the descriptions take them as an argument
(`Protocols`), so that tests can pass a literal table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from waterfill.contract.network import Network, ParamValue
from waterfill.contract.summary import BaseRttEntry, KernelEntry, KernelParam, ProtocolEntry
from waterfill.errors import nearest, shown
from waterfill.scenario.units import PACKETS, RATE, TIME, VOLUME, number, whole

# CSIG's compact tag. The wide one has the size of an option.
_COMPACT_TAG_BITS, _COMPACT_TAG_BYTES = 5, 4


@dataclass(frozen=True)
class ParamInfo:
    """One parameter of a protocol.

    `unit` is one of `UNITS`: ratio, rate (bit/s), time (s), volume (bytes), packets, count, choice,
    flag. `min` and `max` are those of a law in Python, in SI units; the core checks the others.
    """

    name: str
    unit: str
    default: ParamValue | None
    choices: tuple[str, ...] = ()
    doc: str = ""
    source: str = ""
    kernel: KernelParam | None = field(default=None, hash=False)
    min: float | None = None
    max: float | None = None

    def in_range(self, number: float) -> float:
        """Return a number in the SI unit; raise ValueError if it is outside of the range."""
        if self.min is not None and not number >= self.min:
            raise ValueError(f"must be at least {self.min:g}, got {number:g}")
        if self.max is not None and not number <= self.max:
            raise ValueError(f"must be at most {self.max:g}, got {number:g}")
        return number

    def parse(self, value: object) -> ParamValue:
        """Parse a scenario's value to SI units; raise ValueError for a wrong value."""
        if self.unit == "flag":
            if not isinstance(value, bool):
                raise ValueError(f"must be true or false, got {shown(value)}")
            return value
        if self.unit == "choice":
            if isinstance(self.default, bool):
                # It was a flag: true is its first word and false its last, here and in results.
                flags: dict[object, bool] = {self.choices[0]: True, self.choices[-1]: False}
                if isinstance(value, bool):
                    return value
                if isinstance(value, str) and value in flags:
                    return flags[value]
            if not isinstance(value, str) or value not in self.choices:
                known = ", ".join(f'"{choice}"' for choice in self.choices)
                raise ValueError(f"must be one of {known}, got {shown(value)}")
            return value
        if self.unit == "packets" and not isinstance(value, str):
            return self.in_range(float(whole(value)))
        return self.in_range(_NUMBERS[self.unit](value))


_NUMBERS: Mapping[str, Callable[[object], float]] = {
    "ratio": number,
    "rate": RATE.or_zero().parse,
    "time": TIME.parse,
    "volume": VOLUME.parse,
    "packets": PACKETS.parse,
    "count": lambda value: float(whole(value)),
}
UNITS = (*_NUMBERS, "choice", "flag")
"""Units of parameters."""


@dataclass(frozen=True)
class ProtocolInfo:
    """One protocol: its name, its backends, the size of its header, and its parameters.

    `signals` are the series that its router and source record. `paced` says whether packets are
    paced with the default parameters, unless a flow's `pacing` says otherwise. `recovery` is its
    method of loss recovery on sim, unless a flow's `recovery` names another. `is_python` marks a
    law in Python, whose recovery the core does not know. `window_validation` is its rule for a
    window that the application does not use, or None if the law has no such window.
    """

    name: str
    kind: str
    backends: tuple[str, ...]
    header_bytes: int
    params: tuple[ParamInfo, ...] = ()
    echo_bytes: int = 0
    summary: str = ""
    signals: tuple[str, ...] = ()
    paced: bool = False
    recovery: str = ""
    is_python: bool = False
    window_validation: str | None = None
    base_rtt: BaseRttEntry | None = field(default=None, hash=False)
    kernel: KernelEntry | None = field(default=None, hash=False)

    def param(self, name: str) -> ParamInfo:
        """Return the parameter with this name; raise ValueError if there is none."""
        for param in self.params:
            if param.name == name:
                return param
        known = nearest(name, (param.name for param in self.params))
        raise ValueError(f"unknown parameter of {self.name}{known}")


Protocols: TypeAlias = Mapping[str, ProtocolInfo]
"""Descriptions of protocols by name."""


def from_registry(entries: Iterable[Mapping[str, Any]]) -> dict[str, ProtocolInfo]:
    """Return the protocols of the registry's list by name, in the same order."""
    found = map(ProtocolEntry.read, entries)
    return {entry.name: _protocol(entry) for entry in found}


def _protocol(entry: ProtocolEntry) -> ProtocolInfo:
    return ProtocolInfo(
        name=entry.name,
        kind=entry.kind,
        backends=tuple(entry.backends),
        header_bytes=entry.header_bytes,
        echo_bytes=entry.echo_bytes,
        summary=entry.summary,
        paced=entry.paced,
        recovery=entry.recovery,
        window_validation=entry.window_validation,
        base_rtt=entry.base_rtt,
        signals=tuple(signal.name for signal in entry.signals),
        kernel=entry.kernel,
        params=tuple(
            ParamInfo(
                name=param.name,
                unit=param.unit,
                default=param.default,
                choices=tuple(param.choices or ()),
                doc=param.doc,
                source=param.source,
                kernel=param.kernel,
            )
            for param in entry.params
        ),
    )


def with_header_sizes(
    protocols: Protocols, params: Mapping[str, Mapping[str, ParamValue]]
) -> Protocols:
    """Return the descriptions with the size that these parameters give to headers of data."""
    compact = {
        name: replace(protocols[name], header_bytes=_COMPACT_TAG_BYTES)
        for name, values in params.items()
        if values.get("carriage") == "csig" and values.get("code_bits") == _COMPACT_TAG_BITS
    }
    return {**protocols, **compact} if compact else protocols


def close_to(name: str, known: Iterable[str]) -> str:
    """Return the end of an error on an unknown protocol: a name close to it, or the known names
    and how to give a law of one's own.
    """
    close = nearest(name, known)
    return close if "did you mean" in close else f"{close}; a law of your own: --law FILE"


class Signal(NamedTuple):
    """A signal that a law records in a column of its own."""

    law: str
    name: str
    unit: str


@cache
def signals() -> MappingProxyType[str, Signal]:
    """Return all protocols' signals by column name, such as maxnet_price."""
    from waterfill import _core

    entries = map(ProtocolEntry.read, _core.protocols())
    found = [Signal(entry.name, s.name, s.unit) for entry in entries for s in entry.signals]
    return MappingProxyType({column(one.law, one.name): one for one in found})


def column(law: str, signal: str) -> str:
    """Return the name of the column of a law's signal."""
    return f"{law}_{signal}"


@cache
def load() -> MappingProxyType[str, ProtocolInfo]:
    """Return the protocols in this build of the core as an immutable mapping, read only once."""
    from waterfill import _core

    return MappingProxyType(from_registry(_core.protocols()))


# RTTs for which the constants of every law fit.
_USUAL_RTTS_S = (1e-3, 0.4)


class Misfit(UserWarning):
    """Warning that a constant of a law, or of its hosts, does not fit the RTTs of its flows."""


def misfits(
    network: Network,
    params: Mapping[str, Mapping[str, ParamValue | None]],
    protocols: Protocols,
) -> Iterable[tuple[str, str]]:
    """Return (key, message) for each constant that does not fit the RTTs of its law's flows.

    `params` are the parameters of the protocols in use, in SI units.
    """
    rtts_s = [flow.base_rtt_s for flow in network.flows]
    arrivals = [entry.flows for entry in network.traffic if entry.flows is not None]
    rtts_s += [way.base_rtt_s for flows in arrivals for way in flows.ways]
    if all(_USUAL_RTTS_S[0] <= rtt_s <= _USUAL_RTTS_S[1] for rtt_s in rtts_s):
        return ()
    from waterfill.network import fit

    return fit.misfits(network, params, lambda law, name: protocols[law].param(name).unit)


def warn_of_misfit(source: str, key: str, message: str) -> None:
    """Warn of one constant that does not fit; `source` is the scenario's file."""
    warnings.warn(f"{source}: {key}: {message}", Misfit, stacklevel=3)


def targets(params: Mapping[str, Mapping[str, ParamValue]]) -> dict[str, float]:
    """Return each protocol's target utilization in (0, 1] under these parameters (SI values).

    Raises ValueError with one sentence when a parameter is out of range.
    """
    from waterfill import _core

    return _core.targets(params)


def with_defaults(
    used: Iterable[str], params: Mapping[str, Mapping[str, ParamValue]], protocols: Protocols
) -> dict[str, dict[str, ParamValue | None]]:
    """Return all parameters of the protocols in use, in SI units, with defaults for unset ones."""
    return {
        name: {p.name: params.get(name, {}).get(p.name, p.default) for p in protocols[name].params}
        for name in dict.fromkeys(used)
    }
