"""What Python knows of the protocols: plain data that the Rust registry publishes.

Nothing here names a protocol. Functions that need this knowledge take it as an argument
(`Protocols`), so they can be tested with a literal table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from waterfill.contract.network import ParamValue
from waterfill.contract.summary import ProtocolEntry
from waterfill.errors import nearest, shown
from waterfill.scenario.units import PACKETS, RATE, TIME, VOLUME, number, whole


@dataclass(frozen=True)
class ParamInfo:
    """One parameter of a protocol.

    `unit` is one of ratio, rate (bit/s), time (s), volume (bytes), packets, count, choice, flag.
    """

    name: str
    unit: str
    default: ParamValue | None
    choices: tuple[str, ...] = ()
    doc: str = ""
    source: str = ""

    def parse(self, value: object) -> ParamValue:
        """The value that a scenario gives, in SI units; ValueError with what was expected."""
        if self.unit == "flag":
            if not isinstance(value, bool):
                raise ValueError(f"expected true or false, got {shown(value)}")
            return value
        if self.unit == "choice":
            if not isinstance(value, str) or value not in self.choices:
                known = ", ".join(f'"{choice}"' for choice in self.choices)
                raise ValueError(f"expected one of {known}, got {shown(value)}")
            return value
        if self.unit == "packets" and not isinstance(value, str):
            return float(whole(value))
        return _NUMBERS[self.unit](value)


_NUMBERS: Mapping[str, Callable[[object], float]] = {
    "ratio": number,
    "rate": RATE.or_zero().parse,
    "time": TIME.parse,
    "volume": VOLUME.parse,
    "packets": PACKETS.parse,
    "count": lambda value: float(whole(value)),
}


@dataclass(frozen=True)
class ProtocolInfo:
    """One protocol: its name, the backends it runs on, its header's bytes, its parameters."""

    name: str
    kind: str
    backends: tuple[str, ...]
    header_bytes: int
    params: tuple[ParamInfo, ...] = ()
    echo_bytes: int = 0
    summary: str = ""

    def param(self, name: str) -> ParamInfo:
        """The parameter of that name; ValueError with the nearest one when there is none."""
        for param in self.params:
            if param.name == name:
                return param
        known = nearest(name, (param.name for param in self.params))
        raise ValueError(f"unknown parameter of {self.name}{known}")


Protocols: TypeAlias = Mapping[str, ProtocolInfo]
"""Every protocol by its name."""


def from_registry(entries: Iterable[ProtocolEntry]) -> dict[str, ProtocolInfo]:
    """Reads the registry's list of protocols; by name, in the registry's order."""
    return {entry["name"]: _protocol(entry) for entry in entries}


def _protocol(entry: ProtocolEntry) -> ProtocolInfo:
    return ProtocolInfo(
        name=entry["name"],
        kind=entry["kind"],
        backends=tuple(entry["backends"]),
        header_bytes=entry["header_bytes"],
        echo_bytes=entry["echo_bytes"],
        summary=entry["summary"],
        params=tuple(
            ParamInfo(
                name=param["name"],
                unit=param["unit"],
                default=param["default"],
                choices=tuple(param["choices"] or ()),
                doc=param["doc"],
                source=param["source"],
            )
            for param in entry["params"]
        ),
    )


def load() -> dict[str, ProtocolInfo]:
    """The protocols that this build of the core has."""
    from waterfill import _core

    return from_registry(_core.protocols())


def targets(params: Mapping[str, Mapping[str, ParamValue]]) -> dict[str, float]:
    """Each protocol's utilisation target, in (0, 1], under these parameters (SI values).

    Raises ValueError with one sentence when a parameter is out of its range.
    """
    from waterfill import _core

    return _core.targets(params)


def with_defaults(
    used: Iterable[str], params: Mapping[str, Mapping[str, ParamValue]], protocols: Protocols
) -> dict[str, dict[str, ParamValue | None]]:
    """Every parameter of the protocols used, in SI units: what was set, else the default."""
    return {
        name: {p.name: params.get(name, {}).get(p.name, p.default) for p in protocols[name].params}
        for name in dict.fromkeys(used)
    }
