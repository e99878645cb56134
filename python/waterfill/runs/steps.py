"""Logs of the steps that laws take in a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from waterfill import _core
from waterfill.contract.network import Network, ParamValue
from waterfill.errors import InputError, shown
from waterfill.runs.files import WriteError, write_parquet

if TYPE_CHECKING:
    import pyarrow as pa

FILE_NAME = "steps.parquet"
KEY = b"waterfill.steps"
FORMAT = 2
LISTS = ("inputs", "before", "after", "outputs")
PARTS = ("router", "receiver", "source")
MAX_ROWS = 5_000_000
"""Maximum number of rows in a log. This many rows take about 2 GB of memory during the run."""


@dataclass
class StepLog:
    """Options of a step log and, after the run, its totals.

    file: where it is written. rows: it has no more, later steps are counted. law: only this one's
    steps; all laws' without. written: its rows. dropped: steps that were not logged. failed: why
    the file could not be written; the run is not affected.
    """

    file: Path
    rows: int
    law: str | None = None
    written: int = 0
    dropped: int = 0
    failed: str | None = None

    def start(self, simulation: Simulation, network: Network) -> None:
        """Start logging; raise InputError for a law that no flow runs."""
        if self.law is not None and self.law not in network.protocols:
            known = ", ".join(network.protocols)
            why = f"no flow runs {shown(self.law)}"
            raise InputError("command line", "log-law", why, f"choose one of {known}")
        simulation.log_steps(self.rows, self.law)

    def finish(
        self,
        simulation: Simulation,
        backend: str,
        network: Network,
        params: Mapping[str, Mapping[str, ParamValue | None]],
    ) -> None:
        """Write the log and set `written` and `dropped`; also set `failed` if the file cannot be
        written.
        """
        columns = simulation.steps()
        if columns is None:
            return
        table = to_table(columns, backend, network, params)
        self.written, self.dropped = table.num_rows, columns["dropped"]
        try:
            write_parquet(self.file, table)
        except WriteError as error:
            self.failed = error.message


def to_table(
    columns: Mapping[str, Any], backend: str, network: Network, params: Mapping[str, Any]
) -> pa.Table:
    """Return the step log of a run in the core as a table with metadata."""
    import numpy as np
    import pyarrow as pa

    def dictionary(name: str, words: Sequence[str]) -> pa.Array:
        indices = pa.array(np.frombuffer(columns[name], "<u4").astype("<i4"))
        return pa.DictionaryArray.from_arrays(indices, pa.array(words))

    time = np.frombuffer(columns["time"], "<u8").astype("<i8")
    rows = len(time)
    part = np.frombuffer(columns["part"], "<u4")
    entity = np.frombuffer(columns["entity"], "<u4")
    links = [link.name for link in network.links]
    flows = flow_names(network)
    names = [*links, *flows]
    places = np.where(part == 0, entity, entity + len(links)).astype("<i4")
    if rows and int(places.max()) >= len(names):
        names += [f"flow {i}" for i in range(int(places.max()) + 1 - len(names))]
    table = {
        "backend": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), [backend]),
        "law": dictionary("law", columns["laws"]),
        "part": dictionary("part", PARTS),
        "entity": pa.DictionaryArray.from_arrays(pa.array(places), pa.array(names)),
        "call": dictionary("call", columns["calls"]),
        "time_ps": pa.array(time),
    }
    for name in LISTS:
        ends, words = columns[name]
        table[name] = pa.ListArray.from_arrays(
            pa.array(np.frombuffer(ends, "<u4").astype("<i4")),
            pa.array(np.frombuffer(words, "<u8")),
        )
    laws = {entry["law"] for entry in columns["fields"]}
    document = {
        "format": FORMAT,
        "backend": backend,
        "params": {law: dict(values) for law, values in params.items() if law in laws},
        "dropped": columns["dropped"],
        "fields": columns["fields"],
    }
    return pa.table(table).replace_schema_metadata({KEY: json.dumps(document).encode()})


def flow_names(network: Network) -> list[str]:
    """Return the names of all flows, in the order that the engines use."""
    return [
        flow.name if flow.count == 1 else f"{flow.name}[{i}]"
        for flow in network.flows
        for i in range(flow.count)
    ]


Simulation: TypeAlias = "_core.Simulation | _core.Fluid"
