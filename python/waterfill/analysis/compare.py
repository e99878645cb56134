"""Comparison of runs of one scenario under several protocols.

The figures of a run are under "compare" in its document. Those of the whole run cover the summary's
window (`measure_s`). Settling and start-up times cover the whole life of every flow, until it has
completed, its `stop`, or the end of the run. A flow's max-min share at any time is that of
`waterfill maxmin`, from the flows active then. A "worst" flow that never gets there is worse than
any that does.

The bottleneck is one link for all runs, to make their queues comparable: the link that is the
bottleneck of most flow-seconds over all runs in the exact max-min allocation, the first in the file
if several are equal. Where demand limits every flow, or no share is known, it is the link with the
highest utilization.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis import hosts, notebook, seeds, series, shares, tables, transfers
from waterfill.analysis.collectives import collectives
from waterfill.analysis.documents import (
    BackendDifference,
    ComparedRun,
    ComparisonDocument,
    Figures,
    FlowFigures,
    OverSeeds,
    Settling,
    ShareRatio,
    StartUp,
)
from waterfill.analysis.looks import SCREEN, Look
from waterfill.analysis.series import Series
from waterfill.analysis.shares import Allocation, Spans
from waterfill.contract import versions
from waterfill.contract.summary import Spread, Summary
from waterfill.errors import InputError, shown
from waterfill.network.protocols import close_to
from waterfill.runs import backends, law_files
from waterfill.runs.backends import Source
from waterfill.runs.directory import Stage, recover
from waterfill.runs.files import WriteError, read_text, why, write_text
from waterfill.runs.laws import PythonLaw, check, infos, summaries, used
from waterfill.runs.result import Result, fairness, to_json, to_pandas, to_polars
from waterfill.runs.stored import load_run
from waterfill.scenario.document import NO_DEFAULT_FLOW, Scenario
from waterfill.scenario.loading import load

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from waterfill.analysis.drawing import Drawing

# Relative distance from its share within which a rate has settled; fraction that ends the start-up.
_BAND = 0.05
_STARTED = 0.5
# Rates are averaged over 1 s, or less, so that a run has at least this many averages.
_AVERAGE_S = 1.0
_MIN_AVERAGES = 20

_COMMAND_LINE = "command line"

# Compared by default: the best-known explicit laws.
DEFAULT = ("maxnet", "xcp", "rcp", "abc")

DOCUMENT = "compare.json"


# --- runs --------------------------------------------------------------------------------------


def select(names: str | None, on: str, laws: Mapping[str, PythonLaw] | None = None) -> list[str]:
    """Return the protocols in a list "a,b,c", or by default those of `DEFAULT` and `laws`.

    In the list, `explicit` and `all` stand for all explicit protocols and all protocols of the
    backend, each with `laws`. `laws` are laws in Python by name; those of installed packages need
    no mention. Raises InputError for a name that is unknown or does not run on the backend, and for
    a wrong law.
    """
    builtin, given = backends.known(on), laws or {}
    chosen = None if names is None else [name.strip() for name in names.split(",")]
    check(given, builtin)
    own = law_files.with_installed(given, (name for name in chosen or () if name not in builtin))
    known = infos(summaries(own)) | builtin
    able = [p.name for p in known.values() if on in p.backends]
    if chosen is None:
        return [name for name in able if name in DEFAULT or name in given]
    groups = {
        "explicit": [name for name in able if known[name].kind == "explicit" or name in given],
        "all": able,
    }
    if any(name in groups and name not in known for name in chosen):
        chosen = [one for name in chosen for one in groups.get(name, [name])]
        chosen = list(dict.fromkeys(chosen))
    for name in chosen:
        if not name:
            message = f"must be names separated by commas, got {shown(names)}"
        elif name not in known:
            message = f"unknown protocol {shown(name)}{close_to(name, known)}"
        elif name not in able:
            message = f"{shown(name)} does not run on {on}; choose one of {', '.join(able)}"
        elif chosen.count(name) > 1:
            message = f"{shown(name)} is named {chosen.count(name)} times; name it once"
        else:
            continue
        raise InputError(_COMMAND_LINE, "protocols", message)
    return chosen


def load_each(
    path: str | os.PathLike[str],
    sets: Iterable[str],
    names: Iterable[str],
    on: str = "sim",
    laws: Mapping[str, PythonLaw] | None = None,
) -> dict[str, Scenario]:
    """Load the scenario once for each protocol, which the flows that do not name a protocol then
    use.

    `laws` are laws in Python by name. Raises InputError for any error in one of the scenarios,
    before any has run, and when every flow names its protocol: all runs would be the same.
    """
    return each(lambda name: load(path, [*sets, f"protocol={name}"]), names, on, laws)


def each(
    build: Callable[[str], Scenario],
    names: Iterable[str],
    on: str,
    laws: Mapping[str, PythonLaw] | None = None,
) -> dict[str, Scenario]:
    """Build the scenario of each protocol, and check that the backend can run it."""
    scenarios = {}
    for name in names:
        scenario = build(name)
        if not scenario.uses_default:
            raise scenario.error("flow", NO_DEFAULT_FLOW)
        backends.prepare(scenario, on, used(laws or {}, scenario))
        scenarios[name] = scenario
    return scenarios


def compare(
    scenario: Source,
    protocols: str | Sequence[str] | None = None,
    on: str = "sim",
    *,
    seed: int | None = None,
    threads: int | None = 1,
    laws: Mapping[str, PythonLaw] | None = None,
    set: Mapping[str, Any] | None = None,
) -> Comparison:
    """Run a scenario under several protocols in turn, by default maxnet, xcp, rcp and abc.

    `protocols` is a list of names, or one text "maxnet,rcp"; `explicit` and `all` stand for all
    explicit protocols and all protocols. The flows that name no protocol use each in turn. Other
    arguments as in `waterfill.run`; `laws` are protocols as well. Raises InputError before any run.

    >>> import waterfill
    >>> one = waterfill.Scenario("one", duration="2 s").link("l", "a", "b", "10 Mbit/s", "5 ms")
    >>> found = waterfill.compare(one.flow("f", "a", "b"), "maxnet,cubic", set={"flow.f.count": 2})
    >>> found.table().select(["protocol", "drops"]).to_pylist()
    [{'protocol': 'maxnet', 'drops': 0}, {'protocol': 'cubic', 'drops': 12}]
    """
    if protocols is not None and not isinstance(protocols, str):
        given: Any = protocols
        if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
            why = f"must be names of protocols, got {shown(protocols)}"
            raise InputError("compare", "protocols", why)
        protocols = ",".join(protocols)
    mine = laws or {}

    def build(name: str) -> Scenario:
        return backends.scenario_of(scenario, {**(set or {}), "protocol": name}, seed=seed)

    scenarios = each(build, on_each(protocols, [on], mine), on, mine)
    return of(
        {
            name: backends.run(one, on, threads=threads, laws=used(mine, one))
            for name, one in scenarios.items()
        }
    )


def on_each(
    names: str | None, on: Sequence[str], laws: Mapping[str, PythonLaw] | None = None
) -> list[str]:
    """Return the selected protocols that run on all of several backends.

    `laws` are laws in Python by name. Raises InputError as `select`, and when none remains.
    """
    chosen = select(names, on[0], laws)
    for backend in on[1:]:
        able = select(names, backend, laws)
        chosen = [name for name in chosen if name in able]
    if not chosen:
        message = f"no protocol given runs on {' and '.join(on)}"
        raise InputError(_COMMAND_LINE, "protocols", message)
    return chosen


def bottleneck(results: Mapping[str, Result], allocations: Mapping[str, Allocation]) -> str:
    """Return the name of the bottleneck link common to all runs, as defined in the module docs."""
    first = next(iter(results.values()))
    names = [link.name for link in first.summary.links]
    weights = [math.fsum(a.bound_s[i] for a in allocations.values()) for i in range(len(names))]
    if not any(weights):
        weights = [
            math.fsum(r.summary.links[i].utilization or 0.0 for r in results.values())
            for i in range(len(names))
        ]
    return str(names[weights.index(max(weights))])


# --- figures -----------------------------------------------------------------------------------


def average_s(result: Result) -> float:
    """Return the averaging time for settling (s): 1 s, or 1/20 of a run shorter than 20 s.

    At least one sample.
    """
    shortest = float(result.summary.duration_s) / _MIN_AVERAGES
    return max(min(_AVERAGE_S, shortest), result.network.sample_s)


def settling_s(
    time_s: Series,
    rate_bps: Series,
    spans: Spans,
    *,
    average_s: float,
    packet_bytes: float = 0.0,
    completed: bool = False,
) -> float | None:
    """Return the longest time (s) that a flow took to settle at its max-min share. Infinity means
    never.

    `time_s` are the ends of samples, `rate_bps` the rates at the receiver (shape (samples,)),
    `spans` the flow's shares over its life. Time counts from the flow's start and from each change
    of its share, until the rate is within 5 % of the share and stays so until the next change; the
    tolerance is at least one packet per average. Rates are means over `average_s` wholly after that
    start, dated at their end: the result is at least `average_s`.

    Spans without a share, or too short for one mean, do not count. A span that a change or the
    flow's completion ended before the rate had settled counts in full. Infinity when the rate never
    settled, or had not at the flow's `stop` or the end of the run; None without a span to judge.
    """
    slack_bps = 8 * packet_bytes / average_s
    waits_s: list[float] = []
    settled = False
    long_enough = spans.to_s - spans.from_s >= average_s * (1 - 1e-9)
    for i in np.flatnonzero(long_enough & (spans.share_bps > 0)):
        from_s, to_s, share_bps = (float(column[i]) for column in spans)
        rows = slice(*np.searchsorted(time_s, [from_s + 1e-9, to_s + 1e-9], side="right"))
        ends_s, mean_bps = series.means(time_s[rows], rate_bps[rows], average_s, from_s, to_s)
        if not len(ends_s):
            continue
        inside = np.abs(mean_bps - share_bps) <= max(_BAND * share_bps, slack_bps)
        wait_s = series.settled_at(ends_s, inside) - from_s
        if wait_s < math.inf:
            settled = True
        elif i + 1 == len(spans.to_s) and not completed:
            return math.inf
        else:
            wait_s = to_s - from_s
        waits_s.append(wait_s)
    if not waits_s:
        return None
    return max(waits_s) if settled else math.inf


def start_up_s(
    time_s: Series, rate_bps: Series, spans: Spans, *, start_s: float, completed: bool = False
) -> float | None:
    """Return the time (s) from a flow's SYN to the end of the first sample with at least half the
    flow's share.

    Arguments as in `settling_s`; the share is that at the sample's end. Infinity without such a
    sample; None without any sample, or when the flow had `completed` before.
    """
    share_bps = spans.at(time_s)
    there = share_bps > 0
    if not there.any():
        return None
    reached = there & (np.nan_to_num(rate_bps) >= _STARTED * share_bps)
    if reached.any():
        return float(time_s[reached.argmax()]) - start_s
    return None if completed else math.inf


def figures(result: Result, allocated: Allocation, link: str) -> Figures:
    """Return the comparison figures of one run whose bottleneck is `link`."""
    flows = [
        _flow_figures(result, allocated, i, *samples) for i, samples in enumerate(_rates_of(result))
    ]
    mine = next(entry for entry in result.summary.links if entry.name == link)
    least, most = _extremes(flows, "share_ratio")
    _, slowest = _extremes(flows, "settling_s")
    _, latest = _extremes(flows, "start_up_s")
    counts = [flow.count for flow in result.summary.flows]
    started_s = [
        time_s
        for flow, count in zip(flows, counts, strict=True)
        for time_s in itertools.repeat(flow.start_up_s, count)
        if time_s is not None
    ]
    return Figures(
        bottleneck=link,
        average_s=average_s(result),
        utilization=mine.utilization,
        queue_bytes=Spread(**{kind: mine.queue_bytes[kind] for kind in ("mean", "p99", "max")}),
        drops=sum(entry.drops for entry in result.summary.links),
        jain_index=result.summary.jain_index,
        jain_index_of_shares=fairness(result.summary),
        share_ratio=ShareRatio(worst=least[0], worst_flow=least[1], most=most[0]),
        settling_s=Settling(
            worst=slowest[0], worst_flow=slowest[1], never=_never(flows, counts, "settling_s")
        ),
        start_up_s=StartUp(
            median=statistics.median(started_s) if started_s else None,
            worst=latest[0],
            worst_flow=latest[1],
            never=_never(flows, counts, "start_up_s"),
        ),
        transfers=transfers.overall(result.transfers, result.slowdown_contents)
        if result.network.has_transfers
        else None,
        flows=flows,
        hosts=hosts.of_run(result.summary),
        collectives=collectives(result),
    )


def _flow_figures(
    result: Result, allocated: Allocation, index: int, time_s: Series, rate_bps: Series
) -> FlowFigures:
    flow = result.summary.flows[index]
    start_s, end_s = allocated.lives[index]
    completed = flow.completed_s is not None and flow.completed_s <= end_s
    spans = allocated.of(index)
    rate_of_run, share_bps = flow.rate_bps, flow.max_min_bps
    return FlowFigures(
        name=flow.name,
        share_ratio=rate_of_run / share_bps if share_bps and rate_of_run is not None else None,
        settling_s=settling_s(
            *(time_s, rate_bps, spans),
            average_s=average_s(result),
            packet_bytes=result.network.packet_bytes,
            completed=completed,
        ),
        start_up_s=start_up_s(time_s, rate_bps, spans, start_s=start_s, completed=completed),
    )


def _rates_of(result: Result) -> list[tuple[Series, Series]]:
    """Return the sample times and rates of every flow, in the summary's order."""
    table = result.flows
    time_s, rate_bps = series.numbers(table, "time_s"), series.numbers(table, "rate_bps")
    flow = table["flow"].combine_chunks().indices.to_numpy()
    order = np.argsort(flow, kind="stable")  # time order within each flow
    edges = np.searchsorted(flow[order], np.arange(len(result.summary.flows) + 1))
    rows = [order[a:b] for a, b in itertools.pairwise(edges)]
    return [(time_s[mine], rate_bps[mine]) for mine in rows]


