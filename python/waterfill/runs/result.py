"""The result of a run: a summary document, time series as Arrow tables, and their files."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from waterfill.contract.summary import (
    CLOCKED,
    SCHEMA_VERSION,
    SCHEMA_VERSION_KEY,
    CoreFlow,
    CoreSummary,
    Engine,
    EngineSummary,
    FlowSummary,
    GroupSummary,
    LawSummary,
    Summary,
    Times,
    TrafficSummary,
)
from waterfill.errors import InputError, nearest, shown
from waterfill.runs.files import WriteError, make_directory, write_parquet, write_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.figure import Figure

    from waterfill.contract.network import FlowSpec, Network, ParamValue
    from waterfill.runs.transfers import Indexes, Numbers

Document: TypeAlias = dict[str, Any]
Which: TypeAlias = Literal["flows", "links", "traffic"]
TableName: TypeAlias = Literal["flows", "links", "traffic", "transfers", "messages", "rates"]
Columns: TypeAlias = Mapping[str, tuple[str, bytes]]

# The core's columns of messages.
MESSAGES = ("flow", "index", "written_s", "size_bytes", "completed_s")

NAME_COLUMN: dict[Which, str] = {"flows": "flow", "links": "link", "traffic": "traffic"}
"""The tables of a run, each with the name of its column of names."""

_DTYPES = {"f64": "<f8", "u64": "<u8", "u32": "<u4"}

# The order of keys in the summary, most wanted first.
_FLOW_KEYS = (
    "name", "group", "index", "protocol", "start_s", "stop_s", "active_s",
    "rate_bps", "goodput_bps", "max_min_bps", "rtt_ms",
    "limited_by", "packets_sent", "loss_rate", "retransmissions", "resent_bytes",
    "spurious_retransmissions", "timeouts", "longest_recovery", "messages", "playback",
    "completed_s",
)  # fmt: skip
_TRAFFIC_KEYS = (
    "name", "kind", "protocol", "rate_bps", "goodput_bps", "packets_sent", "packets_received",
    "flows_started", "flows_completed", "flows_open_max", "flow_completion_ms",
    "limited_by", "loss_rate", "retransmissions", "resent_bytes", "spurious_retransmissions",
    "timeouts", "longest_recovery",
)  # fmt: skip
_TIMES_KEYS = ("count", "mean", "p50", "p90", "p95", "p99", "max")


class Result:
    """The result of one run: a summary and time series.

    `summary` is the document that `run --json` prints, plain dicts and lists. `flows`, `links`
    and `traffic` are pyarrow Tables with one row for each sample and flow, link or traffic
    source, in time order: `time_s` is the end of the sample, `flow`/`link`/`traffic` the name
    (a dictionary column); the others are SI numbers with the unit in the column's name, null where
    there was no sample. The tables use the core's buffers without copying. `transfers` is a table
    with one row for each flow that has a size, `messages` one with a row for each message of an
    application.
    `network` is the network that the engine ran (SI units, routes as link indexes),
    `scenario_toml` the scenario as a file.

    `rates` is the wide form, time × flow; `to_pandas` and `to_polars` return data frames.

    A result pickles, with its tables: pools of processes, joblib and Dask return it.

    >>> import waterfill
    >>> one = waterfill.Scenario("one", duration="2 s", protocol="maxnet")
    >>> result = one.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("f", "a", "b").run()
    >>> result
    <Result of 'one' on sim>
    >>> sorted(result.summary["links"][0])[:3]
    ['drops', 'lost', 'marks']
    >>> result.flows.num_rows, result.flows.column_names[:3]
    (20, ['time_s', 'flow', 'rate_bps'])
    >>> result.rates().column_names
    ['time_s', 'f']
    """

    def __init__(
        self,
        summary: Summary,
        *,
        network: Network,
        scenario_toml: str,
        series: Callable[[Which], Columns],
        arrivals: Callable[[], Columns] | None = None,
        messages: Callable[[], Columns] | None = None,
    ) -> None:
        self.summary = summary
        self._network = network
        self.scenario_toml = scenario_toml
        self._series = series
        self._arrivals = arrivals
        self._written = messages

    def __getstate__(self) -> dict[str, Any]:
        # The core's run cannot leave its process; the tables, once read, are attributes.
        tables: dict[str, Any] = {which: getattr(self, which) for which in NAME_COLUMN}
        tables |= {"transfers": self.transfers, "messages": self.messages}
        core = {"_series": _elsewhere, "_arrivals": None, "_written": None}
        return {**self.__dict__, **tables, "network": self.network, **core}

    def __repr__(self) -> str:
        return f"<Result of {self.summary.scenario!r} on {self.summary.backend}>"

    def _repr_html_(self) -> str:
        """Return flows, traffic and links as HTML tables for a notebook, escaped and without
        scripts.
        """
        import waterfill  # knows who writes it, as with `plot`

        return waterfill.notebook_html(self)

    def plot(self, kind: str = "overview") -> Figure:
        """Plot an `overview` of the run, its `rates` or its `queues`, as `waterfill.plot` does.

        Returns a matplotlib Figure. Raises InputError for another kind.
        """
        import waterfill  # knows who plots: this package does not depend on the analysis

        return waterfill.plot(self, kind)

    @cached_property
    def network(self) -> Network:
        """The network that the engine ran."""
        return self._network

    @cached_property
    def flows(self) -> pa.Table:
        """Samples of the flows: rate_bps at the receiver, window_bytes, rtt_s and signals of the
        laws.
        """
        return self._table("flows")

    @cached_property
    def links(self) -> pa.Table:
        """Samples of the links, such as utilization, queue_bytes (mean), queue_max_bytes, drops and
        lost.
        """
        return self._table("links")

    @cached_property
    def traffic(self) -> pa.Table:
        """Samples of the traffic sources: rate_bps and, for sources of flows, the number of open
        `flows`.
        """
        return self._table("traffic")

    @cached_property
    def transfers(self) -> pa.Table:
        """Table of all flows with a size that have started. See docs/reference/traffic.md.

        Columns: source (name of the group or of the traffic source), index (within it), protocol,
        from and to (sending and receiving host), start_s, size_bytes, completed_s (the receiver had
        the last byte), completion_s (since start_s), ideal_s (on the empty network, with what the
        scenario's `ideal` names), slowdown (the flow's time with the same contents / ideal_s); null
        while unfinished.
        """
        return self._transfers()

    @cached_property
    def messages(self) -> pa.Table:
        """Table of all messages that applications have written. See docs/reference/applications.md.

        Columns: flow, index (within the flow, from zero), written_s, size_bytes (payload),
        completed_s (the client had the last byte), completion_s (since written_s); the last two are
        null without an acknowledgement of the last byte.
        """
        return self._messages()

    def samples(self, which: Which, name: str) -> pa.Table:
        """Return the samples of one flow, link or traffic source.

        Raises KeyError when the run has none of that name.
        """
        import pyarrow.compute as pc

        if not any(entry["name"] == name for entry in self.summary.get(which, [])):
            raise KeyError(name)
        if which == "links":
            self.check_sampled(name)
        table: pa.Table = getattr(self, which)
        return table.filter(pc.equal(table[NAME_COLUMN[which]].cast("string"), name))

    def check_sampled(self, link: str) -> None:
        """Raise InputError if a link has no time series."""
        if link not in self.sampled_links:
            why = f"chooses no time series of link {shown(link)}"
            raise InputError(self.summary.scenario, "series.links", why, "add its name")

    @property
    def sampled_links(self) -> list[str]:
        """Names of the link directions with time series: all, or those of `series.links`."""
        links = self.network.links
        return [links[index].name for index in self.network.sampled_links]

    def rates(self) -> pa.Table:
        """Return the flows' rates (bit/s) over time: `time_s`, then one column per flow.

        A rate is null where the flow has no sample.
        """
        import numpy as np
        import pyarrow as pa

        table, names = self.flows, [flow.name for flow in self.summary.flows]
        time_s = table["time_s"].combine_chunks().to_numpy(zero_copy_only=False)
        times_s, row = np.unique(time_s, return_inverse=True)
        column = table["flow"].combine_chunks().indices.to_numpy()
        rate = table["rate_bps"].combine_chunks().to_numpy(zero_copy_only=False)
        wide = np.full((len(names), len(times_s)), np.nan)
        wide[column, row] = rate
        columns = [pa.array(one, from_pandas=True) for one in wide]
        return pa.table([pa.array(times_s), *columns], names=["time_s", *names])

    def to_pandas(self, which: TableName = "flows") -> pd.DataFrame:
        """Return a table as a pandas DataFrame: `flows`, `links`, `traffic`, `transfers`,
        `messages` or `rates`, whose index is the time.

        Raises InputError for another name, or without pandas.
        """
        found = to_pandas(self._named(which))
        return found.set_index("time_s") if which == "rates" else found

    def to_polars(self, which: TableName = "flows") -> pl.DataFrame:
        """Return a table as a polars DataFrame, without copies. See `to_pandas`."""
        return to_polars(self._named(which))

    def _named(self, which: TableName) -> pa.Table:
        names = get_args(TableName)
        if which not in names:
            why = f"unknown table {shown(which)}{nearest(str(which), names)}"
            raise InputError("result", "table", why)
        return self.rates() if which == "rates" else getattr(self, which)

    def _transfers(self) -> pa.Table:
        import numpy as np

        from waterfill.runs import transfers

        empty: Columns = {name: ("f64", b"") for name in transfers.ARRIVED}
        columns = empty if self._arrivals is None else self._arrivals()
        arrived = {
            name: np.frombuffer(buffer, dtype=_DTYPES[kind]).astype(np.float64)
            for name, (kind, buffer) in columns.items()
        }
        end_s = self.summary.end_s
        found = transfers.collect(self.network, self.summary.flows, arrived, end_s)
        ideal = transfers.ideal(found, self.network, self.header_bytes, self._ideal)
        return transfers.to_table(found, ideal, self.network, self._ends)

    def ideal_s(self, source: Indexes, size_bytes: Numbers) -> Numbers:
        """Return the times (s) from start to last byte of flows alone in the network.

        `source` has their places in `runs.transfers.sources(network)`, `size_bytes` their payload;
        a flow of a traffic source takes its first route.
        """
        import numpy as np

        from waterfill.runs import transfers

        none, count = np.zeros(len(source)), np.zeros(len(source), dtype=np.int64)
        flows = transfers.Transfers(
            transfers.sources(self.network), source, count, count, none, size_bytes, none
        )
        return transfers.ideal(flows, self.network, self.header_bytes).time_s

    @cached_property
    def header_bytes(self) -> dict[str, int]:
        """Bytes of each protocol's header in data packets, with those of laws in Python."""
        from waterfill.network import protocols

        known = protocols.with_header_sizes(protocols.load(), self.network.params)
        headers = {p.name: p.header_bytes for p in known.values()}
        return headers | {name: law.header_bytes for name, law in (self.summary.laws or {}).items()}

    @property
    def slowdown_contents(self) -> str:
        """What the times of slowdowns contain next to the data's way: "handshake", "one-way",
        "rtt", or "mixed" if only some flows have a handshake.
        """
        from waterfill.runs import transfers

        shakes = {flow.handshake for flow in transfers.sources(self.network)}
        if self._ideal is not None or len(shakes) > 1:
            return self._ideal or "mixed"
        return "one-way" if shakes == {False} else "handshake"

    @cached_property
    def _ideal(self) -> str | None:
        """The scenario's key `ideal`."""
        value = self.document.get("ideal")
        return value if isinstance(value, str) else None

    @cached_property
    def document(self) -> dict[str, Any]:
        """The scenario as a dictionary with the structure of its file."""
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
        return tomllib.loads(self.scenario_toml)

    @cached_property
    def _ends(self) -> dict[str, tuple[str, str]]:
        """Start and end node of each link direction, by its name."""
        found: dict[str, tuple[str, str]] = {}
        for link in self.document.get("link", ()):
            found[link["name"]] = (link["from"], link["to"])
            found[f"{link['name']}:rev"] = (link["to"], link["from"])
        return found

    def _messages(self) -> pa.Table:
        import pyarrow.compute as pc

        empty: Columns = {name: ("f64", b"") for name in MESSAGES}
        columns = empty if self._written is None else self._written()
        columns = {**columns, "flow": ("u32", columns["flow"][1])}
        found = to_table(columns, "flow", [flow.name for flow in self.summary.flows])
        took_s = pc.subtract(found["completed_s"], found["written_s"])
        return found.append_column("completion_s", took_s)

    def _table(self, which: Which) -> pa.Table:
        names = [entry["name"] for entry in self.summary.get(which, [])]
        return to_table(self._series(which), NAME_COLUMN[which], names)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the summary as JSON text; numbers that are not finite become null."""
        return to_json(self.summary, indent=indent)

    def write(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write summary.json, scenario.toml and the series as Parquet. All files are written, or
        none.

        The metadata of the Parquet files holds the run's summary (without its lists of flows and
        links), the scenario, the versions and the seed. Without traffic there is no
        traffic.parquet, without flows that have a size no transfers.parquet, and without
        applications no messages.parquet. The directory must be new, hold an earlier result, which
        is replaced, or hold no files. Returns the paths. Raises InputError when it holds other
        files or cannot be written.
        """
        from waterfill.runs.directory import Stage

        with Stage(directory) as stage:
            names = [path.name for path in self.write_into(stage.folder)]
            stage.publish()
        return [stage.directory / name for name in names]

    def write_into(self, folder: Path) -> list[Path]:
        """Write the files of `write` into a folder that holds no files of an earlier run.

        Raises WriteError, after it has removed what it wrote.
        """
        make_directory(folder)
        written: list[Path] = []
        try:
            written.append(write_text(folder / "summary.json", self.to_json() + "\n"))
            written.append(write_text(folder / "scenario.toml", self.scenario_toml))
            tables = {"flows": self.flows, "links": self.links, "traffic": self.traffic}
            for name, table in tables.items():
                if name != "traffic" or self.summary.traffic:
                    written.append(self._write_parquet(folder / f"{name}.parquet", table))
            if self.network.has_transfers:
                written.append(self._write_parquet(folder / "transfers.parquet", self.transfers))
            if self.network.has_messages:
                written.append(self._write_parquet(folder / "messages.parquet", self.messages))
        except WriteError:
            for path in written:
                path.unlink()
            raise
        return written

    def _write_parquet(self, path: Path, table: pa.Table) -> Path:
        from waterfill._core import version

        # Without the lists: with many flows, metadata would exceed readers' limits. Without the
        # wall time: the same seed gives the same bytes.
        run = {k: v for k, v in self.summary.items() if not isinstance(v, list) or k == "measure_s"}
        engine = {k: v for k, v in self.summary.engine.items() if k not in CLOCKED}
        metadata = {
            SCHEMA_VERSION_KEY: str(SCHEMA_VERSION),
            "waterfill.version": version(),
            "waterfill.seed": str(self.summary.seed),
            "waterfill.summary": to_json({**run, "engine": engine}, indent=None),
            "waterfill.scenario": self.scenario_toml,
        }
        labelled = table.replace_schema_metadata(metadata)
        return write_parquet(path, labelled)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a table as a pandas DataFrame; raise InputError if pandas is not installed."""
    _needs("pandas")
    return table.to_pandas()


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Return a table as a polars DataFrame; raise InputError if polars is not installed."""
    _needs("polars")
    import polars as pl

    return pl.DataFrame(table)


