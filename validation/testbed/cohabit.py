"""Measure the rates of explicit flows and TCP on one queue of the running kernel.

Ten MaxNet flows share 100 Mbit/s and 28 ms with three TCP flows, without the cohabitation module,
with the paper's controller and with the improved one. A run that failed its checks is repeated by
the next call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from validation.study import DAEMON, Study, StudyRun, failed_checks, on_linux, only
from validation.tables import markdown
from waterfill.runs.result import Document, Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.testbed import kernel

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
class TcpShareCell:
    """One run: a TCP, and the mode in which explicit flows are protected from it."""

    tcp: str
    mode: str
    ecn: bool = False

    @property
    def name(self) -> str:
        """Name of the run, which is also the name of its folder."""
        return f"{self.tcp}{'-ecn' if self.ecn else ''}-{self.mode}"

    def scenario(self) -> Scenario:
        """Return the scenario of the run."""
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


def cells(offered: Sequence[str]) -> list[TcpShareCell]:
    """Return all runs that are possible on a kernel with the given congestion controls."""
    tcps = [tcp for tcp in ("cubic", "bbr") if tcp in offered]
    found = [TcpShareCell(tcp, mode) for tcp in tcps for mode in MODES]
    return [*found, TcpShareCell("cubic", "improved", ecn=True)] if "cubic" in tcps else found


# --- measures ---------------------------------------------------------------------------------


def class_rates(run: Result, name: str) -> np.ndarray:
    """Return the rate of a traffic class (bit/s) in each sample of the judged time."""
    table = run.flows
    time_s = table["time_s"].to_numpy()
    names = np.asarray(table["flow"].to_pylist())
    inside = (time_s > JUDGED_S) & np.char.startswith(names, f"{name}[")
    times, place = np.unique(time_s[inside], return_inverse=True)
    rates = np.zeros(len(times))
    np.add.at(rates, place, np.nan_to_num(table["rate_bps"].to_numpy()[inside]))
    return rates


def lowest(rates: np.ndarray) -> float:
    """Return the lowest 20 s mean of a rate."""
    width = round(WINDOW_S / SAMPLE_S)
    sums = np.concatenate(([0.0], np.cumsum(rates)))
    return float((sums[width:] - sums[:-width]).min() / width)


def measure(run: Result) -> Document:
    """Return a run's rates, relative to the classes' fair shares, and its queue and losses."""
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
        "checks_failed": [name for name in failed_checks(run) if name != "law"],
    }


def meets(found: Document) -> bool:
    """Return True if a run meets the goals of the improved controller."""
    kept = found["explicit_lowest"] >= EXPLICIT_GOAL and not found["gave_up"]
    return bool(kept and found["tcp"] >= TCP_GOAL)


def table(found: Mapping[TcpShareCell, Document]) -> str:
    """Return the runs as a Markdown table."""
    lines = []
    for cell, got in found.items():
        verdict = "met" if meets(got) else "missed"
        if got["gave_up"]:
            verdict += "; explicit flows gave up"
        if got["checks_failed"]:
            verdict += f" (failed checks: {', '.join(got['checks_failed'])})"
        tcp = f"{TCP} {cell.tcp.upper()}{', ECN' if cell.ecn else ''}"
        shares = [f"{got[k]:.2f}" for k in ("explicit_lowest", "explicit", "tcp", "utilization")]
        queue = [f"{got['queue_ms']:.1f} ms", f"{got['signalled']:.1%}"]
        lines.append([tcp, NAMES[cell.mode], *shares, *queue, verdict])
    head = "TCP|module|explicit, lowest 20 s:|explicit:|TCP:|link used:|queue:|dropped or marked:"
    return markdown(f"{head}|goals", lines) + "\n"


# --- the study ----------------------------------------------------------------------------------


def failed(found: Mapping[TcpShareCell, Document]) -> list[str]:
    """Return the runs that are invalid or that miss the goals of the improved controller."""
    wrong = [f"{cell.name}: failed checks" for cell, got in found.items() if got["checks_failed"]]
    missed = [cell for cell, got in found.items() if cell.mode == "improved" and not meets(got)]
    return [*wrong, *(f"{cell.name}: misses the goals" for cell in missed)]


STUDY = Study(
    shows="explicit flows keep their shares next to CUBIC and BBR on the kernel, if protected",
    minutes=20,
    needs=(on_linux(), DAEMON),
    options=(only("bbr-*"),),
    quick={"only": "cubic-improved"},
    cases=lambda _: cells(kernel.available()),
    runs=lambda cell: {"": StudyRun(cell.scenario(), "linux")},
    measure=lambda cell, results: measure(results[""]),
    valid=lambda result: not measure(result)["checks_failed"],
    table=table,
    failed=failed,
)
