"""Tests of `waterfilld` as a process: refusals, leftovers, and state that outlives it.

As root, in namespaces of each test's own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from waterfill.testbed import daemon

BINARY = daemon.binary()
PROGRAMS = ("ip", "tc", "unshare", "nsenter", "mount", "sysctl")


def lacks() -> str | None:
    if BINARY is None:
        return "waterfilld was not built (tools/daemon.sh says what it needs)"
    if os.geteuid() != 0:
        return "needs root"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"needs {', '.join(missing)}"
    return None


LACKS = lacks()
pytestmark = pytest.mark.skipif(LACKS is not None, reason=f"{LACKS}")
# Verifying programs on a busy machine, with room.
PATIENCE_S = 60.0


class Machine:
    """A network and mount namespace, with a BPF file system of its own.

    Its one device, `d0`, swallows what is sent.
    """

    def __init__(self) -> None:
        # Ends with its standard input, however these tests end.
        self.init = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", "echo ready; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.init.stdout is not None
        assert self.init.stdout.readline() == "ready\n"
        self.running: list[subprocess.Popen[str]] = []

    def set_up(self) -> None:
        self.do("ip", "link", "set", "lo", "up")
        self.device("d0")
        self.do("ip", "addr", "add", "10.0.0.1/24", "dev", "d0")
        self.do("ip", "neigh", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:02", "dev", "d0")
        # Whatever the machine has mounted there is hidden in this namespace only.
        self.do("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")

    def device(self, name: str) -> None:
        """Create a device whose other end has no address."""
        self.do("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}far")
        for end in (name, f"{name}far"):
            self.do("sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
            self.do("ip", "link", "set", end, "up")

    def inside(self, *words: str) -> list[str]:
        return ["nsenter", "--target", str(self.init.pid), "--mount", "--net", "--", *words]

    def do(self, *words: str) -> str:
        done = subprocess.run(self.inside(*words), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def waterfilld(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.inside(str(BINARY), *words),
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A daemon with --line, once it is ready."""
        process = subprocess.Popen(
            self.inside(str(BINARY), *words, "--line"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.running.append(process)
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready == '{"ready":true}\n', process.stderr.read() if process.stderr else ready
        return process

    def status(self) -> dict:
        done = self.waterfilld("status", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def price_s(self) -> float:
        (link,) = self.status()["links"]
        return link["price_s"]

    def state(self) -> list[str]:
        """Everything that a router or a host could have left here."""
        return [
            self.do("tc", "qdisc", "show"),
            self.do("tc", "filter", "show", "dev", "d0", "egress"),
            self.do("ip", "-details", "link", "show", "d0"),
            self.do("find", "/sys/fs/bpf"),
            self.do("cat", "/proc/self/mountinfo"),
        ]

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.communicate()
        self.init.kill()
        self.init.communicate()


@pytest.fixture
def machine():
    made = Machine()
    try:
        made.set_up()
        yield made
    finally:
        made.end()


def ask(process: subprocess.Popen[str]) -> dict:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def overload(machine: Machine, packets: int = 2000) -> None:
    """Sends a burst of UDP by d0, from inside."""
    code = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);\n"
        f"for _ in range({packets}): s.sendto(bytes(1400), ('10.0.0.2', 9))"
    )
    machine.do(shutil.which("python3") or "python3", "-c", code)


ROUTER = ("router", "--dev", "d0", "--rate", "100 kbit/s")


@pytest.mark.parametrize("more", [(), ("--shape",)])
def test_a_router_that_is_unloaded_leaves_the_system_as_it_was(machine, more):
    before = machine.state()
    done = machine.waterfilld(*ROUTER, *more, "--once")
    assert done.returncode == 0, done.stderr
    assert machine.state() != before
    assert [link["device"] for link in machine.status()["links"]] == ["d0"]
    done = machine.waterfilld("unload")
    assert done.returncode == 0, done.stderr
    assert "removed: router of maxnet on d0\n" in done.stderr
    assert machine.state() == before
    assert machine.status() == {"roles": [], "links": [], "flows": []}


def test_a_bpf_file_system_of_ours_goes_with_the_last_role(machine):
    while (
        subprocess.run(
            machine.inside("umount", "/sys/fs/bpf"), capture_output=True, check=False
        ).returncode
        == 0
    ):
        pass  # in this namespace, one over the other
    before = machine.state()
    done = machine.waterfilld(*ROUTER, "--once")
    assert done.returncode == 0, done.stderr
    assert "mounted a BPF file system" in done.stderr
    assert machine.waterfilld("unload", "--router").returncode == 0
    assert machine.state() == before


def test_one_device_of_two_is_taken_off(machine):
    machine.device("d1")
    before = machine.state()
    both = machine.waterfilld(*ROUTER, "--dev", "d1", "--rate", "1gbit", "--once")
    assert both.returncode == 0, both.stderr
    done = machine.waterfilld("unload", "--dev", "d1")
    assert (done.returncode, "removed: router of maxnet on d1\n" in done.stderr) == (0, True)
    assert [link["device"] for link in machine.status()["links"]] == ["d0"]
    again = machine.waterfilld("unload", "--dev", "d1")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "--dev d1" in again.stderr
    assert machine.waterfilld("unload", "--dev", "d0").returncode == 0
    assert machine.state() == before


def test_a_router_that_pins_nothing_ends_with_its_process(machine):
    before = machine.state()
    for end in (signal.SIGTERM, signal.SIGINT):
        process = machine.start(*ROUTER, "--no-pin")
        assert [link["device"] for link in ask(process)["links"]] == ["d0"]
        assert machine.status()["links"] == []
        process.send_signal(end)
        assert process.wait(PATIENCE_S) == 0
        assert machine.state() == before


def test_a_router_in_line_mode_ends_with_its_input(machine):
    before = machine.state()
    process = machine.start(*ROUTER, "--no-pin")
    overload(machine, 10)
    assert ask(process)["links"][0]["packets"] >= 10
    process.communicate("", timeout=PATIENCE_S)
    assert process.returncode == 0
    assert machine.state() == before


def test_two_daemons_of_a_role_do_not_fight(machine):
    first = machine.start(*ROUTER)
    second = machine.waterfilld("router", "--dev", "lo", "--rate", "1gbit", "--once")
    assert (second.returncode, second.stderr.count("\n")) == (1, 1), second.stderr
    assert "stop it first" in second.stderr
    assert "(process " in second.stderr
    unload = machine.waterfilld("unload")
    assert (unload.returncode, unload.stderr.count("\n")) == (1, 1), unload.stderr
    apart = machine.waterfilld(*ROUTER, "--no-pin")
    assert (apart.returncode, apart.stderr.count("\n")) == (1, 1), apart.stderr
    assert "d0" in apart.stderr
    assert [link["device"] for link in ask(first)["links"]] == ["d0"]


def test_a_killed_daemon_takes_no_price_with_it(machine):
    # 2000 packets are 220 s of this link's time. They drive the price to p_max, T ln(x_max/x_min).
    first = machine.start(*ROUTER)
    fresh = machine.price_s()
    overload(machine)
    full = machine.price_s()
    assert fresh + 3 < full < 12.43
    first.kill()
    first.wait(PATIENCE_S)
    assert machine.price_s() > full / 2  # without anybody
    second = machine.start(*ROUTER)
    assert ask(second)["links"][0]["price_s"] > full / 2
    second.send_signal(signal.SIGTERM)
    assert second.wait(PATIENCE_S) == 0
    # Another rate is told to the link that is there.
    done = machine.waterfilld("router", "--dev", "d0", "--rate", "200 kbit/s", "--once")
    assert done.returncode == 0, done.stderr
    (link,) = machine.status()["links"]
    assert link["rate_bps"] == 200_000
    assert link["price_s"] > full / 2


def test_a_failed_start_leaves_nothing(machine):
    before = machine.state()
    # lo can be priced; a name that a second router has, not.
    holder = machine.start(*ROUTER, "--no-pin")
    failed = machine.waterfilld("router", "--dev", "lo", "--rate", "1gbit", "--dev", "d0",
                                "--rate", "1gbit", "--once")  # fmt: skip
    assert failed.returncode == 1
    holder.communicate("", timeout=PATIENCE_S)
    assert machine.state() == before


def test_metrics_as_prometheus_reads_them(machine):
    process = machine.start(*ROUTER, "--metrics", "127.0.0.1:9465")
    overload(machine, 10)
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("needs curl")
    url = "http://127.0.0.1:9465/metrics"
    text = machine.do(curl, "--silent", "--fail", url)
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    link = '{device="d0",law="maxnet"}'
    assert float(samples[f"waterfill_link_packets_total{link}"]) >= 10
    assert float(samples[f"waterfill_link_rate_bytes_per_second{link}"]) == 12_500
    assert float(samples[f"waterfill_link_price_seconds{link}"]) > 0
    assert float(samples[f"waterfill_link_target_ratio{link}"]) == 0.9
    modern = machine.do(curl, "--silent", "-H", "Accept: application/openmetrics-text", url)
    assert modern.endswith("# EOF\n")
    if promtool := shutil.which("promtool"):
        done = subprocess.run([promtool, "check", "metrics"], input=text, text=True, check=False)
        assert done.returncode == 0
    taken = machine.waterfilld("router", "--dev", "lo", "--rate", "1gbit", "--no-pin",
                               "--metrics", "127.0.0.1:9465")  # fmt: skip
    assert (taken.returncode, taken.stderr.count("\n")) == (2, 1), taken.stderr
    assert ask(process)["roles"] == ["router"]


def laws(kind: str = "available") -> list[str]:
    with open(f"/proc/sys/net/ipv4/tcp_{kind}_congestion_control") as file:
        return file.read().split()


def test_a_host_that_is_unloaded_leaves_the_system_as_it_was(machine):
    # TCP's list of laws is the whole machine's: the name is this test's own.
    name = f"bpf_t{os.getpid()}"[:15]
    host = ("host", "--name", name, "--netns-cookie", "1")
    before, listed = machine.state(), laws()
    try:
        done = machine.waterfilld(*host, "--once")
        assert done.returncode == 0, done.stderr
        assert name in laws()
        assert machine.status()["roles"] == ["host"]
        again = machine.waterfilld(*host, "--once")
        assert again.returncode == 0, again.stderr
        assert name in laws()
    finally:
        done = machine.waterfilld("unload", "--host")
    assert done.returncode == 0, done.stderr
    assert "removed: host of maxnet\n" in done.stderr
    wait_until(lambda: name not in laws())
    assert machine.state() == before
    assert name not in listed


def wait_until(holds) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.05)


