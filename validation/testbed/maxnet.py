"""Compare MaxNet on the running kernel with its requirements: `make linux-maxnet`.

`python -m validation.testbed.maxnet [-o DIR] [--only GLOB] [--times X] [--show]`. The cells are in
`maxnet_cells`, what no scenario can express in `maxnet_special`. Each run is kept in
DIR/<cell>@<backend> at once, so an interrupted comparison continues. A run on linux that failed its
checks is marked in the table, and repeated the next time.

DIR/table.md has every goal with its measured value, DIR/verdicts.json the same as JSON,
DIR/<cell>.png and .svg the curves of all backends, DIR/fig14.png and .svg rates over loss.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from validation.testbed import maxnet_cells, maxnet_plots, maxnet_special
from validation.testbed.maxnet_cells import Backend, Cell, Goal, Of
from validation.testbed.maxnet_special import SPECIALS
from waterfill.errors import InputError, RunError
from waterfill.papers.measures import flows as flow_measures
from waterfill.papers.measures.registry import MEASURES
from waterfill.papers.measures.signals import sampled
from waterfill.runs import backends
from waterfill.runs.files import make_directory, write_text
from waterfill.runs.progress import Bar
from waterfill.runs.result import Document, Result, to_json
from waterfill.runs.stored import StoredResult
from waterfill.testbed import checks, daemon

# The size of each unit in SI.
_UNITS = {"": 1.0, "%": 0.01, "ms": 1e-3, "ns": 1e-9, "Mbit/s": 1e6}


# --- measures beyond `waterfill.papers.measures` ------------------------------------------------


def drops_over(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Return the packets that a link's queue dropped in a window."""
    _, drops = sampled(result, "links", link, "drops", start_s, stop_s)
    return float(drops.sum()) if len(drops) else None


def unequal(result: Result, *, flows: list[str], start_s: float, stop_s: float) -> float | None:
    """Return the largest deviation of these flows' mean rates from their mean, relative to it."""
    rates = [flow_measures.rate_over(result, flow=f, start_s=start_s, stop_s=stop_s) for f in flows]
    known = np.array([rate for rate in rates if rate is not None])
    if len(known) < len(flows) or not known.mean():
        return None
    return float(np.abs(known / known.mean() - 1).max())


_OWN: Mapping[str, Callable[..., float | None]] = {"drops_over": drops_over, "unequal": unequal}


def measured(result: Result, name: str, args: Mapping[str, object]) -> float | None:
    """Return a measure of a run by the measure's name, in SI units."""
    own = _OWN.get(name)
    function: Callable[..., float | None] = own or MEASURES[name].function
    return function(result, **args)


# --- runs and goals -----------------------------------------------------------------------------


