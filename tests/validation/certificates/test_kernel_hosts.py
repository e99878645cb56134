"""Logs of laws' hosts in the running kernel are accepted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from validation.certificates.fixed.laws import LAYOUTS, verify
from validation.certificates.kernel import hosts

LACKS = hosts.lacking()


# A window by a price, a paced law, and the two with the longest options; the study
# `kernel-certificates` has all nine.
@pytest.mark.skipif(LACKS is not None, reason=f"needs {LACKS}")
@pytest.mark.parametrize("name", ["maxnet", "rcp", "xcp", "jetmax"])
def test_hosts_logs_in_the_kernel_are_accepted(name: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for log in hosts.recorded(name, 1.5, tmp_path):
        verdict = verify(log)
        assert verdict.wrong is None, str(verdict.wrong)
        counts.update({call: n for (_, _, call), n in verdict.counts.items()})
    assert min(counts["ack"], counts["receive"]) >= 100, counts


def test_every_law_with_hosts_equations_is_recorded() -> None:
    assert set(hosts.laws()) == {name for name in LAYOUTS if "source" in LAYOUTS[name]}
