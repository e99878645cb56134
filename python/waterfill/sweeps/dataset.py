"""The dataset of a sweep on disk: each point once, whatever ends the sweep.

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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from waterfill.errors import InputError
from waterfill.runs.files import (
    WriteError,
    holds_other_result,
    make_directory,
    open_regular,
    read_text,
    why,
    write_atomically,
    write_text,
)
from waterfill.runs.result import to_json
from waterfill.scenario.units import digits

if TYPE_CHECKING:
    from typing import TypeGuard

    import pyarrow as pa

Row = dict[str, Any]
Type: TypeAlias = Literal["string", "double", "int64", "bool"]

STATUSES = ("done", "failed", "timeout", "memory")

DOCUMENT = "sweep.json"
JOURNAL = "journal.jsonl"
# The journal is on the disk itself, for a power failure, after a second or 1 % of the sweep's time.
_SYNC_S = 1.0
_SYNC_SHARE = 0.01
_BATCH_ROWS = 10_000
_MAX_LINE_BYTES = 1 << 20


class Dataset:
    """The rows of a sweep in a directory; a context manager that holds its lock.

    `columns` are name and type of each column, in order; `identity` is what all points have in
    common, `about` further plain data to write beside. Raises InputError when the directory holds
    another sweep, when another process is writing it, or when it cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        columns: Sequence[tuple[str, Type]],
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
        self._unwritten: list[Row] = []
        self._rows: dict[str, Row] | None = None
        self._lock: int | None = None
        self._journal: int | None = None
        self._next_part = 1
        self._failed = False

    # --- life ------------------------------------------------------------------------------

    def __enter__(self) -> Dataset:
        parts = make_directory(self.folder) / "points"
        if parts.is_symlink():  # a stranger's may lead out of the directory
            raise WriteError(str(parts), "", "expected a directory, found a symbolic link")
        make_directory(parts)
        self._take_lock()
        try:
            self._check()
            for leftover in parts.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)
            for path in self.parts():
                self._next_part = max(self._next_part, (digits(path.stem[5:]) or 0) + 1)
                self._status.update(_statuses(path))
            self._replay()
        except BaseException:
            self._leave()
            raise
        self._opened = self._synced = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if not self._failed:
                self.flush()
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        import fcntl

        self._lock = _open_own(self.folder / ".lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise InputError(str(self.folder), "", "another sweep is writing here") from None

    def _check(self) -> None:
        """Compare with the sweep that the directory holds, or write what this one is."""
        path = self.folder / DOCUMENT
        now = {"identity": self._identity, "columns": [list(pair) for pair in self._columns]}
        if path.exists():
            try:
                before = json.loads(read_text(path))
            except (OSError, ValueError, RecursionError):
                before = None
            if not isinstance(before, dict):
                raise InputError(str(path), "", "expected a sweep's JSON document")
            for key, what in (
                ("identity", "another scenario or version of Waterfill"),
                ("columns", "other axes or columns"),
            ):
                if before.get(key) != now[key]:
                    message = f"holds a sweep of {what}: choose another -o DIR, or delete it"
                    raise InputError(str(self.folder), "", message)
        elif any(self.parts()):
            raise InputError(str(path), "", "expected the sweep's document, found none")
        elif holds_other_result(self.folder):
            message = "holds another result than a sweep: choose another -o DIR, or delete it"
            raise InputError(str(self.folder), "", message)
        write_text(path, to_json({**now, **self._about}) + "\n")
        write_text(self.folder / "scenario.toml", self._scenario_toml)

    def _replay(self) -> None:
        """Move the rows that a killed sweep left in the journal to a file."""
        path = self.folder / JOURNAL
        self._journal = _open_own(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)

        def fresh() -> Iterator[Row]:
            for row in self._lines():
                if row["key"] not in self._status:
                    self._status[row["key"]] = row["status"]
                    yield row

        self._store_all(fresh())

    def _lines(self) -> Iterator[Row]:
        """Yield the journal's rows; a torn last line is left out, and what is no row."""
        return _journal_rows(self.folder, self._columns)

    # --- rows ------------------------------------------------------------------------------

    def parts(self) -> list[Path]:
        """Return the files of rows, oldest first."""
        return sorted((self.folder / "points").glob("part-*.parquet"))

    def status(self, key: str) -> str | None:
        """Return the status of a recorded point, else None."""
        return self._status.get(key)

    def row(self, key: str) -> Row:
        """Return the row of a recorded point."""
        if self._rows is None:
            self._rows = {row["key"]: row for row in read(self.folder).to_pylist()}
        return self._rows[key]

    def record(self, row: Row) -> bool:
        """Record a point's row; return False, and do nothing, if the point is recorded already."""
        key = row["key"]
        if key in self._status:
            return False
        self._status[key] = row["status"]
        assert self._journal is not None
        try:
            self._append(self._journal, to_json(row, indent=None) + "\n")
        except WriteError:
            self._failed = True
            self._unwritten.append(row)
            raise
        return True

    def _append(self, journal: int, text: str) -> None:
        data = text.encode()
        try:
            while data:
                data = data[os.write(journal, data) :]
            now = time.monotonic()
            if now - self._synced >= max(_SYNC_S, _SYNC_SHARE * (now - self._opened)):
                os.fdatasync(journal)
                self._synced = time.monotonic()
        except OSError as error:
            path = str(self.folder / JOURNAL)
            raise WriteError(path, "", f"cannot be written: {why(error)}") from None

    def flush(self) -> None:
        """Move the journal's rows to a file of their own."""
        try:
            self._store_all(self._lines())
        except WriteError:
            self._failed = True
            raise

    def _store_all(self, rows: Iterable[Row]) -> None:
        """Write rows to the next file, if there are any, then empty the journal."""
        remaining = iter(rows)
        batches = iter(lambda: list(itertools.islice(remaining, _BATCH_ROWS)), [])
        first = next(batches, None)
        if first is not None:
            path = self.folder / "points" / f"part-{self._next_part:05d}.parquet"
            self._store(path, map(self._table, itertools.chain([first], batches)))
            self._next_part += 1
        assert self._journal is not None
        os.ftruncate(self._journal, 0)

    def _table(self, rows: Sequence[Row]) -> pa.Table:
        return _table(rows, self.schema())

    def _store(self, path: Path, tables: Iterable[pa.Table]) -> None:
        """Write a file of rows atomically, on the disk before it has its name."""
        import pyarrow.parquet as pq

        def write(part: Path) -> None:
            with part.open("wb") as file:
                with pq.ParquetWriter(file, self.schema(), compression="zstd") as writer:
                    for table in tables:
                        writer.write_table(table)
                file.flush()
                os.fsync(file.fileno())

        write_atomically(path, write)

    def forget(self, statuses: Iterable[str]) -> int:
        """Remove the points with these statuses, to run them again; return how many they were."""
        import pyarrow.parquet as pq

        wrong = set(statuses)
        keys = {key for key, status in self._status.items() if status in wrong}
        for path in self.parts():
            mine = _statuses(path)
            if not keys & mine.keys():
                continue
            kept = [key not in keys for key in mine]
            with open_regular(path) as file:
                table = pq.read_table(file).filter(kept)
            if table.num_rows:
                self._store(path, [table])
            else:
                path.unlink()
        for key in keys:
            del self._status[key]
        return len(keys)

    def schema(self) -> pa.Schema:
        """Return the columns' names and types, with the sweep as metadata."""
        metadata = {
            "waterfill.identity": self._identity,
            "waterfill.sweep": to_json(self._about, indent=None),
        }
        return _schema(self._columns).with_metadata(metadata)

    def table(self, keys: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of these points that are recorded, in this order; by default of all."""
        import pyarrow as pa

        if not self._failed:
            self.flush()
        found = read(self.folder, self.schema())
        if self._unwritten:
            found = pa.concat_tables([found, self._table(self._unwritten)])
        if keys is None:
            return found
        place = {key: i for i, key in enumerate(found["key"].to_pylist())}
        return found.take(pa.array([place[key] for key in keys if key in place], pa.int64()))


def _schema(columns: Iterable[tuple[str, Type]]) -> pa.Schema:
    import pyarrow as pa

    types = {
        "string": pa.string(), "double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(),
    }  # fmt: skip
    return pa.schema([pa.field(name, types[kind]) for name, kind in columns])


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.table(columns, schema=schema)


def read(folder: Path, schema: pa.Schema | None = None) -> pa.Table:
    """Return all rows of a sweep's directory, those in the journal of a killed sweep too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = sorted((folder / "points").glob("part-*.parquet"))
    with _whole(folder / "points"):
        tables = []
        for path in paths:
            with open_regular(path) as file:
                tables.append(pq.read_table(file))
        known = {key for table in tables for key in table["key"].to_pylist()}
        columns = _columns(folder)
        fresh = [row for row in _journal_rows(folder, columns) if row["key"] not in known]
        if fresh:
            tables.append(_table(fresh, tables[0].schema if tables else _schema(columns)))
        if not tables:
            return (schema or pa.schema([])).empty_table()
        return pa.concat_tables(tables).combine_chunks()


def _columns(folder: Path) -> list[tuple[str, Type]]:
    """Return the columns that a sweep's document states; none where it is no such document."""
    try:
        pairs = json.loads(read_text(folder / DOCUMENT))["columns"]
        return [(str(name), kind) for name, kind in pairs if kind in _PYTHON]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return []


def _statuses(path: Path) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _whole(path), open_regular(path) as file:
        table = pq.read_table(file, columns=["key", "status"])
        keys, statuses = (table[name].cast(pa.string()) for name in ("key", "status"))
        if keys.null_count or statuses.null_count:
            raise ValueError("a row has no key or no status")
        return dict(zip(keys.to_pylist(), statuses.to_pylist(), strict=True))


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Raise InputError for what reading damaged files of rows raises."""
    import pyarrow as pa

    try:
        yield
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException) as error:
        expected = (
            "expected rows as `sweep -o` writes them; delete the file to run its points again"
        )
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise InputError(str(path), "", f"{expected}, got: {reason}") from None


def _open_own(path: Path, flags: int) -> int:
    """Open a regular file to write, not through a link; raise WriteError for any other."""
    try:
        mode = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags | mode, 0o644)
    except OSError as error:
        if path.is_symlink():
            raise WriteError(str(path), "", "expected a file, found a symbolic link") from None
        raise WriteError(str(path), "", f"cannot be written: {why(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WriteError(str(path), "", "expected a file, found something else")
    return descriptor


_PYTHON: Mapping[str, type] = {"string": str, "double": float, "bool": bool, "int64": int}


def _is_of(value: object, kind: Type) -> bool:
    if kind == "int64" and isinstance(value, int):
        return not isinstance(value, bool) and -(2**63) <= value < 2**63
    if kind == "double" and isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**53
    return isinstance(value, _PYTHON[kind])


def _journal_rows(folder: Path, columns: Sequence[tuple[str, Type]]) -> Iterator[Row]:
    """Yield the rows of a journal that have these columns, each key once."""
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


def _fits(row: object, columns: Sequence[tuple[str, Type]]) -> TypeGuard[Row]:
    """Return whether a line of a journal is a row of these columns."""
    if not columns or not isinstance(row, dict):
        return False
    if not (isinstance(row.get("key"), str) and isinstance(row.get("status"), str)):
        return False
    values = ((row.get(name), kind) for name, kind in columns)
    return all(value is None or _is_of(value, kind) for value, kind in values)
