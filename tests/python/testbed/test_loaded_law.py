"""Tests of MaxNet in the testbed: plan, the daemon's arguments, samples and verdicts.

A script stands for the daemon, so that this runs everywhere; what needs the kernel is at the end.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import synthetic
from validation.testbed import maxnet_special
from waterfill.errors import InputError, RunError
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict
from waterfill.testbed import backend, checks, daemon, front, kernel, plan
from waterfill.testbed.answer import Answer, LawSample
from waterfill.testbed.daemon import Daemon, DaemonError, DaemonRefusal, Laws

OFFERED = ["reno", "cubic", kernel.loadable("maxnet"), kernel.loadable("aecp")]
# What `waterfilld laws --json` says, as far as the testbed reads it.
LISTED = [
    {"name": "maxnet", "link": ["price_s", "price_min_s"], "source": ["price_s", "xi"],
     "parameters": ["x_max", "x_min", "alpha", "eta", "t", "dt_min", "average", "compensate",
                    "order", "dt_p", "t_0", "promise"]},
    {"name": "aecp", "link": ["r", "r_max"], "source": ["r", "x"],
     "parameters": ["alpha", "beta", "t", "t_2", "q_0", "x_0", "r_0", "form", "step", "ceiling",
                    "rounding"]},
]  # fmt: skip
LAWS = {
    law["name"]: daemon.LoadableLaw(
        law["name"], tuple(law["parameters"]), tuple(law["link"]), tuple(law["source"])
    )
    for law in LISTED
}

# Says what it was asked to do in its first answer, then answers with a state of the test's.
FAKE = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
if arguments == ["laws", "--json"]:
    laws = json.loads(os.environ["FAKE_LAWS"])
    for law in laws:
        law["parameters"] = [{{"name": name}} for name in law["parameters"]]
    print(json.dumps(laws))
    sys.exit(0)
if "--refuse" in os.environ.get("FAKE", ""):
    sys.stderr.write("waterfilld: device l0: must be the name of a network device\\n")
    sys.exit(2)
if "--fail" in os.environ.get("FAKE", ""):
    sys.stderr.write("waterfilld: Operation not permitted\\n")
    sys.exit(1)
print(json.dumps({{"ready": True, "arguments": arguments}}), flush=True)
flows = [
    {{"local": "10.0.0.1:5301", "remote": "10.0.0.2:5201", "mode": "priced", "price_s": 6.4,
      "law": "maxnet", "xi": 140.0, "rate_bps": 90000000, "fallback_reason": None}},
    {{"local": "10.0.0.1:40000", "remote": "10.0.0.2:5201", "mode": "fallback", "price_s": 0.0,
      "law": "maxnet", "xi": 0.0, "rate_bps": 0, "fallback_reason": "no echo"}},
]
links = [
    {{"device": arguments[i + 1], "price_s": 6.5, "load": 0.9, "law": "maxnet"}}
    for i, word in enumerate(arguments) if word == "--dev"
]
for line in sys.stdin:
    if line.startswith("rate "):
        rate = line[5:-1]
        wrong = None if rate.endswith("bit") else "must be a rate"
        print(json.dumps({{"rate": rate, "at_s": 100.25, "error": wrong}}), flush=True)
        continue
    if line.startswith("restart "):
        print(json.dumps({{"restart": line[8:-1], "at_s": 100.5, "error": None}}), flush=True)
        continue
    host = arguments[0] == "host"
    state = {{"flows": flows if host else [], "links": [] if host else links}}
    print(json.dumps(state), flush=True)
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    path = tmp_path / "waterfilld"
    path.write_text(FAKE.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("WATERFILLD", str(path))
    monkeypatch.setenv("FAKE_LAWS", json.dumps(LISTED))
    return path


@pytest.fixture
def offered(monkeypatch):
    monkeypatch.setattr(kernel, "offered", lambda: OFFERED)
    monkeypatch.setattr(daemon, "laws", lambda: LAWS)
    monkeypatch.setattr(checks, "missing", lambda **_: None)


def test_a_path_in_the_environment_that_is_no_program_is_refused(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for path in ("nosuch", "."):
        monkeypatch.setenv("WATERFILLD", path)
        message = f'environment: WATERFILLD: no program at "{path}"; type the path of waterfilld'
        with pytest.raises(InputError, match=message):
            daemon.binary()


def scenario(**changes):
    document = {
        "duration": "3 s",
        "protocol": "maxnet",
        "link": [
            {"name": "l1", "from": "r1", "to": "r2", "rate": "100 Mbit/s", "delay": "5 ms"},
            {"name": "l2", "from": "r2", "to": "r3", "rate": "50 Mbit/s"},
        ],
        "flow": [{"name": "f", "from": "a", "to": "b", "path": ["l1", "l2"], "rtt": "30 ms"}],
    }
    return from_dict(document | changes)


def planned(run=None, targets=None, **changes):
    checked = scenario(**changes)
    resolved = resolve.to_core(checked, kernel.protocols(protocols.load(), OFFERED), "linux")
    laws = kernel.congestion(OFFERED, protocols.load(), run)
    return plan.of(checked, resolved, laws, targets or {"maxnet": 0.9, "aecp": 1.0})


def link(name, **more):
    return {"name": name, "from": "r1", "to": "r2", "rate": "100 Mbit/s"} | more


def pricings(**changes):
    return [(p.direction, p.target) for p in planned(**changes).pricings]


# --- what is planned --------------------------------------------------------------------------


def test_a_router_is_wherever_data_of_the_law_cross_a_link_and_not_on_their_way_back():
    assert pricings() == [(0, 0.9), (2, 0.9)]
    both = [{"name": "f", "path": ["l1"]}, {"name": "g", "path": ["l1:rev"]}]
    assert pricings(flow=both) == [(0, 0.9), (1, 0.9)]
    mixed = [{"name": "f", "path": ["l1"], "protocol": "cubic"}, {"name": "g", "path": ["l2"]}]
    assert pricings(flow=mixed) == [(2, 0.9)]
    assert pricings(protocol="cubic") == []


def test_links_say_what_they_speak_and_what_they_aim_at():
    flow = [{"name": "f", "path": ["l"]}]
    assert pricings(link=[link("l", routers=[])], flow=flow) == []
    assert pricings(link=[link("l", routers=["maxnet"])], flow=flow) == [(0, 0.9)]
    assert pricings(link=[link("l", routers=["xcp"])], flow=flow) == []
    assert pricings(link=[link("l", target=0.8)], flow=flow) == [(0, 0.8)]


def test_the_law_has_a_name_of_the_runs_own_and_the_kernels_keep_theirs():
    flows = [{"name": "f", "path": ["l1"]}, {"name": "g", "path": ["l1"], "protocol": "cubic"}]
    streams = planned(run="7", flow=flows).streams
    assert [(s.congestion, s.loaded) for s in streams] == [("bpf_mat7", True), ("cubic", False)]


def test_names_fit_the_kernels_fifteen_characters_and_differ():
    explicit = [name for name, info in protocols.load().items() if info.kind == "explicit"]
    run = daemon.run_name()
    names = [daemon.name_of(law, run) for law in explicit]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 15 and name.endswith(run) for name in names)
    assert daemon.run_name() != run


def test_laws_are_paced_as_their_headers_say():
    headers = Path(__file__).parents[3] / "crates/waterfill-laws/kernel"
    found = set()
    for law in daemon.laws() or LAWS:
        # P-XCP and iXCP are XCP's header with a definition; MaxNet's interface is in its own.
        names = (f"{law}_law.h", f"{law}.h", "xcp.h")
        texts = [(headers / name).read_text() for name in names if (headers / name).exists()]
        paced = next(m[1] for text in texts if (m := re.search(r"LAW_PACED (\d)", text)))
        found |= {law} if paced == "0" else set()
    assert found == kernel.WINDOWS & set(daemon.laws() or LAWS)


def test_every_law_of_a_scenario_has_routers_where_its_data_cross():
    flows = [{"name": "f", "path": ["l1", "l2"]}, {"name": "g", "path": ["l1"], "protocol": "aecp"}]
    built = planned(flow=flows)
    assert [(p.direction, p.protocol, p.target) for p in built.pricings] == [
        (0, "aecp", 1.0), (0, "maxnet", 0.9), (2, "maxnet", 0.9)
    ]  # fmt: skip
    assert [s.congestion for s in built.streams] == ["bpf_maxnet", "bpf_aecp"]


# --- what is asked of the daemon ---------------------------------------------------------------


def arguments_of(law, **changes):
    known = protocols.load()
    given = protocols.with_defaults([law], {law: changes}, known)
    return LAWS[law], known[law], given[law]


def words(arguments):
    """Return {"--name": "bpf_mat1", …}, and {"alpha": "0.66", …} of the --set options."""
    pairs = list(itertools.pairwise(arguments))
    options = {a: b for a, b in pairs if a.startswith("--") and a != "--set"}
    return options, dict(b.split("=") for a, b in pairs if a == "--set")


def test_every_parameter_of_the_scenario_reaches_the_host():
    line = daemon.host_arguments(*arguments_of("maxnet"), "bpf_mat1", [7, 8], 2.5)
    options, plain = words(line)
    assert line[:3] == ["host", "--no-pin", "--line"]
    assert (options["--law"], options["--name"]) == ("maxnet", "bpf_mat1")
    assert options["--base-rtt-window"] == "2500000000ns"
    assert (plain["alpha"], plain["eta"], plain["t"]) == ("0.66", "0.06", "400000000ns")
    assert (plain["x_max"], plain["dt_min"]) == ("1000000000000000bit", "1000ns")
    assert plain["x_min"] == "32bit"
    assert (plain["average"], plain["order"]) == ("true", "xi-first")
    changes = {"alpha": 0.4, "t": 0.2, "average": False, "order": "rate-first"}
    other = daemon.host_arguments(*arguments_of("maxnet", **changes), "bpf_mat1", [7, 8], None)
    options, changed = words(other)
    assert (changed["alpha"], changed["t"]) == ("0.4", "200000000ns")
    assert (changed["average"], changed["order"]) == ("false", "rate-first")
    assert options["--base-rtt-window"] == "unlimited"
    rcp = protocols.load()["rcp"]
    line = daemon.host_arguments(LAWS["maxnet"], rcp, {}, "bpf_rcp1", [7], None)
    assert "--base-rtt-window" not in line  # the law does not use it
    assert [other[i + 1] for i, w in enumerate(other) if w == "--netns-cookie"] == ["7", "8"]


def test_every_parameter_of_the_scenario_reaches_the_router():
    built = planned(targets={"maxnet": 0.94})
    plain = daemon.router_arguments(*arguments_of("maxnet"), built.pricings[:1])
    options, given = words(plain)
    assert plain[5:9] == ["--dev", "l0", "--rate", "100000000bit"]
    assert (options["--target"], options["--overhead"]) == ("0.94", "0")
    assert (given["dt_p"], given["t_0"], given["promise"]) == ("1000000ns", "130000000ns", "false")
    changes = arguments_of("maxnet", promise=True, dt_p=0.002)
    _, given = words(daemon.router_arguments(*changes, built.pricings))
    assert (given["promise"], given["dt_p"]) == ("true", "2000000ns")


def test_a_law_without_a_target_parameter_gets_one_only_from_the_link():
    flow = [{"name": "f", "path": ["l"]}]
    for own, wanted in ((None, None), (0.8, "0.8")):
        more = {} if own is None else {"target": own}
        built = planned(protocol="aecp", link=[link("l", **more)], flow=flow)
        options, given = words(daemon.router_arguments(*arguments_of("aecp"), built.pricings))
        assert (options["--law"], options.get("--target")) == ("aecp", wanted)
        assert given["t_2"] == "100000000ns"


# --- the process ------------------------------------------------------------------------------


def test_a_daemon_is_asked_without_waiting_and_answers_when_it_can(fake):
    process = Daemon(["router", "--dev", "l0"])
    try:
        assert process.wait()["arguments"] == ["router", "--dev", "l0"]
        assert process.poll() is None  # nothing was asked
        process.ask()
        process.ask()  # one question at a time
        end = time.monotonic() + 20
        while (answer := process.poll()) is None and time.monotonic() < end:
            time.sleep(0.005)
        assert answer["links"][0]["device"] == "l0"
        process.ask()
        assert process.status()["links"][0]["price_s"] == 6.5
        assert process.poll() is None  # the question before was answered on the way
    finally:
        process.close()


def test_a_daemon_that_refuses_says_why_in_its_own_words(fake, monkeypatch):
    monkeypatch.setenv("FAKE", "--refuse")
    with pytest.raises(DaemonRefusal, match="device l0: must be the name of a network device"):
        Daemon(["router", "--dev", "l0"]).wait()
    monkeypatch.setenv("FAKE", "--fail")
    with pytest.raises(DaemonError, match="Operation not permitted") as error:
        Daemon(["router", "--dev", "l0"]).wait()
    assert not isinstance(error.value, DaemonRefusal)


def test_without_the_program_there_is_no_law(monkeypatch, tmp_path):
    monkeypatch.setattr(daemon, "binary", lambda: None)
    assert kernel.LOADER not in kernel.offered()
    with pytest.raises(DaemonError, match="not installed"):
        Daemon(["host"])


class Here:
    """A namespace that is the caller's own."""

    def entered(self):
        import contextlib

        return contextlib.nullcontext()


