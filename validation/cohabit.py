"""`make cohabit-table`: explicit protocols beside TCPs on one bottleneck, protected or not.

A cell is an explicit protocol, a TCP, an RTT and a number of flows of each. Its link has
100 Mbit/s and a buffer of one bandwidth-delay product; explicit flows start at 0 s, TCP flows from
5 s, a tenth of a second apart. Each cell runs without the module, with the paper's controller and
with the improved one, all on one shared queue, and apart from these with a queue of its own for
each class. Judged is what follows the first 20 s after the last start:

- the explicit class's rate over its fair share (its flows' `max_min_bps`), the least mean of 20 s;
- the link's utilisation, the least mean of 20 s;
- the TCP class's rate over what the same flows get alone on a link of rate BW_TCP, that is target ×
  rate less the explicit class's fair share, with the same RTT and the same buffer in bytes.

Runs are kept (`waterfill.runs.cache`), so that a table that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from waterfill.analysis import series
from waterfill.analysis.series import Series
from waterfill.errors import InputError
from waterfill.network import protocols
from waterfill.runs import cache
from waterfill.runs.pool import run_each
from waterfill.runs.result import Document, Result, make_directory, to_json, write_text
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

EXPLICIT = ("maxnet", "xcp", "ixcp", "aecp", "rcp", "jetmax")
TCPS = (
    "reno", "newreno", "sack", "cubic", "bic", "highspeed", "scalable", "htcp", "westwood",
    "vegas", "fast", "dctcp", "bbr",
)  # fmt: skip
RTTS_MS = (20, 100)
COUNTS = ((10, 1), (10, 3), (10, 10), (3, 10))
MODES: Mapping[str, Mapping[str, Any] | None] = {
    "without": None,
    "paper": {"controller": "paper"},
    "improved": {"controller": "improved"},
    "separate": {"separate": True},
}

RATE_BPS = 100e6
TCP_START_S = 5.0
STAGGER_S = 0.1
SETTLE_S = 20.0
WINDOW_S = 20.0
SAMPLE_S = 0.5

# What is asked for. A link is at its target when it is within 1 % of it: a law that is alone is
# no nearer.
LEAST_EXPLICIT = 0.9
LEAST_TCP = 0.75
LEAST_UTILIZATION = 0.95
AT_TARGET = 0.99


@dataclass(frozen=True)
class Cell:
    """One place of the table."""

    explicit: str
    tcp: str
    rtt_ms: int
    explicit_flows: int
    tcp_flows: int

    @property
    def name(self) -> str:
        """As messages name it: `xcp × reno, 20 ms, 10+3`."""
        counts = f"{self.explicit_flows}+{self.tcp_flows}"
        return f"{self.explicit} × {self.tcp}, {self.rtt_ms} ms, {counts}"

    @property
    def last_start_s(self) -> float:
        """When the last flow starts."""
        return TCP_START_S + (self.tcp_flows - 1) * STAGGER_S

    def duration_s(self, short: bool) -> float:
        """Length of a run: two windows after settling, or little more than one."""
        return self.last_start_s + SETTLE_S + (WINDOW_S + 4.0 if short else 2 * WINDOW_S)


@dataclass(frozen=True)
class Verdict:
    """What a cell measured in one mode, and whether that is what is asked for."""

    explicit_share: float
    """Least mean of 20 s over the fair share."""
    utilization: float
    """Least mean of 20 s."""
    tcp_share: float
    """Mean over what the same flows get alone."""
    drop_rate: float
    """Of the TCP packets in the window, how many the link dropped."""
    good: bool


def cells(short: bool = False) -> list[Cell]:
    """All 624 cells, or 24 in which every protocol, RTT and count has its turn."""
    if not short:
        grid = product(EXPLICIT, TCPS, RTTS_MS, COUNTS)
        return [Cell(e, t, rtt, n, m) for e, t, rtt, (n, m) in grid]
    chosen = []
    for i, explicit in enumerate(EXPLICIT):
        for j, (n, m) in enumerate(COUNTS):
            tcp = TCPS[(len(COUNTS) * i + j) % len(TCPS)]
            chosen.append(Cell(explicit, tcp, RTTS_MS[(i + j) % 2], n, m))
    return chosen


def scenario(cell: Cell, mode: str, short: bool = False) -> Scenario:
    """The cell's scenario in one mode of `MODES`."""
    link: Document = {
        "name": "bottleneck",
        "from": "r1",
        "to": "r2",
        "rate": f"{RATE_BPS:.0f} bit/s",
        "buffer": _buffer(cell),
    }
    params = MODES[mode]
    if params is not None:
        link |= {"queue": "cohabit", "queue_params": dict(params)}
    explicit = _flows("explicit", cell.explicit, cell.explicit_flows, cell, 0.0, 0.0)
    return _scenario(cell, link, [explicit, _tcp(cell)], short)


