"""The [switch] table: buffers that the output queues of switches share."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import BeforeValidator, Field

from waterfill.scenario.table import Table
from waterfill.scenario.units import VOLUME, number


class Switch(Table):
    """The [switch] table: the buffer of each switch.

    A switch is a node with links to at least two other nodes. The links that leave it share its
    buffer instead of having the buffers of their own.
    """

    buffer: Annotated[float, replace(VOLUME, example="16 MB", zero=False, whole=True)]
    """Size of each switch's buffer (bytes), excluding packets in transmission."""
    alpha: Annotated[
        float,
        Field(gt=0, le=1e6),
        BeforeValidator(lambda v: number(v, above=0, maximum=1e6)),
    ] = 1.0
    """Dynamic threshold: a packet joins a queue that is shorter than alpha × the free part of the
    buffer."""