def test_hosts_come_before_routers_and_samples_are_by_stream_and_direction(fake, monkeypatch):
    monkeypatch.setattr(daemon, "cookie", lambda space: 99)
    built = planned(run="7")
    laws = Laws(built, {"maxnet": arguments_of("maxnet")[2]}, [Here()] * len(built.namespaces))
    laws.load()
    laws.attach_routers()
    try:
        assert len(laws.hosts) == 1
        assert len(laws.routers) == 2  # links of two namespaces
        end = time.monotonic() + 20
        now_s = 0.0
        while not laws.samples and time.monotonic() < end:
            laws.take(now_s)
            now_s += daemon.MIN_SAMPLE_S
            time.sleep(0.01)
        found = laws.finish(7.0)
    finally:
        laws.close()
    assert found[0]["time_s"] == 0.0
    assert found[-1]["time_s"] == 7.0
    for sample in (found[0], found[-1]):
        assert sample["flows"]["0"]["price_s"] == 6.4  # iperf3's talk beside its data is left out
        assert set(sample["links"]) == {"0", "2"}
        assert sample["links"]["2"]["maxnet"]["price_s"] == 6.5


def test_a_routers_rate_changes_between_samples_and_is_judged_by_its_time(fake, monkeypatch):
    monkeypatch.setattr(daemon, "cookie", lambda space: 99)
    built = planned(run="7")
    laws = Laws(built, {"maxnet": arguments_of("maxnet")[2]}, [Here()] * len(built.namespaces))
    laws.attach_routers()
    try:
        laws.take(0.0)
        laws.set_rate(2, 8e6, 0.1)
        laws.take(0.2)
        laws.set_rate(2, 9e6, 0.2)
        laws.set_rate(1, 9e6, 0.2)  # the way back, which has no router
        found = laws.finish(1.0)
        rates = [answer["rate"] for process, _ in laws.routers for answer in process.changes]
        assert [rate.split(" ", 1)[1] for rate in rates] == ["8000000bit", "9000000bit"]
        changes = laws.changes(100.0)
    finally:
        laws.close()
    assert found[-1]["links"]["2"]["maxnet"]["price_s"] == 6.5
    assert [change["late_s"] for change in changes] == pytest.approx([0.15, 0.05])
    assert [change["error"] for change in changes] == [None, None]


