"""Decisions taken from the bytes of an input, so that a changed byte changes one decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Takes bytes from the front; zero when there are none left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self._data) - self._at

    def byte(self) -> int:
        """Return the next byte."""
        if not self.left:
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def below(self, count: int) -> int:
        """Return a number from 0 to count − 1, of one byte, or of two for more than 256."""
        number = self.byte()
        if count > 256:
            number = number << 8 | self.byte()
        return number % max(1, count)

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def chance(self, one_in: int) -> bool:
        """Return whether a decision falls out as 1 in `one_in`; false without bytes."""
        return self.left > 0 and self.below(one_in) == 0

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        found = self._data[self._at :]
        self._at = len(self._data)
        return found