def _needs(package: str) -> None:
    if find_spec(package) is None:
        raise InputError("table", "", f"{package} is not installed", f"type pip install {package}")


def _elsewhere(which: Which) -> Columns:
    """Raise AssertionError, because an unpickled result lacks the core's buffers."""
    raise AssertionError(f"{which}: a pickled result has tables, not the core's buffers")


def summarise(
    core: CoreSummary,
    *,
    network: Network,
    backend: str,
    params: Mapping[str, Mapping[str, ParamValue | None]],
    max_min_bps: Sequence[float | None],
    interrupted_at_s: float | None = None,
    laws: Mapping[str, LawSummary] | None = None,
) -> Summary:
    """Build the document of `run --json` from the core's summary.

    `params` are all parameters of the protocols used; `max_min_bps` has one share (bit/s) per flow
    of the core, None where the flow's window is empty. `laws` are those in Python.
    """
    from waterfill._core import version

    document = Summary(
        schema_version=SCHEMA_VERSION,
        scenario=network.name,
        backend=backend,
        version=version(),
        seed=network.seed,
        duration_s=network.duration_s,
        measure_s=list(network.measure_s),
        params=params,
        flows=[_flow(flow, share) for flow, share in zip(core.flows, max_min_bps, strict=True)],
        links=core.links,
        traffic=[_traffic(source) for source in core.traffic],
        groups=finite_groups(network.flows, core.flows),
        jain_index=jain_index(
            rate for f in core.flows for rate in itertools.repeat(f.rate_bps, f.count)
        ),
        engine=_engine(core.engine),
    )
    document.jain_index_of_shares = fairness(document)
    if core.switches is not None:
        document.switches = core.switches
    if core.deadlock is not None:
        document.deadlock = core.deadlock
    if laws is not None:
        document.laws = laws
    if interrupted_at_s is not None:
        document.interrupted_at_s = interrupted_at_s
    return document


