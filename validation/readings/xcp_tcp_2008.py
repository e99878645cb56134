"""Readings of *Lightweight Fairness Solutions for XCP and TCP Cohabitation* (2008)."""

from validation.readings.grid import Change, Grid

_FIGURES = ("xcp-tcp-2008/figure-2", "xcp-tcp-2008/figure-3", "xcp-tcp-2008/figure-4")
_PROTECTED = _FIGURES[1:]
_QUEUE = "link.bottleneck.queue_params"


def _queue(**params: str) -> Change:
    """Return the change that sets parameters of the cohabitation queue, in the experiments that
    have one.
    """
    sets = tuple(f"{_QUEUE}.{name}={value}" for name, value in params.items())
    return Change(sets, experiment="xcp-tcp-2008/figure-[34]")


def _half(**params: str) -> Change:
    """Return the change that sets queue parameters in runs where half of the packets
    are inspected.
    """
    sets = tuple(f"{_QUEUE}.{name}={value}" for name, value in params.items())
    return Change(sets, run="*half", experiment="xcp-tcp-2008/figure-4")


def _tcp(protocol: str) -> tuple[Change, ...]:
    """Return the changes that set the TCP variant in the experiments of all three figures."""
    three = tuple(f'flow.tcp-{i}.protocol="{protocol}"' for i in (1, 2, 3))
    return (
        Change((f'flow.tcp.protocol="{protocol}"',), experiment="xcp-tcp-2008/figure-2"),
        Change(three, experiment="xcp-tcp-2008/figure-[34]"),
    )


_UPDATE = {
    "interval": (_queue(update='"interval"'),),
    "packet": (_queue(update='"packet"'),),
    "xcp-packet": (_queue(update='"explicit-packet"'),),
    "tcp-packet": (_queue(update='"tcp-packet"'),),
}
_TABLE = {
    "class": (_queue(shared="false", trials='"class"'),),
    "shared": (_queue(shared="true", trials='"class"'),),
    "class, P over all": (_queue(shared="false", trials='"all"'),),
    "shared, P over all": (_queue(shared="true", trials='"all"'),),
}
# ns-2's agents of 2007 and 2008: its own NewReno, SACK and HighSpeed, and the Linux suite's.
_TCPS = ("newreno", "sack", "highspeed", "bic", "cubic", "htcp", "scalable")

GRIDS = (
    Grid(
        name="cohabit-update",
        question="§4.3, §4.2: when is p_drop updated, and has each class a zombie table?",
        experiments=_PROTECTED,
        axes={"update": _UPDATE, "table": {name: _TABLE[name] for name in ("class", "shared")}},
        adopted={"update": "packet", "table": "class"},
        errata=("C2", "C3"),
    ),
    Grid(
        name="cohabit-average",
        question="§4.2: is P(t) an average over a class's packets or over all?",
        experiments=_PROTECTED[:1],
        axes={"update": {name: _UPDATE[name] for name in ("interval", "packet")}, "table": _TABLE},
        adopted={"update": "packet", "table": "class"},
        errata=("C2",),
    ),
    Grid(
        name="cohabit-seeds",
        question="§4.2: does the choice between the tables depend on chance?",
        experiments=_PROTECTED,
        axes={
            "table": {name: _TABLE[name] for name in ("class", "shared")},
            "seed": {seed: (Change((f"seed={seed}",)),) for seed in ("1", "2", "3")},
        },
        adopted={"table": "class", "seed": "1"},
        errata=("C2",),
    ),
    Grid(
        name="cohabit-factors",
        question="§4.3: for which update is the range of D_drop and I_drop, 0.99 to 1.01, meant?",
        experiments=("xcp-tcp-2008/estimator",),
        axes={
            "update": {
                name: (Change((f'{_QUEUE}.update="{name}"',)),) for name in ("interval", "packet")
            }
        },
        adopted={"update": "packet"},
        errata=("C7",),
    ),
    Grid(
        name="cohabit-delta",
        question="§6: is δ 0.00025, as printed, or 0.5/1000, as §4.2 computes it?",
        experiments=("xcp-tcp-2008/figure-4",),
        axes={
            "delta": {"printed": (_half(delta="0.00025"),), "computed": (_half(delta="0.0005"),)}
        },
        adopted={"delta": "printed"},
        errata=("C4",),
    ),
    Grid(
        name="cohabit-tcp",
        question="§5: which TCP, update and table give the shares of Fig. 3 and 4?",
        experiments=_FIGURES[:2],
        axes={
            "tcp": {protocol: _tcp(protocol) for protocol in _TCPS},
            "update, table": {
                f"{update}, {table}": _UPDATE[update] + _TABLE[table]
                for update, table in (
                    ("interval", "class"),
                    ("packet", "class"),
                    ("packet", "shared"),
                )
            },
        },
        adopted={"tcp": "sack", "update, table": "packet, class"},
        errata=("C3",),
    ),
    Grid(
        name="cohabit-input",
        question="§4.3: which control interval, and is a dropped packet input?",
        experiments=("xcp-tcp-2008/figure-3",),
        axes={
            "interval": {
                "base RTT": (
                    Change((f'{_QUEUE}.interval="20 ms"',), run="20 ms"),
                    Change((f'{_QUEUE}.interval="100 ms"',), run="100 ms"),
                ),
                "XCP's mean RTT": (_queue(interval='"xcp"'),),
            },
            "dropped": {
                "not counted": (_queue(count_drops='"never"'),),
                "counted": (_queue(count_drops='"module"'),),
                "counted, also by XCP": (_queue(count_drops='"router"'),),
            },
            "table": {name: _TABLE[name] for name in ("class", "shared")},
        },
        adopted={"interval": "XCP's mean RTT", "dropped": "counted, also by XCP", "table": "class"},
        errata=("C3",),
    ),
)
