"""The dataset of a sweep on disk, which holds each point once even if a sweep is killed.

    DIR/journal.jsonl             while the sweep runs: a line for each point that has ended
    DIR/points/part-*.parquet     when it has ended: the rows of each session in one file
    DIR/sweep.json                what the points are of: scenario, axes, columns, version
    DIR/scenario.toml             the scenario as given

The end of a sweep, or the next sweep in the directory after a kill, moves the journal's rows to a
Parquet file and empties the journal after the file is in place. A sweep that was killed between the
two finds rows in both, and leaves those of the journal out.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from waterfill.contract import versions
from waterfill.contract.summary import SCHEMA_VERSION, SCHEMA_VERSION_KEY
from waterfill.errors import InputError
from waterfill.runs.directory import hold, holds_result
from waterfill.runs.files import (
    WriteError,
    make_directory,
    open_regular,
    read_text,
    why,
    write_parquet,
    write_text,
)
from waterfill.runs.result import to_json
from waterfill.scenario.units import digits

if TYPE_CHECKING:
    from typing import TypeGuard

    import pyarrow as pa

Row = dict[str, Any]
Type: TypeAlias = Literal["string", "double", "int64", "bool"]
Columns: TypeAlias = Sequence[tuple[str, Type]]

STATUSES = ("done", "failed", "timeout", "memory")

DOCUMENT = "sweep.json"
JOURNAL = "journal.jsonl"
# A power failure takes the rows of this time.
_SYNC_S = 1.0
_BATCH_ROWS = 10_000
_MAX_LINE_BYTES = 1 << 20


class Dataset:
    """The rows of a sweep in a directory. A context manager that locks the directory.

    `columns` are name and type of each column, in order; `identity` is what all points have in
    common, `about` further plain data to write with it. Raises InputError when the directory holds
    another sweep, when another process is writing it, or when it cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        columns: Columns,
        identity: str,
        about: Mapping[str, Any],
        scenario_toml: str = "",
    ) -> None:
        self.folder = folder
        self._columns = list(columns)
        self._identity = identity
        self._about = dict(about)
        self._scenario_toml = scenario_toml
        self._status: dict[str, str] = {}
        self._stored: set[str] = set()
        self._rows: dict[str, Row] = {}
        self._stack = ExitStack()

    # --- life ------------------------------------------------------------------------------

    def __enter__(self) -> Dataset:
        parts = make_directory(self.folder) / "points"
        if parts.is_symlink():  # a stranger's may lead out of the directory
            raise WriteError(str(parts), "", "a symbolic link, not a directory")
        make_directory(parts)
        with ExitStack() as stack:
            stack.enter_context(hold(self.folder))
            self._check()
            for leftover in parts.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)
            for path in self.parts():
                self._status.update(_statuses(path))
            self._stored.update(self._status)
            self._journal = _open_own(self.folder / JOURNAL)
            stack.callback(os.close, self._journal)
            self.flush()
            self._stack = stack.pop_all()
        self._synced = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _check(self) -> None:
        """Check that the directory holds this sweep, or describe the sweep in a new directory."""
        path = self.folder / DOCUMENT
        now = {"identity": self._identity, "columns": [list(pair) for pair in self._columns]}
        if path.exists():
            try:
                before = json.loads(read_text(path))
            except (OSError, ValueError, RecursionError):
                before = None
            if not isinstance(before, dict):
                raise InputError(str(path), "", "not the JSON document of a sweep")
            versions.check(before, str(path))
            axes = before.get("axes")
            over = ", ".join(map(str, axes)) if isinstance(axes, dict) and axes else "seeds only"
            for key, what in (
                ("identity", "another scenario or version of Waterfill"),
                ("columns", f"other axes or columns ({over})"),
            ):
                if before.get(key) != now[key]:
                    advice = "type -o DIR to keep both, or delete it"
                    raise InputError(str(self.folder), "", f"holds a sweep of {what}", advice)
        elif any(self.parts()):
            raise InputError(str(path), "", "missing, although points of a sweep are here")
        elif holds_result(self.folder):
            message = "holds another result than a sweep: choose another -o DIR, or delete it"
            raise InputError(str(self.folder), "", message)
        write_text(path, to_json(versions.versioned({**now, **self._about})) + "\n")
        write_text(self.folder / "scenario.toml", self._scenario_toml)

    # --- rows ------------------------------------------------------------------------------

    def parts(self) -> list[Path]:
        """Return the Parquet files with rows, oldest first."""
        return _parts(self.folder)

    def status(self, key: str) -> str | None:
        """Return the status of a recorded point, or None for any other point."""
        return self._status.get(key)

    def row(self, key: str) -> Row:
        """Return the row of a recorded point."""
        if key not in self._rows:
            self._rows = {row["key"]: row for row in read(self.folder).to_pylist()}
        return self._rows[key]

    def record(self, row: Row) -> bool:
        """Record a point's row. Return False, and do nothing, if the point is already recorded.

        Raises WriteError.
        """
        key = row["key"]
        if key in self._status:
            return False
        self._append(to_json(row, indent=None) + "\n")
        self._status[key] = row["status"]
        return True

    def _append(self, text: str) -> None:
        data = text.encode()
        try:
            while data:
                data = data[os.write(self._journal, data) :]
            if time.monotonic() - self._synced >= _SYNC_S:
                os.fdatasync(self._journal)
                self._synced = time.monotonic()
        except OSError as error:
            path = str(self.folder / JOURNAL)
            raise WriteError(path, "", f"cannot be written: {why(error)}") from None

    def flush(self) -> None:
        """Move the journal's rows to a new Parquet file. If this raises WriteError, the rows stay
        in the journal.
        """
        rows = _journal(self.folder, self._columns, self.schema(), self._stored)
        if rows.num_rows:
            last = max((digits(path.stem[5:]) or 0 for path in self.parts()), default=0)
            path = self.folder / "points" / f"part-{last + 1:05d}.parquet"
            _synced(write_parquet(path, rows))
            statuses = _pairs(rows)
            self._status.update(statuses)
            self._stored.update(statuses)
        os.ftruncate(self._journal, 0)

    def forget(self, statuses: Iterable[str]) -> int:
        """Remove the points with these statuses, to run them again; return their number."""
        import pyarrow as pa

        wrong = set(statuses)
        keys = {key for key, status in self._status.items() if status in wrong}
        for path in self.parts():
            table = _read(path)
            right = [status not in wrong for status in table["status"].to_pylist()]
            kept = table.filter(pa.array(right, pa.bool_()))
            if not kept.num_rows:
                path.unlink()
            elif kept.num_rows < table.num_rows:
                _synced(write_parquet(path, kept))
        for key in keys:
            del self._status[key]
        self._stored -= keys
        return len(keys)

    def schema(self) -> pa.Schema:
        """Return the Arrow schema of the columns, with the sweep's description as metadata."""
        metadata = {
            SCHEMA_VERSION_KEY: str(SCHEMA_VERSION),
            "waterfill.identity": self._identity,
            "waterfill.sweep": to_json(self._about, indent=None),
        }
        return _schema(self._columns).with_metadata(metadata)

    def table(self, keys: Sequence[str] | None = None) -> pa.Table:
        """Return the recorded rows of these points in this order, or by default all rows."""
        import pyarrow as pa

        found = read(self.folder, self.schema())
        if keys is None:
            return found
        place = {key: i for i, key in enumerate(found["key"].to_pylist())}
        return found.take(pa.array([place[key] for key in keys if key in place], pa.int64()))