def last_end_s(flows: Iterable[tuple[float, float | None]]) -> float:
    """Return the end of the last of some flows, given as (stop, completion), in whole µs (s)."""
    ends_s = [stop_s if done_s is None else min(stop_s, done_s) for stop_s, done_s in flows]
    return math.ceil(max(ends_s) * 1e6) / 1e6


def _engine(done: EngineSummary) -> Engine:
    """Return an engine's summary with its speed, in packet transmissions per second.

    Runs in real time and the fluid model, which has no packets, have no speed.
    """
    entry = Engine.read(done)
    if entry.events is not None and entry.wall_s > 0 and not entry.step_s:
        entry.packet_transmissions_per_s = entry.packet_hops / entry.wall_s
    return entry


def _flow(flow: CoreFlow, max_min_bps: float | None) -> FlowSummary:
    more = {"max_min_bps": max_min_bps, "loss_rate": loss_rate(flow)}
    return FlowSummary.read(_in_order({**flow, **more}, _FLOW_KEYS))


def loss_rate(flow: CoreFlow | TrafficSummary) -> float | None:
    """Return the part of the data packets of a flow, or of a source's flows, that did not arrive,
    or None if none were sent.

    A packet is lost when it was sent again and only one copy arrived.
    """
    if not flow.packets_sent:
        return None
    return (flow.retransmissions - (flow.spurious_retransmissions or 0)) / flow.packets_sent


