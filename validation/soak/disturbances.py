"""Twelve events of links, routers and hosts, for a soak in which they happen in turn.

A link that is down drops all packets on their way into both hosts, a lossy one drops some of them.
The delay line has its whole schedule from the start. No router means a configuration without one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from validation.soak import network
from validation.soak.network import Network
from validation.soak.service import Service
from validation.soak.traffic import Worker
from waterfill.runs.result import Document

EVERY_S = 120.0
FIRST_S = 20.0
_PEER = ("10.0.1.254", 7200)
_PEER_BYTES = 2_000_000
# Classic BPF: drop if a random number of 32 bits is above a limit, or let the packet go on.
_RANDOM, _SHOT, _GO_ON = 0xFFFFF000 + 56, 2, 0xFFFFFFFF


class Disturbance(NamedTuple):
    """An event and its duration (s). `longer_ms` is added to the RTT, `loss` is a probability."""

    name: str
    seconds: float
    longer_ms: float = 0.0
    loss: float = 0.0


ALL = (
    Disturbance("link down for 0.2 s", 0.2, loss=1.0),
    Disturbance("link down for 2 s", 2.0, loss=1.0),
    Disturbance("link down for 20 s", 20.0, loss=1.0),
    Disturbance("RTT + 1 ms for 10 s", 10.0, longer_ms=1.0),
    Disturbance("RTT + 3 ms for 10 s", 10.0, longer_ms=3.0),
    Disturbance("RTT + 30 ms for 10 s", 10.0, longer_ms=30.0),
    Disturbance("router restarts", 0.0),
    Disturbance("no router for 10 s", 10.0),
    Disturbance("CPUs busy for 10 s", 10.0),
    Disturbance("a host stalls for 5 s", 5.0),
    Disturbance("peer without the option", 10.0),
    Disturbance("loss of 1 % for 10 s", 10.0, loss=0.01),
)


def planned(seconds: float, every_s: float = EVERY_S) -> list[tuple[float, Disturbance]]:
    """Return the start (s) of each event that ends within a run, in turn of `ALL`."""
    found: list[tuple[float, Disturbance]] = []
    at_s = FIRST_S
    while True:
        one = ALL[len(found) % len(ALL)]
        if at_s + one.seconds >= seconds:
            return found
        found.append((at_s, one))
        at_s += every_s


def delays(events: Sequence[tuple[float, Disturbance]], rate_bps: float) -> list[Document]:
    """Return the changes of the delay line, in one direction."""
    found = []
    for at_s, one in events:
        if one.longer_ms:
            for when_s, more_ms in ((at_s, one.longer_ms), (at_s + one.seconds, 0.0)):
                delay_ns = round(network.DELAY_NS + more_ms * 5e5)
                found.append({"at_ns": round(when_s * 1e9), "delay_ns": delay_ns,
                              "rate_bps": 10 * rate_bps})  # fmt: skip
    return found


class Disturber:
    """Begins and ends events, one at a time."""

    def __init__(
        self, on: Network, service: Service, workers: Sequence[Worker],
        configure: Callable[[bool], None],
    ) -> None:  # fmt: skip
        """`configure(routed)` loads a configuration with or without routers."""
        self._on, self._service, self._workers, self._configure = on, service, workers, configure
        self._busy: list[subprocess.Popen[bytes]] = []
        self._peers: list[BaseProcess] = []
        for host in on.hosts:
            with host.entered():
                network.run("tc", "qdisc", "add", "dev", "eth0", "clsact")

    def begin(self, one: Disturbance) -> None:
        """Begin an event. Raises RuntimeError or ServiceError if that fails."""
        if one.loss:
            self._drop(one.loss)
        elif "router" in one.name:
            self._configure(False)
        elif "CPUs" in one.name:
            loops = 2 * (os.cpu_count() or 1)
            self._busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                          for _ in range(loops)]  # fmt: skip
        elif "stalls" in one.name:
            os.kill(self._workers[1].pid, signal.SIGSTOP)
        elif "peer" in one.name:
            self._talk_to_router()

    def end(self, one: Disturbance) -> None:
        """End an event. Raises RuntimeError if a transfer to the peer without the option failed."""
        if one.loss:
            for host in self._on.hosts:
                with host.entered():
                    network.run("tc", "filter", "del", "dev", "eth0", "ingress")
        elif "router" in one.name:
            self._configure(True)
        elif "stalls" in one.name:
            os.kill(self._workers[1].pid, signal.SIGCONT)
        for loop in self._busy:
            loop.kill()
            loop.wait()
        self._busy = []
        if self._peers:
            self._peers[-1].join(60)  # the client, the last to start
            code = self._peers[-1].exitcode
            for process in self._peers:
                process.kill()
                process.join()
            self._peers = []
            if code:
                raise RuntimeError(f"the transfer to a peer without the option failed: {code}")

    def _drop(self, share: float) -> None:
        limit = min(2**32 - 1, round((1 - share) * 2**32))
        code = f"4,32 0 0 {_RANDOM},37 1 0 {limit},6 0 0 {_GO_ON},6 0 0 {_SHOT}"
        if share >= 1:
            code = f"1,6 0 0 {_SHOT}"
        for host in self._on.hosts:
            with host.entered():
                network.run("tc", "filter", "add", "dev", "eth0", "ingress", "bpf",
                            "direct-action", "bytecode", code)  # fmt: skip

    def _talk_to_router(self) -> None:
        fork = multiprocessing.get_context("fork")
        self._peers = [fork.Process(target=self._receive, daemon=True),
                       fork.Process(target=self._send, daemon=True)]  # fmt: skip
        for process in self._peers:
            process.start()

    def _receive(self) -> None:
        with self._on.router.entered(), socket.create_server(_PEER) as listener:
            while True:
                one, _ = listener.accept()
                got = 0
                while data := one.recv(1 << 16):
                    got += len(data)
                one.sendall(got.to_bytes(8, "big"))
                one.close()

    def _send(self) -> None:
        """Send over connections to the router's namespace, whose sockets have no option."""
        for _ in range(4):
            with self._on.hosts[0].entered():
                one = socket.socket()
            for _ in range(50):
                with suppress(ConnectionRefusedError):
                    one.connect(_PEER)
                    break
            one.sendall(bytes(_PEER_BYTES))
            one.shutdown(socket.SHUT_WR)
            if int.from_bytes(one.recv(8), "big") != _PEER_BYTES:
                os._exit(1)
            one.close()
