"""Certificates: an independent checker of logs of the steps of laws.

Reading order: `log` (the format), `rounding` (exact numbers with a bound of rounding), `replay`
(each step again, state by state), then a law's equations, such as `maxnet`, beside its paper.
Nothing here calls a law: the equations are written a second time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterfill.errors import InputError
from waterfill.runs.steps import FILE_NAME
from waterfill.verify.replay import Law, Verdict

if TYPE_CHECKING:
    from waterfill.verify.kernel import Layout


def laws() -> dict[str, Law]:
    """Return the laws that have equations here, by name."""
    from waterfill.verify import aecp, jetmax, maxnet, maxnet2006, rcp, vcp, xcp

    return {
        "maxnet": maxnet.LAW,
        "maxnet2006": maxnet2006.LAW,
        "rcp": rcp.LAW,
        "aecp": aecp.LAW,
        "jetmax": jetmax.LAW,
        "vcp": vcp.LAW,
        "xcp": xcp.XCP,
        "ixcp": xcp.IXCP,
        "pxcp": xcp.PXCP,
    }


def kernel_laws() -> dict[str, Law]:
    """Return the laws whose fixed-point version has equations here, by name."""
    return {name: module.LAW for name, module in _fixed().items()}


def kernel_layouts() -> Mapping[str, Mapping[str, Layout]]:
    """Return the structures of these laws' fixed-point versions, by name."""
    return {name: module.LAYOUTS for name, module in _fixed().items()}


def _fixed() -> dict[str, Any]:
    from waterfill.verify import (
        aecp_fixed,
        jetmax_fixed,
        maxnet2006_fixed,
        maxnet_fixed,
        rcp_fixed,
        vcp_fixed,
        xcp_fixed,
    )

    return {
        "maxnet": maxnet_fixed,
        "maxnet2006": maxnet2006_fixed,
        "rcp": rcp_fixed,
        "aecp": aecp_fixed,
        "jetmax": jetmax_fixed,
        "vcp": vcp_fixed,
        "xcp": xcp_fixed.XCP,
        "pxcp": xcp_fixed.PXCP,
        "ixcp": xcp_fixed.IXCP,
    }


def verify(path: str | os.PathLike[str]) -> Verdict:
    """Replay a log of steps; return the counts of accepted steps, and the first wrong one if any.

    `path` is a file, or a directory of a run with `steps.parquet`. Raises InputError when it is no
    log, has no step, or has a law, or a parameter's value, without equations here.
    """
    from waterfill.verify import kernel, log, replay

    file = Path(path)
    if file.is_dir():
        file /= FILE_NAME
    if file.exists() and not file.is_file():
        raise InputError(str(file), "", "expected a log of steps, got no regular file")
    if kernel.is_log(file):
        header, steps = kernel.read(file, kernel_layouts())
        verdict = replay.replay(str(file), header, steps, kernel_laws(), chained=False)
    else:
        header, steps = log.read(file)
        verdict = replay.replay(str(file), header, steps, laws())
    if verdict.rows == 0 and verdict.wrong is None:
        raise InputError(str(file), "", _why_empty(verdict.dropped))
    return verdict


def _why_empty(dropped: int) -> str:
    if dropped:
        return f"expected steps of laws, got none: {dropped} were not logged"
    return f"expected steps of laws, got none; logged are {', '.join(laws())}"


__all__ = ["Law", "Verdict", "laws", "verify"]
