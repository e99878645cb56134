"""Writes files so that none is ever seen half-written; all of Waterfill's writers use it.

One file is written beside its place and renamed (`write_atomically`, `write_text`, `write_new`).
Files that belong together, as those of a run, are written into a `Stage`: a hidden directory in the
one that they are for. `Stage.publish` renames it, from when on they count, then moves them into
place, the document that names the others last. Who is killed in between has not lost them:
`recover`, which every reader and the next writer call, moves the rest. So a directory holds the
old files or the new ones, never some of each.

`hold` locks a directory, so that two commands do not write it at the same time.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from waterfill.errors import InputError
from waterfill.runs import interrupt

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

_PREFIX = ".waterfill-"
_WRITING, _WHOLE, _OLD, _STALE = ".part", ".whole", ".old", ".stale"
# How long a writer waits for another that publishes its files.
_WAIT_S = 2.0
_LOOK_S = 0.02

_PLOTS = tuple(
    f"{stem}.{kind}" for stem in ("figure", "rates", "queues") for kind in ("png", "svg", "pdf")
)
_TRANSFERS = ("transfers.png", "transfers.svg")
# The document that names the others, written last and removed first, and what was made from an
# older one: it is removed where the new files lack it.
_MADE_FROM: dict[str, tuple[str, ...]] = {
    "summary.json": (
        "traffic.parquet", "transfers.parquet", "steps.parquet", "packets.pcapng", "report.html",
        *_TRANSFERS, *_PLOTS,
    ),
    "compare.json": (
        "compare.png", "compare.svg", "compare.pdf", "seeds.png", "seeds.svg", "report.html",
        *_TRANSFERS,
    ),
    "claims.json": ("report.html", "report.md"),
}  # fmt: skip


# Of every run. Its scenario.toml is left: with `-o .` it may be the user's own.
_SERIES = ("flows.parquet", "links.parquet")
_SWEEP = "sweep.json"


def holds_other_result(directory: Path) -> bool:
    """Return whether a run, a comparison or a reproduction was written here."""
    return any((directory / marker).exists() for marker in _MADE_FROM)


class WriteError(InputError):
    """A file that cannot be written: its path and the system's reason."""


def why(error: Exception) -> str:
    """Return the operating system's reason without error number and path."""
    text = (getattr(error, "strerror", None) or str(error)).lower()
    _, errno_of_library, reason = text.partition("[errno ")
    return reason.partition("] ")[2] if errno_of_library else text


def _cannot(path: Path, error: Exception) -> WriteError:
    """Return the error of a file, under the name that it was to have."""
    parts = [part for part in path.parts if not part.startswith(_PREFIX)]
    return WriteError(str(Path(*parts)), "", f"cannot be written: {why(error)}")


def readable(name: str) -> str:
    """Return a file's name as text that can be written; bytes that are not UTF-8 become �."""
    return os.fsencode(name).decode("utf-8", "replace")


# --- reading -----------------------------------------------------------------------------------

