"""A text file to import, with errors that name its lines."""

from __future__ import annotations

from pathlib import Path

from waterfill.errors import InputError, shown
from waterfill.scenario.units import digits

# Larger than any file of these formats; a mistaken path must not fill the memory.
_MAX_BYTES = 1 << 28


class Source:
    """A text file to import. `wrong` builds the error for one of its lines."""

    def __init__(self, path: Path, text: str) -> None:
        """Store a text that has already been read."""
        self.path, self.text = path, text

    @classmethod
    def read(cls, path: Path) -> Source:
        """Read a file as UTF-8; raise InputError if that fails."""
        try:
            if path.exists() and not path.is_file():  # a device or a FIFO may have no end
                raise InputError(str(path), "", "not a regular file")
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            if len(data) > _MAX_BYTES:
                raise InputError(str(path), "", f"more than {_MAX_BYTES >> 20} MiB")
            text = data.decode("utf-8-sig")
            return cls(path, text.replace("\r\n", "\n").replace("\r", "\n"))
        except UnicodeDecodeError:
            raise InputError(str(path), "", "not UTF-8 text") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(str(path), "", f"cannot read the file: {reason}") from None

    def wrong(self, line: int | None, message: str) -> InputError:
        """Return the InputError for a line, numbered from 1, or for the whole file if `line` is
        None.
        """
        return InputError(str(self.path), "" if line is None else f"line {line}", message)

    def whole(self, line: int, what: str, text: str, minimum: int = 0) -> int:
        """Parse a whole number of at least `minimum`; raise InputError for any other text."""
        value = digits(text)
        if value is not None and value < minimum:
            limit = "above zero" if minimum == 1 else f"at least {minimum}"
            raise self.wrong(line, f"{what} must be {limit}, got {shown(text)}")
        if value is None:
            raise self.wrong(line, f"{what} must be a whole number, got {shown(text)}")
        return value

    def number(self, line: int | None, what: str, text: str, minimum: float = 0.0) -> float:
        """Parse a finite number of at least `minimum`; raise InputError for any other text."""
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if value < minimum == 0:
            raise self.wrong(line, f"{what} must not be negative, got {shown(text)}")
        if not minimum <= value < float("inf"):
            raise self.wrong(line, f"{what} must be a number, got {shown(text)}")
        return value
