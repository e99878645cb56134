"""The keys of queue = "cohabit": defaults, what is wrong with them, the schema."""

from __future__ import annotations

from typing import Any

import pytest

from waterfill.errors import InputError
from waterfill.network import protocols
from waterfill.network.resolve import to_core
from waterfill.scenario import queue_params
from waterfill.scenario.loading import from_dict, from_toml


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
    queue: dict[str, Any] = resolved.to_dict()["links"][0]["queue"]
    return queue


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
    properties = queue_params.schema()["properties"]
    groups = (*queue_params.CONTROLLERS.values(), *queue_params.ESTIMATORS.values())
    keys = {key: default for group in groups for key, (_, default) in group.items()}
    assert set(properties) == {"controller", "estimator", "separate", *queue_params.COMMON, *keys}
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
    for controller in queue_params.CONTROLLERS:
        for estimator in queue_params.ESTIMATORS:
            params = {"controller": controller, "estimator": estimator}
            queue = _queue(params)
            assert None not in queue.values()


def test_parameters_survive_a_round_trip() -> None:
    params = {"controller": "paper", "interval": "20 ms", "inspect": 0.5}
    scenario = from_dict(_document(params))
    assert "cohabit" in scenario.to_toml()
    again = from_toml(scenario.to_toml())
    assert again.link[0].queue_params == params
