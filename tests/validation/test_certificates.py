"""Fixed-point equations against the C: any state within its ranges, and the running kernel."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from validation import certificate_mutants, kernel_steps
from validation.kernel_calls import Law, again, compiled
from waterfill import verify
from waterfill.verify import codes, replay
from waterfill.verify.fixed import EXP_MAX
from waterfill.verify.log import Step

State: TypeAlias = "dict[str, Any]"

CALLS = 2000
# Bits of a field and its smallest value, as the headers' tables of scales say; others have 40 bits,
# or 20 of 32.
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "maxnet": {
        **{"capacity": (50, 1), "x_max": (57, 1), "start_share": (50, 0), "price": (60, 0)},
        **{"price_min": (40, 0), "promised_age": (39, 0), "aging": (30, 1), "promised": (50, 0)},
        **{
            "dt_p": (19, 1),
            "t_0": (31, 1 << 20),
            "promise": (1, 0),
            "start": (24, 0),
            "bytes": (20, 1),
        },
        **{"arrival_rate": (50, 0), "target_time": (36, 0), "queue": (40, 0)},
    },
    "maxnet2006": {
        **{"capacity": (57, 1), "x_max": (57, 1), "start_share": (57, 0), "start_min": (50, 0)},
        **{"price": (60, 0), "price_min": (45, 0), "target_time": (36, 0), "dt": (20, 1)},
    },
    "aecp": {
        **{"place": (38, 0), "place_max": (38, 0), "capacity": (50, 1), "volume": (57, 1)},
        **{"gain": (32, 0), "packet": (24, 256), "q_0": (32, 0), "t": (30, 1000)},
        **{"t_2": (20, 1000), "ceiling": (1, 0), "rounding": (1, 0), "cpu_residue": (22, 0)},
        **{"data_bytes_sum": (50, 0), "data_segments_sum": (30, 0), "cpu_data_bytes": (64, 0)},
    },
    "jetmax": {
        **{"goal": (50, 1), "target": (50, 0), "unresponsive": (50, 0), "flows": (43, 0)},
        **{"interval": (22, 1), "bytes_sum": (47, 0), "own_sum": (45, 0)},
        **{"membership_sum": (63, 0), "target_code": (24, 0), "share_code": (24, 0)},
        **{"cpu_own": (64, 0), "cpu_membership": (64, 0)},
    },
    "rcp": {
        **{"rate": (60, 0), "mean_rtt": (39, 10 << 16), "capacity": (50, 1), "alpha": (10, 1)},
        **{"code": (23, 1), "interval": (20, 10), "measured": (1, 0), "beta": (16, 0)},
        **{"max_interval": (20, 10), "average": (1, 0), "bytes_sum": (48, 0)},
        **{"timed_bytes_sum": (63, 0), "rtt_bytes_sum": (64, 0)},
        **{"cpu_timed_bytes": (64, 0), "cpu_rtt_bytes": (64, 0)},
    },
    "vcp": {
        **{"load_factor": (32, 0), "queue": (54, 0), "volume": (59, 1), "waited": (56, 0)},
        **{"queue_weight": (32, 0), "load": (2, 0), "t_rho": (23, 100), "kappa_q": (16, 0)},
        **{"samples": (16, 1), "whole_percent": (1, 0)},
    },
}
XCP = {
    **{"gain": (56, 0), "loss": (56, 0), "local_gain": (56, 0), "local_loss": (56, 0)},
    **{"link": (3, 1), "shuffle_draft": (1, 0), "claims": (1, 0), "claim_least": (1, 0)},
    **{"gain_residue": (62, 0), "loss_residue": (62, 0), "gain_left": (62, 0)},
    **{"loss_left": (62, 0), "capacity": (62, 1), "queue_min": (40, 0), "shuffled": (62, 0)},
    **{"alpha": (32, 0), "beta": (32, 0), "gamma": (32, 0), "interval": (22, 1)},
    **{"elapsed": (22, 0), "until_control": (22, 1), "until_queue": (22, 0), "tick": (22, 1)},
    **{"min_interval": (22, 1), "max_interval": (22, 1), "first_interval": (22, 1)},
    **{"count_own": (1, 0), "rtt_max": (26, 0), "spare": (61, 0), "carry": (8, 0)},
    **{"intervals": (34, 0), "queue": (40, 0)},
}
RANGES |= dict.fromkeys(("xcp", "pxcp", "ixcp"), XCP)
INPUTS = {"queue": (41, 0), "bytes": (21, 0), "segments": (15, 0), "syn": (1, 0)}


def jetmax(state: State) -> None:
    """What a tick leaves: no target above γC; factors of N and W."""
    state["target"] = min(state["target"], state["goal"])
    flows, others, goal = state["flows"], state["unresponsive"], state["goal"]
    state["join"] = codes.factor(1 << 20, flows + (1 << 20))
    state["overloaded"] = codes.fraction(goal, others) if not flows and others > goal else 0


def maxnet2006(state: State) -> None:
    """No price below p_min."""
    state["price"] = max(state["price"], state["price_min"])
    state["capacity"] = min(state["capacity"], state["x_max"])


def aecp(state: State) -> None:
    """T₂ up to T, and a place on the scale below the ceiling."""
    state["t"] = max(state["t"], state["t_2"])
    state["place_max"] = min(state["place_max"], 0xFFFE << 22)
    state["place"] = min(state["place"], state["place_max"])


def rcp(state: State) -> None:
    """R within its limits; alpha at most 1."""
    state["alpha"] = min(state["alpha"], 1000)
    for name in ("interval", "max_interval"):
        state[name] = min(state[name], 1_000_000)
    state["rate_min"] = min(state["rate_min"], state["capacity"])
    lowest, highest = (state[name] << 10 for name in ("rate_min", "capacity"))
    state["rate"] = min(max(state["rate"], lowest), highest)


def vcp(state: State) -> None:
    """Fewer ticks than samples."""
    state["ticks"] = state["ticks"] % state["samples"]
    state["queue_weight"] = min(state["queue_weight"], 1 << 32)


def maxnet(state: State) -> None:
    """No price below p_min, and C below x_max."""
    maxnet2006(state)
    state["promised_age"] = min(state["promised_age"], EXP_MAX)


def xcp(state: State) -> None:
    """Bounds of d in order, a tick up to the end of d, factors as float.h has them."""
    shortest, longest = sorted((state["min_interval"], state["max_interval"]))
    state["min_interval"], state["max_interval"] = shortest, longest
    for name in ("interval", "first_interval"):
        state[name] = min(max(state[name], shortest), longest)
    state["tick"] = min(state["tick"], state["until_control"])
    for name in ("gain", "loss", "local_gain", "local_loss"):
        if name in state:
            low = state[name] & (1 << 24) - 1
            state[name] = codes.factor(low, (state[name] >> 24) + 1)


BOUND: dict[str, Callable[[State], None]] = {
    "maxnet": maxnet,
    "maxnet2006": maxnet2006,
    "aecp": aecp,
    "jetmax": jetmax,
    "rcp": rcp,
    "vcp": vcp,
    **dict.fromkeys(("xcp", "pxcp", "ixcp"), xcp),
}


def any_number(draw: random.Random, bits: int, smallest: int) -> int:
    """A number of any size up to so many bits."""
    return max(draw.getrandbits(draw.randint(0, bits)), smallest)


def any_step(law: Law, name: str, draw: random.Random) -> Step:
    """A call of a router with any state and inputs within their ranges."""
    ranges = RANGES[name]
    call = draw.choice(["mark", "tick", "idle"])
    link, sums, cpu = (law.layouts[part] for part in ("link", "sums", "cpu"))
    before: State = {}
    for field, letter in (*link, *(cpu if call == "mark" else ())):
        bits = ranges.get(field, (40 if letter == "Q" else 20, 0))
        before[field] = draw.choice([bits[1], *(any_number(draw, *bits) for _ in range(7))])
    BOUND[name](before)
    inputs: State = {n: any_number(draw, *ranges.get(n, r)) for n, r in INPUTS.items()}
    inputs |= {field: any_number(draw, *ranges.get(field, (44, 0))) for field, _ in sums}
    inputs["intervals"] = draw.choice([0, 1, any_number(draw, 12, 0), any_number(draw, 34, 0)])
    inputs["value"] = kernel_steps.value(name, bool(inputs["syn"]), draw).ljust(16, b"\0")
    return Step(0, "host", name, "router", "any", call, 0, inputs, before, {}, {})


@pytest.fixture(scope="module", params=sorted(verify.kernel_laws()))
def law(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Law]:
    name = request.param
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = compiled(name, tmp_path_factory.mktemp(name))
    assert library is not None
    return name, Law(name, library)


def test_structures_have_the_c_s_sizes(law: tuple[str, Law]) -> None:
    name, compiled_law = law
    for part, layout in compiled_law.layouts.items():
        size = sum({"Q": 8, "q": 8, "I": 4}[letter] for _, letter in layout)
        assert size == 8 * compiled_law.numbers[part], (name, part)


def test_any_call_is_that_of_the_equations(law: tuple[str, Law]) -> None:
    name, compiled_law = law
    check = verify.kernel_laws()[name].router({})
    draw = random.Random(name)
    changed: Counter[str] = Counter()
    for _ in range(CALLS):
        step = any_step(compiled_law, name, draw)
        made = again(compiled_law, step)
        wrong = replay.compare(made, check(made))
        assert wrong is None, (str(wrong), step)
        value_changed = made.outputs["value"] not in (step.inputs["value"], bytes(16))
        changed[step.call] += made.after != step.before or value_changed
    # No call is drawn from where the law does nothing.
    assert min(changed[call] for call in ("mark", "tick", "idle")) > CALLS / 30


@pytest.mark.parametrize("name", ["xcp", "pxcp", "ixcp"])
def test_no_interval_leaves_an_xcp_link_as_it_is(name: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    library = compiled(name, tmp_path)
    assert library is not None
    xcp_law = Law(name, library)
    link = {field: 5000 for field, _ in xcp_law.layouts["link"]}
    inputs: State = {"intervals": 0, "queue": 0, "value": bytes(16)}
    step = Step(0, "host", name, "router", "any", "idle", 0, inputs, link, {}, {})
    assert again(xcp_law, step).after == link  # a queue of 5000 stands: it has not been 0


def test_recorded_calls_are_made_again(law: tuple[str, Law]) -> None:
    name, compiled_law = law
    steps = certificate_mutants.steps_of(certificate_mutants.recordings(name))
    assert len(steps) > 40
    for step in steps:
        made = again(compiled_law, step)
        assert made.after == step.after, step
        assert made.outputs == step.outputs, step


@pytest.mark.parametrize("name", sorted(kernel_steps.ROUTERS))
def test_a_router_s_log_in_the_kernel_is_accepted(name: str, tmp_path: Path) -> None:
    missing = kernel_steps.lacking()
    if missing is not None:
        pytest.skip(f"needs {missing}")
    for log in kernel_steps.recorded(name, 2000, tmp_path):
        verdict = verify.verify(log)
        assert verdict.wrong is None, str(verdict.wrong)
        assert verdict.rows >= 1000
        assert {call for _, _, call in verdict.counts} >= {"mark", "tick"}
