"""Options of run, compare, sweep, check and maxmin: one that changes nothing is refused."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from waterfill.sweeps.plan import SweepSpec, plan

OWN_LAW = Path(__file__).parents[3] / "examples" / "own_law.py"
LINK = """
duration = "200 ms"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "5 ms"
"""
FLOW = '[[flow]]\nname = "f"\npath = ["l"]\n'
WEB = '[[traffic]]\nkind = "web"\npath = ["l"]\narrival_rate = 20\nsizes = "3 kB"\n'
FILES = {
    "S.toml": 'protocol = "maxnet"' + LINK + FLOW,
    "named.toml": LINK + FLOW + 'protocol = "cubic"\n',
    "web.toml": 'protocol = "reno"' + LINK + WEB,
}
NAMED = "every flow names its own protocol"
REFUSED = {
    "run named.toml --protocol reno": NAMED,
    "run named.toml --set protocol=reno": NAMED,
    "check named.toml --protocol reno": NAMED,
    "maxmin named.toml --protocol reno": NAMED,
    "compare named.toml --protocols reno,bbr": NAMED,
    "sweep named.toml --protocols reno,bbr --grid link.l.delay=1ms,2ms": NAMED,
    "run S.toml --set params.xcp.alpha=0.3": "params.xcp.alpha: no effect: no flow runs xcp",
    "check S.toml --set params.xcp.alpha=0.3": "params.xcp.alpha: no effect: no flow runs xcp",
    "maxmin S.toml --set params.xcp.alpha=0.3": "params.xcp.alpha: no effect: no flow runs xcp",
    "compare S.toml --protocols rcp,vcp --set params.xcp.alpha=0.3": "no effect: no flow runs xcp",
    "sweep S.toml --grid params.xcp.alpha=0.3,0.4": "no effect: no flow runs xcp",
    "maxmin S.toml --set sample=50ms": "sample: no effect on maxmin; remove it",
    "maxmin S.toml --set seed=2": "seed: no effect on maxmin; remove it",
    "theory equilibrium S.toml --set seed=2": "seed: no effect on theory equilibrium; remove it",
    "theory stability S.toml --set duration=9s": "duration: no effect on theory stability",
    "theory equilibrium S.toml --set params.xcp.alpha=0.3": "no effect: no flow runs xcp",
    "run S.toml --set step=1ms": "step: no effect on sim, only on fluid",
    "run S.toml --set check_step=true": "check_step: no effect on sim, only on fluid",
    "run S.toml --on fluid --set ip_version=6": "ip_version: no effect on fluid, only on linux",
    "run S.toml --on fluid --seed 2": "seed: no effect on fluid without start_jitter or rtt_jitter",
    "sweep S.toml --on fluid --grid seed=1,2": "seed: no effect on fluid without start_jitter or",
    "compare S.toml --protocols rcp --set step=1ms": "step: no effect on sim, only on fluid",
    "run S.toml --protocol rcp --set protocol=xcp": 'protocol: given twice, got "rcp" and "xcp"',
    "run S.toml --seed 2 --set seed=3": 'seed: given twice, got "3" and "2"',
    "run S.toml --set seed=2 --set seed=3": 'seed: given twice, got "2" and "3"',
    "compare S.toml --protocols rcp,xcp,rcp": 'protocols: "rcp" is named 2 times; name it once',
    "sweep S.toml --protocols rcp,rcp --grid link.l.delay=1ms,2ms": '"rcp" is named 2 times',
    "compare S.toml --set protocol=reno": "protocol: no effect: compare runs each of --protocols",
    "sweep S.toml --set link.l.delay=1ms --grid link.l.delay=1ms,2ms": "set to one value and to",
    "sweep S.toml --grid link.l.delay=1ms,2ms --draw-seed 3": "draw-seed: no effect without --ran",
    "sweep S.toml --grid link.l.delay=1ms,2ms --tolerance 2%": "tolerance: no effect without --re",
    "sweep S.toml --grid link.l.delay=1ms,2ms --retry": "no sweep to retry here; leave out --retr",
    "run S.toml -o out --pcap-limit 1MB": "pcap-limit: no effect without --pcap; add --pcap",
    "run S.toml -o out --pcap-snaplen 99": "pcap-snaplen: no effect without --pcap; add --pcap",
    "run S.toml --log-law maxnet": "log-law: needs --log-steps ROWS",
    f"run S.toml --law {OWN_LAW}": "law: no flow uses the law mine",
    f"run S.toml --law {OWN_LAW} --protocol mine --threads 2": "threads: a run cannot use several",
    f"compare S.toml --law {OWN_LAW} --protocols rcp": "law: no flow uses the law mine",
    "run S.toml --on fluid --threads 2": "fluid cannot use several threads; use --on sim",
    "report out --json": "unknown option",
    "reproduce --list --short": "--short: no effect with --list; remove it",
    "reproduce --list --seed 0": "--seed: no effect with --list; remove it",
    "reproduce --list -o out": "--output: no effect with --list; remove it",
    "reproduce --all maxnet-2007": "no effect with --all, got maxnet-2007",
}


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize("line", REFUSED)
def test_an_option_without_effect_is_refused(waterfill, files, tmp_path, line):
    ran = waterfill(*shlex.split(line))
    assert (ran.code, ran.out) == (2, "")
    assert REFUSED[line] in ran.err
    assert len(ran.err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    "line",
    [
        "run named.toml --set params.cubic.beta=0.8",
        "run S.toml --on fluid --set step=1ms",
        "run S.toml --on fluid --seed 2 --set flow.f.start_jitter=1ms",
        "compare S.toml --on sim,fluid --protocols rcp --seed 2",
        "compare S.toml --protocols rcp,xcp --set params.xcp.alpha=0.3",
        "maxmin S.toml --set params.maxnet.mu=0.5",
        "maxmin S.toml --set seed=2 --set flow.f.start_jitter=1ms",
        "theory equilibrium S.toml --set params.maxnet.mu=0.5",
        "run web.toml --protocol cubic",
        "run web.toml --protocol maxnet -o out --log-steps 9 --log-law maxnet",
    ],
)
def test_an_option_with_effect_is_taken(waterfill, files, line):
    assert waterfill(*shlex.split(line)).code == 0


def test_protocols_of_sources_of_flows_can_be_swept(files, tmp_path):
    found = plan(tmp_path / "web.toml", SweepSpec(protocols="reno,cubic", workers=1))
    assert len(list(found.first)) == 2


def test_a_topology_in_place_of_a_scenario_is_named(waterfill, tmp_path):
    (tmp_path / "net.gml").write_text("graph [ node [ id 0 ] ]")
    ran = waterfill("run", "net.gml")
    assert ran.code == 2
    assert "for a topology: waterfill import gml net.gml -o S.toml" in ran.err
