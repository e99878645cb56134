"""Columns of a sweep's dataset: numbers from a run's summary and time series."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from waterfill.analysis import hosts, transfers
from waterfill.analysis.collectives import CollectiveResult, collectives
from waterfill.contract.summary import LimitedBy, Summary
from waterfill.errors import InputError, nearest, shown
from waterfill.runs.result import Result, fairness

# Peak-to-peak of a link's load over its rate above which a run may be unstable, and the fraction
# of the part before below which it is dying out: as in the validation of linear stability.
SWING = 0.02
LASTING = 0.7

Row = dict[str, float | None]


def _of_flows(name: str) -> Callable[[Summary], list[float]]:
    def values(summary: Summary) -> list[float]:
        return [flow[name] for flow in summary.flows if flow[name] is not None]

    return values


def _rtts(summary: Summary, kind: str) -> list[float]:
    return [f.rtt_ms[kind] for f in summary.flows if f.rtt_ms[kind] is not None]


def _shares(summary: Summary) -> list[float]:
    return [
        flow.rate_bps / flow.max_min_bps
        for flow in summary.flows
        if flow.max_min_bps and flow.rate_bps is not None
    ]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _completion_ms(name: str, moved: transfers.Overall) -> float | None:
    return _ms(moved.completion_s[name])


def _ms(time_s: float | None) -> float | None:
    return None if time_s is None else 1e3 * time_s


def _slowdown(name: str, moved: transfers.Overall) -> float | None:
    found: float | None = moved.slowdown[name]
    return found


def _links(summary: Summary, name: str) -> list[float]:
    found = [link[name] for link in summary.links]
    return [value for value in found if value is not None]


def _queues(summary: Summary, kind: str) -> list[float]:
    return [link.queue_bytes[kind] for link in summary.links]


def _limited(limit: str, summary: Summary) -> float | None:
    found = hosts.limited_by([*summary.flows, *hosts.sources_of_flows(summary)])
    return None if found is None else float(found[limit])


def _of_hosts(name: str, summary: Summary) -> float | None:
    run = hosts.of_run(summary)
    found = None if run is None else run[name]
    return None if found is None else float(found)


_OF_RECOVERY = {
    "retransmissions": "retransmissions of all flows, those of traffic included",
    "timeouts": "time-outs of all flows, those of traffic included",
    "loss_rate": "packets that did not arrive, of all flows",
    "resent_bytes": "bytes sent again, all flows",
    "spurious_retransmissions": "retransmissions of packets that had arrived, all flows",
}
_OF_APPLICATIONS = {
    "messages_completed": "messages of applications that have arrived, all flows",
    "message_p50_ms": "completion time of messages, p50, slowest flow",
    "message_p99_ms": "completion time of messages, p99, slowest flow",
    "stalled_s": "time in which a video stood still, slowest flow",
}
_rates = _of_flows("rate_bps")

COLUMNS: Mapping[str, tuple[str, Callable[[Summary], float | None]]] = {
    "rate_bps": ("sum of the flows' rates", lambda s: math.fsum(_rates(s))),
    "rate_min_bps": ("the slowest flow's rate", lambda s: min(_rates(s), default=None)),
    "rate_max_bps": ("the fastest flow's rate", lambda s: max(_rates(s), default=None)),
    "share_min": ("smallest rate ÷ max-min share", lambda s: min(_shares(s), default=None)),
    "share_max": ("largest rate ÷ max-min share", lambda s: max(_shares(s), default=None)),
    "jain_index": ("Jain's index of the rates", lambda s: s.jain_index),
    "jain_index_of_shares": ("Jain's index of rate ÷ max-min share", fairness),
    "rtt_mean_ms": ("mean RTT, mean over flows", lambda s: _mean(_rtts(s, "mean"))),
    "rtt_p99_ms": ("p99 of the RTT, largest of all flows",
                   lambda s: max(_rtts(s, "p99"), default=None)),
    "utilization": ("utilization of the busiest link",
                    lambda s: max(_links(s, "utilization"), default=None)),
    "queue_mean_bytes": ("mean queue, longest of all links",
                         lambda s: max(_queues(s, "mean"), default=None)),
    "queue_p99_bytes": ("p99 of the queue, longest of all links",
                        lambda s: max(_queues(s, "p99"), default=None)),
    "queue_max_bytes": ("largest queue of all links",
                        lambda s: max(_queues(s, "max"), default=None)),
    "drops": ("drops on all links", lambda s: math.fsum(_links(s, "drops"))),
    **{name: (doc, partial(_of_hosts, name)) for name, doc in _OF_RECOVERY.items()},
    **{f"limited_{limit}": (f"share of time limited by {limit}, mean over flows and sources",
                            partial(_limited, limit)) for limit in LimitedBy.__annotations__},
    **{name: (doc, partial(_of_hosts, name)) for name, doc in _OF_APPLICATIONS.items()},
}  # fmt: skip
"""Columns computed from a run's summary, with their meanings and functions."""

