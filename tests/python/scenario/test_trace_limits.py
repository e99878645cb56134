"""Traces and numbers of files that ask for more than there is: refused, not read to the end."""

from __future__ import annotations

import pytest

from waterfill.errors import InputError
from waterfill.scenario import traces
from waterfill.scenario.distributions import PartError
from waterfill.scenario.loading import from_dict
from waterfill.scenario.units import digits


@pytest.mark.parametrize(
    ("text", "given", "part", "message"),
    [
        (
            "1\n2\n",
            {"bin": "1 ps"},
            "bin",
            "2 ms in bins of 1 ps are more than 1000000 points",
        ),
        ("1\n999999999999\n", {}, "file", "the last time must be at most 1e+6 s"),
        ("1\n" + "9" * 5000, {}, "file", "must be TIME, RATE or a whole number"),
    ],
)
def test_trace_of_too_many_points(tmp_path, text, given, part, message):
    (tmp_path / "cell.txt").write_text(text)
    with pytest.raises(PartError) as caught:
        traces.parse({"file": "cell.txt", **given}, tmp_path)
    assert caught.value.part == part
    assert message.replace("1e+6 s", traces.TIME.format(1e6)) in str(caught.value)


def test_digits():
    assert digits("0042") == 42
    assert digits("9" * 18) == 10**18 - 1
    for text in ("", "-1", "1.0", "²", "\u0663", "9" * 19, "9" * 5000, " 1"):
        assert digits(text) is None


def test_trace_that_repeats_too_often():
    points = [["0 s", "1 Mbit/s"], ["1 ns", "2 Mbit/s"], ["2 ns", "1 Mbit/s"]]
    link = {"name": "l", "from": "a", "to": "b", "rate": "1 Mbit/s"}
    scenario = {
        "duration": "1000 s",
        "protocol": "maxnet",
        "link": [{**link, "rate_trace": {"points": points}}],
        "flow": [{"name": "f", "path": ["l"]}],
    }
    with pytest.raises(InputError) as caught:
        from_dict(scenario)
    expected = "more than 4000000 changes of the rate in the run"
    assert caught.value.key == "link.l.rate_trace"
    assert caught.value.message == f"{expected}, got 1.5e+12: it repeats every 2 ns"
    from_dict({**scenario, "duration": "1 ms"})
