"""Laws that have equations in this package, and the check of a log file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from validation.certificates import aecp, jetmax, log, maxnet, maxnet2006, rcp, replay, vcp, xcp
from validation.certificates.fixed import laws as fixed
from validation.certificates.fixed import log as kernel_log
from validation.certificates.replay import LawChecker, Verdict
from waterfill.errors import InputError
from waterfill.runs.steps import FILE_NAME

LAWS: Mapping[str, LawChecker] = {
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


def verify(path: str | os.PathLike[str]) -> Verdict:
    """Replay a log of steps. Return the counts of accepted steps and the first wrong step, if any.

    `path` is a log of a run or of `waterfilld`, or a run's directory with `steps.parquet`. Raises
    InputError when it is no log, has no step, or has a law or a parameter without equations here.
    """
    file = Path(path)
    if file.is_dir():
        file /= FILE_NAME
    if file.exists() and not file.is_file():
        raise InputError(str(file), "", "not a regular file")
    if kernel_log.is_log(file):
        return fixed.verify(file)
    header, steps = log.read(file)
    verdict = replay.replay(str(file), header, steps, LAWS)
    if verdict.rows == 0 and verdict.wrong is None:
        dropped = f"; {verdict.dropped} were not logged" if verdict.dropped else ""
        known = f"; the laws with equations are {', '.join(LAWS)}"
        raise InputError(str(file), "", f"the log has no steps{dropped or known}")
    return verdict