# --- files -------------------------------------------------------------------------------------


def read(folder: Path, schema: pa.Schema | None = None) -> pa.Table:
    """Return all rows of a sweep's directory, including those in a killed sweep's journal."""
    import pyarrow as pa

    with _whole(folder / "points"):
        tables = [_read(path) for path in _parts(folder)]
        known = {key for table in tables for key in table["key"].to_pylist()}
        columns = _columns(folder)
        mine = tables[0].schema if tables else schema or _schema(columns)
        fresh = _journal(folder, columns, mine, known)
        return pa.concat_tables([*tables, fresh]).combine_chunks()


def _parts(folder: Path) -> list[Path]:
    return sorted((folder / "points").glob("part-*.parquet"))


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    import pyarrow.parquet as pq

    with open_regular(path) as file:
        found = pq.read_table(file, columns=columns)
    versions.check_metadata(found.schema.metadata, str(path))
    return found


def _synced(path: Path) -> None:
    """Flush a file to the disk before its rows are deleted elsewhere."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _statuses(path: Path) -> dict[str, str]:
    """Return the status of each point in a Parquet file; raise InputError for a damaged file."""
    with _whole(path):
        return _pairs(_read(path, ["key", "status"]))


def _pairs(table: pa.Table) -> dict[str, str]:
    keys, statuses = (table[name].cast("string") for name in ("key", "status"))
    if keys.null_count or statuses.null_count:
        raise ValueError("a row has no key or no status")
    return dict(zip(keys.to_pylist(), statuses.to_pylist(), strict=True))


def _schema(columns: Columns) -> pa.Schema:
    import pyarrow as pa

    types = {
        "string": pa.string(), "double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(),
    }  # fmt: skip
    return pa.schema([pa.field(name, types[kind]) for name, kind in columns])


def _columns(folder: Path) -> list[tuple[str, Type]]:
    """Return the columns stated in a sweep's document, or an empty list if the document is
    invalid.
    """
    try:
        pairs = json.loads(read_text(folder / DOCUMENT))["columns"]
        return [(str(name), kind) for name, kind in pairs if kind in _PYTHON]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Convert exceptions from reading damaged files of rows to InputError."""
    import pyarrow as pa

    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        advice = "delete the file to run its points again"
        raise InputError(str(path), "", f"not rows of a sweep: {reason}", advice) from None