_PERCENTILES = {"p50": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9"}
OF_TRANSFERS: Mapping[str, tuple[str, Callable[[transfers.Overall], float | None]]] = {
    "completed": ("completed flows, those of traffic included",
                  lambda moved: float(moved.flows - moved.unfinished)),
    "completion_mean_ms": ("completion time, mean", partial(_completion_ms, "mean")),
    **{f"completion_{name}_ms": (f"completion time, {shown}", partial(_completion_ms, name))
       for name, shown in _PERCENTILES.items()},
    **{f"slowdown_{name}": (f"completion time ÷ ideal time, {shown}", partial(_slowdown, name))
       for name, shown in _PERCENTILES.items()},
}  # fmt: skip
"""Columns computed from a run's flows with a size, with their meanings and functions."""

OF_COLLECTIVES: Mapping[str, tuple[str, Callable[[CollectiveResult], float | None]]] = {
    "collective_ms": ("completion time of the slowest collective",
                      lambda one: _ms(one.completion_s)),
    "bus_bps": ("bus bandwidth of the slowest collective", lambda one: one.bus_bps),
    "bus_of_ideal": ("the same ÷ that at the least time", lambda one: one.bus_of_ideal),
}  # fmt: skip
"""Columns computed from the run's collective that takes longest, with meanings and functions."""

MEANINGS: Mapping[str, str] = {
    name: meaning
    for columns in (COLUMNS, OF_TRANSFERS, OF_COLLECTIVES)
    for name, (meaning, _) in columns.items()
}
"""Meanings of the columns of every sweep."""

SERIES_COLUMNS: Mapping[str, str] = {
    "swing": "peak-to-peak of a link's load ÷ rate in the last fifth of the run, largest of links",
    "swing_before": "the same in the fifth before, of that link",
    "stable": "0 where swing is above 0.02 and above 0.7 swing_before, else 1",
}
"""Columns computed on request from a run's time series, with their meanings."""

NAMES = (*MEANINGS, *SERIES_COLUMNS)


def numbers(extra: Iterable[str] = ()) -> list[str]:
    """Return the names of the numeric columns: the columns of every sweep and the extra columns."""
    return [*MEANINGS, *extra, "wall_s", "memory_bytes"]


_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_VERDICT = re.compile(r"\s*(?P<column>\w+)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[-+.\deE]+)\s*")


@dataclass(frozen=True)
class Verdict:
    """A comparison of a column with a threshold."""

    column: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str, columns: Iterable[str]) -> Verdict:
        """Parse `COLUMN<NUMBER` (or <=, >, >=); raise InputError for any other text."""
        match = _VERDICT.fullmatch(text)
        try:
            limit = float(match["limit"]) if match else math.nan
        except ValueError:
            limit = math.nan
        if match is None or not math.isfinite(limit):
            why = f'must be COLUMN<NUMBER or COLUMN>NUMBER, got "{text}"'
            raise InputError("command line", "verdict", why)
        if match["column"] not in set(columns):
            why = f"unknown column {shown(match['column'])}{nearest(match['column'], columns)}"
            raise InputError("command line", "verdict", why)
        return cls(match["column"], match["sign"], limit)

    def of(self, value: float) -> bool:
        """Return True if a value meets the threshold."""
        return _OPERATORS[self.sign](value, self.limit)

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.limit:g}"


def read(extra: Iterable[str], verdict: str | None) -> tuple[dict[str, str], Verdict | None]:
    """Read extra columns, as `check` does, and a verdict, which may add the columns of the time
    series.
    """
    found = check(extra)
    if verdict is None:
        return found, None
    if any(verdict.strip().startswith(name) for name in SERIES_COLUMNS):
        found |= dict.fromkeys(SERIES_COLUMNS, "")
    return found, Verdict.parse(verdict, numbers(found))


