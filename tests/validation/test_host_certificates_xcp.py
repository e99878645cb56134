"""Fixed-point equations of JetMax's and the XCPs' hosts against the C: any state within ranges."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from typing import Any

import pytest

from validation.drawn_calls import hosts_xcp_jetmax
from validation.kernel_calls import Law, again, compiled
from waterfill import verify
from waterfill.verify import replay

CALLS = 5000
# What `ack` sets in the source, and `receive` in the receiver.
SETS = {
    "jetmax": (
        {"rate", "target", "offer", "doubted_since", "joined", "counted_after", "packet"}
        | {"bottleneck"},
        {"rate", "share", "target", "hops"},
    ),
    **dict.fromkeys(
        ("xcp", "pxcp"),
        (
            {"window", "total", "rtt", "rtt_code", "time_code", "packet", "heard"},
            {"total", "heard"},
        ),
    ),
}
SETS["ixcp"] = (SETS["xcp"][0] | {"bottleneck"}, SETS["xcp"][1] | {"next_bottleneck"})


@pytest.fixture(scope="module", params=sorted(hosts_xcp_jetmax.RANGES))
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
    draw = random.Random(f"{name} {call}")
    changed: Counter[str] = Counter()
    for _ in range(CALLS):
        step = hosts_xcp_jetmax.any_step(compiled_law, name, call, draw)
        made = again(compiled_law, step)
        wrong = replay.compare(made, check(made))
        assert wrong is None, (str(wrong), step)
        changed.update(field for field in made.after if made.after[field] != step.before[field])
    # Every field that the call sets, and no other.
    assert {field for field, count in changed.items() if count > CALLS / 40} == SETS[name][
        call == "receive"
    ]
