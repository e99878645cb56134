"""Measure small requests, and packets of one segment, on the kernel: rates and CPU time.

Two hosts are joined by one link of 10 Gbit/s without delay. `requests`: a client has connections on
each of which it waits for an answer before it asks again. `packets`: one connection sends without
pause, and without offloads, so that each packet has one segment.
"""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from validation.study import DAEMON, Option, Options, Study, linux_code, on_linux, only
from validation.tables import markdown
from validation.testbed.maxnet_special import LAW, bed, isolated
from waterfill.runs.result import Document
from waterfill.testbed.bed import RunNetwork

CONNECTIONS = 64
MESSAGE_BYTES = 64
WARM_S, MEASURED_S = 0.5, 3.0
_BLOCK_BYTES = 1 << 16
_PORT = 7001
# Of each variant: whether the law's programs are loaded, and whether client and server select it.
VARIANTS = {
    "CUBIC": (False, False, False),
    "loaded, not selected": (True, False, False),
    "client only": (True, True, False),
    "both ends": (True, True, True),
}
WORKLOADS = {"requests": tuple(VARIANTS), "packets": tuple(VARIANTS)[:3]}
"""Variants of each workload. A server that only receives never uses its law."""


class RequestCase(NamedTuple):
    """A workload with a variant, and the number of the repetition."""

    workload: str
    variant: str
    turn: int

    @property
    def name(self) -> str:
        """Name of the case, for `--only`."""
        return f"{self.workload}, {self.variant}, {self.turn}"


# --- both ends ----------------------------------------------------------------------------------


def select(one: socket.socket, law: str) -> None:
    """Select a law on an open connection: the hosts' routes name MaxNet where it is loaded."""
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, law.encode())
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def answer(listener: socket.socket, law: str) -> None:
    """Answer each message on all connections in turn, until the client closes them."""
    connections = []
    for _ in range(CONNECTIONS):
        one, _ = listener.accept()
        select(one, law)
        connections.append(one)
    with suppress(ConnectionError):
        while True:
            for one in connections:
                data = one.recv(MESSAGE_BYTES)
                if not data:
                    return
                one.send(data)


def ask(connect: Callable[[], socket.socket], count: Callable[[], Document]) -> Document:
    """Send messages and wait for their answers. Returns number, times (s) and counters."""
    connections = [connect() for _ in range(CONNECTIONS)]
    message, done = bytes(MESSAGE_BYTES), 0

    def turn(seconds: float) -> int:
        turns, end_s = 0, time.monotonic() + seconds
        while time.monotonic() < end_s:
            for one in connections:
                one.send(message)
            for one in connections:
                one.recv(MESSAGE_BYTES)
            turns += 1
        return turns * CONNECTIONS

    turn(WARM_S)
    before, start_s, cpu_s = count(), time.monotonic(), time.process_time()
    done = turn(MEASURED_S)
    found = {"done": done, "took_s": time.monotonic() - start_s,
             "cpu_s": time.process_time() - cpu_s, "before": before, "after": count()}  # fmt: skip
    for one in connections:
        one.close()
    return found


def receive(listener: socket.socket, law: str) -> None:
    """Receive from one connection until the client closes it."""
    one, _ = listener.accept()
    select(one, law)
    while one.recv(_BLOCK_BYTES):
        pass