def test_a_router_restarts_at_its_time(fake, monkeypatch):
    monkeypatch.setattr(daemon, "cookie", lambda space: 99)
    built = planned(run="7")
    laws = Laws(built, {"maxnet": arguments_of("maxnet")[2]}, [Here()] * len(built.namespaces))
    laws.attach_routers()
    try:
        laws.restart_routers(2, 0.4)
        laws.restart_routers(1, 0.4)  # the way back, which has no router
        laws.finish(1.0)
        devices = {name for _, mine in laws.routers for name, way in mine.items() if way == 2}
        found = [answer for process, _ in laws.routers for answer in process.changes]
        assert {answer["restart"] for answer in found} == devices
        assert laws.changes(100.0) == [{"at_s": 0.4, "late_s": pytest.approx(0.1), "error": None}]
    finally:
        laws.close()


def test_samples_come_no_more_often_than_a_tenth_of_a_second(fake, monkeypatch):
    monkeypatch.setattr(daemon, "cookie", lambda space: 99)
    built = planned()
    laws = Laws(built, {"maxnet": arguments_of("maxnet")[2]}, [Here()] * len(built.namespaces))
    laws.load()
    laws.attach_routers()
    try:
        for step in range(20):
            laws.take(step * 0.01)
            time.sleep(0.01)
        # One at 0, one at 0.1 at the earliest, and the end's own.
        assert len(laws.finish(0.2)) <= 3
    finally:
        laws.close()


