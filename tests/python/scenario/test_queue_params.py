"""Tests of the keys of queue = "cohabit": defaults, errors, the schema."""

from __future__ import annotations

import re
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
    nred = {"kind": "nred", "levels": 4, "bins": 4096, "period_s": 2.0, "hash": "flow"}
    assert queue["estimator"] == nred
    assert queue["interval_s"] == 0.08  # the largest base RTT
    assert queue["ecn"] is True


def test_the_papers_defaults() -> None:
    queue = _queue({"controller": "paper", "interval": "20 ms"})
    expected = {"initial": 0.001, "decrease": 0.9999, "increase": 1.0001, "threshold": 0.97}
    update = {"kind": "interval"}
    assert queue["controller"] == {"kind": "paper", **expected, "update": update}
    readings = {"delta": 0.00025, "shared": False, "trials": "class"}
    assert queue["estimator"] == {"kind": "sred", "size": 1000, "replace": 0.25, **readings}
    assert (queue["interval_of_law"], queue["count_drops"]) == (False, "never")
    assert (queue["inspect"], queue["interval_s"], queue["ecn"]) == (1.0, 0.02, False)


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ("interval", {"kind": "interval"}),
        ("packet", {"kind": "packet", "packets": "all"}),
        ("explicit-packet", {"kind": "packet", "packets": "explicit"}),
        ("tcp-packet", {"kind": "packet", "packets": "tcp"}),
        ("0.5 ms", {"kind": "period", "period_s": 0.0005}),
    ],
)
def test_when_the_papers_factor_is_applied(update: str, expected: dict[str, Any]) -> None:
    assert _queue({"controller": "paper", "update": update})["controller"]["update"] == expected


def test_the_interval_may_follow_the_laws() -> None:
    queue = _queue({"controller": "paper", "interval": "xcp"})
    assert (queue["interval_s"], queue["interval_of_law"]) == (0.08, True)


def test_the_papers_readings() -> None:
    sred = {"delta": 0.001, "replace": 0.5, "size": 100, "shared": True, "trials": "all"}
    queue = _queue({"controller": "paper", "count_drops": "router", **sred})
    assert queue["estimator"] == {"kind": "sred", **sred}
    assert queue["count_drops"] == "router"
    assert _queue({"estimator": "sred", "size": 100})["estimator"]["delta"] == 0.0025
    assert _queue({"hash": "pair"})["estimator"]["hash"] == "pair"


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
        kind = "number" if default is None else kinds[type(default)]
        assert properties[key]["type"] == kind, key
    for key, kind in {"inspect": "number", "interval": "string", "ecn": "boolean"}.items():
        assert properties[key]["type"] == kind
    for key, good in {"update": "tcp-packet", "interval": "xcp"}.items():
        for text, fits in {good: True, "20 ms": True, "packets": False}.items():
            assert bool(re.search(properties[key]["pattern"], text)) is fits, (key, text)
    assert properties["count_drops"]["enum"] == ["never", "module", "router"]


@pytest.mark.parametrize(
    ("params", "key", "message"),
    [
        ({"separate": 1}, "separate", "must be true or false"),
        (
            {"separate": True, "controller": "improved"},
            "controller",
            "not allowed with separate = true;",
        ),
        ({"separate": True, "depth": "1 s"}, "depth", "not allowed with separate = true;"),
        ({"separate": True, "ecn": True}, "ecn", "not allowed with separate = true;"),
        ({"controller": "pid"}, "controller", 'must be "improved" or "paper" or "off"'),
        ({"controler": "paper"}, "controler", "unknown key, did you mean"),
        ({"initial": 0.1}, "initial", 'only allowed with controller = "paper"'),
        ({"size": 10}, "size", 'only allowed with estimator = "sred"'),
        ({"inspect": 0.0}, "inspect", "must be in (0, 1], got 0.0"),
        ({"interval": 0.1}, "interval", "must be a time such as"),
        ({"depth": "0 s"}, "depth", 'must be above zero, got "0 s"'),
        ({"ecn": 1}, "ecn", "must be true or false"),
        ({"controller": "paper", "decrease": 1.0}, "decrease", "must be between 0 and 1, got 1.0"),
        ({"controller": "paper", "update": "packets"}, "update", '"explicit-packet", "tcp-packet"'),
        ({"controller": "paper", "update": "0 s"}, "update", 'must be above zero, got "0 s"'),
        ({"update": "packet"}, "update", 'only allowed with controller = "paper"'),
        ({"interval": "rcp"}, "interval", 'or "xcp"'),
        ({"count_drops": True}, "count_drops", 'must be "never" or "module" or "router"'),
        ({"estimator": "sred", "delta": 0}, "delta", "must be in (0, 1], got 0"),
        ({"estimator": "sred", "trials": "xcp"}, "trials", 'must be "class" or "all"'),
        ({"hash": "port"}, "hash", 'must be "flow" or "pair"'),
        ({"estimator": "sred", "hash": "pair"}, "hash", 'only allowed with estimator = "nred"'),
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
