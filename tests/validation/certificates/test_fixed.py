"""Fixed-point equations against the C: any state within its ranges, and the running kernel."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from validation.certificates import replay
from validation.certificates.fixed.laws import LAWS, verify
from validation.certificates.kernel import mutants
from validation.certificates.kernel import routers as kernel_routers
from validation.certificates.kernel.calls import CompiledLaw, again, compiled
from validation.certificates.kernel.drawn import any_step, routers
from validation.certificates.log import Step

CALLS = 2000
# Calls of hosts, and the fields that `ack` sets in a source and `receive` in a receiver. The other
# laws set all fields but these.
HOST_CALLS = 4000
KEPT = frozenset(("packet", "demand_max", "price_max", "reserved"))
SETS = {
    "jetmax": {
        "ack": {"rate", "target", "offer", "doubted_since", "joined", "counted_after", "packet"}
        | {"bottleneck"},
        "receive": {"rate", "share", "target", "hops"},
    },
    "xcp": {
        "ack": {"window", "total", "rtt", "rtt_code", "time_code", "packet", "heard"},
        "receive": {"total", "heard"},
    },
}
SETS["pxcp"] = SETS["xcp"]
SETS["ixcp"] = {
    "ack": SETS["xcp"]["ack"] | {"bottleneck"},
    "receive": SETS["xcp"]["receive"] | {"next_bottleneck"},
}


@pytest.fixture(scope="module", params=sorted(LAWS))
def law(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, CompiledLaw]:
    name = request.param
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = compiled(name, tmp_path_factory.mktemp(name))
    assert library is not None
    return name, CompiledLaw(name, library)


def test_structures_have_the_c_s_sizes(law: tuple[str, CompiledLaw]) -> None:
    name, compiled_law = law
    for part, layout in compiled_law.layouts.items():
        size = sum({"Q": 8, "q": 8, "I": 4}[letter] for _, letter in layout)
        assert size == 8 * compiled_law.numbers[part], (name, part)


def test_any_router_s_call_is_that_of_the_equations(law: tuple[str, CompiledLaw]) -> None:
    name, compiled_law = law
    check = LAWS[name].router({})
    draw = random.Random(name)
    changed: Counter[str] = Counter()
    for _ in range(CALLS):
        step = routers.any_step(compiled_law, name, draw.choice(routers.CALLS), draw)
        made = again(compiled_law, step)
        wrong = replay.compare(made, check(made))
        assert wrong is None, (str(wrong), step)
        value_changed = made.outputs["value"] not in (step.inputs["value"], bytes(16))
        changed[step.call] += made.after != step.before or value_changed
    # No call is drawn from where the law does nothing.
    assert min(changed[call] for call in routers.CALLS) > CALLS / 30


@pytest.mark.parametrize("call", ["ack", "receive"])
def test_any_host_s_call_is_that_of_the_equations(law: tuple[str, CompiledLaw], call: str) -> None:
    name, compiled_law = law
    equations = LAWS[name]
    check = (equations.source if call == "ack" else equations.receiver)({})
    draw = random.Random(f"{name} {call}")
    changed: Counter[str] = Counter()
    for _ in range(HOST_CALLS):
        step = any_step(compiled_law, name, call, draw)
        made = again(compiled_law, step)
        wrong = replay.compare(made, check(made))
        assert wrong is None, (str(wrong), step)
        changed.update(field for field in made.after if made.after[field] != step.before[field])
    fields = {field for field, _ in compiled_law.layouts[made.part]}
    assert set(changed) == (SETS[name][call] if name in SETS else fields - KEPT)
    assert min(changed.values()) >= HOST_CALLS / 100, changed


@pytest.mark.parametrize("name", ["xcp", "pxcp", "ixcp"])
def test_no_interval_leaves_an_xcp_link_as_it_is(name: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = compiled(name, tmp_path)
    assert library is not None
    xcp_law = CompiledLaw(name, library)
    link = {field: 5000 for field, _ in xcp_law.layouts["link"]}
    inputs: dict[str, Any] = {"intervals": 0, "queue": 0, "value": bytes(16)}
    step = Step(0, "host", name, "router", "any", "idle", 0, inputs, link, {}, {})
    assert again(xcp_law, step).after == link  # a queue of 5000 stands: it has not been 0


def test_recorded_calls_are_made_again(law: tuple[str, CompiledLaw]) -> None:
    name, compiled_law = law
    steps = mutants.steps_of(mutants.recordings(name))
    assert len(steps) > 40
    for step in steps:
        made = again(compiled_law, step)
        assert made.after == step.after, step
        assert made.outputs == step.outputs, step


@pytest.mark.parametrize("name", sorted(kernel_routers.ROUTERS))
def test_a_router_s_log_in_the_kernel_is_accepted(name: str, tmp_path: Path) -> None:
    missing = kernel_routers.lacking()
    if missing is not None:
        pytest.skip(f"needs {missing}")
    for log in kernel_routers.recorded(name, 2000, tmp_path):
        verdict = verify(log)
        assert verdict.wrong is None, str(verdict.wrong)
        assert verdict.rows >= 1000
        assert {call for _, _, call in verdict.counts} >= {"mark", "tick"}
