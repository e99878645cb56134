"""Readings of *Lightweight Fairness Solutions for XCP and TCP Cohabitation* (2008)."""

from validation.readings.grid import Change, Grid

_FIGURES = ("xcp-tcp-2008/figure-2", "xcp-tcp-2008/figure-3", "xcp-tcp-2008/figure-4")
_PROTECTED = _FIGURES[1:]
_QUEUE = "link.bottleneck.queue_params"


def _queue(**params: str) -> Change:
    """Set parameters of the module, in the experiments that have it."""
    sets = tuple(f"{_QUEUE}.{name}={value}" for name, value in params.items())
    return Change(sets, experiment="xcp-tcp-2008/figure-[34]")


def _tcp(protocol: str) -> tuple[Change, ...]:
    """Set the TCP of all three figures."""
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
_OWN_TRIALS = {name: _TABLE[name] for name in ("class", "shared")}
# ns-2's agents of 2007 and 2008: its own NewReno, SACK and HighSpeed, and the Linux suite's.
_TCPS = ("newreno", "sack", "highspeed", "bic", "cubic", "htcp", "scalable")

GRIDS = (
    Grid(
        name="cohabit-update",
        paper="xcp-tcp-2008",
        question="§4.3, §4.2: when is p_drop updated, and what is P(t) an average over?",
        experiments=_PROTECTED,
        axes={"update": _UPDATE, "table": _TABLE},
        adopted={"update": "interval", "table": "class"},
        errata=("C2", "C3"),
    ),
    Grid(
        name="cohabit-tcp",
        paper="xcp-tcp-2008",
        question="§5: which TCP, update and table give the shares of Fig. 3 and 4?",
        experiments=_FIGURES,
        axes={
            "tcp": {protocol: _tcp(protocol) for protocol in _TCPS},
            "update": {name: _UPDATE[name] for name in ("interval", "packet")},
            "table": _OWN_TRIALS,
        },
        adopted={"tcp": "sack", "update": "interval", "table": "class"},
        errata=("C3",),
    ),
    Grid(
        name="cohabit-input",
        paper="xcp-tcp-2008",
        question="§4.3: which control interval, and is a dropped packet input?",
        experiments=_PROTECTED,
        axes={
            "interval": {
                "base RTT": (Change(),),
                "XCP's mean RTT": (_queue(interval='"xcp"'),),
            },
            "dropped": {
                "not counted": (_queue(count_drops='"never"'),),
                "counted": (_queue(count_drops='"module"'),),
                "counted, also by XCP": (_queue(count_drops='"router"'),),
            },
            "update": {name: _UPDATE[name] for name in ("interval", "packet")},
            "table": _OWN_TRIALS,
        },
        adopted={
            "interval": "base RTT",
            "dropped": "not counted",
            "update": "interval",
            "table": "class",
        },
        errata=("C3",),
    ),
)
