"""Study of flow completion times, described in the package's docstring."""

from __future__ import annotations

from validation.fct import cases, report
from validation.fct.cases import FctCase
from validation.study import Option, Options, Study

_FABRICS = tuple(fabric.name for fabric in cases.FABRICS)


def chosen(options: Options) -> list[FctCase]:
    """Return the cases of the chosen laws, fabrics and seeds."""
    fabrics = [fabric for fabric in cases.FABRICS if fabric.name in options.fabrics]
    seeds = range(1, options.seeds + 1)
    return cases.cases(options.laws or cases.laws(), fabrics, cases.LOADS, seeds)


STUDY = Study(
    shows="flow completion times of web-search load in two fabrics, every law",
    minutes=30,
    options=(
        Option("--laws", (), "default: all", cases.laws),
        Option("--fabrics", _FABRICS, "networks", _FABRICS),
        Option("--seeds", len(cases.SEEDS), "use seeds 1 to this one", low=1),
    ),
    quick={"laws": ("maxnet", "dctcp"), "fabrics": ("leaf-spine",), "seeds": 1},
    cases=chosen,
    measure=cases.run,
    table=lambda found: report.tables(list(found.values())),
)
