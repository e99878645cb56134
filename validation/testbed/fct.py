"""Measure the completion times of downloads on the kernel next to others of the same law.

One link of 100 Mbit/s with an RTT of 20 ms. With load, downloads of four sizes begin at random
times, the same for all laws, so that their payload with headers is that share of the link. Without
load they run one after another. A time is from connect() to the last byte.
"""

from __future__ import annotations

import heapq
import math
import os
import random
import selectors
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from validation.study import DAEMON, Option, Options, Study, linux_code, on_linux, only
from validation.tables import markdown
from validation.testbed.connections import difference
from validation.testbed.maxnet_special import bed, isolated, streams
from waterfill.runs import backends
from waterfill.runs.result import Document
from waterfill.scenario.loading import from_dict
from waterfill.testbed.bed import RunNetwork

RATE_BPS = 100e6
LAWS = ("maxnet", "rcp", "xcp", "cubic", "bbr")
LOADS = (0.0, 0.3, 0.6, 0.8)
# Of each size: name, bytes, share of the payload under load, and number of downloads without load.
SIZES = (("10 kB", 10_000, 0.03, 40), ("100 kB", 100_000, 0.27, 40),
         ("1 MB", 1_000_000, 0.3, 20), ("10 MB", 10_000_000, 0.4, 5))  # fmt: skip
_PAYLOAD = 1448 / 1500
_RTT_S = 0.02
# MaxNet's target.
_TARGET = 0.9
_PAUSE_S = 0.05
_PATIENCE_S = 30.0
_PORT = 7001
_SEED = 1
_ASK_BYTES = 4


class FctCase(NamedTuple):
    """A law and the load (share of the link), with the time (s) in which downloads begin."""

    law: str
    load: float
    seconds: float


def plan(load: float, seconds: float) -> list[tuple[float, int]]:
    """Return start (s) and bytes of each download; without load all starts are 0."""
    if not load:
        rounds = [(number / count, size) for _, size, _, count in SIZES for number in range(count)]
        return [(0.0, size) for _, size in sorted(rounds)]
    draw, found = random.Random(_SEED), []
    total = load * RATE_BPS / 8 * seconds * _PAYLOAD
    for _, size, share, _ in SIZES:
        count = max(1, round(total * share / size))
        found += [(draw.uniform(0, seconds), size) for _ in range(count)]
    return sorted(found)


def equal_shares(load: float, seconds: float, rate_bps: float) -> dict[int, list[float]]:
    """Return the sorted times (s) of all downloads by size, had each its equal share of a link of
    this rate at every moment, from two RTTs after its begin on.

    No law is expected to be faster, because this one has no start and no delay.
    """
    jobs, bytes_per_s = plan(load, seconds), rate_bps / 8 * _PAYLOAD
    took_s: dict[int, list[float]] = {size: [] for _, size, _, _ in SIZES}
    if not load:
        for _, size in jobs:
            took_s[size].append(2 * _RTT_S + size / bytes_per_s)
        return {size: sorted(times) for size, times in took_s.items()}
    # Served bytes of each download since time 0: all that are present have the same.
    served, now_s = 0.0, 0.0
    present: list[tuple[float, float, int]] = []
    while jobs or present:
        ends_s = now_s + (present[0][0] - served) * len(present) / bytes_per_s if present else None
        if jobs and (ends_s is None or jobs[0][0] <= ends_s):
            begin_s, size = jobs.pop(0)
            if present:
                served += (begin_s - now_s) * bytes_per_s / len(present)
            now_s = begin_s
            heapq.heappush(present, (served + size, begin_s, size))
        else:
            served, begin_s, size = heapq.heappop(present)
            assert ends_s is not None
            now_s = ends_s
            took_s[size].append(2 * _RTT_S + now_s - begin_s)
    return {size: sorted(times) for size, times in took_s.items()}


def simulated(load: float, seconds: float) -> dict[int, list[float]]:
    """Return the sorted times (s) of all downloads by size from the simulator, with MaxNet as the
    kernel's hosts compute it. A time begins with the SYN; there is no request.
    """
    jobs = plan(load, seconds)
    link = {"name": "l", "from": "a", "to": "b", "rate": f"{RATE_BPS:g} bit/s",
            "delay": "10 ms", "buffer": "2 bdp"}  # fmt: skip
    flows = [{"name": f"f{n}", "path": ["l"], "start": f"{begin_s:.9f} s", "size": f"{size} B"}
             for n, (begin_s, size) in enumerate(jobs)]  # fmt: skip
    document = {"protocol": "maxnet", "duration": f"{seconds + _PATIENCE_S} s", "link": [link],
                "flow": flows, "params": {"maxnet": {"arithmetic": "kernel-host"}}}  # fmt: skip
    ended = [one["completed_s"] for one in backends.run(from_dict(document)).summary["flows"]]
    took_s: dict[int, list[float]] = {size: [] for _, size, _, _ in SIZES}
    for (begin_s, size), end_s in zip(jobs, ended, strict=True):
        took_s[size].append(math.inf if end_s is None else end_s - begin_s)
    return {size: sorted(times) for size, times in took_s.items()}


