"""Measure the accuracy of the delay line for each way of receiving frames.

A probe (`waterfill-delay probe`) sends
numbered frames through the line and compares the delay of each with the configured one. It also
runs over a plain veth pair, for comparison. Times depend on the host: run it on an idle one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from validation.study import IDLE, Option, Options, Report, Study, on_linux
from validation.tables import markdown
from validation.testbed.maxnet_special import isolated
from waterfill.errors import RunError
from waterfill.runs.result import Document
from waterfill.testbed import isolate
from waterfill.testbed.delayline import DelayLine, binary

WAYS = ("ring", "blocks", "mmsg", "tap", "xdp")
PLAIN = "plain veth"
# The requirement: 1 Gbit/s of 1500-byte packets, delayed by 28 ms.
FRAME_BYTES = 1514
FRAMES_PER_S = 83_333
DELAY_NS = 28_000_000
_SEND_NS = 4_000_000_000
_STEP_NS = 1_000_000_000
# A path carries a rate if at least this fraction of the frames arrives, and receiving takes no
# longer than this multiple of the sending time.
_MIN_RECEIVED = 0.999
_MAX_SLOWDOWN = 1.02
# The rates tried in the search for the highest one, in frames per second.
_LADDER = tuple(round(50_000 * 1.25**n) for n in range(16))


def measure(way: str) -> Document:
    """Measure one way of receiving frames, in a separate process tree."""
    return dict(isolated(way, lambda: _Bench(way).document()))


def carried(report: Document, frames_per_s: int) -> bool:
    """Return True if a path carried a rate, according to the probe's report."""
    frames = frames_per_s * _STEP_NS * 1e-9
    return bool(
        report["sent"] >= _MIN_RECEIVED * frames
        and report["received"] >= _MIN_RECEIVED * report["sent"]
        and report["receiving_s"] <= _MAX_SLOWDOWN * report["sending_s"]
    )


def highest_rate(probe: Callable[[int], Document]) -> Document:
    """Probe increasing rates. Return the last rate that the path carried and the first that it did
    not.

    They are the keys `ceiling` (None if there is none) and `fails_at` (absent if all were carried).
    """
    ceiling = None
    for rate in _LADDER:
        report = probe(rate)
        if not carried(report, rate):
            return {"fails_at": {"frames_per_s": rate} | report, "ceiling": ceiling}
        ceiling = {"frames_per_s": rate, "bits_per_s": rate * 8 * (FRAME_BYTES - 14)} | report
    return {"ceiling": ceiling}


