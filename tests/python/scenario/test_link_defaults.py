"""Values for all links: `link_defaults` in a file, and * in the keys of `--set`."""

from __future__ import annotations

import pytest

import waterfill
from waterfill.scenario.loading import from_dict, from_toml

LINKS = [
    {"name": name, "from": name[0], "to": name[1], "rate": "1 Gbit/s", "delay": "1 ms"}
    for name in ("ab", "bc")
]
FILE = {"duration": "1 s", "protocol": "dctcp", "link": LINKS,
        "flow": [{"name": "f", "from": "a", "to": "c"}]}  # fmt: skip


def buffers(scenario):
    return [str(link.buffer) for link in scenario.link]


def test_a_link_keeps_its_own_value():
    own = [LINKS[0] | {"buffer": "1 MB"}, LINKS[1]]
    defaults = {"buffer": "2 MB", "mark_at": "100 kB"}
    scenario = from_dict({**FILE, "link": own, "link_defaults": defaults})
    assert buffers(scenario) == ["1 MB", "2 MB"]
    assert [str(link.mark_at) for link in scenario.link] == ["100 kB", "100 kB"]
    again = from_toml(scenario.to_toml())
    assert again.link == scenario.link


def test_a_star_stands_for_the_names_that_fit():
    assert buffers(from_dict(FILE, sets=["link.*.buffer=2 MB"])) == ["2 MB", "2 MB"]
    assert buffers(from_dict(FILE, sets={"link.a*.buffer": "2 MB"})) == ["2 MB", "1 bdp"]
    later = from_dict(FILE, sets=["link.*.buffer=2 MB", "link.bc.buffer=3 MB"])
    assert buffers(later) == ["2 MB", "3 MB"]
    assert set(later.set_keys) == {"link.ab.buffer", "link.bc.buffer"}
    assert buffers(from_dict(FILE, sets=["link_defaults.buffer=4 MB"])) == ["4 MB", "4 MB"]


@pytest.mark.parametrize(
    ("more", "sets", "message"),
    [
        ({"link_defaults": {"bufer": "1 MB"}}, [],
         '<dict>: link_defaults.bufer: unknown key, did you mean "buffer"?'),
        ({"link_defaults": {"name": "x"}}, [], "link_defaults.name: each link has its own"),
        ({"link_defaults": 3}, [], "link_defaults: must be a table, got 3"),
        ({"link_defaults": {"buffer": 3}}, [], "<dict>: link.ab.buffer: must be a buffer such as"),
        ({}, ["link.*.buffer=3"], "command line: link.ab.buffer: must be a buffer such as"),
        ({}, ["link.x*.buffer=1 MB"], 'link.x*.buffer: no [[link]] has a name like "x*"'),
        ({}, ["link.*.bufer=1 MB"], "command line: link.ab.bufer: unknown key"),
    ],
)  # fmt: skip
def test_wrong_values_are_named(more, sets, message):
    with pytest.raises(waterfill.InputError) as caught:
        from_dict({**FILE, **more}, sets=sets)
    assert message in str(caught.value)
