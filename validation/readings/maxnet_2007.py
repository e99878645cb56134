"""Readings of *MaxNet: Theory and Implementation* (2007).

What the paper leaves open and several experiments share: how prices are averaged (§VI), which of
eq. 10's steps comes first, how fast hosts send what a window allows, and for RCP (§IX) its first
rate, its longest interval T and its average of RTTs.
"""

from validation.readings.grid import Change, Grid, options

AVERAGE = options("params.maxnet.average", "exponential", "sliding", "off", as_is="exponential")
ORDER = options("params.maxnet.order", "xi-first", "rate-first", as_is="xi-first")


PACKETS = {"windows": (), "paced": (Change(("flow.maxnet.pacing=true",)),)}


def _access(rate: str) -> tuple[Change, ...]:
    return (Change((f'flow.maxnet.access_rate="{rate}"',)),)


def _rtt(milliseconds: int) -> tuple[Change, ...]:
    """Return the changes that set a base RTT and an averaging interval of the same length."""
    return (
        Change((f'link.link.delay="{milliseconds / 2} ms"',)),
        Change(args={"average_s": milliseconds / 1000}, claim="reclaimed"),
    )


def _interfaces(rate: str) -> tuple[Change, ...]:
    hosts = ("red", "green", "blue", "yellow")
    return (Change(tuple(f'link.{host}-nic.rate="{rate}"' for host in hosts)),)


def _hosts(rate: str) -> tuple[Change, ...]:
    """Return the changes that set hosts' link rate, in both experiments on transient queues."""
    flows = tuple(f'flow.{flow}.access_rate="{rate}"' for flow in ("old", "new"))
    return (
        Change(flows, run="[0-9]*", experiment="*/maxstart"),
        *(Change(change.sets, experiment="*/two-hop") for change in _interfaces(rate)),
    )


