"""Which verdicts change with a parameter of the law."""

from __future__ import annotations

import pytest

from waterfill.evaluation import text
from waterfill.evaluation.api import evaluate
from waterfill.evaluation.sensitivity import changed
from waterfill.network.protocols import ParamInfo


@pytest.fixture
def deep(suite):
    """The suite without rivals, whose quick cell has a deep buffer. The first packets of a
    window make a queue of all but one.
    """
    path = suite / "queue.toml"
    path.write_text(path.read_text().replace('["5 packets"] }', '["100 packets"] }'))
    (suite / "harm.toml").unlink()
    return suite


def sensitivity(deep, packets, against=None):
    document = evaluate(
        "window", suite=deep, seeds=1, quick=True, set=[f"params.window.packets={packets}"],
        sensitivity=True, against=against,
    ).document  # fmt: skip
    return document.sensitivity


def test_a_verdict_near_its_limit_changes_on_one_side(deep):
    fewer, more = sensitivity(deep, 13)  # a queue of 18 kB, limit 20 kB
    assert (fewer.default, fewer.value, more.value) == pytest.approx((13, 10.4, 15.6))
    assert text.sensitive(fewer) == ["none"]
    assert text.parameter(more) == "packets 13 → 15.6"
    assert text.sensitive(more) == ["2.10 Queue: meets → fails"]


def test_a_value_that_the_law_refuses_is_named(deep):
    document = evaluate(
        "cubic", suite=deep, seeds=1, quick=True, set=["params.cubic.beta=0.9"], sensitivity=True
    ).document
    (more,) = (one for one in document.sensitivity if one.refused)
    assert (more.parameter, more.value) == ("beta", pytest.approx(1.08))
    assert text.sensitive(more)[0].startswith("not possible: params.cubic.beta: must be")


def test_whole_numbers_change_by_one_at_least():
    param = ParamInfo("n", "count", 2.0)
    assert [changed(param, value, 1.2) for value in (2.0, 10.0)] == [3, 12]
    assert changed(param, 2.0, 0.8) == 1


def test_the_reference_keeps_its_parameters_if_it_is_the_same_law(deep):
    path = deep / "queue.toml"
    path.write_text(path.read_text().replace("limit = 20\n", 'limit = 1.1\nof = "reference"\n'))
    fewer, more = sensitivity(deep, 20, against=["window"])
    assert text.sensitive(fewer) == ["none"]
    assert text.sensitive(more) == ["2.10 Queue: meets → fails"]