class Runs:
    """Runs cells, and keeps the runs in a folder."""

    def __init__(self, folder: Path, cells: Iterable[Cell], times: float = 1.0) -> None:
        self.folder, self.times = folder, times
        self.cells = {cell.name: cell for cell in cells}

    def kept(self, cell: Cell, backend: Backend) -> Result | None:
        """Return the kept run of this exact scenario, valid or not; None if there is none."""
        folder = self._folder(cell, backend)
        try:
            found = StoredResult(folder)
        except (OSError, ValueError):
            return None
        return found if found.scenario_toml == cell.scenario(backend).to_toml() else None

    def valid(self, cell: Cell, backend: Backend) -> bool:
        """Return whether there is a run that passed its checks."""
        run = self.kept(cell, backend)
        return run is not None and not failed(run)

    def run(self, cell: Cell, backend: Backend) -> Result:
        """Run a cell on a backend and keep the result, atomically."""
        scenario = cell.scenario(backend)
        with Bar(f"{cell.name}@{backend}") as bar:
            result = backends.run(scenario, on=backend, progress=bar)
        if "interrupted_at_s" in result.summary:
            raise KeyboardInterrupt
        folder = self._folder(cell, backend)
        part = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        result.write(part)
        write_text(part / "network.json", to_json(result.network.to_dict(), indent=None))
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
        return result

    def _folder(self, cell: Cell, backend: str) -> Path:
        return self.folder / f"{cell.name}@{backend}"

    # --- what no scenario can express

    def special(self, name: str, times: float) -> Document | None:
        """Return the kept result of a special experiment; None if there is none of this length."""
        try:
            found: Document = json.loads((self.folder / f"{name}.json").read_text())
        except (OSError, ValueError):
            return None
        return found if found["times"] == times else None

    def run_special(self, name: str, times: float) -> None:
        """Run a special experiment and keep its result."""
        print(f"{name}: {SPECIALS[name][0]}", file=sys.stderr)
        answer = {"times": times, "goals": maxnet_special.run(name, times)}
        write_text(self.folder / f"{name}.json", to_json(answer) + "\n")

    # --- goals

    def value(self, cell: Cell, of: Of) -> float | None:
        """Return a measure of a run; None if there is no such run."""
        where = self.cells[of.cell] if of.cell else cell
        run = self.kept(where, of.backend)
        return None if run is None else measured(run, of.measure, where.arguments(of))

    def verdict(self, cell: Cell, goal: Goal) -> Document:
        """Return a goal's measured value, its reference, and whether it is met (None: unknown)."""
        got = self.value(cell, goal.what)
        reference = self.value(cell, goal.to) if isinstance(goal.to, Of) else goal.to
        return {"goal": goal.name, "unit": goal.unit, "kind": goal.kind, "measured": got,
                "reference": reference, "within": goal.within, "scale": goal.scale,
                "ok": met(goal, got, reference)}  # fmt: skip

    def document(self) -> Document:
        """Return every cell's verdicts, and which checks its run on linux failed."""
        found: Document = {}
        for cell in self.cells.values():
            run = self.kept(cell, "linux")
            found[cell.name] = {
                "title": cell.title, "differs": cell.differs, "times": cell.times,
                "ran": run is not None, "checks_failed": failed(run) if run else [],
                "goals": [self.verdict(cell, goal) for goal in cell.goals],
            }  # fmt: skip
        for name, (title, _) in SPECIALS.items():
            kept = self.special(name, self.times)
            found[name] = {
                "title": title, "differs": "", "times": self.times, "ran": kept is not None,
                "checks_failed": [], "goals": kept["goals"] if kept else [],
            }  # fmt: skip
        return found

    def draw(self, cell: Cell) -> None:
        """Draw the cell's figure from the kept runs."""
        runs: dict[str, Result] = {
            backend: run
            for backend in cell.backends
            if (run := self.kept(cell, backend)) is not None
        }
        if "linux" in runs:
            maxnet_plots.save(maxnet_plots.curves(cell, runs), self.folder / cell.name)

    def draw_losses(self) -> None:
        """Draw the rates of every law over loss, from the kept runs."""
        points: dict[str, list[tuple[float, str, float]]] = {}
        for loss in maxnet_cells.LOSSES:
            cell = self.cells[maxnet_cells.loss_name(loss)]
            for backend in cell.backends:
                run = self.kept(cell, backend)
                for flow in run.summary["flows"] if run else ():
                    points.setdefault(flow["name"], []).append(
                        (loss, backend, flow["rate_bps"] or 0.0)
                    )
        if points:
            maxnet_plots.save(maxnet_plots.losses(points), self.folder / "fig14")


def failed(run: Result) -> list[str]:
    """Return the names of the checks that a run failed."""
    return [check["name"] for check in run.summary.get("checks", ()) if not check["ok"]]


def met(goal: Goal, got: float | None, reference: float | None) -> bool | None:
    """Return whether a goal is met; None if it has no reference or no measured value."""
    if goal.kind == "shown" or got is None or reference is None or not math.isfinite(got):
        return None
    wanted = reference * goal.scale
    if goal.kind == "near":
        return abs(got - wanted) <= goal.within * wanted
    return got >= wanted if goal.kind == "least" else got <= wanted


# --- the table --------------------------------------------------------------------------------


def table(document: Document) -> str:
    """Return all goals as Markdown: one heading per cell, one row per goal."""
    lines = []
    for name, cell in document.items():
        lines += [f"## {name}: {cell['title']}", ""]
        notes = [cell["differs"]] if cell["differs"] else []
        if cell["times"] != 1:
            notes.append(f"a trial, of {cell['times']:g} times the length")
        if cell["checks_failed"]:
            notes.append(f"invalid, failed checks: {', '.join(cell['checks_failed'])}")
        if not cell["ran"]:
            notes.append("not run")
        lines += [f"{'; '.join(notes)}.", ""] if notes else []
        lines += ["| | measured | required | met |", "|---|--:|---|---|"]
        lines += [_row(goal) for goal in cell["goals"]]
        lines.append("")
    return "\n".join(lines)


