"""Runs read back from the directories that `Result.write` wrote.

A run is what its files say: its summary, its series as Parquet, and its scenario. The network is
resolved from the scenario again when first asked for. Nothing is simulated.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from waterfill.contract import versions
from waterfill.contract.network import Network
from waterfill.contract.summary import CLOCKED, REQUIRED, Summary
from waterfill.errors import InputError, shown
from waterfill.runs.directory import recover
from waterfill.runs.files import open_regular, read_text, why
from waterfill.runs.result import NAME_COLUMN, Result, Which, to_table

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY = "summary.json"
SCENARIO = "scenario.toml"
TRANSFERS = "transfers.parquet"
MESSAGES = "messages.parquet"
NETWORK = "network.json"


class StoredResult(Result):
    """A run stored in a directory. Its tables are read on first use.

    `files` are the contents of the directory's files where they have been read already. Raises
    OSError or ValueError when the summary or the scenario cannot be read.
    """

    def __init__(self, folder: Path, files: Mapping[str, bytes] | None = None) -> None:
        self._folder = folder
        self._files = files
        summary = json.loads(self._text(SUMMARY))
        self.summary = Summary.read(summary if isinstance(summary, dict) else {})
        self.scenario_toml = self._text(SCENARIO)
        self._arrivals = self._written = None

    @cached_property
    def network(self) -> Network:
        """The network that the engine ran, read from network.json or resolved again."""
        if self.has(NETWORK):
            return Network.from_dict(json.loads(self._text(NETWORK)))
        from waterfill.network import protocols, resolve
        from waterfill.runs import laws
        from waterfill.scenario.loading import from_toml

        scenario = from_toml(self.scenario_toml, str(self._folder / SCENARIO))
        # Every backend runs a subset of the simulator's scenarios and resolves them alike.
        known = protocols.load()
        return resolve.to_core(scenario, known | laws.infos(self.summary.laws or {}))

    def check(self) -> None:
        """Raise InputError unless the files are complete, belong to one run and have this version's
        format.

        Also raises what `network` does if network.json is there.
        """
        _check(self, self._folder)
        if self.has(NETWORK) and self.network.name != self.summary.scenario:
            raise InputError(str(self._folder / NETWORK), "", "not the network of this run")

    @property
    def is_from_a_user(self) -> bool:
        """True if a user may have edited the files. Their hashes are then not checked."""
        return self._files is None

    def has(self, name: str) -> bool:
        """Return True if the run has a file of this name."""
        return (self._folder / name).exists() if self._files is None else name in self._files

    def source(self, name: str) -> IO[bytes]:
        """Open a file of the run for pyarrow; raise OSError if the file cannot be read."""
        if self._files is None:
            return open_regular(self._folder / name)
        if name not in self._files:
            raise FileNotFoundError(name)
        return io.BytesIO(self._files[name])

    def _text(self, name: str) -> str:
        if self._files is None:
            return read_text(self._folder / name)
        return self._files[name].decode()

    def _table(self, which: Which) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        name = f"{which}.parquet"
        if not self.has(name):
            # A run without traffic has no such file, but the table's columns.
            columns = ("time_s", NAME_COLUMN[which], "rate_bps", "flows")
            none = {c: ("u32" if c == NAME_COLUMN[which] else "f64", b"") for c in columns}
            return to_table(none, NAME_COLUMN[which], [])
        try:
            with self.source(name) as file:
                found = pq.read_table(file).replace_schema_metadata(None)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(self._folder / name, error) from None
        return found.rename_columns(versions.current(found.column_names))

    def _transfers(self) -> pa.Table:
        # Those of [[flow]] are also in the summary.
        found = self._rows(TRANSFERS, bool(self.network.arriving))
        return super()._transfers() if found is None else found

    def _messages(self) -> pa.Table:
        found = self._rows(MESSAGES, self.network.has_messages)
        return super()._messages() if found is None else found

    def _rows(self, name: str, needed: bool) -> pa.Table | None:
        """Read a table that not every run has; raise InputError if it is `needed` and missing."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._folder / name
        if not self.has(name):
            if needed:
                raise InputError(str(path), "", "no such file", f"run {SCENARIO} again")
            return None
        try:
            with self.source(name) as file:
                return pq.read_table(file).replace_schema_metadata(None)
        except (OSError, pa.ArrowException) as error:
            raise _damaged(path, error) from None


