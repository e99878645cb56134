"""Measure MaxNet in the kernel with the price carried in CSIG tags.

Hosts a and b, with routers 1, 2 and 3 between them, in namespaces of their own. In front of 1, d
holds every frame for 20 ms in each direction (`waterfill-delay`). 2's link to 3 is the bottleneck.
Both links of 2 are a domain in which frames have tags, and 1 and 3 are its edges. Inside, routers
still write MaxNet's option, but the edge replaces its price by the tag's. So sources follow the
price in 5 or 20 bits. Needs root, iperf3, and the daemon beside this Python, or WATERFILLD.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from validation.kernels import offloads
from validation.soak import watch
from validation.study import DAEMON, Option, Study, linux_code, on_linux
from waterfill.errors import RunError
from waterfill.testbed import daemon, delayline
from waterfill.testbed.child import Child

BOTTLENECK_BPS = 40e6
DELAY_MS = 20
FLOWS = 2
WARM_UP_S, MEASURE_S = 8, 15
# The arguments of `waterfilld csig` that choose a code; none without tags.
CODES: dict[str, Sequence[str] | None] = {
    "own": None,
    "20": ("--format", "wide"),
    "5, two decades": ("--format", "compact", "--from", "2mbit", "--to", "200mbit"),
    "5": ("--format", "compact"),
}


class KernelRow(NamedTuple):
    """Measurements of a run: mean rates, the mean and largest queue, and counts of frames."""

    code: str
    rates_bps: tuple[float, ...]
    queue_ms: tuple[float, float]
    frames: dict[str, int]
    wrong_checksums: int

    def off(self, own: KernelRow) -> float:
        """Return the relative difference of the mean rate from a run with MaxNet's own option."""
        return abs(sum(self.rates_bps) / sum(own.rates_bps) - 1)

    @property
    def unfair(self) -> float:
        """Largest relative difference of a flow's rate from the mean."""
        mean = sum(self.rates_bps) / len(self.rates_bps)
        return max(abs(rate / mean - 1) for rate in self.rates_bps)


class _Program(Child):
    """A running daemon or delay-line process."""

    error = refusal = RunError

    def answer(self, line: str | None = None) -> Any:
        """Send a line and return the program's answer. Without a line, return the message that it
        is ready.
        """
        if line is not None:
            self._write(line)
        answer = self._out.readline()
        if not answer:
            self._raise_ended()
        return json.loads(answer)


