"""The [switch] table: buffers that the output queues of switches share, and pauses of inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field

from waterfill.scenario.table import Table
from waterfill.scenario.units import VOLUME, number

_SIZE = replace(VOLUME, example="16 MB", zero=False, whole=True)


class Switch(Table):
    """The [switch] table: the buffer of each switch.

    A switch is a node with links to at least two other nodes. The links that leave it share its
    buffer instead of having the buffers of their own.
    """

    buffer: Annotated[float, _SIZE]
    """Size of each switch's buffer (bytes), excluding packets in transmission."""
    alpha: (
        Annotated[
            float,
            Field(gt=0, le=1e6),
            BeforeValidator(lambda v: number(v, above=0, maximum=1e6)),
        ]
        | None
    ) = None
    """Dynamic threshold: a packet joins a queue that is shorter than alpha × the free part of the
    buffer; default: 1. With pfc: bytes of an input at which it is paused; default: 0.125."""
    pfc: bool = False
    """True if switches pause the links at their inputs (PFC) instead of dropping packets."""
    xoff: Annotated[float, replace(_SIZE, example="100 kB")] | None = None
    """Bytes of an input at which it is paused, with pfc; default: alpha × the free part."""
    headroom: Annotated[float, replace(_SIZE, example="100 kB")] | None = None
    """Part of the buffer of each input for what arrives after the decision to pause, with pfc;
    default: what its link sends until the pause takes effect."""