def test_a_link_with_a_target_of_its_own_has_a_daemon_of_its_own(fake, monkeypatch):
    monkeypatch.setattr(daemon, "cookie", lambda space: 99)
    links = [
        {"name": "l1", "from": "r1", "to": "r2", "rate": "9 Mbit/s"},
        {"name": "l2", "from": "r1", "to": "r3", "rate": "9 Mbit/s"},
        {"name": "l3", "from": "r1", "to": "r4", "rate": "9 Mbit/s", "target": 0.8},
    ]
    flows = [{"name": n, "path": [n]} for n in ("l1", "l2", "l3")]
    built = planned(link=links, flow=flows)
    laws = Laws(built, {"maxnet": arguments_of("maxnet")[2]}, [Here()] * len(built.namespaces))
    laws.attach_routers()
    laws.close()
    assert sorted(len(directions) for _, directions in laws.routers) == [1, 2]


def test_the_data_connection_of_a_download_is_its_servers():
    flow = [{"name": "f", "path": ["l1"], "size": "1 MB"}]
    (stream,) = planned(flow=flow).streams
    assert daemon.data_sender(stream, 4) == ("10.0.0.1:80", "10.0.0.2")
    (six,) = planned(flow=flow, ip_version=6).streams
    assert daemon.data_sender(six, 6) == ("[fd00::1]:80", "[fd00::2]")


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"params": {"maxnet": {"arithmetic": "real"}}}, "params.maxnet.arithmetic",
         'must be "kernel-host" on linux, got "real"'),
        ({"protocol": "aecp", "params": {"aecp": {"source": "window"}}}, "params.aecp.source",
         'must be "rate" on linux, got "window"'),
        ({"flow": [{"name": "f", "path": ["l1"], "pacing": False}]}, "flow.f.pacing",
         "must be true, because the kernel's maxnet always paces"),
        ({"flow": [{"name": "f", "path": ["l1"], "weight": 2.0}]}, "flow.f.weight",
         "must be 1 on linux, got 2"),
        ({"flow": [{"name": "f", "path": ["l1"], "base_rtt_window": "2 s"},
                   {"name": "g", "path": ["l1"]}]}, "flow.g.base_rtt_window",
         'must be the same for all flows of maxnet on linux, "2 s", got "10 s"'),
        ({"base_rtt_window": "10 us"}, "flow.f.base_rtt_window",
         "must be at least 1 ms on linux, got 10 us"),
        ({"params": {"maxnet": {"mu": 1.5}}}, "params.maxnet.mu", "a number in (0, 1]"),
        ({"flow": [{"name": "f", "path": ["l1"], "protocol": "fast"}]}, "flow.f.protocol",
         '"fast" does not run on linux'),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("offered")
