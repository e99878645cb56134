"""Records: JSON objects whose declared keys are attributes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping

import pytest

from waterfill.contract import shapes
from waterfill.contract.record import Record


class Queue(Record):
    """A queue."""

    mean: float
    values_: list[float] | None = None


class Link(Record):
    """A link."""

    name: str
    queue: Queue
    parts: list[Queue] | None = None
    by_name: Mapping[str, Queue] | None = None
    lost: int = 0


def link() -> Link:
    return Link(name="l", queue=Queue(mean=1.5))


def test_a_record_is_the_json_it_was_given_in_its_order():
    assert json.dumps(link()) == '{"name": "l", "queue": {"mean": 1.5}}'
    assert link() == {"name": "l", "queue": {"mean": 1.5}}


def test_keys_are_attributes_to_read_and_to_set():
    one = link()
    one.queue.mean, one.lost = 2.0, 3
    assert (one.name, one.queue.mean, one["lost"]) == ("l", 2.0, 3)
    with pytest.raises(AttributeError):
        _ = one.unknown  # type: ignore[attr-defined]


def test_an_absent_key_has_its_default_and_is_not_in_the_json():
    assert link().lost == 0
    assert "lost" not in link()
    assert Link.__required_keys__ == {"name", "queue"}
    assert Link.__optional_keys__ == {"parts", "by_name", "lost"}


def test_reading_gives_nested_objects_their_classes():
    inside = {"mean": 1.0}
    found = Link.read(
        {"name": "l", "queue": inside, "parts": [inside], "by_name": {"a": inside}, "more": 1}
    )
    assert found.parts is not None
    assert found.by_name is not None
    assert [type(q) for q in (found.queue, *found.parts, found.by_name["a"])] == 3 * [Queue]
    assert found["more"] == 1


def test_values_that_do_not_fit_stay_for_the_check_of_shapes():
    found = Link.read({"name": "l", "queue": 3, "parts": None})
    assert shapes.wrong(found, Link) == ("queue", "must be an object, got 3")


def test_an_underscore_stands_for_a_name_of_dictionaries():
    one = Queue(mean=1.0, values_=[2.0])
    assert one == {"mean": 1.0, "values": [2.0]}
    assert one.values_ == [2.0]
    assert shapes.wrong({"mean": 1.0, "values": [True]}, Queue) == (
        "values[0]",
        "must be a number, got true",
    )


def test_a_record_pickles():
    assert pickle.loads(pickle.dumps(link())) == link()
    assert type(pickle.loads(pickle.dumps(link())).queue) is Queue
