"""Hosts' fixed-point equations against the C: any state within its ranges, the running kernel."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from validation import certificate_mutants, host_steps
from validation.drawn_calls import hosts
from validation.kernel_calls import Law, again, compiled
from waterfill import verify
from waterfill.verify import replay

CALLS = 2000
# Fields that no call changes; every other must change in a hundredth of the calls.
KEPT = frozenset(("packet", "demand_max", "reserved"))


@pytest.fixture(scope="module", params=sorted(hosts.RANGES))
def law(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Law]:
    name = request.param
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = compiled(name, tmp_path_factory.mktemp(name))
    assert library is not None
    return name, Law(name, library)


@pytest.mark.parametrize("call", ["ack", "receive"])
def test_any_call_is_that_of_the_equations(law: tuple[str, Law], call: str) -> None:
    name, compiled_law = law
    equations = verify.kernel_laws()[name]
    check = (equations.source if call == "ack" else equations.receiver)({})
    draw = random.Random(name)
    changed: Counter[str] = Counter()
    for _ in range(CALLS):
        step = hosts.any_step(compiled_law, name, call, draw)
        made = again(compiled_law, step)
        wrong = replay.compare(made, check(made))
        assert wrong is None, (str(wrong), step)
        changed.update(field for field in made.after if made.after[field] != step.before[field])
    fields = {field for field, _ in compiled_law.layouts[made.part]} - KEPT
    assert min(changed[field] for field in fields) >= CALLS / 100, changed


def test_recorded_calls_are_made_again(law: tuple[str, Law]) -> None:
    name, compiled_law = law
    files = [file for file in certificate_mutants.recordings(name) if "host" in file.name]
    for step in certificate_mutants.steps_of(files):
        assert again(compiled_law, step).after == step.after, step


@pytest.fixture(scope="module")
def over() -> Iterator[host_steps.Network]:
    missing = host_steps.lacking()
    if missing is not None:
        pytest.skip(f"needs {missing}")
    with host_steps.network() as built:
        yield built


# A window by a price, a paced law, and the two with the longest options; `make certificates` has
# all nine.
@pytest.mark.parametrize("name", ["maxnet", "rcp", "xcp", "jetmax"])
def test_hosts_logs_in_the_kernel_are_accepted(
    name: str, over: host_steps.Network, tmp_path: Path
) -> None:
    counts: Counter[str] = Counter()
    for log in host_steps.recorded(name, 1.5, tmp_path, over):
        verdict = verify.verify(log)
        assert verdict.wrong is None, str(verdict.wrong)
        counts.update({call: n for (_, _, call), n in verdict.counts.items()})
    assert min(counts["ack"], counts["receive"]) >= 100, counts


def test_every_law_with_hosts_equations_is_recorded() -> None:
    layouts = verify.kernel_layouts()
    assert set(host_steps.laws()) == {name for name in layouts if "source" in layouts[name]}