# --- both ends ----------------------------------------------------------------------------------


def serve(listener: socket.socket) -> None:
    """Send each connection as many bytes as it asks for, and never return."""
    waiting, left = selectors.DefaultSelector(), {}
    zeros = memoryview(bytes(1 << 18))
    listener.setblocking(False)
    waiting.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            one: Any = key.fileobj
            if one is listener:
                connection, _ = one.accept()
                connection.setblocking(False)
                waiting.register(connection, selectors.EVENT_READ)
                continue
            if one not in left:
                left[one] = int.from_bytes(one.recv(_ASK_BYTES), "big")
                waiting.modify(one, selectors.EVENT_WRITE)
            try:
                left[one] -= one.send(zeros[: left[one]])
            except BlockingIOError:
                continue
            if not left[one]:
                waiting.unregister(one)
                del left[one]
                one.close()


class Clients:
    """Downloads in progress, and the times of those that are complete."""

    def __init__(self, server: tuple[str, int], family: int) -> None:
        self._server, self._family = server, family
        self._waiting = selectors.DefaultSelector()
        self._began: dict[socket.socket, tuple[float, int, int]] = {}
        self.took_s: dict[int, list[float]] = {size: [] for _, size, _, _ in SIZES}

    def __len__(self) -> int:
        return len(self._began)

    def begin(self, size: int) -> None:
        """Begin a download."""
        one = socket.socket(self._family, socket.SOCK_STREAM)
        one.setblocking(False)
        self._began[one] = (time.monotonic(), size, size)
        one.connect_ex(self._server)
        self._waiting.register(one, selectors.EVENT_WRITE)

    def wait(self, seconds: float) -> None:
        """Receive for at most this time, and return after the first events."""
        for key, events in self._waiting.select(max(seconds, 0)):
            one: Any = key.fileobj
            began, size, left = self._began[one]
            if events & selectors.EVENT_WRITE:
                one.send(size.to_bytes(_ASK_BYTES, "big"))
                self._waiting.modify(one, selectors.EVENT_READ)
                continue
            left -= len(one.recv(1 << 18))
            self._began[one] = (began, size, left)
            if left <= 0:
                self.took_s[size].append(time.monotonic() - began)
                self._waiting.unregister(one)
                del self._began[one]
                one.close()


def download(clients: Clients, case: FctCase) -> int:
    """Run the downloads of a case. Returns how many did not end in time."""
    waiting = plan(case.load, case.seconds)
    start_s = time.monotonic()
    end_s = start_s + case.seconds + _PATIENCE_S
    heapq.heapify(waiting)
    while (waiting or clients) and time.monotonic() < end_s:
        now = time.monotonic() - start_s
        if waiting and waiting[0][0] <= now and (case.load or not clients):
            if not case.load:
                time.sleep(_PAUSE_S)
            clients.begin(heapq.heappop(waiting)[1])
            continue
        due_s = waiting[0][0] - now if waiting and case.load else 1.0
        clients.wait(due_s)
    return len(waiting) + len(clients)


# --- a case -------------------------------------------------------------------------------------


def network(law: str) -> RunNetwork:
    """Build the network, whose two hosts reach each other over a router for each direction."""
    link = {"name": "l", "from": "r1", "to": "r2", "rate": f"{RATE_BPS:g} bit/s",
            "delay": "10 ms", "buffer": "2 bdp"}  # fmt: skip
    flows = [{"name": "down", "from": "a", "to": "b", "path": ["l"]},
             {"name": "back", "from": "b", "to": "a", "path": ["l:rev"]}]  # fmt: skip
    return bed({"protocol": law, "duration": "600 s", "link": [link], "flow": flows, "params": {}})