def check(extra: Iterable[str]) -> dict[str, str]:
    """Read extra columns: names of `SERIES_COLUMNS`, or NAME=PATH with a path in the summary.

    Returns {name: path}, the path empty for a column of `SERIES_COLUMNS`. Raises InputError.
    """
    found: dict[str, str] = {}
    for text in extra:
        name, equals, path = (part.strip() for part in text.partition("="))
        if not equals and name in MEANINGS:
            continue  # always there
        if not equals and name not in SERIES_COLUMNS:
            known = nearest(name, NAMES)
            why = f"unknown column{known}; or write NAME=PATH, as in r=flows.a.rate_bps"
            raise InputError("command line", name, why)
        if equals and (not name.isidentifier() or name in NAMES or not path):
            raise InputError("command line", name, "must be NAME=PATH with a new name")
        if name in found:
            raise InputError("command line", name, "two columns have this name; choose another")
        found[name] = path
    return found


def row(result: Result, extra: Mapping[str, str]) -> Row:
    """Return a run's values of all columns; raise InputError for a path that the run's summary
    lacks.
    """
    summary = result.summary
    found: Row = {name: function(summary) for name, (_, function) in COLUMNS.items()}
    moved = transfers.overall(result.transfers)
    found |= {name: function(moved) for name, (_, function) in OF_TRANSFERS.items()}
    held = max(collectives(result), key=lambda one: one.completion_s or math.inf, default=None)
    found |= {
        name: None if held is None else function(held)
        for name, (_, function) in OF_COLLECTIVES.items()
    }
    if any(not path for path in extra.values()):
        swings = _swings(result)
        found |= {name: swings[name] for name, path in extra.items() if not path}
    found |= {name: at(summary, path) for name, path in extra.items() if path}
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def at(summary: Mapping[str, Any], path: str) -> float | None:
    """Return the number at a path such as `links.link1.queue_bytes.p99`; raise InputError if there
    is none.
    """
    value: Any = summary
    rest = path
    while rest:
        if isinstance(value, list):
            # Names may contain dots: the longest that fits.
            fits = [e for e in value if rest == e["name"] or rest.startswith(f"{e['name']}.")]
            if not fits:
                known = nearest(rest.partition(".")[0], [e["name"] for e in value])
                raise InputError("command line", path, f"no such entry{known}")
            value = max(fits, key=lambda entry: len(entry["name"]))
            rest = rest[len(value["name"]) + 1 :]
            continue
        step, _, rest = rest.partition(".")
        if not isinstance(value, Mapping) or step not in value:
            known = nearest(step, value) if isinstance(value, Mapping) else ""
            raise InputError("command line", path, f"no key {step} in the summary{known}")
        value = value[step]
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise InputError("command line", path, "not the path of a number")
    return value


def _swings(result: Result) -> Row:
    """Return the values of `SERIES_COLUMNS`: the worst link's peak-to-peak load in the last two
    fifths, and stability.

    The load is what the sources of the flows over a link ask for: pacing rate, or window ÷ base
    RTT, in bit/s. A link counts with its own rate.
    """
    import numpy as np

    table = result.flows
    flow = table["flow"].combine_chunks().indices.to_numpy()
    time_s = table["time_s"].to_numpy()
    window = table["window_bytes"].to_numpy(zero_copy_only=False)
    pacing = table["pacing_bps"].to_numpy(zero_copy_only=False)
    flows = result.summary.flows
    base_s = np.array([entry.rtt_ms.base for entry in flows]) / 1e3
    counts = np.array([entry.count for entry in flows])
    asked = np.where(np.isnan(window), pacing, 8 * window / base_s[flow])
    asked = np.nan_to_num(asked) * counts[flow]
    paths = {entry.name: entry.forward for entry in result.network.flows}
    duration_s = result.summary.duration_s
    times, place = np.unique(time_s, return_inverse=True)
    fifth = np.ceil(times / duration_s * 5 - 1e-9).astype(int)
    crossing: dict[int, list[int]] = {}
    for index, entry in enumerate(flows):
        for link in paths.get(entry["group"], ()):
            crossing.setdefault(link, []).append(index)
    worst = (False, 0.0, 0.0)
    for link, mine in crossing.items():
        rows = np.isin(flow, mine)
        load = np.bincount(place[rows], asked[rows], minlength=len(times))
        parts = [load[fifth == number] for number in (4, 5)]
        if not all(len(part) for part in parts):
            continue
        rate_bps = result.network.links[link].rate_bps
        before, swing = (float(np.ptp(part)) / rate_bps for part in parts)
        worst = max(worst, (swing > SWING and swing > LASTING * before, swing, before))
    lasting, swing, before = worst
    return {"swing": swing, "swing_before": before, "stable": float(not lasting)}
