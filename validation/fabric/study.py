"""Study of fabrics, described in the package's docstring."""

from __future__ import annotations

from validation.fabric import cases, report
from validation.fabric.cases import FabricRow
from validation.study import Option, Study, only

_RATES = tuple(map(str, cases.RATES_GBPS))

STUDY = Study(
    shows="slowdowns and incasts of eight laws in fabrics of 100 and 400 Gbit/s",
    minutes=60,
    options=(
        Option("--laws", tuple(cases.LAWS), "laws", tuple(cases.LAWS)),
        Option("--rates", _RATES, "rates of links in Gbit/s", _RATES),
        Option("--seeds", cases.SEEDS, "use seeds 1 to this one", low=1),
        only("400G web-search*"),
    ),
    quick={"laws": ("maxnet", "dctcp"), "rates": _RATES[:1], "seeds": 1},
    cases=lambda options: cases.cases(options.laws, map(int, options.rates), options.seeds),
    measure=cases.run,
    row=FabricRow,
    table=report.tables,
    figure=report.draw,
)
