"""Readings of *MaxNet: Theory and Implementation* (2007)."""

from validation.readings.grid import Change, Grid

GRIDS = (
    Grid(
        name="cross-traffic",
        paper="maxnet-2007",
        question="§VII.B: which source law takes back over two thirds within 0.3 s?",
        experiments=("maxnet-2007/cross-traffic",),
        axes={
            "order": {
                "xi-first": (Change(),),
                "rate-first": (Change(('params.maxnet.order="rate-first"',)),),
            },
            "average": {
                "receiver": (Change(),),
                "none": (Change(("params.maxnet.average=false",)),),
            },
        },
        adopted={"order": "xi-first", "average": "receiver"},
        errata=("M20",),
    ),
)
