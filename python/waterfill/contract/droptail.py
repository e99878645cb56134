"""The drop-tail queue, which most links have, and queue lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Bytes:
    """A queue length in bytes."""

    bytes: float


@dataclass(frozen=True, slots=True)
class Packets:
    """A queue length in packets."""

    packets: float


Level: TypeAlias = Bytes | Packets


@dataclass(frozen=True, slots=True)
class Ramp:
    """End of the queue lengths between which the probability of a mark grows, and the probability
    there.
    """

    to: Level
    max_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Droptail:
    """First-in, first-out queue, which marks packets above `mark_at`, all of them or with the
    probability of `ramp`.
    """

    kind: Literal["droptail"] = "droptail"
    mark_at: Level | None
    ramp: Ramp | None = None