def stream(connect: Callable[[], socket.socket], count: Callable[[], Document]) -> Document:
    """Send without pause. Returns times (s) and counters; the packets are among these."""
    one, block = connect(), bytes(_BLOCK_BYTES)

    def send(seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            one.sendall(block)

    send(WARM_S)
    before, start_s, cpu_s = count(), time.monotonic(), time.process_time()
    send(MEASURED_S)
    found = {"took_s": time.monotonic() - start_s, "cpu_s": time.process_time() - cpu_s,
             "before": before, "after": count()}  # fmt: skip
    one.close()
    return found


ENDS = {"requests": (answer, ask), "packets": (receive, stream)}


# --- a case -------------------------------------------------------------------------------------


def network(case: RequestCase) -> RunNetwork:
    """Build two hosts with a router in each direction."""
    link = {"name": "l", "from": "r1", "to": "r2", "rate": "10 Gbit/s", "buffer": "4 MB"}
    flows = [{"name": "there", "from": "a", "to": "b", "path": ["l"]},
             {"name": "back", "from": "b", "to": "a", "path": ["l:rev"]}]  # fmt: skip
    loaded, *_ = VARIANTS[case.variant]
    document = {"protocol": LAW if loaded else "cubic", "params": {}, "duration": "600 s",
                "link": [link], "flow": flows}  # fmt: skip
    return bed(document, offloads=case.workload == "requests")


def counters(on: RunNetwork) -> Document:
    """Return TCP's counters of client and server: received segments, and predicted headers."""
    there = on.plan.streams[0]
    found = {}
    for end, number in (("client", there.source), ("server", there.sink)):
        known: dict[str, str] = {}
        with on.topology.namespace(number).entered():
            for file in ("snmp", "netstat"):
                with open(f"/proc/thread-self/net/{file}") as text:
                    for names, values in zip(text, text, strict=True):
                        known.update(zip(names.split(), values.split(), strict=True))
        found[end] = {name: int(known[name]) for name in ("InSegs", "TCPHPHits", "TCPHPAcks")}
    return found


def observe(case: RequestCase) -> Document:
    """Run a case in this process tree. Returns rates, CPU times and shares (see `summary`)."""
    on = network(case)
    there = on.plan.streams[0]
    _, client, server = VARIANTS[case.variant]
    names = {True: there.congestion, False: "cubic"}
    serve, work = ENDS[case.workload]
    with on.topology.namespace(there.sink).entered():
        listener = socket.create_server((there.sink_address, _PORT), backlog=2 * CONNECTIONS)
    child = os.fork()
    if child == 0:
        try:
            serve(listener, names[server])
        finally:
            os._exit(0)

    def connect() -> socket.socket:
        with on.topology.namespace(there.source).entered():
            one = socket.socket()
        one.connect((there.sink_address, _PORT))
        select(one, names[client])
        return one

    flows: list[Document] = []

    def count() -> Document:
        if on.laws is not None:
            flows[:] = [flow for host in on.laws.hosts for flow in host.status()["flows"]]
        return counters(on)

    found = work(connect, count)
    _, _, used = os.wait4(child, 0)
    under = sum(flow["mode"] == "priced" for flow in flows)
    on.close()
    return summary(case, found, used.ru_utime + used.ru_stime) | {
        "under": under, "host_load": os.getloadavg()[0],
    }  # fmt: skip


def summary(case: RequestCase, found: Document, server_s: float) -> Document:
    """Return the rate (1/s), the CPU time per request or packet (us) and the share of segments with
    a predicted header. The server's CPU time is of its whole life.
    """
    ends = {end: {name: found["after"][end][name] - n for name, n in before.items()}
            for end, before in found["before"].items()}  # fmt: skip
    share = found["took_s"] / (found["took_s"] + WARM_S)
    if case.workload == "requests":
        done, received = found["done"], list(ends.values())
    else:
        done, received = ends["server"]["InSegs"], [ends["server"]]
    predicted = sum(end["TCPHPHits"] for end in received) / sum(end["InSegs"] for end in received)
    cpu_s = found["cpu_s"] + share * server_s
    return {"per_s": done / found["took_s"], "cpu_us": 1e6 * cpu_s / done, "predicted": predicted}


def measure(case: RequestCase) -> Document:
    """Run a case in a separate process tree."""
    found: Document = isolated(case.name, partial(observe, case))
    return found


# --- the table ----------------------------------------------------------------------------------


def table(found: Mapping[RequestCase, Document]) -> str:
    """Return the table: medians over the turns, and the smallest and largest CPU time."""
    rows = []
    for workload, variants in WORKLOADS.items():
        for variant in variants:
            mine = [one for case, one in found.items()
                    if (case.workload, case.variant) == (workload, variant)]  # fmt: skip
            if not mine:
                continue
            middle = {key: statistics.median(one[key] for one in mine) for key in mine[0]}
            cpu = sorted(one["cpu_us"] for one in mine)
            rows.append([workload, variant, f"{middle['per_s'] / 1e3:.1f}",
                         f"{middle['cpu_us']:.2f}", f"{cpu[0]:.2f} to {cpu[-1]:.2f}",
                         f"{middle['predicted']:.0%}", f"{middle['under']:.0f}",
                         f"{middle['host_load']:.0f}"])  # fmt: skip
    head = "workload|variant|thousand/s:|CPU time, µs:|over the turns:|header predicted:"
    return markdown(head + "|ends priced:|host load:", rows)


def line(case: RequestCase, found: Document) -> str:
    """Return the line of progress of a case."""
    return (f"{case.name}: {found['per_s'] / 1e3:.1f} thousand/s, {found['cpu_us']:.2f} µs, "
            f"{found['predicted']:.0%} predicted, {found['under']} priced")  # fmt: skip


def cases(options: Options) -> list[RequestCase]:
    """Return a case for each workload and variant; the turns alternate between all."""
    return [RequestCase(workload, variant, turn) for turn in range(options.turns)
            for workload, variants in WORKLOADS.items() for variant in variants]  # fmt: skip


STUDY = Study(
    shows="small requests and packets of one segment on the kernel: rates, CPU time, fast path",
    minutes=4,
    needs=(on_linux(), DAEMON),
    options=(Option("--turns", 5, "repetitions", low=1), only("requests*")),
    quick={"turns": 1},
    cases=cases,
    measure=measure,
    code=linux_code,
    line=line,
    table=table,
)
