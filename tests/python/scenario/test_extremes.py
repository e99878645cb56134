"""Values and nesting far beyond any network: one sentence each, never a traceback."""

from __future__ import annotations

import pytest

from waterfill.errors import InputError
from waterfill.runs import backends
from waterfill.scenario.loading import from_dict, from_toml

SCENARIO = """
duration = "1 ms"
protocol = "cubic"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "f"
path = ["l"]
"""


@pytest.mark.parametrize(
    ("assignment", "key", "message"),
    [
        (
            "link.l.buffer=1e308 bdp",
            "link.l.buffer",
            'must be at most 1e+19 B, got "1e+308 bdp" of 10 Mbit/s × 10 ms',
        ),
        (
            "link.l.rate=9e307 bit/s",
            "link.l.buffer",
            'must be at most 1e+19 B, got "1 bdp" of 9e+307 bit/s × 10 ms',
        ),
        (
            "link.l.buffer=1e308 B",
            "link.l.buffer",
            'must be at most 1e+19 B, got "1e308 B"',
        ),
        (
            "link.l.buffer=1e300 packets",
            "link.l.buffer",
            'must be at most 1e+19 packets, got "1e300 packets"',
        ),
        (
            "flow.f.size=1e300 B",
            "flow.f.size",
            'must be at most 1e+19 B, got "1e300 B"',
        ),
    ],
)
def test_number_beyond_64_bits(assignment, key, message):
    with pytest.raises(InputError) as caught:
        backends.run(from_toml(SCENARIO, "s.toml", [assignment]))
    assert caught.value.key == key
    assert caught.value.message == message


@pytest.mark.parametrize("start", ["flow.f.size", "link.l.buffer", "name", "params.maxnet", "link"])
def test_dotted_key_of_3000_steps(start):
    deep = ".".join([start, *"a" * 3000])
    with pytest.raises(InputError) as caught:
        backends.prepare(from_toml(SCENARIO, "s.toml", [f"{deep}=1"]), "sim")
    assert len(str(caught.value)) < 600


def test_deep_tables():
    deep: dict[str, object] = {}
    for _ in range(3000):
        deep = {"a": deep}
    with pytest.raises(InputError, match=r"^<dict>: tables and lists are nested too deeply$"):
        from_dict({"duration": deep})


def test_error_of_the_parser_is_short():
    twice = "path" + ".a" * 3000 + " = 1\n"
    with pytest.raises(InputError, match="not valid TOML:") as caught:
        from_toml(twice + twice, "s.toml")
    assert len(str(caught.value)) < 400
