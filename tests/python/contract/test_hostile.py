"""A hostile network passed straight to the core gives an error of one sentence, never a panic."""

from __future__ import annotations

import copy
import random
import time
from typing import Any

import pytest

from waterfill import _core
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict

LINKS = [
    {"name": "l", "queue": "red", "loss": 0.01},
    {"name": "m", "queue": "codel", "duplicate": 0.01, "reorder": {"share": 0.01, "delay": "1 ms"}},
    {"name": "n", "event": [{"at": "0.1 s", "rate": "4 Mbit/s"}, {"at": "0.2 s", "up": False}]},
    {"name": "o", "queue": "cohabit"},
]
SIM = {
    "link": LINKS,
    "flow": [
        {"name": "f", "path": ["l", "m", "n", "o"], "count": 2, "stagger": "10 ms"},
        {"name": "g", "path": ["l"], "protocol": "cubic", "rtt": "30 ms", "size": "100 kB"},
        {"name": "x", "path": ["l", "m"], "protocol": "xcp"},
        {"name": "h", "path": ["m"], "protocol": "aecp", "access_rate": "5 Mbit/s"},
    ],
    "traffic": [
        {"name": "t", "kind": "poisson", "path": ["l"], "rate": "1 Mbit/s"},
        {"name": "c", "kind": "onoff", "path": ["m"], "rate": "1 Mbit/s", "on": "20 ms",
         "off": "20 ms"},
        {"name": "w", "kind": "web", "path": ["l", "m"], "protocol": "sack",
         "arrival_rate": "50 /s", "sizes": {"distribution": "exponential", "mean": "20 kB"}},
    ],
}  # fmt: skip
FLUID = {
    "link": [{"name": "l"}, {"name": "m"}, LINKS[2]],
    "flow": [
        {"name": "f", "path": ["l", "m", "n"], "count": 2, "stagger": "10 ms"},
        {"name": "g", "path": ["l"], "protocol": "aecp", "rtt": "30 ms", "size": "100 kB"},
        {"name": "x", "path": ["l", "m"], "protocol": "xcp"},
        {"name": "r", "path": ["l"], "protocol": "rcp"},
        {"name": "v", "path": ["l"], "protocol": "vcp"},
    ],
    "traffic": [{"name": "c", "kind": "cbr", "path": ["n"], "rate": "1 Mbit/s"}],
}
NUMBERS = [0, 1, 2, 3, 1e-300, 1e-12, 5e-324, 0.5, 1e6, 1e308, 65535, 2**31 - 1, 2**32 - 1, 2**63]
OTHERS = [
    None, True, -1, -0.0, 10**30, float("nan"), float("inf"), -float("inf"), -(2**63), "", "x",
    "\u00e9" * 50, "own", "droptail", [], {}, [0], [[]], [1e308], [-1, 5],
]  # fmt: skip


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def network(document: dict[str, Any], on: str) -> Any:
    nodes = "abcde"
    links = [
        {"from": nodes[i], "to": nodes[i + 1], "rate": "10 Mbit/s", "delay": "2 ms", **link}
        for i, link in enumerate(document["link"])
    ]
    whole = {
        "duration": "0.3 s", "protocol": "maxnet", "sample": "50 ms",
        "params": {"maxnet": {"mu": 0.9}, "aecp": {"t_2": "10 ms"}}, **document, "link": links,
    }  # fmt: skip
    return plain(resolve.to_core(from_dict(whole), protocols.load(), on).to_dict())


def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if path:
        yield path
    listed = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else listed:
        yield from places(item, (*path, key))


def mutated(original: Any, dice: random.Random) -> Any:
    """Return a copy with one to three values replaced, removed or repeated."""
    document = copy.deepcopy(original)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        path = dice.choice(list(places(document)))
        inside = document
        for key in path[:-1]:
            inside = inside[key]
        old, way = inside[path[-1]], dice.random()
        if way < 0.7 and isinstance(old, (int, float)) and not isinstance(old, bool):
            new = dice.choice([*NUMBERS, old * 10 ** dice.uniform(-9, 9)])
            inside[path[-1]] = int(min(new, 2**64 - 1)) if isinstance(old, int) else float(new)
        elif way < 0.85:
            inside[path[-1]] = copy.deepcopy(dice.choice(OTHERS))
        elif way < 0.93:
            inside[path[-1]] = [old] * dice.choice([0, 2, 50])
        else:
            del inside[path[-1]]
    return document


class Enough(Exception):
    """A run that has gone on for long enough."""


@pytest.mark.parametrize(
    ("on", "document", "engine"),
    [("sim", SIM, _core.Simulation), ("fluid", FLUID, _core.Fluid)],
)
def test_a_mutated_network_is_refused_or_runs(on, document, engine):
    original = network(document, on)
    assert not engine(original).advance(1.0)
    ran, refusals = 0, []
    for seed in range(400):
        begun = time.perf_counter()

        def check(begun: float = begun) -> None:
            if time.perf_counter() - begun > 0.1:
                raise Enough

        try:
            run = engine(mutated(original, random.Random(seed)), check=check)
            run.advance(1e9)
            run.summary(), run.series("flows")
            ran += 1
        except Enough:
            ran += 1
        except ValueError as error:  # not a panic, which is no Exception
            refusals.append(str(error))
    assert min(ran, len(refusals)) > 20
    assert not [said for said in refusals if not said or "\n" in said]


@pytest.mark.parametrize("key", ["period_s", "interval_s"])
def test_times_that_round_to_none_are_refused(key):
    hostile = network(SIM, "sim")
    queue = next(link["queue"] for link in hostile["links"] if link["queue"]["kind"] == "cohabit")
    (queue["estimator"] if key == "period_s" else queue)[key] = 1e-300
    with pytest.raises(ValueError, match="must be at least 1 ps"):
        _core.Simulation(hostile)
