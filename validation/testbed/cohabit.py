"""Explicit flows beside TCP on one queue of the running kernel: `make linux-cohabit`.

`python -m validation.testbed.cohabit [-o DIR] [--only GLOB] [--show]`. Ten MaxNet flows share
100 Mbit/s and 28 ms with three TCP flows, without the cohabitation module, with the paper's
controller and with the improved one. Each run is kept in DIR/<cell> at once, so an interrupted
comparison continues; a run that failed its checks is repeated the next time.

DIR/table.md has the shares, and whether the improved controller meets its goals.
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from waterfill.errors import InputError, RunError
from waterfill.runs import backends
from waterfill.runs.files import make_directory, write_text
from waterfill.runs.progress import Bar
from waterfill.runs.result import Document, Result, to_json
from waterfill.runs.stored import StoredResult
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.testbed import checks, daemon, kernel

RATE_BPS, TARGET = 100e6, 0.9
EXPLICIT, TCP = 10, 3
TCP_START_S, JUDGED_S, END_S, WINDOW_S, SAMPLE_S = 5.0, 25.0, 100.0, 20.0, 0.1
# The goals of the improved controller, as fractions of the classes' fair shares.
EXPLICIT_GOAL, TCP_GOAL = 0.85, 0.75

# What each mode sets on the link.
MODES: Mapping[str, Document] = {
    "none": {},
    "paper": {"controller": "paper", "estimator": "nred"},
    "paper-packet": {"controller": "paper", "estimator": "nred", "update": "packet"},
    "improved": {"controller": "improved"},
}
NAMES = {
    "none": "none", "paper": "the paper's, factor per interval",
    "paper-packet": "the paper's, factor per packet", "improved": "the improved controller",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One run: a TCP, and what protects the explicit flows from it."""

    tcp: str
    mode: str
    ecn: bool = False

    @property
    def name(self) -> str:
        """The cell's name, also of its folder."""
        return f"{self.tcp}{'-ecn' if self.ecn else ''}-{self.mode}"

    def scenario(self) -> Scenario:
        """Return what runs."""
        link: Document = {
            "name": "l", "from": "a", "to": "b", "rate": f"{RATE_BPS / 1e6:g} Mbit/s",
            "delay": "14 ms", "buffer": "1 bdp", "target": TARGET,
        }  # fmt: skip
        if MODES[self.mode]:
            link |= {"queue": "cohabit", "queue_params": dict(MODES[self.mode])}
        flows: list[Document] = [
            {"name": "explicit", "protocol": "maxnet", "from": "s", "to": "t", "path": ["l"],
             "count": EXPLICIT},
            {"name": "tcp", "protocol": self.tcp, "from": "u", "to": "v", "path": ["l"],
             "count": TCP, "start": f"{TCP_START_S:g} s", "ecn": self.ecn},
        ]  # fmt: skip
        return from_dict(
            {"name": self.name, "duration": f"{END_S:g} s", "sample": f"{SAMPLE_S:g} s",
             "measure": [f"{JUDGED_S:g} s", f"{END_S:g} s"], "link": [link], "flow": flows},
            f"<{self.name}>",
        )  # fmt: skip


def cells(offered: Sequence[str]) -> list[Cell]:
    """Return the cells that a kernel with these congestion controls can run."""
    tcps = [tcp for tcp in ("cubic", "bbr") if tcp in offered]
    found = [Cell(tcp, mode) for tcp in tcps for mode in MODES]
    return [*found, Cell("cubic", "improved", ecn=True)] if "cubic" in tcps else found


# --- measures ---------------------------------------------------------------------------------


def class_rates(run: Result, name: str) -> np.ndarray:
    """Return a class's rate in each sample of the judged time, bit/s."""
    table = run.flows
    time_s = table["time_s"].to_numpy()
    names = np.asarray(table["flow"].to_pylist())
    inside = (time_s > JUDGED_S) & np.char.startswith(names, f"{name}[")
    times, place = np.unique(time_s[inside], return_inverse=True)
    rates = np.zeros(len(times))
    np.add.at(rates, place, np.nan_to_num(table["rate_bps"].to_numpy()[inside]))
    return rates


def lowest(rates: np.ndarray) -> float:
    """Return the lowest mean over any 20 s."""
    width = round(WINDOW_S / SAMPLE_S)
    sums = np.concatenate(([0.0], np.cumsum(rates)))
    return float((sums[width:] - sums[:-width]).min() / width)


