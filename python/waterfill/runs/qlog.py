"""Logs of simulated flows as qlog files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from waterfill import _core
from waterfill.contract.network import Network
from waterfill.errors import InputError, RunError, nearest, shown
from waterfill.runs.steps import flow_names

SUFFIX = ".sqlog"
MAX_FLOWS = 256
"""Maximum number of logged flows: each has an open file."""
LIMIT_BYTES = 256_000_000


@dataclass(frozen=True)
class Logged:
    """Totals of a run's logs. `full_at_s` is the time at which they reached their common size
    limit, or None.
    """

    events: int
    size_bytes: int
    full_at_s: float | None


@dataclass
class Qlog:
    """Options of qlog files and, after the run, their totals.

    folder: where FLOW.sqlog is written for each flow. flows: names of groups of flows, or of one
    of a group, such as web[3]; empty for all. limit_bytes: size of all files at which they end.
    failed: why the files could not be written; the run is not affected.
    """

    folder: Path
    flows: Sequence[str] = ()
    limit_bytes: int = LIMIT_BYTES
    logged: Logged | None = None
    failed: str | None = None

    def start(self, simulation: _core.Simulation, network: Network) -> None:
        """Start logging; raise InputError for an unknown flow or too many flows, and RunError if a
        file cannot be written.
        """
        every = flow_names(network)
        groups = {flow.name for flow in network.flows}
        for name in self.flows:
            if name not in groups and name not in every:
                known = nearest(name, [*groups, *every])
                why = f"unknown flow {shown(name)}{known}"
                raise InputError("command line", "qlog-flow", why)
        chosen = [
            (i, name)
            for i, name in enumerate(every)
            if not self.flows or name in self.flows or name.partition("[")[0] in self.flows
        ]
        if not chosen:
            why = "no flow to log: flows of traffic sources are not logged"
            raise InputError("command line", "qlog", why)
        if len(chosen) > MAX_FLOWS:
            why = f"at most {MAX_FLOWS} flows can be logged, got {len(chosen)}"
            advice = f"choose some, for example --qlog-flow '{every[0]}'"
            raise InputError("command line", "qlog", why, advice)
        files = [(i, self.folder / file_name(name), name) for i, name in chosen]
        try:
            simulation.start_qlog(files, self.limit_bytes)
        except ValueError as error:
            raise RunError(str(error)) from None

    def finish(self, simulation: _core.Simulation) -> None:
        """End logging and set `logged`, or `failed` if a file could not be written."""
        try:
            report = simulation.finish_qlog()
        except ValueError as error:
            self.failed = str(error)
            return
        if report is not None:
            self.logged = Logged(*report)


def file_name(flow: str) -> str:
    """Return the name of a flow's file. Characters that a file name cannot contain are quoted as in
    an URL.
    """
    return quote(flow, safe=" []()+,@#&;!$'") + SUFFIX