def _traffic(source: TrafficSummary) -> TrafficSummary:
    more = {} if source.resent_bytes is None else {"loss_rate": loss_rate(source)}
    found = TrafficSummary.read(_in_order({**source, **more}, _TRAFFIC_KEYS))
    if found.flow_completion_ms is not None:
        found.flow_completion_ms = Times.read(_in_order(found.flow_completion_ms, _TIMES_KEYS))
    return found


def _in_order(entry: Mapping[str, object], keys: Sequence[str]) -> dict[str, object]:
    """Return a copy of an entry of the summary, with the given keys first."""
    return {**{key: entry[key] for key in keys if key in entry}, **entry}


def finite_groups(entries: Iterable[FlowSpec], flows: Sequence[CoreFlow]) -> list[GroupSummary]:
    """Return the completion times, from SYN to last byte, of each group of flows with a size.

    `entries` are the network's groups, `flows` the core's flows, groups expanded. Times are in
    milliseconds, of all flows that completed in the run: mean, percentiles (the smallest value
    that this fraction of the flows does not exceed) and maximum.
    """
    took_ms: dict[str, list[float]] = {}
    for flow in flows:
        times = took_ms.setdefault(flow.group, [])
        if flow.completed_s is not None:
            times.append(1e3 * (flow.completed_s - flow.start_s))
    return [
        GroupSummary(
            name=entry.name,
            flows=entry.count,
            completed=len(took_ms.get(entry.name, [])),
            flow_completion_ms=completion_times(took_ms.get(entry.name, [])),
        )
        for entry in entries
        if entry.size_bytes is not None
    ]


