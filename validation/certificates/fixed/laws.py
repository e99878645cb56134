"""Laws whose fixed-point versions have equations in this package, with the layouts of their C
structures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from validation.certificates import replay
from validation.certificates.fixed import aecp, jetmax, log, maxnet, maxnet2006, rcp, vcp, xcp
from validation.certificates.fixed.log import Layout
from validation.certificates.replay import LawChecker, Verdict
from waterfill.errors import InputError

LAWS: Mapping[str, LawChecker] = {
    "maxnet": maxnet.LAW,
    "maxnet2006": maxnet2006.LAW,
    "rcp": rcp.LAW,
    "aecp": aecp.LAW,
    "jetmax": jetmax.LAW,
    "vcp": vcp.LAW,
    **{name: xcp.law(form) for name, form in xcp.FORMS.items()},
}
LAYOUTS: Mapping[str, Mapping[str, Layout]] = {
    "maxnet": maxnet.LAYOUTS,
    "maxnet2006": maxnet2006.LAYOUTS,
    "rcp": rcp.LAYOUTS,
    "aecp": aecp.LAYOUTS,
    "jetmax": jetmax.LAYOUTS,
    "vcp": vcp.LAYOUTS,
    **{name: form.layouts() for name, form in xcp.FORMS.items()},
}


def verify(file: Path) -> Verdict:
    """Check each step of a kernel log. Raises InputError if the file is not a log or
    has no steps.
    """
    header, steps = log.read(file, LAYOUTS)
    verdict = replay.replay(str(file), header, steps, LAWS, chained=False)
    if verdict.rows == 0 and verdict.wrong is None:
        raise InputError(str(file), "", "the log has no steps")
    return verdict
