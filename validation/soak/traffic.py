"""TCP traffic between the hosts in both directions, with a digest that verifies each flow.

Each host opens some short flows every second, and keeps a number of long ones open. In half of
them the client sends and the server answers with the digest of what arrived; in the others the
server sends, and its digest follows. A flow without a byte for STALL_S, or older than its
deadline, is stuck: it is counted and reset.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import selectors
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from typing import Literal

from waterfill.runs.result import Document
from waterfill.testbed.isolate import Namespace

PORT = 7100
# A full socket buffer takes this long at the slowest rate of a host, a packet in 200 ms.
STALL_S = 60.0
# A flow without a byte for this long is described once, so that its cause can be found.
QUIET_S = 10.0
_HEADER = struct.Struct("!cQQ")
_PUT, _GET = b"p", b"g"
_DIGEST_BYTES = hashlib.sha256().digest_size
_CHUNK_BYTES = 1 << 16
_POOL = memoryview(random.Random(1).randbytes(1 << 20) * 2)
_TICK_S = 0.2

Wanted = Literal["read", "write"]
Steps = Generator[Wanted, None, bool]
"""Generator that does a flow's work, yielding while the socket would block. Its result is True if
all bytes arrived.
"""


@dataclass(frozen=True)
class Load:
    """Traffic that one host starts."""

    seed: int
    long_flows: int = 8
    """Number of long flows open at any time. Each one that ends is replaced immediately."""
    long_bytes: tuple[int, int] = (5_000_000, 25_000_000)
    deadline_s: float = 120.0
    short_flows: tuple[int, int] = (2, 4)
    """Smallest and largest number of new short flows per second."""
    short_bytes: tuple[int, int] = (10_000, 1_000_000)


@dataclass
class Totals:
    """Running counts of one host's client flows."""

    opened: int = 0
    delivered: int = 0
    """Flows with the correct digest."""
    delivered_bytes: int = 0
    wrong: int = 0
    """Flows with an incorrect digest."""
    failed: int = 0
    stuck: int = 0
    unselected: int = 0
    """Sockets that did not receive the law from the host's setting."""
    open: int = 0
    """Open connections of this host's clients and server."""
    longest_s: float = 0.0
    quiet_seconds: int = 0
    """Number of seconds in which no flow ended."""
    errors: list[str] = field(default_factory=list)
    """Error messages of the first failures."""
    quiet: list[str] = field(default_factory=list)
    """Descriptions by `ss` of the first sockets that received no byte for `QUIET_S`."""

    def note(self, error: str) -> None:
        """Keep an error message if it is one of the first."""
        if len(self.errors) < 10:
            self.errors.append(error)


