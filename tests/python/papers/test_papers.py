"""The papers' experiments in their short versions: every claim's verdict is the one on record.

A claim that a short version says nothing about (`short = false`) is judged by `waterfill reproduce
--all` alone; its verdict there is what claims.toml records.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.reproduce import reproduce

EXPERIMENTS = loading.experiments()


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.path)
def test_a_short_version_has_the_verdicts_on_record(experiment: Experiment, tmp_path: Path):
    found = reproduce([experiment], lambda _: tmp_path, short=True, cached=False)
    judged = found.claims[experiment.path]
    differing = {c.id: c.verdict for c in judged if c.verdict != c.expect}
    assert differing == {}
    assert [path for path in found.figures[experiment.path] if not path.is_file()] == []