def load(path: str | os.PathLike[str], sets: Iterable[str] = ()) -> Any:
    """Read a scenario file as a checked scenario, or a run's directory as its `Result`.

    `sets` are overrides of a scenario (`link.link1.rate="1 Gbit/s"`). A directory is one that
    `run -o DIR` or `Result.write` wrote: the run is read, not repeated, and its tables when first
    asked for. Typed callers say which they expect: `found: waterfill.Result = waterfill.load(DIR)`.

    Raises InputError when the path is neither, when files of a run are missing, damaged or of
    different runs, and when a version wrote them whose format this one does not read.

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
    recover(Path(path))
    if not os.path.isdir(path):
        from waterfill.scenario.loading import load as load_scenario

        return load_scenario(path, sets)
    if list(sets):
        message = "the directory of a run; --set overrides keys of a scenario file only"
        raise InputError(os.fspath(path), "", message)
    return load_run(path)


def load_run(directory: str | os.PathLike[str]) -> StoredResult:
    """Read the directory of one run; raise InputError as `load` does."""
    folder = Path(directory)
    recover(folder)
    if not folder.is_dir():
        problem = "a file, not a directory" if folder.exists() else "no such directory"
        raise InputError(str(folder), "", problem)
    if not (folder / SUMMARY).exists():
        runs = sorted(path.parent.name for path in folder.glob(f"*/{SUMMARY}"))
        message = f"not the directory of a run: it has no {SUMMARY}"
        if runs:
            paths = [str(folder / run) for run in runs]
            few = ", ".join(paths if len(paths) <= 8 else [*paths[:8], "…"])
            message = f"holds several runs; type one of their directories: {few}"
        raise InputError(str(folder), "", message)
    try:
        found = StoredResult(folder)
    except OSError as error:
        file = error.filename or folder
        raise InputError(str(file), "", f"cannot be read: {why(error)}") from None
    except (ValueError, RecursionError) as error:
        raise _damaged(folder / SUMMARY, error) from None
    found.check()
    return found


def _check(found: StoredResult, folder: Path) -> None:
    """Raise InputError unless the files are complete, belong to one run and have this version's
    format.
    """
    path = folder / SUMMARY
    summary = found.summary
    versions.check(summary, str(path))
    missing = [key for key in REQUIRED if key not in summary]
    if missing:
        problem = "missing, because an older version wrote the file"
        raise InputError(str(path), missing[0], problem, f"run {SCENARIO} again")
    if found.is_from_a_user:
        from waterfill.contract import shapes

        wrong = shapes.wrong(summary, Summary)
        if wrong is not None:
            key, problem = wrong
            raise InputError(str(path), key, problem)
    for which in NAME_COLUMN:
        if which != "traffic" or summary.traffic:
            _check_series(found, f"{which}.parquet", folder)
    # Written only by runs that have such rows; that of another run must not be read as this one's.
    for optional in ("traffic.parquet", TRANSFERS, MESSAGES):
        if found.has(optional):
            _check_series(found, optional, folder)


def _check_series(found: StoredResult, name: str, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / name
    try:
        with found.source(name) as file:
            schema = pq.read_schema(file)
        versions.check_metadata(schema.metadata, str(path))
        theirs = json.loads((schema.metadata or {})[b"waterfill.summary"])
        _check_columns(path.stem, schema)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(str(path), "", "no such file") from None
    except (OSError, pa.ArrowException, ValueError, KeyError, RecursionError) as error:
        raise _damaged(path, error) from None
    if _identity(theirs) != _identity(found.summary):
        raise InputError(str(path), "", f"series of another run than {SUMMARY}")


# What figures, reports and comparisons read; laws add columns of numbers.
_NUMBERS = {
    "flows": ("time_s", "rate_bps"),
    "links": ("time_s", "utilization", "queue_bytes", "queue_max_bytes"),
    "traffic": ("time_s", "rate_bps"),
    "transfers": (
        *("index", "start_s", "size_bytes", "completed_s", "completion_s", "ideal_s", "slowdown"),
    ),
    "messages": ("index", "written_s", "size_bytes", "completed_s", "completion_s"),
}
_NAMES: dict[str, tuple[str, ...]] = {which: (name,) for which, name in NAME_COLUMN.items()}
_NAMES |= {"transfers": ("source", "protocol"), "messages": ("flow",)}
# Names that results of 0.2.0 lack.
_NEW_NAMES: dict[str, tuple[str, ...]] = {"transfers": ("from", "to")}


def _check_columns(which: str, schema: pa.Schema) -> None:
    """Raise ValueError unless a table has its columns, each of the right type."""
    import pyarrow as pa

    if len({name.replace(".", "_") for name in schema.names}) < len(schema.names):
        raise ValueError("two columns of one name")
    for name in (*_NAMES[which], *_NUMBERS[which]):
        if name not in schema.names:
            raise ValueError(f"no column {name}")
    for field in schema:
        kind = field.type
        if field.name in (*_NAMES[which], *_NEW_NAMES.get(which, ())):
            good = pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)
        else:
            good = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if not good:
            raise ValueError(f"a column {shown(field.name)} of type {kind}")


def _identity(summary: Any) -> Any:
    """Return the values that a run's summary shares with its Parquet metadata, or None without an
    engine's summary.
    """
    if not isinstance(summary, dict) or not isinstance(summary.get("engine"), dict):
        return None
    run = {k: v for k, v in summary.items() if not isinstance(v, list) or k == "measure_s"}
    engine = {k: v for k, v in summary["engine"].items() if k not in CLOCKED}
    return {**run, "engine": engine}


def _damaged(path: Path, error: Exception) -> InputError:
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    if isinstance(error, KeyError):
        reason = "a key is missing"
    return InputError(str(path), "", f"not a whole file as `run -o` writes it: {reason}")
