"""What the running kernel offers: congestion controls by the names that scenarios use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from waterfill.contract.network import ParamValue
from waterfill.network.protocols import ProtocolInfo, Protocols
from waterfill.testbed import daemon
from waterfill.testbed.plan import Congestion

# The daemon that brings laws which no kernel has: in a list of what is offered it stands for them.
LOADER = "waterfilld"

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

# The kernel's reno is a law of the window alone: its recovery is SACK with RACK, or NewReno where
# SACK is off. Its name in a scenario is that of the same law and recovery in the simulator; the
# first Reno's recovery, which ends at the first new acknowledgement, no kernel has any more.
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
    # Beside others of its kind it has a name of its own in each run.
    "maxnet": Congestion("bpf_maxnet", paced=True, loaded=True),
}


# Of a loaded law's parameters, those that choose a form of it, and the one form that there is.
FORMS: Mapping[str, Mapping[str, ParamValue]] = {
    "maxnet": {"arithmetic": "kernel", "order": "xi-first"}
}


def available() -> list[str]:
    """The kernel's congestion controls, by its own names; none where there is no such kernel."""
    try:
        return _AVAILABLE.read_text().split()
    except OSError:
        return []


def offered() -> list[str]:
    """What a run can choose from: `available`, and LOADER where that daemon is installed."""
    return available() + [LOADER] * (daemon.binary() is not None)


def params(protocol: str) -> dict[str, ParamValue]:
    """What the kernel's law has for the protocol's parameters, by the registry's names, SI units.

    cubic's are read from its module (tcp_cubic.c: beta and bic_scale in 1024ths, C = 10 bic_scale;
    its Reno-friendly window is RFC 8312's); the others are constants of tcp_cong.c and tcp_bbr.c.
    Empty where nothing is known.
    """
    if protocol == "cubic":
        read = {name: _parameter("tcp_cubic", name) for name in _CUBIC}
        return {
            "aggressiveness": read["bic_scale"] * 10 / 1024,
            "beta": read["beta"] / 1024,
            "fast_convergence": bool(read["fast_convergence"]),
            "reno_friendly": bool(read["tcp_friendliness"]),
            "catch_up": False,
            "first_growth": 0.05,  # cnt is 20 at most while there is no last_max_cwnd
            "hystart": "classic" if read["hystart"] else "off",
        }
    return dict(_CONSTANTS.get(protocol, {}))


# Where a law of the simulator has a choice, and the kernel's is not the default.
CHOICES = {"cubic": ("hystart", "catch_up", "first_growth"), "bbr": ("linux",)}


def choices(protocol: str) -> dict[str, ParamValue]:
    """The kernel's way in what the simulator's law leaves open; empty where it leaves nothing."""
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
    """A module's parameter; what the source has where the kernel does not show it."""
    try:
        return int(Path(f"/sys/module/{module}/parameters/{name}").read_text())
    except (OSError, ValueError):
        return _CUBIC[name]


def congestion(offered: Iterable[str], loaded_as: str | None = None) -> dict[str, Congestion]:
    """The protocols that this list of what is offered can run, by the scenario's names.

    `loaded_as` is the name that a loaded law has in the kernel for this run.
    """
    names = set(offered)
    found = {}
    for protocol, law in PROTOCOLS.items():
        if law.loaded and LOADER in names:
            found[protocol] = law if loaded_as is None else replace(law, name=loaded_as)
        elif not law.loaded and law.name in names:
            found[protocol] = law
    return found


def protocols(known: Protocols, offered: Iterable[str]) -> dict[str, ProtocolInfo]:
    """The registry's protocols as the linux backend has them: those of the kernel run on it.

    A loaded law runs only where the registry knows it too, as its parameters are given to it.
    """
    result = {
        name: replace(info, backends=tuple(b for b in info.backends if b != "linux"))
        for name, info in known.items()
    }
    for name, law in congestion(offered).items():
        if law.loaded and name not in result:
            continue
        # A TCP adds no header; one that only the kernel has is known by its name alone.
        info = result.get(name) or ProtocolInfo(name, "end-to-end", (), 0)
        result[name] = replace(info, backends=(*info.backends, "linux"))
    return result
