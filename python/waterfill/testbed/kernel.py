"""Congestion controls of the running kernel, by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from waterfill.contract.network import ParamValue
from waterfill.network.protocols import ProtocolInfo, Protocols
from waterfill.testbed import daemon
from waterfill.testbed.plan import Congestion

# The daemon that loads laws into the kernel; in a list of what is offered it stands before each.
LOADER = "waterfilld"

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

# The kernel's reno is only a window law; its recovery is SACK with RACK, or NewReno without SACK.
# A scenario names law and recovery as the simulator does. The first Reno's recovery, which ends at
# the first new acknowledgement, is in no current kernel.
PROTOCOLS: Mapping[str, Congestion] = {
    "reno": Congestion("reno", sack=False),
    "newreno": Congestion("reno", sack=False),
    "sack": Congestion("reno"),
    "cubic": Congestion("cubic"),
    "bic": Congestion("bic"),
    "highspeed": Congestion("highspeed"),
    "scalable": Congestion("scalable"),
    "htcp": Congestion("htcp"),
    "westwood": Congestion("westwood"),
    "vegas": Congestion("vegas"),
    "dctcp": Congestion("dctcp"),
    "bbr": Congestion("bbr", paced=True),
}


# Loaded laws that are not paced, where the window alone limits a source: LAW_PACED of a header.
WINDOWS = frozenset({"vcp", "xcp", "pxcp", "ixcp"})


def variant(info: ProtocolInfo, name: str) -> tuple[ParamValue, ...]:
    """Return the values that the kernel has for a loaded law's parameter that the daemon cannot
    set.

    The first is what results show, the others are accepted too. "kernel" is the arithmetic of
    "kernel-host" without the host's additions. Of others it has the default.
    """
    param = info.param(name)
    if name == "arithmetic":
        return tuple(c for c in reversed(param.choices) if c.startswith("kernel"))
    return _VARIANTS.get((info.name, name), ()) or (param.default,)  # type: ignore[return-value]


# Of parameters that choose a variant, the kernel's, and the simulator's default, which differs.
_VARIANTS: Mapping[tuple[str, str], tuple[ParamValue, ...]] = {}


def available() -> list[str]:
    """Return the kernel's own names of its congestion controls, or an empty list without a Linux
    kernel.
    """
    try:
        return _AVAILABLE.read_text().split()
    except OSError:
        return []


def loadable(law: str) -> str:
    """Return the name that `offered` uses for a law that the daemon can load."""
    return f"{LOADER}:{law}"


def offered() -> list[str]:
    """Return the names of all laws that a run can use: `available`, and those that the daemon can
    load.
    """
    return available() + [loadable(law) for law in daemon.laws()]


def is_loaded(info: ProtocolInfo) -> bool:
    """Return True if a daemon loads the protocol's law: an explicit law that runs on linux."""
    return info.kind == "explicit" and "linux" in info.backends


def params(protocol: str) -> dict[str, ParamValue]:
    """Return the kernel's values of a protocol's parameters (SI units), by the registry's names.

    Those of cubic are read from its module (tcp_cubic.c: beta and bic_scale in 1024ths,
    C = 10 bic_scale; its Reno-friendly window is RFC 8312's). The others are constants of
    tcp_cong.c and tcp_bbr.c. Empty if none are known.
    """
    if protocol == "cubic":
        read = {name: _parameter("tcp_cubic", name) for name in _CUBIC}
        return {
            "aggressiveness": read["bic_scale"] * 10 / 1024,
            "beta": read["beta"] / 1024,
            "fast_convergence": bool(read["fast_convergence"]),
            "reno_friendly": bool(read["tcp_friendliness"]),
            "catch_up": False,
            "first_growth": 0.05,  # cnt is at most 20 without a last_max_cwnd
            "hystart": "classic" if read["hystart"] else "off",
        }
    return dict(_CONSTANTS.get(protocol, {}))


# Parameters of the simulator's laws whose default is not the kernel's choice.
CHOICES = {"cubic": ("hystart", "catch_up", "first_growth")}


def choices(protocol: str) -> dict[str, ParamValue]:
    """Return the parameters that make the simulator's law match the kernel's, or an empty dict if
    none do.
    """
    known = params(protocol) if protocol in CHOICES else {}
    return {name: known[name] for name in CHOICES.get(protocol, ())}


_CUBIC = {"bic_scale": 41, "beta": 717, "fast_convergence": 1, "tcp_friendliness": 1, "hystart": 1}
_RENO: Mapping[str, ParamValue] = {"increase": 1.0, "decrease": 0.5}
_CONSTANTS: Mapping[str, Mapping[str, ParamValue]] = {
    "reno": _RENO,
    "newreno": _RENO,
    "sack": _RENO,
    "bbr": {
        "high_gain": 2.885,
        "cwnd_gain": 2.0,
        "rtprop_window": 10.0,
        "probe_rtt": 0.2,
        "linux": True,
    },
}


def _parameter(module: str, name: str) -> int:
    """Return a kernel module's parameter, or the default in the kernel's source if the parameter
    cannot be read.
    """
    try:
        return int(Path(f"/sys/module/{module}/parameters/{name}").read_text())
    except (OSError, ValueError):
        return _CUBIC[name]


def congestion(
    offered: Iterable[str], known: Protocols, run: str | None = None
) -> dict[str, Congestion]:
    """Return the protocols that this kernel can run, by the names that scenarios use.

    `known` is the registry, whose parameters a loaded law takes. `run` is a run's word: its names
    of loaded laws in the kernel are its own, so that runs can be concurrent.
    """
    names = set(offered)
    found = {protocol: law for protocol, law in PROTOCOLS.items() if law.name in names}
    for protocol in known:
        if loadable(protocol) in names:
            name = f"bpf_{protocol}" if run is None else daemon.name_of(protocol, run)
            found[protocol] = Congestion(name, paced=protocol not in WINDOWS, loaded=True)
    return found


def supported(known: Protocols) -> dict[str, ProtocolInfo]:
    """Return the registry's protocols, with linux in the `backends` of all that a Linux kernel
    can have; `protocols` says which this one has.
    """
    return {
        name: replace(info, backends=(*info.backends, "linux")) if name in PROTOCOLS else info
        for name, info in known.items()
    }


def protocols(known: Protocols, offered: Iterable[str]) -> dict[str, ProtocolInfo]:
    """Return the registry's protocols, with linux in the `backends` of those that this kernel can
    run.
    """
    result = {
        name: replace(info, backends=tuple(b for b in info.backends if b != "linux"))
        for name, info in known.items()
    }
    for name in congestion(offered, known):
        # A TCP adds no header; of one that only the kernel has, only the name is known.
        info = result.get(name) or ProtocolInfo(name, "end-to-end", (), 0)
        result[name] = replace(info, backends=(*info.backends, "linux"))
    return result
