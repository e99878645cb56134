"""The testbed on the running kernel: small runs, as root. Nothing here depends on how fast."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from waterfill.testbed import checks

LACKS = checks.missing()
pytestmark = pytest.mark.skipif(LACKS is not None, reason=f"the testbed needs {LACKS}")

# A namespace of every kind, a held and a direct link, a download and cbr beside an iperf3 flow.
SCENARIO = """
name = "small"
duration = "1500 ms"
measure = ["500 ms", "1500 ms"]
protocol = "reno"
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
buffer = "20 packets"
[[flow]]
name = "long"
from = "a"
to = "b"
path = ["l1", "l2"]
rtt = "20 ms"
[[flow]]
name = "file"
from = "r1"
to = "r2"
size = "100 kB"
start = "200 ms"
[[traffic]]
kind = "cbr"
path = ["l2:rev"]
rate = "1 Mbit/s"
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SCENARIO)
    return file


def start(path, *more):
    code = "from waterfill.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "run", str(path), "--on", "linux", "--json", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def children(pid):
    """Return all descendants of a process."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {p for p, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def wait_for(what, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def namespaces(pids):
    found = set()
    for pid in pids:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            continue
    return found


def everywhere():
    return namespaces(filter(str.isdigit, os.listdir("/proc")))


def under_way(process):
    """The whole tree once a client sends: its processes, and the networks that are its own."""

    def sends():
        names = []
        for pid in children(process.pid):
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    names.append(file.read())
            except OSError:
                continue
        return any("--client" in name for name in names)

    assert wait_for(sends), process.stderr.read()
    pids = children(process.pid)
    mine = namespaces(pids) - namespaces([os.getpid()])
    assert len(pids) >= 6
    assert len(mine) >= 4
    return pids, mine


def nothing_is_left(pids, networks):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids) and not networks & everywhere()


def test_a_run_answers_as_the_simulator_does_and_says_whether_to_believe_it(path, waterfill):
    on_linux = waterfill("run", str(path), "--on", "linux", "--json", "-o", "out")
    assert on_linux.code in (0, 1), on_linux.err  # 1: a check failed, on a machine with other work
    document = on_linux.document
    simulated = waterfill("run", str(path), "--json").document
    assert set(simulated) <= set(document)
    of_packets = {"limited_by", "longest_recovery", "resent_bytes", "spurious_retransmissions"}
    for section in ("flows", "links", "traffic"):
        names = [entry["name"] for entry in document[section]]
        assert names == [entry["name"] for entry in simulated[section]]
        for mine, theirs in zip(document[section], simulated[section], strict=True):
            # The kernel does not say what a sender waits for, nor what arrives twice.
            assert set(theirs) - set(mine) <= of_packets
            assert set(mine) <= set(theirs)
    assert on_linux.code == (0 if all(c["ok"] for c in document["checks"]) else 1)
    names = [check["name"] for check in document["checks"]]
    assert names[:3] == ["base RTT", "delay line", "processor"]

    long, file = document["flows"]
    assert long["rate_bps"] <= 10e6 * 1.02
    assert long["packets_sent"] > 100
    assert long["rtt_ms"]["mean"] >= 20
    assert file["completed_s"] > 0.2 + 0.01  # a round trip at least, twice: SYN and request
    by_name = {link["name"]: link for link in document["links"]}
    assert 0 < by_name["l2"]["utilization"] <= 1.02
    assert by_name["l2"]["queue_packets"]["max"] <= 20
    (cbr,) = document["traffic"]
    assert cbr["packets_sent"] >= cbr["packets_received"] > 50
    # Preflight measured the idle path: never less than what light needs, here 20 ms of it.
    (rtt, *_) = document["checks"][0]["found"]
    assert rtt["found_ms"] >= 20


def test_ipv6_carries_the_same(path, waterfill):
    document = waterfill(
        "run", str(path), "--on", "linux", "--json", "--set", "ip_version=6"
    ).document
    long, file = document["flows"]
    assert 0 < long["rate_bps"] <= 10e6 * 1.02
    assert file["completed_s"] is not None
    assert document["testbed"]["ip_version"] == 6


# Slow start fills the queue, and each flow loses some hundred packets at once: without SACK the
# recovery takes as many RTTs, and all that is sent meanwhile waits in the socket buffers.
RECOVERY = """
name = "recovery"
duration = "6 s"
protocol = "reno"
[[link]]
name = "l"
from = "r1"
to = "r2"
rate = "80 Mbit/s"
delay = "15 ms"
buffer = "200 packets"
[[flow]]
name = "f"
from = "a"
to = "b"
count = 2
path = ["l"]
"""


def test_socket_buffers_hold_a_recovery_without_sack(tmp_path, waterfill):
    file = tmp_path / "recovery.toml"
    file.write_text(RECOVERY)
    document = waterfill("run", str(file), "--on", "linux", "--json").document
    assert sum(flow["retransmissions"] for flow in document["flows"]) > 50
    by_name = {check["name"]: check for check in document["checks"]}
    assert by_name["socket buffers"]["ok"], by_name["socket buffers"]
    assert by_name["drops elsewhere"]["found"]["sockets"] == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_what_there_is(path, number):
    process = start(path, "--set", "duration=60 s", "--set", 'measure=["0 s", "60 s"]')
    pids, networks = under_way(process)
    time.sleep(0.3)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number, err
    document = json.loads(out)
    assert 0 < document["interrupted_at_s"] < 60
    assert wait_for(lambda: nothing_is_left(pids, networks))


def test_kill_9_of_the_front_end_leaves_nothing(path):
    process = start(path, "--set", "duration=60 s", "--set", 'measure=["0 s", "60 s"]')
    pids, networks = under_way(process)
    process.kill()
    process.communicate(timeout=20)
    assert wait_for(lambda: nothing_is_left(pids, networks))


def test_a_tree_that_dies_is_one_line_and_exit_1(path):
    process = start(path, "--set", "duration=60 s", "--set", 'measure=["0 s", "60 s"]')
    pids, networks = under_way(process)
    os.kill(max(pids & {p for p in pids if p in direct(process.pid)}), signal.SIGKILL)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert out == ""
    assert [line for line in err.splitlines() if line.startswith("linux: ")]
    assert "Traceback" not in err
    assert wait_for(lambda: nothing_is_left(pids, networks))


def direct(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return {int(word) for word in file.read().split()}


def test_two_runs_at_once_do_not_meet(path):
    both = [start(path), start(path)]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, 1), err
        document = json.loads(out)
        assert document["flows"][1]["completed_s"] is not None


def test_nothing_in_the_callers_network_changes(path, waterfill):
    def interfaces():
        with open("/proc/net/dev") as file:
            return [line.split(":")[0] for line in file]

    before = interfaces(), os.listdir("/dev/shm"), os.listdir("/run")
    waterfill("run", str(path), "--on", "linux", "--json")
    assert (interfaces(), os.listdir("/dev/shm"), os.listdir("/run")) == before


def test_compare_puts_both_backends_in_one_document(path, waterfill):
    # The download and cbr make no difference to what is shown.
    ran = waterfill("compare", str(path), "--on", "sim,linux", "--protocols", "sack", "--json")
    assert ran.code in (0, 1), ran.err
    document = ran.document
    assert list(document["runs"]) == ["sack@sim", "sack@linux"]
    rate = next(d for d in document["differences"] if d["what"] == "rate of long")
    assert rate["backends"] == ["sim", "linux"]
    assert rate["difference"] == pytest.approx(rate["values"][1] / rate["values"][0] - 1)