def _extremes(
    flows: Sequence[FlowFigures], key: str
) -> tuple[tuple[float | None, str | None], tuple[float | None, str | None]]:
    """Return (value, flow) of a figure's minimum and maximum, with the first of equal flows."""
    there = [(flow[key], flow.name) for flow in flows if flow[key] is not None]
    if not there:
        return (None, None), (None, None)
    return min(there, key=lambda pair: pair[0]), max(there, key=lambda pair: pair[0])


def _never(flows: Sequence[FlowFigures], counts: Sequence[int], key: str) -> int:
    pairs = zip(flows, counts, strict=True)
    return sum(count for flow, count in pairs if flow[key] == math.inf)


# --- the answer --------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Comparison:
    """Runs of one scenario by protocol, with their max-min allocations and common bottleneck.

    It prints as a table with one row per protocol. `results` are the runs by protocol; `table`
    gives the figures to pandas and polars.
    """

    results: dict[str, Result]
    allocations: dict[str, Allocation]
    bottleneck: str

    @cached_property
    def figures(self) -> dict[str, Figures]:
        """The comparison figures of each run, by protocol."""
        return {
            name: figures(result, self.allocations[name], self.bottleneck)
            for name, result in self.results.items()
        }

    def _table(self) -> tables.Table[tuple[str, Figures]]:
        rows = list(self.figures.items())
        return tables.Table(
            "", f"bottleneck {self.bottleneck}",
            tables.runs(result.summary for result in self.results.values()), rows,
        )  # fmt: skip

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        """Return the comparison as an HTML table for a notebook, with one row per protocol."""
        return notebook.table(self._table(), len(self.results))

    def table(self) -> pa.Table:
        """Return the figures as a pyarrow Table with one row per protocol, in SI units.

        `min_share` and `max_share` are the smallest and the largest rate over the max-min share,
        `settling_s` that of the slowest flow (infinite: never).
        """
        import pyarrow as pa

        return pa.Table.from_pylist([
            {
                "protocol": name,
                "utilization": one.utilization,
                "queue_mean_bytes": one.queue_bytes.mean,
                "queue_p99_bytes": one.queue_bytes.p99,
                "queue_max_bytes": one.queue_bytes.max,
                "drops": one.drops,
                "jain_index": one.jain_index,
                "jain_index_of_shares": one.jain_index_of_shares,
                "min_share": one.share_ratio.worst,
                "max_share": one.share_ratio.most,
                "settling_s": one.settling_s.worst,
                "start_up_median_s": one.start_up_s.median,
            }
            for name, one in self.figures.items()
        ])  # fmt: skip

    def to_pandas(self) -> pd.DataFrame:
        """Return `table` as a pandas DataFrame; raise InputError without pandas."""
        return to_pandas(self.table())

    def to_polars(self) -> pl.DataFrame:
        """Return `table` as a polars DataFrame; raise InputError without polars."""
        return to_polars(self.table())

    def document(self) -> ComparisonDocument:
        """Return the comparison's document: the runs' summaries with their figures."""
        return ComparisonDocument(runs={
            name: ComparedRun.read({**result.summary, "compare": self.figures[name]})
            for name, result in self.results.items()
        })  # fmt: skip

    def write(self, document: ComparisonDocument, folder: Path) -> None:
        """Write a folder per protocol with the run's files, and compare.json, compare.png and
        compare.svg.

        Where flows have a size, also transfers.png and .svg; of many links links.png and .svg; of
        several seeds seeds.png and .svg.
        Raises InputError for the first that cannot be written; the others are written.
        """
        with Stage(folder) as stage:
            refused = self.write_into(stage.folder, document)
            stage.publish()
            for error in refused:
                raise error

    def write_into(
        self,
        folder: Path,
        document: ComparisonDocument,
        figures: bool = True,
        look: Look = SCREEN,
    ) -> list[WriteError]:
        """Write the files of `write` into a Stage's folder; return the errors of failed files.

        A run is written whole or not at all; a figure of it may be missing.
        """
        from waterfill.analysis import plots
        from waterfill.analysis.draw import save, styled

        errors: list[WriteError] = []

        def attempt(*writes: Callable[[], object]) -> None:
            try:
                for write in writes:
                    write()
            except WriteError as error:
                errors.append(error)

        def draw(make: Callable[[], Drawing], stem: Path) -> Callable[[], object]:
            return lambda: save(styled(make(), look), stem) if figures else None

        for name, result in self.results.items():
            mine = folder / name
            attempt(
                partial(result.write_into, mine),
                draw(partial(plots.overview, result), mine / "figure"),
            )
        attempt(lambda: write_text(folder / DOCUMENT, to_json(versions.versioned(document)) + "\n"))
        attempt(draw(self.figure, folder / "compare"))
        found = document.of_seeds()
        if found is not None:
            attempt(draw(partial(plots.over_seeds, found), folder / "seeds"))
        sized = {n: r.transfers for n, r in self.results.items() if r.network.has_transfers}
        if sized:
            attempt(draw(partial(plots.slowdowns, sized), folder / "transfers"))
        if any(map(plots.has_many_links, self.results.values())):
            attempt(draw(partial(plots.links, self.results), folder / "links"))
        return errors

    def figure(self) -> Drawing:
        """Return the figure of rates and the bottleneck's queue, with one panel per run."""
        from waterfill.analysis import plots

        return plots.comparison(self.results, self.bottleneck, self.allocations)