class _Bed:
    """The test network's namespaces and the processes that run in them."""

    def __init__(self, stack: ExitStack) -> None:
        self.name = f"wfpb{os.getpid()}"
        self.pins = Path("/sys/fs/bpf") / self.name
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        self.cgroup = Path(next(m[1] for m in mounts if m[2] == "cgroup2")) / self.name
        self.law = f"bpf_{self.name}"[:15]
        self._stack = stack
        for node in "ad123b":
            _run("ip", "netns", "add", self.name + node)
            stack.callback(_quietly, "ip", "netns", "del", self.name + node)
        self.cgroup.mkdir()
        stack.callback(watch.remove, self.cgroup)
        self.pins.mkdir()
        stack.callback(shutil.rmtree, self.pins)  # it detaches the programs

    def inside(self, node: str, *words: str) -> list[str]:
        """Return a command line that runs a command in a node's namespace."""
        return ["nsenter", f"--net=/run/netns/{self.name}{node}", *words]

    def build(self) -> None:
        """Create the links, addresses and routes."""
        for node in "ad123b":
            _run(*self.inside(node, "ip", "link", "set", "lo", "up"))
            settings = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=1")
            _run(*self.inside(node, "sysctl", "-qw", *settings))
        for one, two in zip("ad123", "d123b", strict=True):
            ends = [(one, two), (two, one)]
            names = [self.name + x + y for x, y in ends]
            peer = ("peer", "name", names[1], "netns", self.name + two)
            _run("ip", "link", "add", names[0], "netns", self.name + one, "type", "veth", *peer)
            for (here, there), name in zip(ends, names, strict=True):
                # A tag of 8 bytes needs space beside packets of 1500 bytes.
                mtu = "1508" if {here, there} <= set("123") else "1500"
                single = ("mtu", mtu, "gso_max_segs", "1", "up")
                _run(*self.inside(here, "ip", "link", "set", name, "name", f"t{there}"))
                _run(*self.inside(here, "ip", "link", "set", f"t{there}", *single))
        nets = [
            ("a", "d", "1", "d"),
            ("1", "2", "2", "1"),
            ("2", "3", "3", "2"),
            ("3", "b", "b", "3"),
        ]
        for i, (one, device, two, other) in enumerate(nets, start=1):
            for node, name, host in ((one, device, 1), (two, other, 2)):
                address = ("ip", "address", "add", f"10.98.{i}.{host}/24", "dev", f"t{name}")
                _run(*self.inside(node, *address))
        for node, gateway in (("a", "1.2"), ("1", "2.2"), ("2", "3.2"), ("3", "3.1"), ("b", "4.1")):
            route = ("ip", "route", "add", "default", "via", f"10.98.{gateway}")
            _run(*self.inside(node, *route))
        _run(*self.inside("2", "ip", "route", "add", "10.98.1.0/24", "via", "10.98.2.1"))
        for node in "ad123b":
            devices = [f"t{other}" for pair in zip("ad123", "d123b", strict=True) if node in pair
                       for other in pair if other != node]  # fmt: skip
            _run(*self.inside(node, sys.executable, offloads.__file__, *devices))
        self._delay()

    def _delay(self) -> None:
        hold = {"delay_ns": DELAY_MS * 1_000_000, "hold_bytes": 8_000_000}
        lines = [
            {"name": "there", "from": "ta", "to": "t1", **hold},
            {"name": "back", "from": "t1", "to": "ta", **hold},
        ]
        line = self._start(self.inside("d", str(delayline.binary())))
        line.answer(json.dumps({"seed": 1, "frame_bytes": 1600, "lines": lines}))

    def _start(self, command: Sequence[str]) -> _Program:
        one = _Program(command[0], command[0], command[1:])
        self._stack.callback(one.close)
        return one

    def daemon(self, node: str, *words: str) -> Callable[[], Any]:
        """Start `waterfilld` in a node's namespace, and return a function that
        queries its status.
        """
        command = [str(daemon.binary()), *words, "--line"]
        one = self._start(self.inside(node, *command) if node else command)
        one.answer()
        return partial(one.answer, "")

    def client(self, node: str, *words: str) -> subprocess.Popen[str]:
        """Start iperf3 in a node's namespace, in the cgroup whose connections use the law."""
        join = f"echo $$ > {self.cgroup}/cgroup.procs && exec "
        command = join + " ".join(self.inside(node, "iperf3", *words))
        process = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, text=True)
        self._stack.callback(process.kill)
        return process


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _quietly(*words: str) -> None:
    subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(code: str) -> KernelRow:
    """Run MaxNet with one encoding of the price."""
    with ExitStack() as stack:
        bed = _Bed(stack)
        bed.build()
        pins = {node: ("--pins", str(bed.pins / f"r{node}")) for node in "123"}
        slow = ("--rate", f"{BOTTLENECK_BPS:.0f} bit/s", "--shape", "--overhead", "22")
        bed.daemon("1", "router", "--dev", "t2", "--rate", "1gbit", *pins["1"])
        queue = bed.daemon("2", "router", "--dev", "t3", *slow, *pins["2"])
        bed.daemon("3", "router", "--dev", "tb", "--rate", "1gbit", *pins["3"])
        names = ("--name", bed.law, "--cgroup", str(bed.cgroup), "--unrestricted", "--no-pin")
        bed.daemon("", "host", *names)
        for node in "ab":
            key = f"net.ipv4.tcp_congestion_control={bed.law}"
            _run(*bed.inside(node, "sysctl", "-qw", key))
        counters = []
        arguments = CODES[code]
        if arguments is not None:
            inside = {"1": ["t2"], "2": ["t1", "t3"], "3": ["t2"]}
            edges = {"1": ["td"], "2": [], "3": ["tb"]}
            for node in "123":
                devices = [w for d in inside[node] for w in ("--inside", d)]
                devices += [w for d in edges[node] for w in ("--edge", d)]
                counters.append(bed.daemon(node, "csig", *devices, *arguments, *pins[node]))
        servers = [bed.client("b", "-s", "-p", str(5201 + i)) for i in range(FLOWS)]
        time.sleep(1)
        to = ("-t", str(MEASURE_S), "-O", str(WARM_UP_S), "-J")
        flows = [bed.client("a", "-c", "10.98.4.2", "-p", str(5201 + i), *to) for i in range(FLOWS)]
        time.sleep(WARM_UP_S)
        queues = []
        for _ in range(MEASURE_S * 10):
            time.sleep(0.1)
            queues.append(queue()["links"][0]["queue_bytes"] * 8e3 / BOTTLENECK_BPS)
        ends = [json.loads(flow.communicate()[0])["end"] for flow in flows]
        rates = tuple(end["sum_received"]["bits_per_second"] for end in ends)
        frames: dict[str, int] = {}
        for count in counters:
            for device in count()["csig"]:
                for key, value in device.items():
                    if isinstance(value, int) and key not in ("ifindex", "code"):
                        frames[key] = frames.get(key, 0) + value
        snmp = subprocess.run(
            bed.inside("b", "cat", "/proc/net/snmp"), check=True, capture_output=True, text=True
        ).stdout
        head, values = (line.split() for line in snmp.splitlines() if line.startswith("Tcp:"))
        wrong = int(values[head.index("InCsumErrors")])
        for server in servers:
            server.terminate()
        return KernelRow(code, rates, (sum(queues) / len(queues), max(queues)), frames, wrong)


def line(code: str, row: KernelRow) -> str:
    """Return a run's rates and queue as one line of text."""
    rates = ", ".join(f"{rate / 1e6:.2f}" for rate in row.rates_bps)
    return (
        f"{code}: {rates} Mbit/s; queue {row.queue_ms[0]:.2f} ms mean, {row.queue_ms[1]:.2f} ms "
        f"at most; unfair {row.unfair:.2%}, wrong checksums {row.wrong_checksums}, {row.frames}"
    )


def text(found: Mapping[str, KernelRow]) -> str:
    """Return one line per encoding, with its difference from the first encoding."""
    first = next(iter(found.values()))
    return "\n".join(
        f"{line(code, row)}; {row.off(first):.2%} off {first.code}" for code, row in found.items()
    )


STUDY = Study(
    shows="MaxNet's rates and queue on the kernel with the price in 5 and 20 bits of CSIG's tags",
    minutes=3,
    needs=(on_linux(), DAEMON),
    options=(Option("codes", tuple(CODES), "default: all", tuple(CODES)),),
    quick={"codes": ("own", "5")},
    cases=lambda options: options.codes,
    measure=run,
    row=KernelRow,
    code=linux_code,
    line=line,
    table=text,
)