def payload(flow: int, size: int) -> Iterator[memoryview]:
    """Yield a flow's payload in pieces. The bytes differ between flows and positions."""
    sent, at = 0, flow * 65_537
    while sent < size:
        start = (at + sent) % (len(_POOL) // 2)
        piece = _POOL[start : start + min(_CHUNK_BYTES, size - sent)]
        yield piece
        sent += len(piece)


class _Flow:
    """A connection with the remaining steps of its work."""

    def __init__(self, one: socket.socket, now_s: float) -> None:
        self.socket = one
        self.opened_s = self.moved_s = now_s
        self.size = 0
        self.client = False
        self.described = False
        self.steps: Steps | None = None

    def describe(self) -> str:
        """Return a description of the connected socket by `ss`."""
        side = "client" if self.client else "server"
        mine, theirs = self.socket.getsockname()[1], self.socket.getpeername()[1]
        filters = [f"sport = :{mine} and dport = :{theirs}"]
        shown = subprocess.run(
            ["ss", "-HOtinme", *filters], capture_output=True, text=True, check=False
        )
        return f"{side}, {self.size} B: {' '.join(shown.stdout.split())}"

    def send(self, data: bytes | memoryview) -> Generator[Wanted, None, None]:
        view = memoryview(data)
        while view:
            try:
                count = self.socket.send(view)
            except BlockingIOError:
                yield "write"
                continue
            self.moved_s = time.monotonic()
            view = view[count:]

    def receive(self, size: int) -> Generator[Wanted, None, bytes]:
        """Receive from one to `size` bytes."""
        while True:
            try:
                data = self.socket.recv(min(size, _CHUNK_BYTES))
            except BlockingIOError:
                yield "read"
                continue
            if not data:
                raise ConnectionError("closed before all bytes had arrived")
            self.moved_s = time.monotonic()
            return data

    def exactly(self, size: int) -> Generator[Wanted, None, bytes]:
        data = b""
        while len(data) < size:
            data += yield from self.receive(size - len(data))
        return data

    def give(self, flow: int, size: int) -> Generator[Wanted, None, bytes]:
        """Send the payload of a flow and return its digest."""
        digest = hashlib.sha256()
        for piece in payload(flow, size):
            digest.update(piece)
            yield from self.send(piece)
        return digest.digest()

    def take(self, size: int) -> Generator[Wanted, None, bytes]:
        """Receive `size` bytes and return their digest."""
        digest, left = hashlib.sha256(), size
        while left:
            data = yield from self.receive(left)
            digest.update(data)
            left -= len(data)
        return digest.digest()


def _put(one: _Flow, flow: int) -> Steps:
    yield "write"  # until it is connected
    yield from one.send(_HEADER.pack(_PUT, flow, one.size))
    mine = yield from one.give(flow, one.size)
    theirs = yield from one.exactly(_DIGEST_BYTES)
    return mine == theirs


def _get(one: _Flow, flow: int) -> Steps:
    yield "write"
    yield from one.send(_HEADER.pack(_GET, flow, one.size))
    mine = yield from one.take(one.size)
    theirs = yield from one.exactly(_DIGEST_BYTES)
    expected = hashlib.sha256()
    for piece in payload(flow, one.size):
        expected.update(piece)
    return mine == theirs == expected.digest()


def _serve(one: _Flow) -> Steps:
    header = yield from one.exactly(_HEADER.size)
    kind, flow, size = _HEADER.unpack(header)
    digest = yield from (one.take(size) if kind == _PUT else one.give(flow, size))
    yield from one.send(digest)
    return True


class Host:
    """One host's server and clients, in a single thread."""

    def __init__(self, address: str, peer: str, law: str, load: Load) -> None:
        """Start to listen. `law` is the congestion control that new sockets of the
        host should use.
        """
        self._peer, self._law, self._load = peer, law, load
        self._random = random.Random(load.seed)
        self._next = load.seed << 32
        self._waiting = selectors.DefaultSelector()
        self._listener = socket.create_server((address, PORT), backlog=1024)
        self._listener.setblocking(False)
        self._waiting.register(self._listener, selectors.EVENT_READ, None)
        self._flows: set[_Flow] = set()
        self._long: set[_Flow] = set()
        self._ended = 0
        self.totals = Totals()
        self.arriving = False
        """True if clients open new connections."""

    def serve(self, seconds: float) -> None:
        """Handle socket events for up to `seconds`."""
        for key, _ in self._waiting.select(seconds):
            if key.data is None:
                self._accept()
            elif key.data in self._flows:
                self._step(key.data)
        if self.arriving:
            self._fill()

    def arrive(self) -> None:
        """Open the new flows of one second."""
        self.totals.quiet_seconds += self._ended == 0
        self._ended = 0
        for _ in range(self._random.randint(*self._load.short_flows)):
            least, most = self._load.short_bytes
            self._connect(int(least * (most / least) ** self._random.random()))
        self._fill()

    def _fill(self) -> None:
        while len(self._long) < self._load.long_flows:
            flow = self._connect(self._random.randint(*self._load.long_bytes))
            if flow is None:
                return
            self._long.add(flow)

    def reset_stuck(self) -> None:
        """Describe quiet flows and reset stuck flows."""
        now_s = time.monotonic()
        for one in list(self._flows):
            if now_s - one.moved_s > QUIET_S and not one.described and len(self.totals.quiet) < 20:
                one.described = True
                with suppress(OSError):  # it is not connected yet
                    self.totals.quiet.append(f"{time.time():.0f} {one.describe()}")
            if now_s - one.moved_s > STALL_S or now_s - one.opened_s > self._load.deadline_s:
                self.totals.stuck += 1
                quiet_s, age_s = now_s - one.moved_s, now_s - one.opened_s
                side = "client" if one.client else "server"
                self.totals.note(
                    f"stuck {side}: {quiet_s:.0f} s without a byte, {age_s:.0f} s old, {one.size} B"
                )
                self._close(one, reset=True)

    def now(self) -> Totals:
        """Return the totals, including the number of connections that are open now."""
        self.totals.open = len(self._flows)
        return self.totals

    def close(self) -> None:
        """Stop listening and reset all open connections."""
        self._listener.close()
        for one in list(self._flows):
            self._close(one, reset=True)
        self._waiting.close()

    def _connect(self, size: int) -> _Flow | None:
        self._next += 1
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        name = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        self.totals.unselected += name.split(b"\0")[0] != self._law.encode()
        one.setblocking(False)
        self.totals.opened += 1
        try:
            one.connect_ex((self._peer, PORT))
        except OSError as error:
            self.totals.failed += 1
            self.totals.note(f"connect: {error}")
            one.close()
            return None
        flow = self._add(one)
        flow.size, flow.client = size, True
        kind: Callable[[_Flow, int], Steps] = self._random.choice((_put, _get))
        flow.steps = kind(flow, self._next)
        self._step(flow)
        return flow

    def _accept(self) -> None:
        with suppress(OSError):
            one, _ = self._listener.accept()
            one.setblocking(False)
            flow = self._add(one)
            flow.steps = _serve(flow)
            self._step(flow)

    def _add(self, one: socket.socket) -> _Flow:
        flow = _Flow(one, time.monotonic())
        self._flows.add(flow)
        self._waiting.register(one, selectors.EVENT_READ, flow)
        return flow

    def _step(self, flow: _Flow) -> None:
        assert flow.steps is not None
        try:
            wanted = next(flow.steps)
        except StopIteration as end:
            if flow.client:
                self._end(flow, right=end.value)
            self._close(flow)
        except OSError as error:
            if flow.client:
                self.totals.failed += 1
                self.totals.note(f"{type(error).__name__}: {error}")
            self._close(flow)
        else:
            events = selectors.EVENT_READ if wanted == "read" else selectors.EVENT_WRITE
            if self._waiting.get_key(flow.socket).events != events:
                self._waiting.modify(flow.socket, events, flow)

    def _end(self, flow: _Flow, *, right: bool) -> None:
        self._ended += 1
        self.totals.longest_s = max(self.totals.longest_s, time.monotonic() - flow.opened_s)
        if right:
            self.totals.delivered += 1
            self.totals.delivered_bytes += flow.size
        else:
            self.totals.wrong += 1

    def _close(self, flow: _Flow, *, reset: bool = False) -> None:
        self._waiting.unregister(flow.socket)
        if reset:
            flow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        flow.socket.close()
        self._flows.discard(flow)
        self._long.discard(flow)


def _work(
    space: Namespace, address: str, peer: str, law: str, load: Load, pipe: Connection
) -> None:
    with space.entered():
        host = Host(address, peer, law, load)
        pipe.send("listening")
        next_s = 0.0
        while True:
            host.serve(_TICK_S)
            now_s = time.monotonic()
            if now_s >= next_s:
                next_s = max(next_s + 1.0, now_s)
                host.reset_stuck()
                if host.arriving:
                    host.arrive()
            while pipe.poll():
                word = pipe.recv()
                if word == "end":
                    host.close()
                    return
                if word in ("start", "stop"):
                    host.arriving, next_s = word == "start", now_s
                pipe.send(asdict(host.now()))


class Worker:
    """A process that runs a `Host` in a namespace."""

    def __init__(self, space: Namespace, address: str, peer: str, law: str, load: Load) -> None:
        """Start the process and wait until its server listens."""
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=_work, args=(space, address, peer, law, load, theirs), daemon=True
        )
        self._process.start()
        theirs.close()
        self._pipe.recv()

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid or 0

    def ask(self, word: str) -> Totals:
        """Send "start", "stop" or "status" and return the totals. Raises EOFError if the process
        has died.
        """
        self._pipe.send(word)
        document: Document = self._pipe.recv()
        return Totals(**document)

    def end(self) -> None:
        """End the process and reset its connections."""
        self._pipe.send("end")
        self._process.join()
