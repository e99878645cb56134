"""Decisions taken from an input's bytes, so that changing one byte changes one decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reader of decisions from the bytes of an input, which reads zeros after the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Number of unread bytes."""
        return len(self._data) - self._at

    def byte(self) -> int:
        """Return the next byte."""
        if not self.left:
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def below(self, count: int) -> int:
        """Return a number from 0 to count − 1, read from one byte, or from two if `count` is above
        256.
        """
        number = self.byte()
        if count > 256:
            number = number << 8 | self.byte()
        return number % max(1, count)

    def pick(self, values: Sequence[T]) -> T:
        """Return one of the given values."""
        return values[self.below(len(values))]

    def chance(self, one_in: int) -> bool:
        """Return True in one of `one_in` cases, and False after the end of the input."""
        return self.left > 0 and self.below(one_in) == 0

    def rest(self) -> bytes:
        """Return all unread bytes."""
        found = self._data[self._at :]
        self._at = len(self._data)
        return found
