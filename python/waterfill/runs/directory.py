"""Atomic replacement of a result's directory, which is never seen half-written.

The new directory is written next to the old one and renamed. The old one must be missing, hold an
earlier result, or hold no files; what else is in it stays. A process that is killed leaves the old
result or the new one. If it is killed between the two renames, `recover`, which every reader
calls, gives the old result its name back.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from waterfill.runs import interrupt
from waterfill.runs.files import PREFIX, TEMPORARY, WriteError, cannot_write, make_directory, remove

if TYPE_CHECKING:
    from typing_extensions import Self

# Where a hidden directory has the new folder and the one that it replaces.
_NEW, _OLD = "new", "old"
# How long a writer waits for another that replaces the directory.
_WAIT_S, _LOOK_S = 2.0, 0.02

_DOCUMENTS = ("summary.json", "compare.json", "claims.json", "verdicts.json")
_TABLES = ("flows", "links", "traffic", "transfers", "messages", "steps")
_FIGURES = ("figure", "rates", "queues", "links", "compare", "seeds", "transfers")
# Files that go with an old result. Its scenario.toml may be the user's own, so it stays.
_FILES = {
    *_DOCUMENTS,
    *(f"{table}.parquet" for table in _TABLES),
    *(f"{stem}.{kind}" for stem in _FIGURES for kind in ("png", "svg", "pdf")),
    *("packets.pcapng", "report.html", "report.md"),
}

_LOGS = ".sqlog"


def holds_result(directory: Path) -> bool:
    """Return True if the directory holds a run, a comparison, a reproduction or an
    evaluation.
    """
    return any((directory / name).exists() for name in _DOCUMENTS)


@contextmanager
def hold(directory: Path, wait_s: float = 0.0) -> Iterator[bool]:
    """Lock a directory in this context; yield False if its file system has no locks.

    Raises OSError, and WriteError when it is locked already, for longer than `wait_s`.
    """
    until = time.monotonic() + wait_s
    while True:
        # The lock is on the directory itself: it leaves no file, and ends with the process.
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(BlockingIOError):
            locked = _flock(descriptor)
            # Another directory may have taken the name meanwhile.
            if not locked or os.path.samestat(os.fstat(descriptor), os.stat(directory)):
                break
        os.close(descriptor)
        if time.monotonic() >= until:
            message = "another command is writing here: wait, or choose another directory"
            raise WriteError(str(directory), "", message)
        time.sleep(_LOOK_S)
    try:
        yield locked
    finally:
        os.close(descriptor)


def _flock(descriptor: int) -> bool:
    """Lock an open file, or raise BlockingIOError; return False if its file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # as some network file systems
        return False
    return True


@contextmanager
def next_to(folder: Path) -> Iterator[Path]:
    """Yield an empty folder with the name of `folder`, in a hidden directory that is removed on
    exit.

    `swap` gives it its place. Raises OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    hidden = Path(tempfile.mkdtemp("", PREFIX, folder.parent))
    TEMPORARY.add(hidden)
    try:
        part = hidden / _NEW / folder.name
        part.mkdir(parents=True)
        yield part
    finally:
        remove(hidden)
        TEMPORARY.discard(hidden)


def swap(part: Path, folder: Path) -> None:
    """Move a folder that `next_to` yielded to its final path, and the previous folder into the
    hidden directory.
    """
    old = part.parents[1] / _OLD / folder.name
    old.parent.mkdir()
    with interrupt.undisturbed():
        if os.path.lexists(folder):
            os.rename(folder, old)
        try:
            os.rename(part, folder)
        except OSError:
            with suppress(OSError):
                os.rename(old, folder)
            raise


class Stage:
    """A hidden folder that replaces `directory` when it is published.

    A context manager: it locks the directory, and removes what was not published. The directory is
    created if missing, and removed again if nothing is published. Raises WriteError when it may not
    be replaced, cannot be written or another process writes it.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        recover(Path(directory))
        above = (Path(directory), *Path(directory).parents)
        self._made = [path for path in above if not os.path.lexists(path)]
        self.directory = make_directory(directory)
        linked = self.directory.is_symlink() or self.directory.name in ("", "..")
        self._target = self.directory.resolve() if linked else self.directory
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._check()
        try:
            if self._stack.enter_context(hold(self._target, _WAIT_S)):
                for killed in _hidden(self._target):
                    remove(killed)
            self.folder = self._stack.enter_context(next_to(self._target))
        except OSError as error:
            self.__exit__()
            raise cannot_write(self._target.parent, error) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        with suppress(OSError):  # a published one is not empty
            for path in self._made:
                path.rmdir()

    def _check(self) -> None:
        """Raise WriteError if the directory may not be replaced."""
        there = self._target
        if (there / "sweep.json").exists() and (there / "points").is_dir():
            why_not = "holds a sweep: choose another -o DIR, or delete it"
        elif os.path.ismount(there) or Path.cwd().is_relative_to(there.resolve()):
            why_not = "is a mount point or the current directory: name a directory in it"
        elif not holds_result(there) and not all(path.is_dir() for path in there.iterdir()):
            why_not = "holds other files than a result: choose another -o DIR"
        else:
            return
        raise WriteError(str(self.directory), "", why_not)

    def publish(self) -> None:
        """Replace the directory by the staged folder if that folder holds a result; raise
        WriteError on failure.
        """
        if holds_result(self.folder):
            try:
                _keep_others(self._target, self.folder)
                before = self._target.stat()
                with suppress(PermissionError):  # by sudo, the directory stays its owner's
                    os.chown(self.folder, before.st_uid, before.st_gid)
                swap(self.folder, self._target)
            except OSError as error:
                raise cannot_write(self.directory, error) from None


def _keep_others(old: Path, new: Path) -> None:
    """Hard-link files that only the old directory has into the new one; do not follow symlinks."""

    def replaced(folder: str, names: list[str]) -> set[str]:
        there = new / Path(folder).relative_to(old)
        if not there.is_dir():
            return set()
        files = {name for name in names if not os.path.isdir(os.path.join(folder, name))}
        old_result = {name for name in files if name in _FILES or name.endswith(_LOGS)}
        return old_result | {name for name in files if (there / name).is_file()}

    def link(path: str, there: str) -> None:
        try:
            os.link(path, there, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            shutil.copy2(path, there, follow_symlinks=False)

    try:
        shutil.copytree(
            old, new, symlinks=True, ignore=replaced, copy_function=link, dirs_exist_ok=True
        )
    except shutil.Error as error:
        raise WriteError(
            str(error.args[0][0][0]), "", "is in the way of the new result; remove it"
        ) from None


def _hidden(directory: Path) -> list[Path]:
    """Return the hidden directories in which commands, running or killed, replace `directory`."""
    found = directory.parent.glob(f"{PREFIX}*")
    names = (Path(_NEW, directory.name), Path(_OLD, directory.name))
    return [path for path in found if any(os.path.lexists(path / name) for name in names)]


def recover(directory: Path) -> None:
    """Restore a result that a killed writer had moved away."""
    if not os.path.lexists(directory):
        for hidden in _hidden(directory):
            old = hidden / _OLD / directory.name
            with suppress(OSError, WriteError), hold(old) as locked:  # held by a writer at work
                if locked:
                    os.rename(old, directory)
