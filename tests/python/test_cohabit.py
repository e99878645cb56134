"""Explicit protocols beside TCPs: the keys of the module, the table, and 24 of its cells."""

from __future__ import annotations

import math
from typing import Any

import pytest

from waterfill import cohabit, cohabit_params, protocols
from waterfill.compare import run_each
from waterfill.errors import InputError
from waterfill.network import to_core
from waterfill.scenario import from_dict

_CELLS = cohabit.cells(short=True)

# Cells of the 24 whose TCP class misses its goal, and why: docs/validation/cohabitation.md.
# The explicit class's share and the link's use are asked of them too.
_LOST = {
    "aecp × reno, 20 ms, 10+3": "AECP's own queue leaves no room: bursts of losses",
}


def _document(queue_params: dict[str, Any] | None = None, queue: str = "cohabit") -> dict[str, Any]:
    link: dict[str, Any] = {
        "name": "l",
        "from": "a",
        "to": "b",
        "rate": "10 Mbit/s",
        "queue": queue,
    }
    if queue_params is not None:
        link["queue_params"] = queue_params
    return {
        "duration": "10 s",
        "link": [link],
        "flow": [
            {"name": "e", "path": ["l"], "protocol": "xcp", "rtt": "80 ms"},
            {"name": "t", "path": ["l"], "protocol": "sack", "rtt": "40 ms"},
        ],
    }


def _queue(queue_params: dict[str, Any] | None = None) -> dict[str, Any]:
    resolved = to_core(from_dict(_document(queue_params)), protocols.load())
    queue: dict[str, Any] = resolved["links"][0]["queue"]
    return queue


# --- keys --------------------------------------------------------------------------------------


def test_defaults() -> None:
    queue = _queue()
    assert queue["controller"]["kind"] == "improved"
    assert queue["estimator"] == {"kind": "nred", "levels": 4, "bins": 4096, "period_s": 2.0}
    assert queue["interval_s"] == 0.08  # the largest base RTT
    assert queue["ecn"] is True


def test_the_papers_defaults() -> None:
    queue = _queue({"controller": "paper", "interval": "20 ms"})
    expected = {"initial": 0.001, "decrease": 0.9999, "increase": 1.0001, "threshold": 0.97}
    assert queue["controller"] == {"kind": "paper", **expected}
    assert queue["estimator"] == {"kind": "sred", "size": 1000, "replace": 0.25, "shared": False}
    assert (queue["inspect"], queue["interval_s"], queue["ecn"]) == (1.0, 0.02, False)


def test_a_queue_of_its_own_for_each_class() -> None:
    queue = _queue({"separate": True, "estimator": "exact", "explicit_weight": 2})
    assert queue["controller"] == {"kind": "separate"}
    assert queue["estimator"] == {"kind": "exact", "period_s": 2.0}
    assert (queue["interval_s"], queue["explicit_weight"], queue["ecn"]) == (0.08, 2.0, False)
    assert _queue({"separate": False}) == _queue()


def test_the_schema_has_every_key_and_its_kind() -> None:
    properties = cohabit_params.schema()["properties"]
    groups = (*cohabit_params.CONTROLLERS.values(), *cohabit_params.ESTIMATORS.values())
    keys = {key: default for group in groups for key, (_, default) in group.items()}
    assert set(properties) == {"controller", "estimator", "separate", *cohabit_params.COMMON, *keys}
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number"}
    for key, default in keys.items():
        assert properties[key]["type"] == kinds[type(default)], key
    for key, kind in {"inspect": "number", "interval": "string", "ecn": "boolean"}.items():
        assert properties[key]["type"] == kind