def completion_times(took_ms: Iterable[float]) -> Times:
    """Return count, mean, percentiles and maximum of completion times (ms). Missing values are
    None.
    """
    times = sorted(took_ms)
    return Times(
        count=len(times),
        mean=math.fsum(times) / len(times) if times else None,
        p50=percentile(times, 50),
        p90=percentile(times, 90),
        p95=percentile(times, 95),
        p99=percentile(times, 99),
        max=times[-1] if times else None,
    )


def percentile(values: Sequence[float], percent: int, of: int = 100) -> float | None:
    """Return a percentile, the smallest value that `percent` of the sorted values do not exceed, or
    None without values. `of` = 1000 counts in thousandths.
    """
    # The smallest i with (i + 1) / n ≥ percent / of, in integers.
    place = max(0, -(-percent * len(values) // of) - 1)
    return float(values[place]) if len(values) else None


def fairness(summary: Summary) -> float | None:
    """Return Jain's index of rate ÷ max-min share, also of results from before it was a key."""
    return jain_index(
        ratio
        for flow in summary.flows
        if flow.rate_bps is not None and flow.max_min_bps
        for ratio in itertools.repeat(flow.rate_bps / flow.max_min_bps, flow.count)
    )


def jain_index(rates_bps: Iterable[float | None]) -> float | None:
    """Return Jain's fairness index (Σx)² / (n·Σx²) of the known rates. It is 1 if all are equal.

    None without a rate, or when all are zero.
    """
    rates = [rate for rate in rates_bps if rate is not None and math.isfinite(rate)]
    largest = max(rates, default=0.0)
    if largest <= 0:
        return None
    shares = [rate / largest for rate in rates]  # squares of bit/s may overflow a float
    total = math.fsum(shares)
    return total * total / (len(shares) * math.fsum(share * share for share in shares))


def to_table(columns: Columns, name_column: str, names: Sequence[str]) -> pa.Table:
    """Return a pyarrow Table over the core's buffers. `name_column` holds names instead of indexes.

    Raises ValueError when the columns are not of one length or of an unknown type.
    """
    import pyarrow as pa

    arrays = {}
    for column, (kind, buffer) in columns.items():
        if column == name_column:
            # Read indexes as signed: pandas accepts no unsigned dictionary keys.
            keys = _array("i32", buffer)
            arrays[column] = pa.DictionaryArray.from_arrays(keys, pa.array(names, pa.string()))
        else:
            arrays[column] = _array(kind, buffer)
    return pa.table(arrays)


def _array(kind: str, buffer: bytes) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    types = {"f64": pa.float64(), "u64": pa.uint64(), "u32": pa.uint32(), "i32": pa.int32()}
    if kind not in types:
        raise ValueError(f"the core sent a column of the unknown type {kind}")
    width = types[kind].bit_width // 8
    if len(buffer) % width:
        raise ValueError(f"the core sent {len(buffer)} bytes for a column of {kind}")
    validity = None
    if kind == "f64":
        missing = np.isnan(np.frombuffer(buffer, dtype="<f8"))
        if missing.any():
            validity = pa.py_buffer(np.packbits(~missing, bitorder="little").tobytes())
    data = [validity, pa.py_buffer(buffer)]
    return pa.Array.from_buffers(types[kind], len(buffer) // width, data)


_CONTROLS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def finite(value: Any) -> Any:
    """Return a copy of plain data with None for NaN and infinities, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def to_json(document: Any, *, indent: int | None = 2) -> str:
    """Return plain data as strict JSON text; NaN and infinities become null.

    Characters that a terminal interprets are escaped: C1 controls, line separators, directions.
    """
    text = json.dumps(finite(document), indent=indent, ensure_ascii=False, allow_nan=False)
    return text if text.isascii() else _CONTROLS.sub(lambda c: f"\\u{ord(c[0]):04x}", text)