def test_what_linux_does_not_have_of_the_law_is_one_line(changes, key, said):
    with pytest.raises(InputError) as error:
        backend.prepare(scenario(**changes))
    assert error.value.key == key
    assert said in error.value.message
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("said", "key", "message"),
    [
        ("eta: must be a value from 0.001 to 65.535 in kernel arithmetic, got 0.0005",
         "params.maxnet.eta", "must be a value from 0.001 to 65.535 on linux, got 0.06"),
        ("t_0: must be a time longer than dt_p, 2 ms, got 1 ms",
         "params.maxnet.t_0", "must be a time longer than dt_p, 2 ms on linux, got 0.13"),
        ("x_max: must be more than the link's 2 Mbit/s, got 1 Mbit/s",
         "params.maxnet.x_max",
         "must be more than the link's 2 Mbit/s on linux, got 1000000000000000.0"),
        ("needs Linux 5.2", "", "waterfilld: needs Linux 5.2"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("offered")
def test_what_the_daemon_refuses_is_wrong_input(monkeypatch, said, key, message):
    def run(*_):
        raise front.Refusal(f"maxnet: waterfilld: {said}")

    monkeypatch.setattr(front, "run", run)
    with pytest.raises(InputError) as error:
        backend.run(scenario())
    assert (error.value.key, error.value.message) == (key, message)


def test_the_tree_tells_a_refusal_from_a_failure():
    def follow(line):
        reading, writing = os.pipe()
        os.write(writing, json.dumps(line).encode() + b"\n")
        os.close(writing)
        with open(reading, "rb") as pipe:
            return front._follow(SimpleNamespace(stdout=pipe), 0.0, 1.0, None)

    with pytest.raises(front.Refusal, match=r"^no$"):
        follow({"refused": "no"})
    with pytest.raises(RunError, match=r"^linux: OSError: no$") as error:
        follow({"error": "OSError: no", "traceback": ""})
    assert not isinstance(error.value, front.Refusal)


@pytest.mark.usefixtures("offered")
def test_the_integers_are_all_that_linux_has():
    known = protocols.load()
    assert kernel.variant(known["maxnet"], "arithmetic") == ("kernel-host", "kernel")
    assert kernel.variant(known["aecp"], "arithmetic") == ("kernel-host", "kernel")
    flow = synthetic.flow_spec("f", 1, 1.0)._replace(protocol="aecp")
    shown = backend.params_of(synthetic.network(["l"], [flow]))["aecp"]
    assert (shown["arithmetic"], shown["t_2"]) == ("kernel-host", 0.1)
    flow = synthetic.flow_spec("f", 1, 1.0)._replace(protocol="cubic")
    assert backend.params_of(synthetic.network(["l"], [flow])).keys() == {"cubic"}


def test_without_the_daemon_one_line_says_so(monkeypatch, waterfill, tmp_path):
    monkeypatch.setattr(kernel, "offered", lambda: ["reno", "cubic"])
    monkeypatch.setattr(daemon, "binary", lambda: None)
    with pytest.raises(InputError, match=r'protocol: "maxnet" needs the daemon waterfilld'):
        backend.resolve(scenario())


# --- what is made of samples -------------------------------------------------------------------


def state(**changes):
    found = {"law": "maxnet", "mode": "priced", "price_s": 6.4, "xi": 140.0} | changes
    return {"fallback_reason": None, "signal": found["price_s"]} | found


def judged(*samples, kind="iperf", forward=(0,), priced=(0,)):
    stream = {"name": "f", "group": "f", "kind": kind, "loaded": True, "protocol": "maxnet"}
    flow = synthetic.flow_spec("f", 1, 1.0)._replace(forward=forward)
    raw = {
        "plan": {"streams": [stream],
                 "pricings": [{"direction": d, "protocol": "maxnet"} for d in priced]},
        "samples": {"laws": [{"time_s": i, "flows": {} if s is None else {"0": s}}
                             for i, s in enumerate(samples)]},
    }  # fmt: skip
    check = checks._law(Answer.read(raw), synthetic.network(["l"] * 3, [flow]))
    return check["ok"]


def test_the_law_ruled_when_every_flow_was_priced_to_its_end():
    assert judged(state(mode="asking", price_s=0.0), state())
    assert not judged(state(), state(price_s=0.0))
    assert not judged(state(), state(fallback_reason="no echo"))
    # Also when it came back: for a while it was another law's run.
    assert not judged(state(fallback_reason="loss without price"), state())
    assert not judged(None, None)


def test_a_transfer_that_nobody_saw_is_not_held_against_the_law():
    assert judged(None, kind="http")


def test_a_path_with_a_link_that_does_not_speak_the_law_is_the_scenarios_wish():
    without = state(price_s=0.0, fallback_reason="no price")
    assert not judged(without, forward=(0, 2), priced=(0, 2))
    assert judged(without, forward=(0, 2), priced=(0,))


def test_runs_without_a_loaded_law_have_no_such_check():
    assert checks._law(Answer.read({"samples": {}}), synthetic.network(["l"], [])) is None


def test_prices_stand_on_the_samples_grid_under_the_simulators_names():
    from waterfill.testbed.outcome import Outcome

    of = Outcome.__new__(Outcome)
    of._grid = np.array([0.0, 0.1, 0.2, 0.3])
    of._signals = {name: daemon.columns(LAWS[name], protocols.load()[name]) for name in LAWS}
    aecp = {"law": "aecp", "r": 0.0, "r_max": 5.0}
    samples = [
        {"time_s": 0.103, "flows": {},
         "links": {"0": {"maxnet": link_state(6.0), "aecp": aecp | {"r": 9.0}}}},
        {"time_s": 0.298, "flows": {"0": state()},
         "links": {"0": {"maxnet": link_state(6.5), "aecp": aecp}}},
        {"time_s": 0.299, "flows": {}, "links": {"0": {"maxnet": link_state(0.0)}}},
        {"time_s": 9.0, "flows": {"0": state()}, "links": {}},
    ]  # fmt: skip
    of._laws = [LawSample.read(sample) for sample in samples]
    flow = of.law_columns("flows", 0)
    assert list(flow) == ["maxnet_price", "maxnet_xi", "aecp_r", "aecp_x"]
    assert flow["maxnet_price"] == pytest.approx([np.nan, np.nan, 6.4], nan_ok=True)
    assert flow["maxnet_xi"][2] == 140.0
    assert np.isnan(flow["aecp_r"]).all()
    found = of.law_columns("links", 0)
    assert found["maxnet_price"] == pytest.approx([np.nan, 6.0, 6.5], nan_ok=True)
    assert found["aecp_r"] == pytest.approx([np.nan, 9.0, np.nan], nan_ok=True)
    of._signals = {}
    assert of.law_columns("links", 0) == {}


def link_state(price_s):
    return {"law": "maxnet", "price_s": price_s}


@pytest.mark.usefixtures("offered")
def test_json_of_a_job_carries_what_the_tree_needs(monkeypatch):
    seen = {}

    def run(job, *_):
        seen.update(json.loads(json.dumps(job)))
        raise KeyboardInterrupt

    monkeypatch.setattr(backend.front, "run", run)
    with pytest.raises(KeyboardInterrupt):
        backend.run(scenario(params={"maxnet": {"mu": 0.94}}))
    assert seen["targets"]["maxnet"] == 0.94
    assert seen["params"]["maxnet"]["alpha"] == 0.66
    assert seen["congestion"].keys() == {"maxnet"}
    assert seen["congestion"]["maxnet"]["name"].startswith("bpf_mat")


# --- on the kernel ----------------------------------------------------------------------------

LACKS = checks.missing() or (
    "the daemon waterfilld beside this Python, got none" if daemon.binary() is None else None
)
on_kernel = pytest.mark.skipif(LACKS is not None, reason=f"MaxNet in the kernel needs {LACKS}")

# Three laws and cbr in one run, data of the law both ways, one of its flows a download.
BESIDE = """
name = "beside"
duration = "3 s"
measure = ["1500 ms", "3 s"]
protocol = "maxnet"
[[link]]
name = "l1"
from = "r1"
to = "r2"
rate = "20 Mbit/s"
delay = "5 ms"
[[link]]
name = "l2"
from = "r2"
to = "r3"
rate = "10 Mbit/s"
target = 0.8
[[link]]
name = "l3"
from = "r2"
to = "r4"
rate = "10 Mbit/s"
[[flow]]
name = "long"
path = ["l1", "l2"]
[[flow]]
name = "back"
path = ["l1:rev"]
[[flow]]
name = "file"
path = ["l1"]
size = "300 kB"
start = "500 ms"
[[flow]]
name = "cubic"
path = ["l3"]
protocol = "cubic"
[[traffic]]
kind = "cbr"
path = ["l1"]
rate = "1 Mbit/s"
"""


@pytest.fixture
def word(monkeypatch):
    """The word that identifies this test's runs; another process may have runs of its own."""
    chosen = daemon.run_name()
    monkeypatch.setattr(daemon, "run_name", lambda: chosen)
    return chosen


def of_run(word):
    """List everything of a run that its namespaces do not hold: laws, cgroups and pins."""
    found = list(kernel.available())
    for root in ("/sys/fs/cgroup", "/sys/fs/bpf"):
        for _, folders, files in os.walk(root):
            found += folders + files
    return [name for name in found if word in name]


@on_kernel
@pytest.mark.parametrize("ip_version", [4, 6])
def test_the_law_rules_beside_other_laws_and_leaves_nothing(tmp_path, waterfill, ip_version, word):
    path = tmp_path / "beside.toml"
    path.write_text(BESIDE)
    found = waterfill("run", str(path), "--on", "linux", "--json", "-o", "out", "--set",
                      f"ip_version={ip_version}")  # fmt: skip
    assert found.code in (0, 1), found.err  # 1: a check failed, on a machine with other work
    assert of_run(word) == []
    document = found.document
    assert document["testbed"]["loaded"] == [f"bpf_mat{word}"]
    law = next(check for check in document["checks"] if check["name"] == "law")
    # Whether it is passed is a question of time: a late delay line is a queue without a price.
    assert [entry["flow"] for entry in law["found"]] == ["long", "back", "file"]
    assert document["params"]["maxnet"]["alpha"] == 0.66
    flows = {flow["name"]: flow for flow in document["flows"]}
    assert flows["file"]["completed_s"] is not None
    # Never more than the least link has; on a machine without time to spare it may be less.
    assert 0 < flows["long"]["rate_bps"] <= 10e6 * 1.02
    assert flows["long"]["max_min_bps"] == pytest.approx(8e6)


@on_kernel
def test_prices_are_sampled_and_columns_are_the_simulators(tmp_path):
    import waterfill

    text = BESIDE + "[params.maxnet]\nmu = 0.85\n"
    path = tmp_path / "beside.toml"
    path.write_text(text)
    result = waterfill.run(path, on="linux")
    simulated = waterfill.run(path, on="sim")
    assert {"maxnet_price", "maxnet_xi"} <= set(result.flows.column_names)
    for name in ("long", "back"):
        price = np.array(result.samples("flows", name)["maxnet_price"].to_pylist(), dtype=float)
        theirs = simulated.samples("flows", name)["maxnet_price"].to_numpy()
        # A price is T ln(x_max/x): what differs between 1 Mbit/s and 20 Mbit/s is 1.2 s.
        assert abs(np.nanmax(price) - np.nanmax(theirs)) < 1.2
    cubic = result.samples("flows", "cubic")["maxnet_price"]
    assert cubic.null_count == len(cubic)
    link = np.array(result.samples("links", "l1")["maxnet_price"].to_pylist(), dtype=float)
    assert np.isfinite(link).sum() > 10


@on_kernel
def test_a_path_may_have_a_tree_inside_another(word):
    """Three paths, each with a delay line, downloads of 5 MB by both laws; the peer is deaf."""
    found = {goal["goal"]: goal["measured"] for goal in maxnet_special.run("peer-without", 0.02)}
    assert found["downloads with a price"] == 0
    took = [value for name, value in found.items() if name.startswith("seconds")]
    # 5 MB at 200 Mbit/s are 0.2 s; nothing is asked of how much more it may be here.
    assert len(took) == 3
    assert all(seconds > 0.2 for seconds in took)
    assert of_run(word) == []


@on_kernel
def test_a_parameter_that_the_kernel_cannot_hold_is_wrong_input(tmp_path, waterfill):
    path = tmp_path / "beside.toml"
    path.write_text(BESIDE)
    found = waterfill("run", str(path), "--on", "linux", "--set", "params.maxnet.eta=0.0005")
    expected = "must be a value from 0.001 to 65.535 on linux, got 0.0005"
    assert (found.code, found.err) == (2, f"command line: params.maxnet.eta: {expected}\n")


@on_kernel
def test_kill_9_of_a_run_takes_the_law_out_of_the_kernel(tmp_path, word):
    import subprocess

    path = tmp_path / "beside.toml"
    path.write_text(BESIDE)
    code = (
        "from waterfill.cli import main\nfrom waterfill.testbed import daemon\n"
        f"daemon.run_name = lambda: {word!r}\nmain()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", str(path), "--on", "linux", "--json", "--set",
         "duration=60 s"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    end = time.monotonic() + 300  # a busy host may take a minute to start it
    while not of_run(word) and time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    assert of_run(word) == [f"bpf_mat{word}"]
    process.kill()
    process.communicate(timeout=60)
    end = time.monotonic() + 60
    while of_run(word) and time.monotonic() < end:
        time.sleep(0.05)
    assert of_run(word) == []


# Each class of laws: a maximum of a code (RCP, AECP), and a wide value (XCP); two of them on `l1`.
CLASSES = """
name = "classes"
duration = "6 s"
measure = ["3 s", "6 s"]
[[link]]
name = "l1"
from = "r1"
to = "r2"
rate = "20 Mbit/s"
delay = "5 ms"
[[link]]
name = "l2"
from = "r2"
to = "r3"
rate = "10 Mbit/s"
[[flow]]
name = "rcp"
path = ["l1"]
protocol = "rcp"
[[flow]]
name = "aecp"
path = ["l1"]
protocol = "aecp"
[[flow]]
name = "xcp"
path = ["l2"]
protocol = "xcp"
"""


@on_kernel
def test_laws_of_both_classes_control_their_flows(tmp_path, word):
    import waterfill

    path = tmp_path / "classes.toml"
    path.write_text(CLASSES)
    result = waterfill.run(path, on="linux")
    assert of_run(word) == []
    assert len(result.summary["testbed"]["loaded"]) == 3
    law = next(check for check in result.summary["checks"] if check["name"] == "law")
    assert {entry["flow"]: entry["mode"] for entry in law["found"]} == dict.fromkeys(
        ("rcp", "aecp", "xcp"), "priced"
    )
    rates = {flow["name"]: flow["rate_bps"] for flow in result.summary["flows"]}
    # A window that grew by feedback; on a busy machine it may not be full.
    assert 2e6 < rates["xcp"] <= 10e6 * 1.02
    assert rates["rcp"] + rates["aecp"] <= 20e6 * 1.02
    columns = {"rcp_rate", "rcp_mean_rtt", "aecp_r", "xcp_spare", "xcp_interval"}
    assert columns <= set(result.links.column_names)
    offered = np.array(result.samples("links", "l1")["rcp_rate"].to_pylist(), dtype=float)
    assert np.isfinite(offered).sum() > 10
    elsewhere = np.array(result.samples("links", "l2")["rcp_rate"].to_pylist(), dtype=float)
    assert np.isnan(elsewhere).all()
