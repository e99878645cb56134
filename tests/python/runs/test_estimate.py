"""Tests of estimates: a run is refused beyond the free memory, with a warning beyond a day."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import waterfill
from waterfill import _core
from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.runs.engine import LongRun
from waterfill.scenario.loading import from_dict

# Estimates are of greedy flows and unknown laws: they hold within this factor, either way.
FACTOR = 3.0

MEASURE = """
import json, sys
from waterfill import _core
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict

def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

on, document = json.loads(sys.argv[1])
scenario = from_dict(document)
network = resolve.to_core(scenario, protocols.load(), on)
before = kilobytes("VmRSS")
run = _core.Simulation(network) if on == "sim" else _core.Fluid(network, scenario.step)
run.advance(scenario.duration)
held = [run.summary(), *(run.series(which) for which in ("flows", "links", "traffic"))]
print(json.dumps([run.estimate(), 1024 * (kilobytes("VmHWM") - before)]))
"""


def link(rate="100 Mbit/s", delay="10 ms", **more):
    return {"name": "l", "from": "a", "to": "b", "rate": rate, "delay": delay, **more}


def one(duration, protocol="newreno", of_link=None, of_flow=None, **more):
    flow = {"name": "f", "path": ["l"], **(of_flow or {})}
    links = [of_link or link()]
    return {"duration": duration, "protocol": protocol, "link": links, "flow": [flow], **more}


@pytest.mark.parametrize(
    ("on", "document", "key"),
    [
        ("sim", one("200 ms", of_link=link("1 Mbit/s"), of_flow={"count": 30_000}), "flow.f.count"),
        ("sim", one("3 s", "maxnet", link("10 Mbit/s"), {"count": 100}, sample="1 ms"), "sample"),
        ("sim", one("2 s", "window", link("10 Gbit/s", "500 ms"), {"pacing": True},
                    params={"window": {"packets": 1e6}}), "link.l.delay"),
        ("fluid", one("30 ms", "maxnet", link(delay="5 ms"), step="40 ns"), "step"),
        ("fluid", one("10 ms", "maxnet", of_flow={"rtt": "1 s"}, step="200 ns"), "step"),
    ],
    ids=["flows", "series", "wires", "history", "padding"],
)  # fmt: skip
def test_estimated_memory_is_what_a_run_takes(on, document, key):
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps([on, document])],
        capture_output=True,
        text=True,
        check=True,
    )
    estimate, measured = json.loads(ran.stdout)
    assert estimate["bytes_key"] == key
    assert 1 / FACTOR < estimate["bytes"] / measured < FACTOR, (estimate, measured)


SOURCE = {"name": "t", "kind": "poisson", "path": ["l"], "rate": "1 Gbit/s"}
HOPS = {
    "link": [link(), {**link("50 Mbit/s"), "name": "m", "from": "b", "to": "c"}],
    "flow": [{"name": "f", "path": ["l", "m"], "count": 3}],
}


@pytest.mark.parametrize(
    ("on", "document", "key"),
    [
        ("sim", one("20 s"), "flow.f"),
        ("sim", one("5 s", "maxnet", **HOPS), "flow.f"),
        ("sim", one("1 s", traffic=[SOURCE]), "traffic.t"),
        ("sim", one("20 s", of_flow={"size": "2 MB"}), "flow.f"),
        ("fluid", one("5 s", "maxnet", **HOPS), "flow.f.rtt"),
        ("fluid", one("100 ms", "maxnet", step="10 us"), "step"),
    ],
)
def test_estimated_events_are_what_a_run_handles(on, document, key):
    scenario = from_dict({**document, "sample": "1 s"})
    network = resolve.to_core(scenario, protocols.load(), on)
    run = _core.Simulation(network) if on == "sim" else _core.Fluid(network, scenario.step)
    run.advance(scenario.duration)
    estimate, events = run.estimate(), run.progress()["events"]
    assert estimate["events_key"] == key
    assert 1 / FACTOR < estimate["events"] / events < FACTOR, (estimate, events)


# Petabytes, which no host has.
@pytest.mark.parametrize(
    ("on", "document", "key"),
    [
        ("fluid", one("1000000 s", "maxnet", of_flow={"rtt": "500000 s"}, step="1 ns"), "step"),
        ("fluid", one("1000000 s", "maxnet", link(delay="500000 s"), step="10 ns"), "step"),
        ("sim", one("1000000 s", of_flow={"count": 1_000_000}, series="1000000 GB"), "sample"),
    ],
)  # fmt: skip
def test_what_no_memory_holds_is_refused_with_the_estimate(on, document, key):
    with pytest.raises(InputError) as error:
        waterfill.run(document, on=on)
    assert error.value.key == key
    assert "of memory are free" in error.value.message
    assert "the run needs about" in error.value.message


@pytest.mark.parametrize(
    ("on", "document", "key"),
    [
        ("sim", one("60 s", traffic=[{**SOURCE, "rate": "1.3e16 bit/s"}]), "traffic.t"),
        ("sim", one("60 s", "aecp", params={"aecp": {"t_2": "1 ps"}}), "params.aecp"),
        ("fluid", one("100000 s", "maxnet", step="100 ns"), "step"),
    ],
)  # fmt: skip
def test_what_takes_longer_than_a_day_is_warned_of_before_it_starts(on, document, key):
    def stop(tick):
        raise KeyboardInterrupt

    with pytest.warns(LongRun, match=f": {key}: expected to take about .* events"):
        result = waterfill.run(document, on=on, progress=stop)
    assert result.summary["interrupted_at_s"] < 60


def test_what_people_run_is_neither_refused_nor_warned_of(recwarn):
    """A million flows, a link as good as unlimited, a buffer as good as infinite."""
    many = one("1 s", of_link=link("1 Mbit/s"), of_flow={"count": 1000}, sample="1 s")
    network = resolve.to_core(from_dict(many), protocols.load(), "sim")
    assert _core.Simulation(network).estimate()["bytes"] * 1000 < 3e9
    huge = link("1e15 bit/s", "1 s", buffer="1e18 B")
    run = waterfill.run(one("10 s", of_link=huge, of_flow={"demand": "1 Mbit/s"}))
    assert run.summary["flows"][0]["rate_bps"] > 0
    assert not [w for w in recwarn if w.category is LongRun]
