"""Readings of *Improving XCP to Achieve Max-Min Fair Bandwidth Allocation* (2007)."""

from validation.readings.grid import Change, Grid

_FLOWS = {
    "ixcp-2007/two-bottlenecks": ("short", "long"),
    "ixcp-2007/five-hops": ("to-1", "to-2", "to-3", "to-4", "to-5"),
    "ixcp-2007/dynamic-flows": ("long", "s1", "s2", "s3", "s4", "s5", "s6", "s7"),
}


def _every_flow(**values: str) -> tuple[Change, ...]:
    """Return the changes that set keys of all flows of iXCP's runs."""
    return tuple(
        Change(
            tuple(f"flow.{flow}.{key}={value}" for flow in flows for key, value in values.items()),
            run="ixcp*",
            experiment=experiment,
        )
        for experiment, flows in _FLOWS.items()
    )


def _params(**values: str) -> tuple[Change, ...]:
    return (Change(tuple(f"params.ixcp.{k}={v}" for k, v in values.items()), run="ixcp*"),)


def _residues(value: str) -> tuple[Change, ...]:
    """Return the changes that limit what a router allocates, in every law of the paper, or do
    not.
    """
    laws = ("ixcp", "xcp", "pxcp")
    return tuple(Change((f"params.{law}.residues={value}",), run=f"{law}*") for law in laws)


def _five_hops(to_1: int, to_2: int, to_3: int) -> tuple[Change, ...]:
    """Return the change that sets Fig. 4's numbers of flows to links 1 to 3, and the resulting link
    rates.
    """
    link_3 = 120 + 4 * to_3
    link_2 = link_3 + 8 * to_2
    link_1 = link_2 + 10 * to_1
    sets = (
        *(f"flow.to-{i}.count={count}" for i, count in enumerate((to_1, to_2, to_3), 1)),
        *(f"link.link{i}.rate={rate} Mbit/s" for i, rate in enumerate((link_1, link_2, link_3), 1)),
    )
    return (Change(sets, experiment="ixcp-2007/five-hops"),)


CLAIM = {
    "full-link": _params(claim="full-link"),
    "least-feedback": _params(claim="least-feedback"),
}
# Without residues every packet gets what it is due, so gains and losses are paired anyway.
SHUFFLE = {
    "no residues": (*_params(shuffle="draft"), *_residues("false")),
    "draft": (*_params(shuffle="draft"), *_residues("true")),
    "paired": (*_params(shuffle="paired"), *_residues("true")),
}
_NAMING = {"claim": CLAIM, "shuffle": SHUFFLE}
_ADOPTED = {"claim": "least-feedback", "shuffle": "no residues"}

GRIDS = (
    Grid(
        name="ixcp-letter",
        question="§1, §2.1, §3: when does a router name its link, and what limits its feedback?",
        experiments=tuple(_FLOWS),
        axes=_NAMING,
        adopted=_ADOPTED,
        errata=("I4", "I5", "I6", "I8"),
    ),
    # The paper starts flows "at time t = 0" and gives every link 20 ms; 0.32 s is four RTTs of
    # Fig. 1's long flows, 4 ms a twentieth of one.
    Grid(
        name="ixcp-starts",
        question="§4: do the figures need flows that start together with equal RTTs?",
        experiments=tuple(_FLOWS),
        axes={
            **_NAMING,
            "starts": {
                "together": (),
                "random": _every_flow(start_jitter="0.32 s"),
                "random, unequal RTTs": _every_flow(start_jitter="0.32 s", rtt_jitter="4 ms"),
            },
        },
        adopted={**_ADOPTED, "starts": "together"},
        errata=("I4", "I5", "I6", "I8"),
    ),
    Grid(
        name="ixcp-seeds",
        question="§4: do the readings depend on the draw of random starts?",
        experiments=tuple(_FLOWS),
        axes={
            "claim": CLAIM,
            "shuffle": {name: SHUFFLE[name] for name in ("no residues", "draft")},
            "starts": {
                "together": (),
                **{
                    f"random, seed {seed}": (
                        *_every_flow(start_jitter="0.32 s"),
                        Change((f"seed={seed}",), run="ixcp*"),
                    )
                    for seed in (1, 2, 3)
                },
            },
        },
        adopted={**_ADOPTED, "starts": "together"},
        errata=("I4",),
    ),
    # Fig. 4 is lost. §4.2 has all rates, and the flows to links 5 (thirty) and 4 (twenty).
    Grid(
        name="ixcp-instance",
        question="§4.2: does the verdict depend on our number of flows to links 1 to 3 of Fig. 4?",
        experiments=("ixcp-2007/five-hops",),
        axes={
            **_NAMING,
            "flows": {
                "ten each": (),
                "one each": _five_hops(1, 1, 1),
                "fifteen, ten, five": _five_hops(5, 10, 15),
                "forty each": _five_hops(40, 40, 40),
            },
        },
        adopted={**_ADOPTED, "flows": "ten each"},
        errata=("I7", "I8"),
    ),
)
