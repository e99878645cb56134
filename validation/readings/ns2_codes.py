"""Readings of RCP and VCP suggested by their authors' ns-2 code (docs/validation/ns2-peers.md)."""

from validation.readings.grid import Change, Grid, options

GRIDS = (
    Grid(
        name="rcp-code",
        question="§IX: is its RCP the authors' ns-2 model, which writes rates at departure?",
        experiments=("maxnet-2007/rcp",),
        axes={
            "writes": options(
                "params.rcp.writes", "arrival", "departure", as_is="arrival", run="rcp*"
            ),
            "RTTs": options(
                "params.rcp.average", "traffic", "reluctant", as_is="traffic", run="rcp*"
            ),
        },
        adopted={"writes": "arrival", "RTTs": "traffic"},
        errata=("M22",),
    ),
    Grid(
        name="vcp-code",
        question="§6: is its VCP the paper's, or the ns-2 code of VCP's author?",
        experiments=("aecp-2010/multi-bottleneck", "aecp-2010/no-crossing", "aecp-2010/rtts"),
        axes={
            "VCP": {
                "paper": (),
                "t_d = 100 ms": (Change(('params.vcp.t_d="100 ms"',), run="vcp*"),),
                "code": (
                    Change(
                        (
                            'params.vcp.t_d="100 ms"',
                            'params.vcp.freeze="overload"',
                            "params.vcp.whole_percent=true",
                        ),
                        run="vcp*",
                    ),
                ),
            }
        },
        adopted={"VCP": "paper"},
    ),
)