class _Bench:
    def __init__(self, way: str) -> None:
        from pyroute2 import IPRoute

        self.way = way
        self.line: DelayLine | None = None
        self.ends = isolate.Namespace()
        self.interfaces = ("a0", "b0")
        with IPRoute() as here:
            with self.ends.entered():
                there = IPRoute()
            if way == PLAIN:
                there.link("add", kind="veth", ifname="a0", peer={"ifname": "b0"})
            elif way == "tap":
                self._start("a0", "b0")
                for name in self.interfaces:
                    (index,) = here.link_lookup(ifname=name)
                    here.link("set", index=index, net_ns_fd=self.ends.fd, mtu=1500)
            else:
                for name, wire in zip(self.interfaces, ("w0", "w1"), strict=True):
                    # An AF_XDP socket is bound to one queue, so the veth has only one.
                    one = {"num_tx_queues": 1, "num_rx_queues": 1} if way == "xdp" else {}
                    there_end = {"ifname": name, "net_ns_fd": self.ends.fd} | one
                    here.link("add", kind="veth", ifname=wire, peer=there_end, **one)
                    here.link("set", index=here.link_lookup(ifname=wire)[0], state="up")
            for name in self.interfaces:
                (index,) = there.link_lookup(ifname=name)
                there.link("set", index=index, state="up", txqlen=10_000)
            there.close()
        if way not in (PLAIN, "tap"):
            self._start("w0", "w1")

    def _start(self, a: str, b: str) -> None:
        hold = {"delay_ns": DELAY_NS, "hold_bytes": 256 << 20}
        lines = [{"name": "there", "from": a, "to": b} | hold, {"name": "back", "from": b, "to": a}
                 | hold]  # fmt: skip
        self.line = DelayLine(lines, mtu_bytes=1500, seed=1, port=self.way)

    def document(self) -> Document:
        before_s = self._cpu_s()
        host_before = _busy()
        asked = self._probe(FRAMES_PER_S, _SEND_NS)
        length_s = asked["sending_s"] + DELAY_NS * 1e-9
        found: Document = {
            "way": self.way,
            "asked": asked,
            "line_cpu": (self._cpu_s() - before_s) / length_s,
            "machine_busy": _busy_between(host_before, _busy()),
            "line": self._line_stats(),
        }
        return found | highest_rate(lambda rate: self._probe(rate, _STEP_NS))

    def _probe(self, rate: int, send_ns: int) -> Document:
        program = binary()
        if program is None:
            raise RunError("waterfill-delay is not installed")
        job = {"from": "a0", "to": "b0", "frame_bytes": FRAME_BYTES, "rate_per_s": rate,
               "send_ns": send_ns, "delay_ns": 0 if self.way == PLAIN else DELAY_NS}  # fmt: skip
        with self.ends.entered():
            done = subprocess.run([program, "probe"], input=json.dumps(job) + "\n",
                                  capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode:
            raise RunError(done.stderr)
        return dict(json.loads(done.stdout))

    def _line_stats(self) -> Document | None:
        return None if self.line is None else dict(self.line.stats()["lines"]["there"])

    def _cpu_s(self) -> float:
        return 0.0 if self.line is None else float(self.line.stats()["cpu_s"])


def _busy() -> tuple[int, int]:
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    return sum(ticks[:3]) + sum(ticks[5:8]), sum(ticks[:8])


def _busy_between(a: tuple[int, int], b: tuple[int, int]) -> float:
    return (b[0] - a[0]) / max(1, b[1] - a[1])


def table(found: list[Document]) -> str:
    """Return the measurements as a Markdown table, one row per way."""
    rows = []
    for entry in found:
        asked, spread = entry["asked"], entry["asked"]["error_ns"]
        rate = asked["received"] * 8 * (FRAME_BYTES - 14) / max(asked["receiving_s"], 1e-9) / 1e6
        ceiling = entry["ceiling"]
        cells = [
            entry["way"], f"{rate:.1f}", asked["sent"] - asked["received"] - asked["unseen"],
            asked["reordered"],
            *(f"{spread[key] / 1e3:.0f}" for key in ("p50", "abs_p99", "p999", "max")),
            f"{entry['line_cpu']:.0%}",
            "–" if ceiling is None else f"{ceiling['frames_per_s']:,}",
            "–" if ceiling is None else f"{ceiling['bits_per_s'] / 1e9:.2f}",
            f"{entry['machine_busy']:.0%}",
        ]  # fmt: skip
        rows.append(cells)
    head = "way|Mbit/s:|lost:|reordered:|error p50 µs:|p99:|p99.9:|max:|line's CPU:"
    return markdown(f"{head}|highest frames/s:|Gbit/s:|host's CPU:", rows)


def work(options: Options) -> Report:
    """Measure each chosen way of receiving frames, which takes about 20 s per way."""
    found = []
    for way in options.ways:
        print(f"measuring {way}: about 20 s", file=sys.stderr)
        found.append(measure(way))
    return Report(table(found), found)


STUDY: Study[None, None] = Study(
    shows="the delay line's accuracy and speed, with each way of receiving frames",
    minutes=2,
    needs=(on_linux(iperf=False), IDLE),
    options=(Option("ways", (PLAIN, *WAYS), "default: all", (PLAIN, *WAYS)),),
    quick={"ways": ("ring",)},
    work=work,
)