def measure(run: Result) -> Document:
    """Return a run's shares, relative to the classes' fair shares, and what it cost."""
    usable = RATE_BPS * TARGET
    explicit, tcp = class_rates(run, "explicit"), class_rates(run, "tcp")
    link = run.summary["links"][0]
    fair = usable * EXPLICIT / (EXPLICIT + TCP)
    packets = tcp.sum() * SAMPLE_S / 8 / 1500
    return {
        "explicit_lowest": lowest(explicit) / fair,
        "explicit": float(explicit.mean()) / fair,
        "tcp": float(tcp.mean()) / (usable - fair),
        "utilization": link["utilization"],
        "queue_ms": link["queue_bytes"]["mean"] * 8 / RATE_BPS * 1e3,
        "signalled": (link["drops"] + link["marks"]) / packets,
        # Without protection explicit flows may give up: their law takes the standing queue for a
        # router that is missing. That is a result.
        "gave_up": any(c["name"] == "law" and not c["ok"] for c in run.summary["checks"]),
        "checks_failed": [
            c["name"] for c in run.summary["checks"] if not c["ok"] and c["name"] != "law"
        ],
    }


def meets(found: Document) -> bool:
    """Return whether a run meets the improved controller's goals."""
    kept = found["explicit_lowest"] >= EXPLICIT_GOAL and not found["gave_up"]
    return bool(kept and found["tcp"] >= TCP_GOAL)


def table(found: Mapping[Cell, Document]) -> str:
    """Return the runs as Markdown."""
    lines = [
        "| TCP | module | explicit, lowest 20 s | explicit | TCP | link used | queue | "
        "dropped or marked | goals |",
        "|---|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for cell, got in found.items():
        verdict = "met" if meets(got) else "missed"
        if got["gave_up"]:
            verdict += "; explicit flows gave up"
        if got["checks_failed"]:
            verdict += f" (failed checks: {', '.join(got['checks_failed'])})"
        lines.append(
            f"| {TCP} {cell.tcp.upper()}{', ECN' if cell.ecn else ''} | {NAMES[cell.mode]} | "
            f"{got['explicit_lowest']:.2f} | {got['explicit']:.2f} | {got['tcp']:.2f} | "
            f"{got['utilization']:.2f} | {got['queue_ms']:.1f} ms | {got['signalled']:.1%} | "
            f"{verdict} |"
        )
    return "\n".join(lines) + "\n"


# --- runs -------------------------------------------------------------------------------------


def kept(folder: Path, cell: Cell) -> Result | None:
    """Return the kept run of this exact scenario; None if there is none."""
    try:
        found = StoredResult(folder / cell.name)
    except (OSError, ValueError):
        return None
    return found if found.scenario_toml == cell.scenario().to_toml() else None


def run(folder: Path, cell: Cell) -> None:
    """Run a cell and keep the result, atomically."""
    with Bar(cell.name) as bar:
        result = backends.run(cell.scenario(), on="linux", progress=bar)
    if "interrupted_at_s" in result.summary:
        raise KeyboardInterrupt
    part = folder / f".{cell.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    result.write(part)
    write_text(part / "network.json", to_json(result.network.to_dict(), indent=None))
    shutil.rmtree(folder / cell.name, ignore_errors=True)
    part.rename(folder / cell.name)


def main() -> int:
    """Run the command; return 0 if the improved controller meets its goals, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.testbed.cohabit", description=__doc__
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path("out/linux-cohabit"),
        help="where results are kept",
    )  # fmt: skip
    parser.add_argument("--only", default="*", metavar="GLOB", help="only these cells: 'bbr-*'")
    parser.add_argument("--show", action="store_true", help="print the kept results, run nothing")
    options = parser.parse_args()
    every = cells(kernel.available())
    chosen = [cell for cell in every if fnmatch.fnmatch(cell.name, options.only)]
    lacking = None if options.show else checks.missing(http=False)
    if not options.show and daemon.binary() is None:
        lacking = "the daemon waterfilld beside this Python (make build), got none"
    if lacking or not chosen:
        wanted = lacking or f"--only to match one of {', '.join(cell.name for cell in every)}"
        print(f"linux-cohabit: expected {wanted}", file=sys.stderr)
        return 2
    if not any(cell.tcp == "bbr" for cell in every):
        print("this kernel has no bbr: only CUBIC is run", file=sys.stderr)
    folder = make_directory(options.output)
    found: dict[Cell, Document] = {}
    try:
        for cell in chosen:
            done = kept(folder, cell)
            if not options.show and (done is None or measure(done)["checks_failed"]):
                run(folder, cell)
                done = kept(folder, cell)
            if done is not None:
                found[cell] = measure(done)
    except KeyboardInterrupt:
        print("interrupted; the next start continues here", file=sys.stderr)
        return 130
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    if chosen == every:
        write_text(folder / "table.md", table(found))
    print(table(found), end="")
    judged = {cell: got for cell, got in found.items() if cell.mode == "improved"}
    valid = len(found) == len(chosen) and not any(g["checks_failed"] for g in found.values())
    return 0 if valid and all(meets(got) for got in judged.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