# As large as any file of a run, a comparison or a sweep that a command reads.
MAX_BYTES = 2_000_000_000


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; never wait for a file of another kind.

    Raises OSError when it is none, or has more than `MAX_BYTES`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES:
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISREG(status.st_mode):
        raise OSError(errno.EFBIG, f"more than {MAX_BYTES / 1e9:g} GB", str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_bytes(path: Path) -> bytes:
    """Return the content of a regular file; raise OSError as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


def read_text(path: Path) -> str:
    """Return the text of a regular file (UTF-8); raise OSError or ValueError."""
    return read_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


# --- one file ----------------------------------------------------------------------------------


def write_text(path: Path, text: str) -> Path:
    """Write a text file (UTF-8) atomically; raise WriteError if that fails."""
    return write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"))


def write_parquet(path: Path, table: pa.Table) -> Path:
    """Write a table atomically; raise WriteError if that fails."""
    import pyarrow.parquet as pq

    def write(part: Path) -> None:
        with part.open("wb") as file:  # pyarrow takes no path that is not UTF-8
            pq.write_table(table, file, compression="zstd")

    return write_atomically(path, write)


def write_atomically(path: Path, write: Callable[[Path], object]) -> Path:
    """Call `write` with a temporary path in the same directory, then rename it to `path`.

    Raises WriteError when that fails (a directory of that name, a full disk).
    """
    with _beside(path) as part:
        write(part)
        os.replace(part, path)
    return path


def write_new(path: Path, text: str) -> Path:
    """Write a text file that must not exist yet, atomically. Raises WriteError."""
    with _beside(path) as part:
        if os.path.lexists(path):
            raise FileExistsError
        part.write_text(text, encoding="utf-8")
        try:
            os.link(part, path)  # fails if another process was first
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.replace(part, path)
    return path


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; an error becomes a WriteError."""
    part = path.with_name(f"{_PREFIX}{os.getpid()}-{threading.get_ident()}.tmp")
    _temporary.add(part)
    try:
        yield part
    except FileExistsError:
        raise WriteError(str(path), "", "expected a new file, got one that exists") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        if isinstance(error, InputError):
            raise
        raise _cannot(path, error) from None
    finally:
        with suppress(OSError, ValueError):
            part.unlink()
        _temporary.discard(part)


# --- directories -------------------------------------------------------------------------------


def make_directory(directory: str | os.PathLike[str]) -> Path:
    """Create the directory if missing; raise InputError if it is not writable."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = _hidden(folder)
        with suppress(FileNotFoundError):  # another process took it for a leftover
            os.rmdir(probe)
    except (FileExistsError, NotADirectoryError):
        raise WriteError(str(folder), "", "expected a directory, found a file") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise WriteError(str(folder), "", f"expected a writable directory: {why(error)}") from None
    return folder


@dataclass
class _Lock:
    descriptor: int
    count: int = 1


_held: dict[tuple[int, int], _Lock] = {}
_held_lock = threading.RLock()


@contextmanager
def hold(directory: Path, wait_s: float = 0.0) -> Iterator[bool]:
    """Lock a directory against other processes; yield whether this file system has such locks.

    This process may hold it several times. Raises WriteError when another process holds it for
    longer than `wait_s`.
    """
    until = time.monotonic() + wait_s
    try:
        place = _lock(directory)
        while place is False:
            if time.monotonic() >= until:
                message = "another run is writing here: wait for it, or choose another directory"
                raise WriteError(str(directory), "", message)
            time.sleep(_LOOK_S)
            place = _lock(directory)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _cannot(directory, error) from None
    try:
        yield place is not None
    finally:
        if isinstance(place, tuple):
            _release(place)


def _lock(directory: Path) -> tuple[int, int] | Literal[False] | None:
    """Try to lock; return the lock's key, False if another process has it, None without locks."""
    import fcntl

    # The lock is on the directory itself: it leaves no file, and ends with the process.
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    status = os.fstat(descriptor)
    place = (status.st_dev, status.st_ino)
    with _held_lock:
        if place in _held:
            os.close(descriptor)
            _held[place].count += 1
            return place
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            busy = error.errno in (errno.EWOULDBLOCK, errno.EACCES)
            return False if busy else None  # some network file systems lock no directories
        _held[place] = _Lock(descriptor)
        return place


def _release(place: tuple[int, int]) -> None:
    with _held_lock:
        lock = _held[place]
        lock.count -= 1
        if not lock.count:
            del _held[place]
            os.close(lock.descriptor)


# --- files that belong together ----------------------------------------------------------------


class Stage:
    """A hidden directory whose files replace those of `directory` all at once.

    A context manager: it holds the directory, and removes what was not published. The directory is
    created if missing. Raises WriteError when it cannot be written or another process writes it.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = make_directory(directory)
        self._folder: Path | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if (self.directory / _SWEEP).exists() and (self.directory / "points").is_dir():
            message = "holds a sweep: choose another -o DIR, or delete it"
            raise WriteError(str(self.directory), "", message)
        if self._stack.enter_context(hold(self.directory, _WAIT_S)):
            _restore(self.directory)
            for leftover in self.directory.glob(f"{_PREFIX}*{_WRITING}"):
                _remove_tree(leftover)
        return self

    @property
    def folder(self) -> Path:
        """The hidden directory, made when first asked for."""
        if self._folder is None:
            try:
                self._folder = _hidden(self.directory)
            except OSError as error:
                raise _cannot(self.directory, error) from None
            _temporary.add(self._folder)
        return self._folder

    def publish(self) -> list[WriteError]:
        """Move the files into place; return why some sets cannot be.

        The files of one directory are a set: none of it is moved if one has a directory in its way.
        """
        folder = self.folder
        refused = [found for each in _folders(folder) for found in self._check(each)]
        for each in reversed(_folders(folder)):
            with suppress(OSError):
                each.rmdir()  # of a set that was dropped, or could not be written
        if not folder.exists():
            return refused
        whole = folder.with_suffix(_WHOLE)
        try:
            with interrupt.undisturbed():
                os.rename(folder, whole)
                _temporary.discard(folder)
                self._folder = None
                _finish(whole, self.directory)
        except OSError as error:
            raise _cannot(Path(error.filename or self.directory), error) from None
        return refused

    def _check(self, folder: Path) -> list[WriteError]:
        """Note what the set makes stale; drop the set, and say why, if it cannot be moved."""
        there = self.directory / folder.relative_to(self.folder)
        if not folder.exists():  # dropped with the one that it was in
            return []
        linked = folder != self.folder and there.is_symlink()  # it may lead out of the directory
        if linked or (there.exists() and not there.is_dir()):
            _remove_tree(folder)
            found = "a symbolic link" if linked else "a file"
            return [WriteError(str(there), "", f"expected a directory, found {found}")]
        names = _files(folder)
        blocked = next((name for name in names if _is_directory(there / name)), None)
        if blocked is None:
            made = {name for key in names for name in _MADE_FROM.get(key, ())}
            if _MADE_FROM.keys() & set(names):
                made |= _results()  # a directory holds one kind of result, the newest
            stale = sorted(name for name in made - set(names) if (there / name).exists())
            if stale:
                write_text(folder / _STALE, "\n".join(stale))
            return []
        for name in names:
            (folder / name).unlink()
        return [_cannot(there / blocked, IsADirectoryError(errno.EISDIR, "is a directory"))]

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            _remove_tree(self._folder)
            _temporary.discard(self._folder)
            self._folder = None
        self._stack.close()


def recover(directory: Path) -> None:
    """Move the rest of the files that a killed writer had published; readers call it first."""
    if any(directory.glob(f"{_PREFIX}*{_WHOLE}")):
        with suppress(WriteError), hold(directory, _WAIT_S) as locked:
            if locked:
                _restore(directory)


def _restore(directory: Path) -> None:
    for whole in directory.glob(f"{_PREFIX}*{_WHOLE}"):
        with suppress(OSError), interrupt.undisturbed():
            if _is_ours(whole):
                _finish(whole, directory)


def _is_ours(whole: Path) -> bool:
    """Return whether this user's process can have written it: plain files and directories."""
    status = whole.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return False
    found = (Path(root) / name for root, subs, names in os.walk(whole) for name in subs + names)
    kinds = {stat.S_IFMT(path.lstat().st_mode) for path in found}
    return kinds <= {stat.S_IFREG, stat.S_IFDIR}


def _finish(whole: Path, directory: Path) -> None:
    """Move published files into place. Called again after any end, it goes on where it was."""
    folders = [(folder, directory / folder.relative_to(whole)) for folder in _folders(whole)]
    for folder, there in folders:
        if folder != whole and there.is_symlink():  # a stranger's may lead out of the directory
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    for folder, there in folders:
        there.mkdir(exist_ok=True)
        for marker in _MADE_FROM:
            if (folder / marker).exists():  # so the one in its place is an older one
                (there / marker).unlink(missing_ok=True)
    for folder, there in folders:
        for name in _stale(folder):
            (there / name).unlink(missing_ok=True)
        for name in _files(folder):
            if name not in _MADE_FROM:
                os.replace(folder / name, there / name)
    for folder, there in reversed(folders):
        for marker in _MADE_FROM:
            if (folder / marker).exists():
                os.replace(folder / marker, there / marker)
    _remove_tree(whole)


def _folders(root: Path) -> list[Path]:
    """Return a directory and those below it, each before those in it."""
    return [Path(name) for name, _, _ in sorted(os.walk(root))]


def _files(folder: Path) -> list[str]:
    return sorted(
        entry.name
        for entry in os.scandir(folder)
        if entry.name != _STALE and not entry.is_dir(follow_symlinks=False)
    )


def _stale(folder: Path) -> list[str]:
    known = _results()
    with suppress(FileNotFoundError):
        listed = read_text(folder / _STALE).splitlines()
        return [name for name in listed if name in known]
    return []


def _results() -> set[str]:
    """Return the names that any kind of result has in its own directory, and no input has."""
    return {*_MADE_FROM, *_SERIES, *(name for names in _MADE_FROM.values() for name in names)}


def _hidden(directory: Path) -> Path:
    """Make a directory of a name that no other process uses."""
    import tempfile  # not at start: it imports `random`

    return Path(tempfile.mkdtemp(_WRITING, _PREFIX, directory))


def _remove_tree(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


@contextmanager
def new_folder(folder: Path, replace: bool = False) -> Iterator[Path]:
    """Yield a hidden directory in the same folder, which becomes `folder` when it is complete.

    What is there already stays, or with `replace` is removed. Raises OSError and WriteError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = _hidden(folder.parent)
    _temporary.add(part)
    try:
        with hold(part):
            yield part
            if replace and os.path.lexists(folder):
                old = part.with_suffix(_OLD)
                os.rename(folder, old)
                remove(old)
            with suppress(FileExistsError):
                _rename(part, folder)
    finally:
        _remove_tree(part)
        _temporary.discard(part)


def _rename(part: Path, folder: Path) -> None:
    try:
        os.rename(part, folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError from None
        raise


def remove(path: Path) -> None:
    """Remove a file or a directory with all that is in it, as far as that is possible."""
    if _is_directory(path):
        _remove_tree(path)
    else:
        with suppress(OSError):
            path.unlink()


def remove_leftovers(directory: Path) -> None:
    """Remove what killed processes left of `new_folder` in a directory."""
    for part in directory.glob(f"{_PREFIX}*"):
        if part.suffix == _OLD:
            remove(part)
        elif part.suffix == _WRITING:
            with suppress(WriteError), hold(part):  # held by a process that is writing it
                _remove_tree(part)


# --- the end of the process --------------------------------------------------------------------

_temporary: set[Path] = set()


def abandon() -> None:
    """Remove what this process is writing and has not published; for a process that ends now."""
    for path in list(_temporary):
        remove(path)
