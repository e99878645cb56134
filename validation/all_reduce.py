"""Bus bandwidth of an all-reduce of 128 hosts under each law, over five seeds.

The scenario is the one of docs/validation/all-reduce.md. A value is the bus bandwidth as a share of
that at the least time, the ideal; its interval is that of the mean over seeds (95 %). Points are
kept in out/all-reduce, so that a study that is interrupted goes on where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import waterfill
from validation.study import ROOT, Option, Options, Report, Study
from validation.tables import markdown
from waterfill.scenario.loading import from_toml
from waterfill.sweeps.estimates import Estimate, estimate

if TYPE_CHECKING:
    import pyarrow as pa

PAGE = ROOT / "docs" / "validation" / "all-reduce.md"
LAWS = ("hpcc", "powertcp", "maxnet", "dctcp", "xcp", "rcp")
SEEDS = 5
KEY = "collective.gradients.algorithm"
OPERATIONS: Mapping[str, str] = {"ring": "ring", "halving-doubling": "halving and doubling"}
_POINTS = Path("out") / "all-reduce"

Found = Mapping[str, Mapping[str, Estimate]]
"""Share of the ideal bus bandwidth, by operation and law."""


def scenario() -> str:
    """Return the scenario of the page."""
    (found,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    return str(found)


def shares(table: pa.Table) -> dict[str, Estimate]:
    """Return each law's share of the ideal bus bandwidth over the seeds of a sweep's points."""
    laws, values = (table[name].to_pylist() for name in ("protocol", "bus_of_ideal"))
    missing = [law for law, value in zip(laws, values, strict=True) if value is None]
    if missing:
        raise ValueError(f"an all-reduce without an end: {', '.join(sorted(set(missing)))}")
    return {
        law: estimate([value for one, value in zip(laws, values, strict=True) if one == law])
        for law in dict.fromkeys(laws)
    }


def draw(found: Found, stem: Path) -> None:
    """Draw a panel for each operation: a point with its interval for each law, and the ideal."""
    from matplotlib.figure import Figure

    from waterfill.analysis.draw import save

    laws = list(dict.fromkeys(law for of in found.values() for law in of))
    figure = Figure(figsize=(8.6, 0.36 * len(laws) + 1.5), layout="constrained")
    axes = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axis, (operation, of) in zip(axes, found.items(), strict=True):
        for row, law in enumerate(laws):
            one = of[law]
            half = 100 * (one.half or 0.0)
            axis.errorbar(100 * one.mean, row, xerr=half, fmt="o", color="#0072b2", capsize=3)
            left = one.mean > 0.7
            axis.annotate(
                f"{100 * one.mean:.0f}", (100 * one.mean - half * left + half * (not left), row),
                (-7 if left else 7, 0), textcoords="offset points", fontsize=9, va="center",
                ha="right" if left else "left",
            )  # fmt: skip
        axis.axvline(100, color="#555555", linestyle="--", linewidth=1)
        axis.set_xlim(0, 108)
        axis.set_title(OPERATIONS[operation], fontsize=11, loc="left")
        axis.set_xlabel("bus bandwidth (% of that at the least time)")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(laws)), laws)
    axes[0].invert_yaxis()
    save(figure, stem, ("png",))


def table(found: Found) -> str:
    """Return the table of shares in percent, with half of their intervals."""
    laws = list(dict.fromkeys(law for of in found.values() for law in of))

    def cell(one: Estimate) -> str:
        half = f" ± {100 * one.half:.1f}" if one.half else ""
        return f"{100 * one.mean:.1f}{half}"

    rows = [[f"`{law}`", *(cell(of[law]) for of in found.values())] for law in laws]
    return markdown("|".join(["law", *(f"{OPERATIONS[one]} %:" for one in found)]), rows)


def work(options: Options) -> Report:
    """Run the sweeps and return their table and figure."""
    found = {}
    for operation in options.operations:
        sweep = waterfill.sweep(
            _written(), protocols=list(options.protocols), seeds=options.seeds, quiet=False,
            sets=[f"{KEY}={operation}", f"collective.gradients.size={options.size}"],
            columns=["bus_of_ideal"], output=_POINTS / f"{operation}-{options.size}",
        )  # fmt: skip
        found[operation] = shares(sweep.table)
    return Report(table(found), figures={"all-reduce": lambda stem: draw(found, stem)})


def _written() -> Path:
    """Write the page's scenario and return its file."""
    from_toml(scenario(), str(PAGE))
    file = _POINTS / "all-reduce.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(scenario(), encoding="utf-8")
    return file


def _words() -> Sequence[str]:
    return tuple(OPERATIONS)


STUDY: Study[None, None] = Study(
    shows="bus bandwidth of an all-reduce of 128 hosts under six laws, against the ideal",
    minutes=15,
    options=(
        Option("--protocols", LAWS, "laws"),
        Option("--operations", tuple(OPERATIONS), "algorithms", _words),
        Option("--seeds", SEEDS, "seeds", low=1),
        Option("--size", "4 MB", "data of each host"),
    ),
    quick={"protocols": ("maxnet",), "seeds": 1, "size": "128 kB"},
    work=work,
)