def alone(cell: Cell, target: float, short: bool = False) -> Scenario:
    """The cell's TCP flows alone on a link of rate BW_TCP, with the cell's buffer and RTT."""
    rate_bps = target * RATE_BPS * cell.tcp_flows / (cell.explicit_flows + cell.tcp_flows)
    link: Document = {
        "name": "bottleneck",
        "from": "r1",
        "to": "r2",
        "rate": f"{rate_bps:.0f} bit/s",
        "buffer": _buffer(cell),
    }
    return _scenario(cell, link, [_tcp(cell)], short)


def _buffer(cell: Cell) -> str:
    return f"{RATE_BPS * cell.rtt_ms / 8000:.0f} B"


def _tcp(cell: Cell) -> Document:
    return _flows("tcp", cell.tcp, cell.tcp_flows, cell, TCP_START_S, STAGGER_S)


def _flows(
    name: str, protocol: str, count: int, cell: Cell, start_s: float, stagger_s: float
) -> Document:
    return {
        "name": name,
        "path": ["bottleneck"],
        "protocol": protocol,
        "count": count,
        "start": f"{start_s} s",
        "stagger": f"{stagger_s} s",
        "rtt": f"{cell.rtt_ms} ms",
    }


def _scenario(cell: Cell, link: Document, flows: list[Document], short: bool) -> Scenario:
    duration_s = cell.duration_s(short)
    return from_dict(
        {
            "name": cell.name,
            "duration": f"{duration_s} s",
            "measure": [f"{cell.last_start_s + SETTLE_S} s", f"{duration_s} s"],
            "sample": f"{SAMPLE_S} s",
            "link": [link],
            "flow": flows,
        },
        source="cohabit",
    )


# --- judging -----------------------------------------------------------------------------------


def judge(cell: Cell, result: Result, by_themselves: Result) -> Verdict:
    """What a run of the cell says, beside that of its TCP flows alone."""
    start_s, stop_s = result.summary["measure_s"]
    flows = result.summary["flows"]
    fair_bps = sum(flow["max_min_bps"] for flow in flows if flow["group"] == "explicit")
    link = result.samples("links", "bottleneck")
    time_s, used_share = (series.numbers(link, name) for name in ("time_s", "utilization"))
    rate_bps = class_rate(result, "explicit", time_s)
    explicit = least_mean(time_s, rate_bps, start_s, stop_s) / fair_bps
    used = least_mean(time_s, used_share, start_s, stop_s)
    tcp = _class_bps(result, "tcp") / _class_bps(by_themselves, "tcp")
    target = protocols.targets({}).get(cell.explicit, 1.0)
    good = (
        explicit >= LEAST_EXPLICIT
        and used >= min(LEAST_UTILIZATION, AT_TARGET * target)
        and tcp >= LEAST_TCP
    )
    return Verdict(explicit, used, tcp, drop_rate(result), good)


def class_rate(result: Result, group: str, time_s: Series) -> Series:
    """Sum of the rates (bit/s) of a group's flows at these sample times; zero where none is."""
    total_bps = np.zeros(len(time_s))
    for flow in result.summary["flows"]:
        if flow["group"] == group:
            rows = result.samples("flows", flow["name"])
            at_s, rate_bps = (series.numbers(rows, name) for name in ("time_s", "rate_bps"))
            # A flow has one more row, at its start, which need not be a sample time of the links.
            shared = np.isin(at_s, time_s)
            total_bps[np.searchsorted(time_s, at_s[shared])] += np.nan_to_num(rate_bps[shared])
    return total_bps


def least_mean(time_s: Series, values: Series, start_s: float, stop_s: float) -> float:
    """The least mean of `WINDOW_S` that lies wholly in a window."""
    _, means = series.means(time_s, values, WINDOW_S, start_s, stop_s)
    return float(means.min())


def drop_rate(result: Result) -> float:
    """Packets that the link dropped ÷ (these and the TCP packets that arrived), in the window."""
    link = result.summary["links"][0]
    start_s, stop_s = result.summary["measure_s"]
    packet_bits = 8 * result.network.packet_bytes
    arrived = _class_bps(result, "tcp") * (stop_s - start_s) / packet_bits
    return float(link["drops"] / (link["drops"] + arrived)) if arrived else 0.0


def _class_bps(result: Result, group: str) -> float:
    return sum(
        flow["rate_bps"] or 0.0 for flow in result.summary["flows"] if flow["group"] == group
    )


# --- running -----------------------------------------------------------------------------------