def of(results: Mapping[str, Result]) -> Comparison:
    """Return the comparison of one or more runs, all of one scenario."""
    allocations = {name: shares.allocation(result) for name, result in results.items()}
    return Comparison(dict(results), allocations, bottleneck(results, allocations))


def over_seeds(
    comparison: Comparison, first_seed: int, others: Mapping[int, Mapping[str, Figures]]
) -> OverSeeds:
    """Return a comparison's results over several seeds, to be added to its document.

    `others` are the figures of each further seed, by protocol; seeds that lack one are left out.
    Where all seeds of each protocol have the same figures, nothing is drawn at random, and there is
    nothing to test. The bottleneck is that of the first seed's runs.
    """
    names = list(comparison.results)
    whole = {seed: found for seed, found in others.items() if set(found) == set(names)}
    mine = {
        name: [comparison.figures[name], *(found[name] for found in whole.values())]
        for name in names
    }
    found = seeds.estimates(mine)
    random = any(each != of_seeds[0] for of_seeds in mine.values() for each in of_seeds)
    return OverSeeds(
        seeds=[first_seed, *whole],
        over_seeds=found,
        differences_over_seeds=seeds.differences(found) if random else [],
    )


def is_comparison(directory: str | os.PathLike[str]) -> bool:
    """Return True if the directory has the document of a comparison."""
    recover(Path(directory))
    return (Path(directory) / DOCUMENT).exists()