def test_mistakes_are_one_line_and_exit_2(machine):
    for words, part in [
        (
            ("router", "--dev", "none0", "--rate", "1gbit"),
            "--dev none0: not in this network namespace",
        ),
        (("router", "--dev", "d0", "--rate", "fast"), "must be a rate such as"),
        (
            ("host", "--fallback", "cubik", "--once"),
            "--fallback cubik: this congestion control is not loaded",
        ),
        (("host", "--cgroup", "/proc", "--once"), "--cgroup /proc: not a control group"),
        (
            ("host", "--once", "--pins", "/tmp/waterfill"),
            "--pins /tmp/waterfill: not on a BPF file system",
        ),
    ]:
        done = machine.waterfilld(*words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert part in done.stderr
    setpriv = shutil.which("setpriv")
    if setpriv is not None:
        done = subprocess.run(
            machine.inside(setpriv, "--bounding-set=-net_admin", "--inh-caps=-net_admin",
                           str(BINARY), *ROUTER, "--once"),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "CAP_NET_ADMIN" in done.stderr


def test_probe_names_what_the_kernel_has(machine):
    done = machine.waterfilld("probe", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["bpffs"] == "/sys/fs/bpf"
    assert found["laws"] == laws()
    assert {feature["present"] for feature in found["features"]} <= {True, False}
    table = machine.waterfilld("probe").stdout
    assert all(feature["name"] in table for feature in found["features"])