def table(
    wanted: Sequence[Cell], modes: Iterable[str], *, short: bool, threads: int | None = None
) -> Iterator[tuple[Cell, dict[str, Verdict]]]:
    """Runs cell after cell, from the cache where it has them, and judges each.

    Ctrl-C ends it after the cell under way; what was run is kept.
    """
    chosen = list(modes)
    targets = protocols.targets({})
    for batch in _batches(wanted, 8):
        scenarios: dict[str, Scenario] = {}
        for index, cell in enumerate(batch):
            target = targets.get(cell.explicit, 1.0)
            scenarios[f"{index} alone"] = alone(cell, target, short)
            for mode in chosen:
                scenarios[f"{index} {mode}"] = scenario(cell, mode, short)
        results = _results(scenarios, threads)
        if len(results) < len(scenarios):
            return
        for index, cell in enumerate(batch):
            reference = results[f"{index} alone"]
            yield cell, {m: judge(cell, results[f"{index} {m}"], reference) for m in chosen}


def _results(scenarios: Mapping[str, Scenario], threads: int | None) -> dict[str, Result]:
    found = {name: cache.lookup(each, "sim") for name, each in scenarios.items()}
    results = {name: result for name, result in found.items() if result is not None}
    missing = {name: each for name, each in scenarios.items() if name not in results}

    def keep(name: str, result: Result) -> None:
        if "interrupted_at_s" not in result.summary:
            cache.store(missing[name], "sim", result)
            results[name] = result

    if missing:
        run_each(missing, threads=threads, done=keep)
    return results


def _batches(wanted: Sequence[Cell], size: int) -> Iterator[list[Cell]]:
    rest = iter(wanted)
    while batch := list(islice(rest, size)):
        yield batch


def document(rows: Iterable[tuple[Cell, Mapping[str, Verdict]]], total: int) -> Document:
    """{"asked": …, "cells": [{cell…, "modes": {mode: verdict}}], "missing": n}."""
    listed = [
        {**asdict(cell), "modes": {mode: asdict(verdict) for mode, verdict in verdicts.items()}}
        for cell, verdicts in rows
    ]
    return {
        "asked": {
            "explicit_share": LEAST_EXPLICIT,
            "tcp_share": LEAST_TCP,
            "utilization": LEAST_UTILIZATION,
            "of_target": AT_TARGET,
        },
        "rate_bps": RATE_BPS,
        "cells": listed,
        "missing": total - len(listed),
    }


def _line(cell: Cell, verdicts: Mapping[str, Verdict]) -> str:
    parts = [f"{cell.name:36}"]
    for verdict in verdicts.values():
        numbers = (verdict.explicit_share, verdict.utilization, verdict.tcp_share)
        mark = "ok" if verdict.good else "  "
        parts.append(" ".join(f"{x:5.2f}" for x in numbers) + f" {verdict.drop_rate:6.2%} {mark}")
    return " | ".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit 0 when every cell of the improved controller is as asked, else 1."""
    parser = argparse.ArgumentParser(prog="python -m validation.cohabit", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--short", action="store_true", help="24 cells, shorter runs")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--modes", default=",".join(MODES), help="some of them")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--threads", type=int, default=None, help="runs at once")
    parser.add_argument("-o", metavar="DIR", type=Path, help="writes cohabit.json there")
    options = parser.parse_args(arguments)
    modes = options.modes.split(",")
    for mode in modes:
        if mode not in MODES:
            expected = f"expected any of {', '.join(MODES)}, got {mode!r}"
            print(f"command line: modes: {expected}", file=sys.stderr)
            return 2
    wanted = [cell for cell in cells(options.short) if options.only in cell.name]
    out = sys.stderr if options.json else sys.stdout
    titles = [f"{mode} (explicit, link, tcp, lost)" for mode in modes]
    print(" | ".join([f"{'':36}", *titles]), file=out)
    rows = []
    try:
        for cell, verdicts in table(wanted, modes, short=options.short, threads=options.threads):
            rows.append((cell, verdicts))
            print(_line(cell, verdicts), file=out, flush=True)
    except KeyboardInterrupt:
        pass
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    found = document(rows, len(wanted))
    for mode in modes:
        good = sum(verdicts[mode].good for _, verdicts in rows)
        print(f"{mode}: {good} of {len(rows)} cells as asked", file=out)
    if options.o is not None:
        write_text(make_directory(options.o) / "cohabit.json", to_json(found) + "\n")
    if options.json:
        print(to_json(found))
    judged = "improved" if "improved" in modes else modes[-1]
    return 0 if all(verdicts[judged].good for _, verdicts in rows) and not found["missing"] else 1


if __name__ == "__main__":
    sys.exit(main())
