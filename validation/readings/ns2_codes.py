"""Readings of RCP and VCP that their authors' ns-2 codes suggest (docs/validation/ns2-peers.md)."""

from validation.readings.grid import Change, Grid

GRIDS = (
    Grid(
        name="rcp-code",
        paper="maxnet-2007",
        question="§IX: is its RCP the authors' ns-2 model, which writes rates at departure?",
        experiments=("maxnet-2007/rcp",),
        axes={
            "writes": {
                "arrival": (Change(),),
                "departure": (Change(('params.rcp.writes="departure"',), run="rcp*"),),
            },
            "RTTs": {
                "traffic": (Change(),),
                "reluctant": (Change(('params.rcp.average="reluctant"',), run="rcp*"),),
            },
        },
        adopted={"writes": "arrival", "RTTs": "traffic"},
        errata=("M22",),
    ),
    Grid(
        name="vcp-code",
        paper="aecp-2010",
        question="§6: is its VCP the paper's, or the ns-2 code of VCP's author?",
        experiments=(
            "aecp-2010/multi-bottleneck",
            "aecp-2010/no-crossing",
            "aecp-2010/rtts",
        ),
        axes={
            "VCP": {
                "paper": (Change(),),
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
            },
        },
        adopted={"VCP": "paper"},
    ),
)