GRIDS = (
    Grid(
        name="cross-traffic-law",
        question="§VII.B: does any reading take back over two thirds of 400 Mbit/s within 0.3 s?",
        experiments=("maxnet-2007/cross-traffic",),
        axes={
            "average": AVERAGE,
            "order": ORDER,
            "T0": options("params.maxnet.t_0", "130 ms", "30 ms", as_is="130 ms"),
            "packets": PACKETS,
        },
        adopted={
            "average": "exponential",
            "order": "xi-first",
            "T0": "130 ms",
            "packets": "windows",
        },
        errata=("M20",),
    ),
    Grid(
        name="cross-traffic-step",
        question="§VII.B: is over two thirds within 0.3 s the linear law's, and at which RTT?",
        experiments=("maxnet-2007/cross-traffic",),
        axes={
            "step": options("traffic.cbr.rate", "400 Mbit/s", "40 Mbit/s", as_is="400 Mbit/s"),
            "RTT": {"29 ms": (), "40 ms": _rtt(40), "50 ms": _rtt(50)},
            "packets": PACKETS,
            "hosts": {
                "1 Gbit/s": (),
                "2.5 Gbit/s": _access("2.5 Gbit/s"),
                "ideal": _access("100 Gbit/s"),
            },
        },
        adopted={"step": "400 Mbit/s", "RTT": "29 ms", "packets": "windows", "hosts": "1 Gbit/s"},
        errata=("M20",),
    ),
    Grid(
        name="two-hop-hosts",
        question="§VII.A: which hosts and averages give the paper's order of queues and its 2 s?",
        experiments=("maxnet-2007/two-hop",),
        axes={
            # The grid was run before start-load, which then decided this axis.
            "load": {"last dt_p": (Change(('params.maxnet.load_average="0 s"',)),)},
            "interfaces": {
                "0.5 Gbit/s": _interfaces("500 Mbit/s"),
                "1 Gbit/s": (),
                "2.5 Gbit/s": _interfaces("2.5 Gbit/s"),
                "ideal": _interfaces("100 Gbit/s"),
            },
            "average": AVERAGE,
            "packets": {
                "windows": (),
                "paced": (
                    Change(
                        tuple(
                            f"flow.{name}.pacing=true"
                            for name in ("red-blue", "green-yellow", "blue-yellow", "blue-yellow-2")
                        )
                    ),
                ),
            },
        },
        adopted={
            "load": None,
            "interfaces": "1 Gbit/s",
            "average": "exponential",
            "packets": "windows",
        },
        errata=("M18", "M19"),
    ),
    Grid(
        name="start-load",
        question='§IV.B: over what time is "the current transmission rate" of a link?',
        experiments=("maxnet-2007/maxstart", "maxnet-2007/two-hop"),
        axes={
            "load": {"last dt_p": (Change(('params.maxnet.load_average="0 s"',)),), "130 ms": ()},
            "hosts": {"1 Gbit/s": (), "2.5 Gbit/s": _hosts("2.5 Gbit/s")},
        },
        adopted={"load": "130 ms", "hosts": "1 Gbit/s"},
        errata=("M17", "M18"),
    ),
    Grid(
        name="maxstart-hosts",
        question="§VII.A.3: with which hosts and packets does the overload keep its bound?",
        experiments=("maxnet-2007/maxstart",),
        axes={
            "hosts": {"1 Gbit/s": (), "ideal": _hosts("100 Gbit/s")},
            "packets": {
                "windows": (),
                "paced": (Change(("flow.old.pacing=true", "flow.new.pacing=true"), run="[0-9]*"),),
            },
            "overload": {
                "arrivals of an RTT": (),
                "queue": (Change(measure="start_overload", claim="overload-*"),),
            },
        },
        adopted={"hosts": "1 Gbit/s", "packets": "windows", "overload": "arrivals of an RTT"},
        errata=("M17",),
    ),
    Grid(
        name="rcp-model",
        question="§IX: which first rate, longest interval T, average and rate are the paper's RCP?",
        experiments=("maxnet-2007/rcp",),
        axes={
            "first rate": {
                f"{share} %": (Change((f"params.rcp.first_rate={share / 100}",), run="rcp*"),)
                for share in (1, 5, 20, 50, 100)
            },
            "T": options(
                "params.rcp.max_interval", "1 ms", "10 ms", "100 ms", as_is="10 ms", run="rcp*"
            ),
            "RTTs": options(
                "params.rcp.average", "traffic", "reluctant", as_is="traffic", run="rcp*"
            ),
            "rate of Flow 1": {
                "receiver": (),
                "sender": tuple(
                    Change(args={"column": "pacing_bps"}, claim=claim)
                    for claim in ("rcp-1-overshoot", "rcp-9-*", "rcp-49-*")
                ),
            },
        },
        adopted={
            "first rate": "50 %",
            "T": "10 ms",
            "RTTs": "traffic",
            "rate of Flow 1": "receiver",
        },
        errata=("M22",),
    ),
    Grid(
        name="rcp-writes",
        question="§IX: does a router write RCP's rate at arrival, or at departure as in ns-2?",
        experiments=("maxnet-2007/rcp",),
        axes={
            "first rate": {
                f"{share} %": (Change((f"params.rcp.first_rate={share / 100}",), run="rcp*"),)
                for share in (5, 20, 50)
            },
            "written at": {
                when: (Change((f'params.rcp.writes="{when}"',), run="rcp*"),)
                for when in ("arrival", "departure")
            },
        },
        adopted={"first rate": "50 %", "written at": "arrival"},
        errata=("M22",),
    ),
    Grid(
        name="rcp-first-rate",
        question="§IX: does a first rate near the best one of rcp-model give the same verdicts?",
        experiments=("maxnet-2007/rcp",),
        axes={
            "first rate": {
                f"{share} %": (Change((f"params.rcp.first_rate={share / 100}",), run="rcp*"),)
                for share in (40, 45, 50, 55, 60)
            }
        },
        adopted={"first rate": None},
        errata=("M22",),
    ),
    Grid(
        name="stability-average",
        question="§VIII.C: with which average of §VI is α = 0.66 proven stable up to 1000 s?",
        experiments=("maxnet-2007/stability",),
        axes={
            "average": {
                average: (Change(args={"average": average}, claim="own-zero-stable"),)
                for average in ("off", "exponential", "sliding")
            }
        },
        adopted={"average": "exponential"},
        errata=("M11",),
    ),
)
