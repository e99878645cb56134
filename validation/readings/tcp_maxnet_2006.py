"""Readings of *TCP MaxNet*, the thesis of 2006."""

from validation.readings.grid import Change, Grid, options

BUCKET = "link.bottleneck.shaper"
TIMERS = {
    "none": (Change((f"{BUCKET}.timer=0 s",)),),
    **options(f"{BUCKET}.timer", "1 ms", "10 ms", as_is="1 ms"),
}
ARITHMETIC = options("params.maxnet2006.arithmetic", "real", "printed", as_is="real")

# The experiments in which MaxNet runs, and its flows: pacing is a key of each flow.
FLOWS = {
    "base-rtt": ("red-blue",),
    "one-flow": ("red-blue",),
    "second-flow": ("red-blue", "green-blue"),
    "three-flows": ("red-yellow", "green-yellow", "blue-yellow"),
    "udp": ("red-blue",),
}


def experiments(*names: str) -> tuple[str, ...]:
    """Return the paths of the given experiments of the thesis."""
    return tuple(f"tcp-maxnet-2006/{name}" for name in names)


def paced(*names: str) -> tuple[Change, ...]:
    """Return the changes that pace all flows of the given experiments."""
    return tuple(
        Change(
            tuple(f"flow.{flow}.pacing=true" for flow in FLOWS[name]),
            experiment=f"tcp-maxnet-2006/{name}",
        )
        for name in names
    )


def rateinc(value: float) -> tuple[Change, ...]:
    """Return the change to the factor by which QuickStart raises its rate."""
    return (Change((f"params.maxnet2006.rateinc={value}",)),)


def depth_of(ms: float) -> tuple[Change, ...]:
    """Return the changes that make token buckets hold a duration of traffic at their rates."""
    rates = {"averaging": 500e6, "three-flows": 400e6}
    return tuple(
        Change((f'{BUCKET}.depth="{ms / 1e3 * rate / 8e3:g} kB"',), experiment=f"*/{name}")
        for name, rate in rates.items()
    )


# The real link of §1.1: the pipe's 4,167 packets and these are the peak of 5,556.
REAL_LINK = (
    "link.link.rate=1 Gbit/s",
    "link.link.buffer=1389 packets",
    'link.link.loss_model={kind = "independent", p = 0}',
)

GRIDS = (
    Grid(
        name="thesis-bucket",
        question="§4.5: what depth and timer has the token bucket that let small bursts through?",
        experiments=("tcp-maxnet-2006/averaging",),
        axes={
            "timer": TIMERS,
            "depth": options(
                f"{BUCKET}.depth",
                "3 kB",
                "62.5 kB",
                "125 kB",
                "625 kB",
                "1.25 MB",
                "2.5 MB",
                as_is="625 kB",
            ),
            "arithmetic": ARITHMETIC,
        },
        adopted={"timer": "1 ms", "depth": "625 kB", "arithmetic": "real"},
        errata=("T15",),
    ),
    Grid(
        name="thesis-bucket-rtt",
        question="§4.5: over what RTT, which the section does not give?",
        experiments=("tcp-maxnet-2006/averaging",),
        axes={
            "rtt": {
                "1 ms": (Change(('link.bottleneck.delay="500 us"',)),),
                "4 ms": (Change(('link.bottleneck.delay="2 ms"',)),),
                "10 ms": (Change(('link.bottleneck.delay="5 ms"',)),),
                "28 ms": (),
            },
            "timer": {name: TIMERS[name] for name in ("none", "1 ms")},
            "depth": options(f"{BUCKET}.depth", "62.5 kB", "250 kB", "625 kB", as_is="625 kB"),
            "arithmetic": ARITHMETIC,
        },
        adopted={"rtt": "28 ms", "timer": "1 ms", "depth": "625 kB", "arithmetic": "real"},
        errata=("T15",),
    ),
    Grid(
        name="thesis-low-speed",
        question="§5: what depth and timer have the token buckets of the low-speed runs?",
        experiments=experiments("averaging", "three-flows"),
        axes={
            "timer": {name: TIMERS[name] for name in ("none", "1 ms")},
            "depth": options(f"{BUCKET}.depth", "62.5 kB", "625 kB", "1.25 MB"),
        },
        adopted={"timer": "1 ms", "depth": None},
        errata=("T15",),
    ),
    Grid(
        name="thesis-low-speed-ticks",
        question="§5: the same with a depth in time, as a kernel of 100 ticks a second needs it",
        experiments=experiments("averaging", "three-flows"),
        axes={"timer": TIMERS, "depth": {"10 ms": (), "20 ms": depth_of(20)}},
        adopted={"timer": "1 ms", "depth": "10 ms"},
        errata=("T15",),
    ),
    Grid(
        name="thesis-no-bucket",
        question="§5.3: are the 400 Mbit/s a token bucket's, as §5 says of low-speed tests?",
        experiments=experiments("three-flows"),
        axes={"link": {"token bucket": (), "plain": (Change(scenario="scenario.toml"),)}},
        adopted={"link": "token bucket"},
    ),
    Grid(
        name="thesis-bursts",
        question="§4.5: whose bursts, and how are they acknowledged?",
        experiments=experiments("averaging"),
        axes={
            "bursts": {
                "token bucket": (),
                "of others": (Change(scenario="others.toml"),),
                "held acknowledgements": (Change(scenario="own.toml"),),
            },
            "acknowledgements": {
                "each packet": (),
                "every second": (Change(("flow.sender.delayed_ack=true",)),),
            },
            "arithmetic": ARITHMETIC,
        },
        adopted={"bursts": "token bucket", "acknowledgements": "each packet", "arithmetic": "real"},
        errata=("T15",),
    ),
    Grid(
        name="thesis-arithmetic",
        question="§4.1, §4.3: does the kernel's arithmetic explain what differs?",
        experiments=experiments(
            "averaging", "base-rtt", "loss", "one-flow", "second-flow", "three-flows", "udp"
        ),
        axes={
            "arithmetic": options(
                "params.maxnet2006.arithmetic", "real", "kernel", "printed", as_is="real"
            )
        },
        adopted={"arithmetic": "real"},
        errata=("T8", "T9"),
    ),
    Grid(
        name="thesis-quickstart",
        question="Fig. 5: what is rateinc, and are packets paced?",
        experiments=experiments("base-rtt", "one-flow", "second-flow", "three-flows", "udp"),
        axes={
            "rateinc": {
                "1.0625": rateinc(1.0625),
                "1.125": rateinc(1.125),
                "1.25": (),
                "1.5": rateinc(1.5),
                "2": rateinc(2),
            },
            "packets": {"in windows": (), "paced": paced(*FLOWS)},
        },
        adopted={"rateinc": "1.25", "packets": "in windows"},
        errata=("T5", "T14"),
    ),
    Grid(
        name="thesis-reno",
        question="§1.1: on what link does Reno need 139 s to recover?",
        experiments=experiments("reno-arithmetic"),
        axes={
            "link": {
                "constant RTT": (),
                "1 Gbit/s, Reno": (Change(REAL_LINK, run="constant round trip"),),
                "1 Gbit/s, SACK": (
                    Change((*REAL_LINK, "protocol=sack"), run="constant round trip"),
                ),
            }
        },
        adopted={"link": "constant RTT"},
        errata=("T2",),
    ),
)