def load_comparison(directory: str | os.PathLike[str]) -> Comparison:
    """Read the runs in a directory written by `Comparison.write`. Nothing is simulated.

    Raises InputError when a file of it is missing, damaged or of an older version.
    """
    path = Path(directory) / DOCUMENT
    recover(Path(directory))
    try:
        document = json.loads(read_text(path))
        versions.check(document, str(path))
        runs = {str(name): dict(run) for name, run in document["runs"].items()}
        if not runs or any(name != Path(name).name for name in runs):
            raise ValueError("no names of folders next to it")
    except InputError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        message = f"not a whole file as `compare -o` writes it: {why(error)}"
        raise InputError(str(path), "", message) from None
    results = {name: load_run(Path(directory) / name) for name in runs}
    for name, result in results.items():
        if {**result.summary, "compare": runs[name].get("compare")} != runs[name]:
            message = f"not the run of {DOCUMENT}; compare again"
            raise InputError(str(Path(directory) / name), "", message)
    return of(results)


# --- backends side by side ---------------------------------------------------------------------


def differences(runs: Mapping[str, Summary]) -> list[BackendDifference]:
    """Compare each further backend with the first one, with one row per figure.

    `runs` is {"protocol@backend": run}. A flow's queueing delay is its mean RTT less the base RTT.
    """
    by_protocol: dict[str, dict[str, Summary]] = {}
    for label, run in runs.items():
        protocol, _, backend = label.partition("@")
        by_protocol.setdefault(protocol, {})[backend] = run
    rows = []
    for protocol, mine in by_protocol.items():
        (first, reference), *others = mine.items()
        for second, run in others:
            pairs = zip(_figures_of(reference), _figures_of(run), strict=True)
            for (what, unit, relative, a), (*_, b) in pairs:
                rows.append(BackendDifference(
                    protocol=protocol, what=what, unit=unit, relative=relative,
                    backends=[first, second], values_=[a, b],
                    difference=_difference(a, b, relative),
                ))  # fmt: skip
    return rows


def _difference(a: float | None, b: float | None, relative: bool) -> float | None:
    if a is None or b is None or (relative and a == 0):
        return None
    return (b - a) / a if relative else b - a


def _figures_of(run: Summary) -> list[tuple[str, str, bool, float | None]]:
    """Return a run's figures as (quantity, unit, relative, value), in a fixed order."""
    found: list[tuple[str, str, bool, float | None]] = []
    for flow in run.flows:
        rtt = flow.rtt_ms
        waiting = None if rtt.mean is None else rtt.mean - rtt.base
        found += [
            (f"rate of {flow.name}", "bit/s", True, flow.rate_bps),
            (f"queueing delay of {flow.name}", "ms", False, waiting),
            (f"retransmissions of {flow.name}", "packets", True, flow.retransmissions),
        ]
    for link in run.links:
        found += [
            (f"utilization of {link.name}", "", False, link.utilization),
            (f"mean queue of {link.name}", "B", True, link.queue_bytes.mean),
        ]
    found.append(("Jain's index of rate ÷ share", "", False, fairness(run)))
    return found