def observe(case: FctCase) -> Document:
    """Run a case in this process tree. Returns times by size, fallbacks with their reasons,
    and the host's load.
    """
    on = network(case.law)
    stream = streams(on)[0].stream
    with on.topology.namespace(stream.source).entered():
        family = on.topology.family
        listener = socket.create_server((stream.source_address, _PORT), family=family, backlog=512)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, stream.congestion.encode())
    hosts = on.laws.hosts if on.laws is not None else []
    before = [host.status()["counters"] for host in hosts]
    server = os.fork()
    if server == 0:
        try:
            serve(listener)
        finally:
            os._exit(1)
    with on.topology.namespace(stream.sink).entered():
        clients = Clients((stream.source_address, _PORT), family)
        late = download(clients, case)
    after = [host.status()["counters"] for host in hosts]
    on.close()
    changes = [difference(*pair) for pair in zip(after, before, strict=True)]
    return {
        "took_s": {name: sorted(clients.took_s[size]) for name, size, _, _ in SIZES},
        "late": late, "host_load": os.getloadavg()[0],
        "fallbacks": sum(sum(one["fallbacks"].values()) for one in changes),
        "reasons": dict(sum((Counter(one["fallbacks"]) for one in changes), Counter())),
    }  # fmt: skip


def measure(case: FctCase) -> Document:
    """Run a case in a separate process tree."""
    found: Document = isolated(f"{case.law} at {case.load:.0%}", partial(observe, case))
    return found


# --- tables -------------------------------------------------------------------------------------


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of sorted values that is not below a share of all."""
    return values[min(len(values) - 1, int(share * len(values)))]


def cell(values: Sequence[float]) -> str:
    """Return median, p95 and p99 in milliseconds."""
    if not values:
        return "–"
    return " / ".join(f"{1e3 * percentile(values, share):.0f}" for share in (0.5, 0.95, 0.99))


def row(case: FctCase, found: Document) -> list[str]:
    """Return a table row."""
    cells = [cell(found["took_s"][name]) for name, *_ in SIZES]
    others = [str(found["late"]), str(found["fallbacks"]), f"{found['host_load']:.1f}"]
    return [f"{case.load:.0%}", f"`{case.law}`", *cells, *others]


def table(found: Mapping[FctCase, Document]) -> str:
    """Return the table of the cases, of equal shares and of the simulator, with the number of
    downloads of each size.
    """
    head = "|".join(["load", "law", *(name for name, *_ in SIZES), "late:|fallbacks:|host load:"])
    counts = []
    for load, seconds in dict.fromkeys((case.load, case.seconds) for case in found):
        sizes = [size for _, size in plan(load, seconds)]
        each = ", ".join(f"{sizes.count(size)} of {name}" for name, size, _, _ in SIZES)
        counts.append(f"- {load:.0%}: {each}")
    rows = [row(case, one) for case, one in found.items()]
    for load, seconds in dict.fromkeys((case.load, case.seconds) for case in found):
        compared = {"equal shares": equal_shares(load, seconds, _TARGET * RATE_BPS)}
        if load:
            compared["`maxnet`, simulated"] = simulated(load, seconds)
        for name, times in compared.items():
            cells = [cell(times[size]) for _, size, _, _ in SIZES]
            rows.append([f"{load:.0%}", name, *cells, "", "", ""])
    return markdown(head, rows) + "\n\nDownloads:\n\n" + "\n".join(counts)


def failed(found: Mapping[FctCase, Document]) -> list[str]:
    """Return the cases of MaxNet whose p95 of 100 kB is above CUBIC's at the same load."""
    missed = []
    for case, one in found.items():
        cubic = found.get(case._replace(law="cubic"))
        if case.law != "maxnet" or cubic is None:
            continue
        mine, other = (1e3 * percentile(each["took_s"]["100 kB"], 0.95) for each in (one, cubic))
        if mine > other:
            missed.append(f"maxnet at {case.load:.0%}: p95 of 100 kB {mine:.0f} ms, {other:.0f}")
    return missed


def cases(options: Options) -> list[FctCase]:
    """Return a case for each chosen law and load."""
    laws = options.protocols or LAWS
    return [FctCase(law, load, options.seconds) for load in LOADS for law in laws]


STUDY = Study(
    shows="completion times of downloads on the kernel at four loads, for three laws and two TCPs",
    minutes=12,
    needs=(on_linux(), DAEMON),
    options=(
        Option("protocols", (), "default: " + ", ".join(LAWS), LAWS),
        Option("--seconds", 25.0, "time in which downloads begin (s)", low=1.0),
        only("rcp 0.3*"),
    ),
    quick={"protocols": ("maxnet", "cubic"), "seconds": 3.0},
    cases=cases,
    measure=measure,
    code=linux_code,
    line=lambda case, found: " | ".join(row(case, found)),
    table=table,
    failed=failed,
)