@pytest.mark.parametrize(
    ("params", "key", "message"),
    [
        ({"separate": 1}, "separate", "expected true or false"),
        ({"separate": True, "controller": "improved"}, "controller", "none with separate = true"),
        ({"separate": True, "depth": "1 s"}, "depth", "expected none with separate = true"),
        ({"separate": True, "ecn": True}, "ecn", "expected none with separate = true"),
        ({"controller": "pid"}, "controller", 'expected "improved" or "paper" or "off"'),
        ({"controler": "paper"}, "controler", "unknown key, did you mean"),
        ({"initial": 0.1}, "initial", 'expected only with controller = "paper"'),
        ({"size": 10}, "size", 'expected only with estimator = "sred"'),
        ({"inspect": 0.0}, "inspect", "expected a finite number above 0 and at most 1"),
        ({"interval": 0.1}, "interval", "expected a time such as"),
        ({"depth": "0 s"}, "depth", "expected a time above zero"),
        ({"ecn": 1}, "ecn", "expected true or false"),
        ({"controller": "paper", "decrease": 1.0}, "decrease", "expected a number between"),
    ],
)
def test_wrong_keys(params: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        _queue(params)
    assert f"link.l.queue_params.{key}" in str(caught.value)
    assert message in str(caught.value)


def test_every_default_is_resolved() -> None:
    for controller in cohabit_params.CONTROLLERS:
        for estimator in cohabit_params.ESTIMATORS:
            params = {"controller": controller, "estimator": estimator}
            queue = cohabit_params.resolve(params, 0.1)
            assert None not in queue.values()


def test_parameters_survive_a_round_trip() -> None:
    params = {"controller": "paper", "interval": "20 ms", "inspect": 0.5}
    scenario = from_dict(_document(params))
    assert "cohabit" in scenario.to_toml()
    from waterfill.scenario import from_toml

    again = from_toml(scenario.to_toml())
    assert again.link[0].queue_params == params


# --- the table ---------------------------------------------------------------------------------


def test_cells() -> None:
    assert len(cohabit.cells()) == 6 * 13 * 2 * 4
    assert len(_CELLS) == 24
    assert {cell.explicit for cell in _CELLS} == set(cohabit.EXPLICIT)
    assert {cell.tcp for cell in _CELLS} == set(cohabit.TCPS)
    assert {cell.rtt_ms for cell in _CELLS} == set(cohabit.RTTS_MS)
    assert {(c.explicit_flows, c.tcp_flows) for c in _CELLS} == set(cohabit.COUNTS)


def test_alone_has_the_rate_that_eq4_gives() -> None:
    cell = cohabit.Cell("maxnet", "sack", 20, 10, 3)
    scenario = cohabit.alone(cell, 0.9)
    # 0.9 · 100 Mbit/s · 3/13, with the shared link's buffer of 250 kB.
    assert math.isclose(scenario.link[0].rate, 0.9 * 100e6 * 3 / 13, rel_tol=1e-6)
    assert (
        scenario.link[0].buffer.amount == cohabit.scenario(cell, "improved").link[0].buffer.amount
    )
    assert scenario.link[0].buffer.amount == 250e3


def test_a_cell_without_the_module_is_lost() -> None:
    cell = cohabit.Cell("xcp", "cubic", 20, 3, 10)
    runs = run_each(
        {
            "without": cohabit.scenario(cell, "without", short=True),
            "alone": cohabit.alone(cell, 1.0, short=True),
        }
    )
    verdict = cohabit.judge(cell, runs["without"], runs["alone"])
    assert not verdict.good
    assert verdict.explicit_share < 0.3


@pytest.mark.parametrize("cell", _CELLS, ids=lambda cell: cell.name)
def test_cells_are_as_asked(cell: cohabit.Cell) -> None:
    target = protocols.targets({}).get(cell.explicit, 1.0)
    modes = ("improved", "separate")
    runs = run_each(
        {
            **{mode: cohabit.scenario(cell, mode, short=True) for mode in modes},
            "alone": cohabit.alone(cell, target, short=True),
        }
    )
    improved, separate = (cohabit.judge(cell, runs[mode], runs["alone"]) for mode in modes)
    assert improved.explicit_share >= cohabit.LEAST_EXPLICIT
    assert improved.utilization >= min(cohabit.LEAST_UTILIZATION, cohabit.AT_TARGET * target)
    if cell.name in _LOST:
        assert improved.tcp_share < cohabit.LEAST_TCP, "not lost any more: the list is out of date"
    else:
        assert improved.good, improved
    assert separate.good, separate
