"""Compare the SCONE advice of a router with max-min shares.

MaxNet's TCP flows share
one link of the testbed, whose router program gives advice. After a start-up, datagrams with a SCONE
packet cross the link, each from a port of its own, and their signal is read where they arrive.

The median signal of each row must be within half a step of the share.
"""

from __future__ import annotations

import math
import socket
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from validation.study import DAEMON, Option, Study, linux_code, on_linux
from validation.tables import markdown
from validation.testbed.maxnet_special import bed, isolated, listen, streams
from waterfill.runs.result import Document
from waterfill.testbed.bed import RunNetwork
from waterfill.testbed.daemon import Daemon, Laws

FLOWS = (1, 2, 3, 4, 6, 8)
RATE_BPS = 40e6
TARGET = 0.9
RTT_MS = 100
# MaxNet's flows reach their shares within 10 s in the simulator.
WARM_S = 15.0
_EVERY_S = 0.25
_PORT = 4433
# draft-ietf-scone-protocol: signal n is 100 kbit/s * 10^(n/20), 127 no advice.
_VERSION, _UNKNOWN = 0x6F7DC0FD, 127
HALF_STEP = 10 ** (1 / 40)


def rate_bps(signal: int) -> float:
    """Return the rate (bit/s) that a SCONE signal represents."""
    return 1e5 * math.pow(10, signal / 20)


def packet() -> bytes:
    """Return a SCONE packet without advice, followed by the start of a short-header packet."""
    destination = bytes([1, 2, 3, 4])
    version = (_UNKNOWN & 1) << 31 | _VERSION
    ids = bytes([len(destination), *destination, 0])
    first = 0xC0 | _UNKNOWN >> 1
    return bytes([first]) + version.to_bytes(4, "big") + ids + b"\x40" + destination


def signal(data: bytes) -> int:
    """Return the SCONE signal of a datagram that begins with a SCONE packet."""
    return (data[0] & 0x3F) << 1 | data[1] >> 7


class Advising(Laws):
    """Laws whose routers also give SCONE advice."""

    def start(self, namespace: int, arguments: list[str]) -> Daemon:
        """Start a daemon, which gives advice if it runs on a router."""
        more = ["--scone"] if arguments[0] == "router" else []
        return super().start(namespace, [*arguments, *more])


def scenario(flows: int) -> Document:
    """Return the scenario for one number of flows."""
    link = {
        "name": "link", "from": "a", "to": "b", "buffer": "1 bdp",
        "rate": f"{RATE_BPS / 1e6} Mbit/s", "delay": f"{RTT_MS / 2} ms",
    }  # fmt: skip
    return {
        "name": "scone-advice", "duration": "600 s", "params": {"maxnet": {"mu": TARGET}},
        "link": [link], "flow": [{"name": "f", "path": ["link"], "count": flows}],
    }  # fmt: skip


def observe(flows: int, seconds: float) -> Document:
    """Run the scenario in the present process tree and return the advice observed by probes."""
    on: RunNetwork = bed(scenario(flows), laws=Advising)
    running = streams(on)
    for one in running:
        listen(one)
    for one in running:
        one.start()
    time.sleep(WARM_S)
    before, began = _bytes(on), time.monotonic()
    signals = _probe(on, seconds)
    carried_bps = 8 * (_bytes(on) - before) / (time.monotonic() - began)
    for one in running:
        one.stop()
    on.close()
    share_bps = TARGET * RATE_BPS / flows
    mean_bps = carried_bps / flows
    return {"flows": flows, "share_bps": share_bps, "mean_bps": mean_bps, "signals": signals}


def _bytes(on: RunNetwork) -> int:
    assert on.laws is not None
    return sum(
        link["bytes"] for router, ports in on.laws.routers for link in router.status()["links"]
        if ports[link["device"]] == 0
    )  # fmt: skip


def _probe(on: RunNetwork, seconds: float) -> list[int]:
    stream = on.plan.streams[0]
    with on.topology.namespace(stream.sink).entered():
        sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind((stream.sink_address, _PORT))
    sink.settimeout(2.0)
    found, end_s = [], time.monotonic() + seconds
    while time.monotonic() < end_s:
        # The element writes a flow only a few times per period.
        with on.topology.namespace(stream.source).entered():
            source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        source.bind((stream.source_address, 0))
        source.sendto(packet(), (stream.sink_address, _PORT))
        source.close()
        found.append(signal(sink.recv(2048)))
        time.sleep(_EVERY_S)
    sink.close()
    return found


def judged(row: Document) -> Document:
    """Return a table row with the advice, its ratio to the max-min share, and the verdict."""
    advice_bps = rate_bps(int(statistics.median_low(row["signals"])))
    ratio = advice_bps / row["share_bps"]
    near = sum(abs(math.log(rate_bps(n) / row["share_bps"])) <= math.log(HALF_STEP) + 1e-9
               for n in row["signals"])  # fmt: skip
    return row | {
        "advice_bps": advice_bps, "ratio": ratio, "within": near / len(row["signals"]),
        "ok": 1 / HALF_STEP - 1e-9 <= ratio <= HALF_STEP + 1e-9,
    }  # fmt: skip


def table(rows: Sequence[Document]) -> str:
    """Return the rows as a Markdown table."""
    lines = []
    for row in rows:
        counted: Counter[int] = Counter(row["signals"])
        counts = ", ".join(f"{n}: {count}" for n, count in sorted(counted.items()))
        rates = (f"{row[f'{name}_bps'] / 1e6:.2f}" for name in ("share", "mean", "advice"))
        lines.append([row["flows"], *rates, f"{row['ratio']:.3f}", f"{row['within']:.0%}", counts])
    head = "flows:|share:|mean rate:|median advice:|advice / share:|near:|signals"
    return markdown(head, lines)


class SconeCase(NamedTuple):
    """A number of flows, with the time (s) during which probes are sent."""

    flows: int
    seconds: float


def measure(case: SconeCase) -> Document:
    """Run the scenario of a case in a separate process tree, and judge the advice."""
    return judged(isolated(f"{case.flows} flows", partial(observe, *case)))


STUDY = Study(
    shows="a router's SCONE advice is the max-min share of 1 to 8 MaxNet flows",
    minutes=5,
    needs=(on_linux(), DAEMON),
    options=(Option("--seconds", 30.0, "time of probes in each row (s)", low=1.0),),
    quick={"seconds": 5.0},
    cases=lambda options: [SconeCase(flows, options.seconds) for flows in FLOWS],
    measure=measure,
    code=linux_code,
    line=lambda _, row: table([row]).splitlines()[-1],
    table=lambda found: table(list(found.values())),
    failed=lambda found: [f"{case.flows} flows" for case, row in found.items() if not row["ok"]],
)