def _row(goal: Document) -> str:
    verdict = {True: "yes", False: "**no**", None: ""}[goal["ok"]]
    return f"| {goal['goal']} | {_shown(goal, 'measured')} | {_asked(goal)} | {verdict} |"


def _shown(goal: Document, key: str, scale: float = 1.0) -> str:
    value = goal[key]
    if value is None:
        return "–"
    return f"{value * scale / _UNITS[goal['unit']]:.4g} {goal['unit']}".strip()


def _asked(goal: Document) -> str:
    if goal["kind"] == "shown":
        return ""
    reference = _shown(goal, "reference", goal["scale"])
    if goal["kind"] != "near":
        return f"at {goal['kind']} {reference}"
    off = ""
    if goal["measured"] is not None and goal["reference"]:
        off = f" ({goal['measured'] / (goal['reference'] * goal['scale']) - 1:+.1%})"
    return f"{reference} ± {goal['within']:.1%}{off}"


# --- the command line -------------------------------------------------------------------------


def missing(specials: Iterable[str]) -> str | None:
    """Return what this host lacks to run cells and these experiments; None if nothing."""
    if daemon.binary() is None:
        return "the daemon waterfilld beside this Python (make build), got none"
    wanted = [maxnet_special.missing(name) for name in specials]
    return next((lacking for lacking in [checks.missing(http=False), *wanted] if lacking), None)


def main() -> int:
    """Run the command; return 0 if every goal is met, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.testbed.maxnet", description=__doc__
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path("out/linux-maxnet"),
        help="where results are kept",
    )  # fmt: skip
    parser.add_argument("--only", default="*", metavar="GLOB", help="only these cells: 'fig1[01]*'")
    parser.add_argument(
        "--times",
        type=float,
        default=1.0,
        metavar="X",
        help="factor on all times: below 1 for a trial",
    )
    parser.add_argument("--show", action="store_true", help="print the kept results, run nothing")
    options = parser.parse_args()
    every = [cell.shorter(options.times) for cell in maxnet_cells.cells()]
    names = [*(cell.name for cell in every), *SPECIALS]
    chosen = [name for name in names if fnmatch.fnmatch(name, options.only)]
    specials = [name for name in chosen if name in SPECIALS]
    lacking = None if options.show else missing(specials)
    if lacking or not chosen:
        wanted = lacking or f"--only to match one of {', '.join(names)}"
        print(f"linux-maxnet: expected {wanted}", file=sys.stderr)
        return 2
    runs = Runs(make_directory(options.output), every, options.times)
    try:
        if not options.show:
            _run(runs, chosen)
    except KeyboardInterrupt:
        print("interrupted; the next start continues here", file=sys.stderr)
        return 130
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    document = runs.document()
    mine = {name: document[name] for name in chosen}
    print(table(mine))
    verdicts = [goal["ok"] for cell in mine.values() for goal in cell["goals"]]
    valid = all(cell["ran"] and not cell["checks_failed"] for cell in mine.values())
    return 0 if valid and False not in verdicts else 1


def _run(runs: Runs, chosen: Iterable[str]) -> None:
    """Run whatever has no valid result yet."""
    for name in chosen:
        if name in SPECIALS:
            if runs.special(name, runs.times) is None:
                runs.run_special(name, runs.times)
            write(runs, None)
            continue
        cell = runs.cells[name]
        for backend in cell.backends:
            if not runs.valid(cell, backend):
                runs.run(cell, backend)
        write(runs, cell)


def write(runs: Runs, cell: Cell | None) -> None:
    """Write the table so far, and the figures that show a cell."""
    document = runs.document()
    write_text(runs.folder / "verdicts.json", to_json(document) + "\n")
    write_text(runs.folder / "table.md", table(document))
    if cell is None:
        return
    runs.draw(cell)
    if cell.name.startswith("fig14"):
        runs.draw_losses()


if __name__ == "__main__":
    sys.exit(main())
