"""Runs read back from the directories that `Result.write` wrote.

A run is what its files say: its summary, its series as Parquet, and its scenario. The network is
resolved from the scenario again when first asked for. Nothing is simulated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterfill.contract.network import Network
from waterfill.contract.summary import CLOCKED, REQUIRED, Summary
from waterfill.errors import InputError
from waterfill.runs.result import NAME_COLUMN, Result, Which, to_table, why

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY = "summary.json"
SCENARIO = "scenario.toml"
TRANSFERS = "transfers.parquet"


class StoredResult(Result):
    """A run in a directory; its tables are read when first asked for.

    Raises OSError or ValueError when the summary or the scenario cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.summary = json.loads(_text(folder / SUMMARY))
        self.scenario_toml = _text(folder / SCENARIO)
        self._folder = folder
        self._arrivals = None

    @cached_property
    def network(self) -> Network:
        """The network that the engine ran: from network.json if kept, else resolved again."""
        kept = self._folder / "network.json"
        if kept.exists():
            return Network.from_dict(json.loads(_text(kept)))
        from waterfill.network import protocols, resolve
        from waterfill.scenario.loading import from_toml

        scenario = from_toml(self.scenario_toml, str(self._folder / SCENARIO))
        # Every backend runs a subset of the simulator's scenarios and resolves them alike.
        return resolve.to_core(scenario, protocols.load())

    def _table(self, which: Which) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._folder / f"{which}.parquet"
        if not path.exists():
            # A run without traffic has no such file, but the table's columns.
            columns = ("time_s", NAME_COLUMN[which], "rate_bps", "flows")
            none = {c: ("u32" if c == NAME_COLUMN[which] else "f64", b"") for c in columns}
            return to_table(none, NAME_COLUMN[which], [])
        try:
            return pq.read_table(path).replace_schema_metadata(None)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, error) from None

    def _transfers(self) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._folder / TRANSFERS
        if not path.exists():
            if self.network.arriving:
                message = f"expected the run's transfers, found no file: run {SCENARIO} again"
                raise InputError(str(path), "", message)
            return super()._transfers()  # of [[flow]] only: the summary has them
        try:
            return pq.read_table(path).replace_schema_metadata(None)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, error) from None


def load(path: str | os.PathLike[str], sets: Iterable[str] = ()) -> Any:
    """Read a scenario's file, checked, or the directory of a run as its `Result`.

    `sets` are overrides of a scenario (`link.link1.rate="1 Gbit/s"`). A directory is one that
    `run -o DIR` or `Result.write` wrote: the run is read, not repeated, and its tables when first
    asked for. Typed callers say which they expect: `found: waterfill.Result = waterfill.load(DIR)`.

    Raises InputError when the path is neither, when files of a run are missing, damaged or of
    different runs, and when an older version wrote them.

    >>> import waterfill
    >>> one = waterfill.Scenario("one", duration="2 s", protocol="maxnet")
    >>> result = one.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("f", "a", "b").run()
    >>> [path.name for path in result.write("out")]
    ['summary.json', 'scenario.toml', 'flows.parquet', 'links.parquet']
    >>> waterfill.load("out").summary["flows"] == result.summary["flows"]
    True
    >>> waterfill.load("out/scenario.toml").duration
    2.0
    """
    if not os.path.isdir(path):
        from waterfill.scenario.loading import load as load_scenario

        return load_scenario(path, sets)
    if list(sets):
        message = "expected a scenario file, whose keys --set overrides; got a run's directory"
        raise InputError(os.fspath(path), "", message)
    return load_run(path)


def load_run(directory: str | os.PathLike[str]) -> StoredResult:
    """Read the directory of one run; raise InputError as `load` does."""
    folder = Path(directory)
    if not folder.is_dir():
        raise InputError(str(folder), "", "expected the directory of a run, found none")
    if not (folder / SUMMARY).exists():
        runs = sorted(path.parent.name for path in folder.glob(f"*/{SUMMARY}"))
        message = f"expected the directory of a run, got one without {SUMMARY}"
        if runs:
            few = ", ".join(runs if len(runs) <= 8 else [*runs[:8], "…"])
            message = f"expected the directory of one run, got that of several: {few}"
        raise InputError(str(folder), "", message)
    try:
        found = StoredResult(folder)
    except OSError as error:
        file = error.filename or folder
        raise InputError(str(file), "", f"expected a readable file: {why(error)}") from None
    except ValueError as error:
        raise _damaged(folder / SUMMARY, error) from None
    _check(found, folder)
    return found


def _check(found: StoredResult, folder: Path) -> None:
    """Raise InputError unless the files are whole, of one run, and of this version."""
    path = folder / SUMMARY
    summary: Any = found.summary
    missing = [key for key in REQUIRED if not isinstance(summary, dict) or key not in summary]
    if missing:
        again = f"an older version wrote it: run {SCENARIO} again"
        raise InputError(str(path), missing[0], f"expected a value, got none; {again}")
    for which in NAME_COLUMN:
        if which != "traffic" or summary["traffic"]:
            _check_series(folder / f"{which}.parquet", summary)
    # Written only by runs that have such rows; that of another run must not be read as this one's.
    for optional in ("traffic.parquet", TRANSFERS):
        if (folder / optional).exists():
            _check_series(folder / optional, summary)


def _check_series(path: Path, summary: Summary) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
        theirs = json.loads(metadata[b"waterfill.summary"])
    except FileNotFoundError:
        raise InputError(str(path), "", "expected the run's series, found no file") from None
    except (OSError, pa.ArrowException, ValueError, KeyError) as error:
        raise _damaged(path, error) from None
    if _identity(theirs) != _identity(summary):
        raise InputError(str(path), "", f"expected the run of {SUMMARY}, got another run's series")


def _identity(summary: Any) -> Any:
    """Return what a summary and the metadata of its run's Parquet files have in common."""
    run = {k: v for k, v in summary.items() if not isinstance(v, list) or k == "measure_s"}
    engine = {k: v for k, v in summary["engine"].items() if k not in CLOCKED}
    return {**run, "engine": engine}


def _damaged(path: Path, error: Exception) -> InputError:
    reason = "a key is missing" if isinstance(error, KeyError) else str(error).partition("\n")[0]
    return InputError(str(path), "", f"expected a whole file as `run -o` writes it, got: {reason}")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