def _open_own(path: Path) -> int:
    """Open the journal for writing; raise WriteError for a symbolic link or a special file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        if path.is_symlink():
            raise WriteError(str(path), "", "a symbolic link, not a file") from None
        raise WriteError(str(path), "", f"cannot be written: {why(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WriteError(str(path), "", "not a regular file")
    return descriptor


def _journal(folder: Path, columns: Columns, schema: pa.Schema, known: set[str]) -> pa.Table:
    """Return the journal's rows with keys that are not yet known, without a torn last line."""
    import pyarrow as pa

    rows = (row for row in _journal_rows(folder, columns) if row["key"] not in known)
    tables = []
    for batch in iter(lambda: list(itertools.islice(rows, _BATCH_ROWS)), []):
        arrays = [pa.array([row.get(field.name) for row in batch], field.type) for field in schema]
        tables.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


_PYTHON: Mapping[str, type] = {"string": str, "double": float, "bool": bool, "int64": int}


def _is_of(value: object, kind: Type) -> bool:
    if kind in ("int64", "double") and isinstance(value, int):
        most = 2**63 if kind == "int64" else 2**53
        return not isinstance(value, bool) and -most < value < most
    return value is None or isinstance(value, _PYTHON[kind])


def _journal_rows(folder: Path, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a journal that have these columns, one row per key."""
    path, seen = folder / JOURNAL, set()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        for line in iter(lambda: file.readline(_MAX_LINE_BYTES), b""):
            row = None
            if line.endswith(b"\n"):
                with suppress(ValueError, RecursionError):
                    row = json.loads(line)
            if _fits(row, columns) and row["key"] not in seen:
                seen.add(row["key"])
                yield row


def _fits(row: object, columns: Columns) -> TypeGuard[Row]:
    """Return True if a line of a journal is a row with these columns."""
    if not columns or not isinstance(row, dict):
        return False
    if not (isinstance(row.get("key"), str) and isinstance(row.get("status"), str)):
        return False
    return all(_is_of(row.get(name), kind) for name, kind in columns)
