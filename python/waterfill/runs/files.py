"""Atomic writing of files, and bounded reading of regular files.

A file is written under a hidden name next to its target and renamed; all writers use this module.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from waterfill.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = ".waterfill-"
# As large as any file of a run, a comparison or a sweep that a command reads.
MAX_BYTES = 2_000_000_000

TEMPORARY: set[Path] = set()
"""Temporary paths that this process is writing and has not yet renamed."""


class WriteError(InputError):
    """Error for a file that cannot be written, with its path and the system's reason."""


def why(error: Exception) -> str:
    """Return the operating system's reason for an error, without error number and path."""
    text = (getattr(error, "strerror", None) or str(error)).lower()
    _, errno_of_library, reason = text.partition("[errno ")
    return reason.partition("] ")[2] if errno_of_library else text


def cannot_write(path: Path, error: Exception) -> WriteError:
    """Return the WriteError for a file, with its final path instead of the temporary one."""
    parts = list(path.parts)
    for at, part in enumerate(parts):
        if part.startswith(PREFIX):
            del parts[at : at + 2]  # a hidden directory, and its `new` or `old`
            break
    return WriteError(str(Path(*parts)), "", f"cannot be written: {why(error)}")


def open_regular(path: Path, max_bytes: int = MAX_BYTES) -> BinaryIO:
    """Open a regular file for reading, without ever waiting for a pipe or a device.

    Raises OSError for a file of another kind, or a larger one.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_size <= max_bytes:
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISREG(status.st_mode):
        raise OSError(errno.EFBIG, f"more than {max_bytes} bytes", str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_text(path: Path, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a regular file (UTF-8); raise OSError or ValueError if the file cannot be
    read.
    """
    with open_regular(path, max_bytes) as file:
        return file.read().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def write_text(path: Path, text: str) -> Path:
    """Write a text file (UTF-8) atomically; raise WriteError if that fails."""
    return write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"))


def check_writable(path: Path) -> None:
    """Raise WriteError if a file of this name could not be written; leave no trace."""

    def place(_: Path, path: Path) -> None:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))

    write_atomically(path, Path.touch, place)


def write_parquet(path: Path, table: pa.Table) -> Path:
    """Write a table as Parquet atomically; raise WriteError if that fails."""
    import pyarrow.parquet as pq

    def write(part: Path) -> None:
        with part.open("wb") as file:  # pyarrow takes no path that is not UTF-8
            pq.write_table(table, file, compression="zstd")

    return write_atomically(path, write)


def write_new(path: Path, text: str) -> Path:
    """Write a new text file atomically; raise WriteError if the file exists or cannot be
    written.
    """

    def place(part: Path, path: Path) -> None:
        if os.path.lexists(path):
            raise FileExistsError
        try:
            os.link(part, path)  # fails if another process was first
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.replace(part, path)

    return write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"), place)


def write_atomically(
    path: Path,
    write: Callable[[Path], object],
    place: Callable[[Path, Path], object] = os.replace,
) -> Path:
    """Call `write` with a temporary path in the same directory, then rename it to `path`.

    Raises WriteError when that fails (a directory of that name, a full disk).
    """
    part = path.with_name(f"{PREFIX}{os.getpid()}-{threading.get_ident()}.tmp")
    TEMPORARY.add(part)
    try:
        write(part)
        place(part, path)
    except FileExistsError:
        raise WriteError(str(path), "", "exists already") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        if isinstance(error, InputError):
            raise
        raise cannot_write(path, error) from None
    finally:
        with suppress(OSError, ValueError):
            part.unlink()
        TEMPORARY.discard(part)
    return path


def make_directory(directory: str | os.PathLike[str]) -> Path:
    """Create the directory if missing; raise InputError if the directory is not writable."""
    import tempfile  # not at start: it imports `random`

    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.rmdir(tempfile.mkdtemp("", PREFIX, folder))
    except (FileExistsError, NotADirectoryError):
        raise WriteError(str(folder), "", "a file, not a directory") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise WriteError(
            str(folder), "", f"cannot write into the directory: {why(error)}"
        ) from None
    return folder


def remove(path: Path) -> None:
    """Remove a file, or a directory with its contents, and ignore errors."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def abandon() -> None:
    """Remove the unpublished files of this process before the process ends."""
    for path in list(TEMPORARY):
        remove(path)
