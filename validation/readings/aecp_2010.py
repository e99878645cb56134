"""Readings of *Distributed bandwidth allocation based on alternating evolution algorithm* (2010).

Every option sets its keys in all experiments that have them, so a grid does not depend on which
reading the experiments run without changes.
"""

from collections.abc import Mapping, Sequence

from validation.readings.grid import Change, Grid

CROSSING, ALONE = "aecp-2010/crossing", "aecp-2010/no-crossing"
RTTS, MULTI = "aecp-2010/rtts", "aecp-2010/multi-bottleneck"
CONVERGENCE = "aecp-2010/convergence-and-stability"

# The congestion-controlled flows of each experiment, and its traffic.
FLOWS: Mapping[str, Sequence[str]] = {
    CROSSING: ("f", "back"),
    ALONE: ("f",),
    RTTS: ("flow1", "flow2", "flow3", "flow4"),
    MULTI: ("flow1", "flow2", "flow3", "flow4"),
}
TRAFFIC: Mapping[str, Sequence[str]] = {CROSSING: ("web", "burst")}


def on_flows(key: str, value: str, traffic: bool = False) -> tuple[Change, ...]:
    """Return the changes that set a key of every flow and, with `traffic`, of all background
    traffic.
    """
    return tuple(
        Change(
            (
                *(f"flow.{name}.{key}={value}" for name in names),
                *(f"traffic.{name}.{key}={value}" for name in TRAFFIC.get(path, ()) if traffic),
            ),
            experiment=path,
        )
        for path, names in FLOWS.items()
    )


def access(rate: str) -> tuple[Change, ...]:
    """Return the changes that give every host an access link of a given rate."""
    return on_flows("access_rate", rate, traffic=True)


def aecp(*values: str) -> tuple[Change, ...]:
    """Return the changes that set AECP's parameters in AECP's runs."""
    return (Change(tuple(f"params.aecp.{value}" for value in values), run="aecp"),)


def vcp(gamma: str) -> tuple[Change, ...]:
    """Return the changes that set the utilization at which VCP aims."""
    return (Change((f"params.vcp.gamma={gamma}",), run="vcp"),)


def first_factor(value: str) -> tuple[Change, ...]:
    """Return the changes that set a router's first pre-allocation rate factor."""
    sets = (f"params.aecp.r_0={value}",)
    return (Change(sets, run="aecp"), Change(sets, experiment=CONVERGENCE))


def buffer(length: str) -> tuple[Change, ...]:
    """Return the changes that set the bottleneck buffer in both experiments of Table 1."""
    sets = (f"link.bottleneck.buffer={length}",)
    return (Change(sets, experiment=CROSSING), Change(sets, experiment=ALONE))


GIGABIT = access("1 Gbit/s")
RATE, WINDOW = aecp("source=rate"), aecp("source=window", "window_rtt=latest")
ON_OFF = (Change(scenario="scenario.toml", experiment=CROSSING),)
TRANSFERS = (Change(scenario="transfers.toml", experiment=CROSSING),)
OWN = tuple(
    Change((f"traffic.web.protocol={name}",), run=name, experiment=CROSSING)
    for name in ("vcp", "xcp", "aecp")
)

ONE_SOURCE = (
    Change(("traffic.burst.count=1", "traffic.burst.rate=160 Mbit/s"), experiment=CROSSING),
)

ACCESS = {"none": (), "1 Gbit/s": GIGABIT}
SOURCES = {"rate": RATE, "window": WINDOW}
ACKS = {
    "every packet": on_flows("delayed_ack", "false"),
    "every second": on_flows("delayed_ack", "true"),
}

GRIDS = (
    Grid(
        name="aecp-crossing",
        question="§5, §6.1, §6.2: what bounds a source, what joins a host, what is acknowledged?",
        experiments=(CROSSING,),
        axes={"access": ACCESS, "acknowledged": ACKS, "source": SOURCES},
        adopted={"access": "none", "acknowledged": "every second", "source": "rate"},
        errata=("A9", "A10", "A11"),
        seeds=1,
    ),
    Grid(
        name="aecp-hosts",
        question="The same of the experiments without other traffic.",
        experiments=(ALONE, RTTS, MULTI),
        axes={"access": ACCESS, "acknowledged": ACKS},
        adopted={"access": "none", "acknowledged": "every second"},
        errata=("A13", "A14"),
    ),
    Grid(
        name="aecp-access",
        question="§6.1: at which rate do the links between hosts and routers run?",
        experiments=(CROSSING, ALONE, RTTS, MULTI),
        axes={
            "access": {
                "none": (),
                "0.5 Gbit/s": access("0.5 Gbit/s"),
                "1 Gbit/s": GIGABIT,
                "2.5 Gbit/s": access("2.5 Gbit/s"),
            }
        },
        adopted={"access": "none"},
        errata=("A14",),
        seeds=1,
    ),
    Grid(
        name="aecp-burst",
        question="§6.2: are the 160 Mbit/s from 100 s on one source or twenty?",
        experiments=(CROSSING,),
        axes={"burst": {"twenty sources": (), "one source": ONE_SOURCE}},
        adopted={"burst": "twenty sources"},
        seeds=1,
    ),
    Grid(
        name="aecp-xcp-load",
        question="§6: ns-2's XCP queues other packets apart; does its router count them as load?",
        experiments=(CROSSING,),
        axes={
            "load": {
                "all packets": (),
                "XCP's own": (Change(("params.xcp.counts=own",), run="xcp"),),
            },
            "acknowledged": ACKS,
        },
        adopted={"load": "all packets", "acknowledged": "every second"},
        seeds=1,
    ),
    Grid(
        name="aecp-web",
        question="§6.2: what are the 400 on-off sources whose flows arrive as a Poisson process?",
        experiments=(CROSSING,),
        axes={
            "web": {
                "on-off": ON_OFF,
                "transfers by SACK": TRANSFERS,
                "transfers by the tested protocol": (*TRANSFERS, *OWN),
            }
        },
        adopted={"web": "on-off"},
        errata=("A11",),
        seeds=1,
    ),
    Grid(
        name="aecp-vcp-target",
        question="§6: VCP's settings are not given; which utilization γ does it aim at?",
        experiments=(CROSSING, ALONE, RTTS, MULTI),
        axes={"gamma": {"0.98": vcp("0.98"), "1": vcp("1")}},
        adopted={"gamma": "1"},
        errata=("A13",),
    ),
    Grid(
        name="aecp-first-factor",
        question="§3, §5: r(0) is not given; Theorem 2 has the cases r(0) = x_0 and r(0) = C.",
        experiments=(CROSSING, ALONE, RTTS, MULTI, CONVERGENCE),
        axes={"r(0)": {"x_0": first_factor("x_0"), "C": first_factor("capacity")}},
        adopted={"r(0)": "x_0"},
        errata=("A12", "A14"),
    ),
    Grid(
        name="aecp-buffer",
        question="§6 and Table 1: the product of bandwidth and which delay is the buffer?",
        experiments=(CROSSING, ALONE),
        axes={"buffer": {"400 ms": buffer("25000 packets"), "50 ms": buffer("3125 packets")}},
        adopted={"buffer": "400 ms"},
        errata=("A8", "A10"),
        seeds=1,
    ),
)
