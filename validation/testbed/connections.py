"""Open many short MaxNet connections and check that each requests prices.

Real TCP crosses one link with the router program; both ends have the host program. Connections
differ in who sends and in when TCP selects the law, as the fault that is looked for is a connection
for which the law's init() has left no record. A batch of connections stays open until its state has
been read; the daemon's counters keep what ended connections did.

It ends after `--seconds` with the connections so far, and leaves nothing behind.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from validation.study import DAEMON, Option, Options, Report, Study, on_linux
from validation.testbed.maxnet_special import LAW, bed, isolated, listen, streams
from waterfill.runs.result import Document
from waterfill.testbed import daemon
from waterfill.testbed.bed import RunNetwork
from waterfill.testbed.plan import HTTP_PORT, Stream

# Payload of a connection: more than three initial windows, after which a connection without an
# answer falls back.
SIZE_BYTES = 60_000
BATCH = 20
_BATCH_S = 20.0
_CURL_BATCH = 100
# How long the last echo may take to its sender after the data have arrived.
_ECHO_S = 0.2
_DONE = b"."
# Ports of the server: it receives; it sends; it sends after it has selected the law again.
_RECEIVES, _SENDS, _SELECTS = 7001, 7002, 7003
COLUMNS = ("started", "priced", "control_without_init")
UNANSWERED = "no echo arrives"
# Counters that should be 0.
ODD = ("without_state", "no_memory")
BY_REASON = ("fallbacks", "returns")
"""Counters of the daemon that have a count per reason."""


Hook = Callable[[socket.socket, str], None]


def _select(connection: socket.socket, law: str) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, law.encode())


def _select_again(connection: socket.socket, law: str) -> None:
    _select(connection, "cubic")
    _select(connection, law)


def _nothing(_connection: socket.socket, _law: str) -> None:
    """Do nothing, so that the route selects the law."""


@dataclass(frozen=True)
class ConnectionKind:
    """A way to open a connection, with the end that sends data."""

    name: str
    port: int = _RECEIVES
    before: Hook = _nothing
    """Function to call before connect()."""
    during: Hook = _nothing
    """Function to call during the handshake."""
    opened: Hook = _nothing
    """Function to call when the connection is open, before data are sent."""

    @property
    def sender(self) -> Literal["client", "server"]:
        """End of the connection that sends data."""
        return "client" if self.port == _RECEIVES else "server"

    def senders(self, flows: Sequence[Document]) -> list[Document]:
        """Return the sending ends of open connections of the kind, from the daemon's
        list of flows.
        """
        side = "remote" if self.sender == "client" else "local"
        mine = [flow for flow in flows if flow[side].endswith(f":{self.port}")]
        return [flow for flow in mine if flow["state"] == "established"]


KINDS = (
    ConnectionKind("the route has the law, the client sends"),
    ConnectionKind("the route has the law, the server sends", _SENDS),
    ConnectionKind("selected before connect", before=_select),
    ConnectionKind("selected during the handshake", during=_select),
    ConnectionKind("CUBIC selected during the handshake, then the law", during=_select_again),
    ConnectionKind("CUBIC selected on the open connection, then the law", opened=_select_again),
    ConnectionKind("the same by the server, which sends", _SELECTS),
)
CURL = "nginx and curl"


@dataclass
class Found:
    """Observations of one kind of connection."""

    name: str
    opened: int = 0
    seen: int = 0
    """Open connections whose sender state was read."""
    asked: int = 0
    """Connections whose price requests were answered."""
    priced: int = 0
    """Connections whose law has applied a price."""
    fallbacks: Counter[str] = field(default_factory=Counter)
    odd: list[Document] = field(default_factory=list)
    """States of the first connections that did not request prices."""
    counters: Document = field(default_factory=dict)

    def note(self, flows: Sequence[Document]) -> None:
        """Count the senders' states while a batch is open."""
        for flow in flows:
            self.seen += 1
            priced = "was priced" in flow["flags"]
            asked = priced or flow["echoes"] > 0
            self.priced += priced
            self.asked += asked
            if flow["fallback_reason"]:
                self.fallbacks[flow["fallback_reason"]] += 1
            if not asked and len(self.odd) < 5:
                self.odd.append(flow)

    def faults(self) -> list[str]:
        """Return the errors as text, one line each. The list is empty if every connection requested
        prices.
        """
        wrong = []
        if self.counters.get("no_memory"):
            wrong.append(f"{self.counters['no_memory']} connections without memory for their state")
        if self.asked < self.seen:
            wrong.append(f"{self.seen - self.asked} of {self.seen} open connections did not ask")
        if self.seen != self.opened and self.name != CURL:
            wrong.append(f"{self.seen} of {self.opened} open connections have a state")
        unanswered = self.counters.get("fallbacks", {}).get(UNANSWERED, 0)
        if unanswered:
            wrong.append(f"{unanswered} connections fell back without an echo")
        return wrong

    def to_dict(self) -> Document:
        """Return the counts as a dictionary."""
        return {"kind": self.name, "opened": self.opened, "seen": self.seen, "asked": self.asked,
                "priced": self.priced,
                "fallbacks": dict(self.fallbacks), "odd": self.odd, "counters": self.counters,
                "faults": self.faults()}  # fmt: skip


def difference(after: Document, before: Document) -> Document:
    """Return the increase of the daemon's counters, without fallbacks that did not change."""
    changed: Document = {k: after[k] - before[k] for k in after if k not in BY_REASON}
    for key in BY_REASON:
        counts = {k: n - before[key][k] for k, n in after[key].items()}
        changed[key] = {k: n for k, n in counts.items() if n}
    return changed


# --- both ends ----------------------------------------------------------------------------------


def _serve(listeners: Sequence[socket.socket], law: str) -> None:
    """Serve the connections on all ports, and never return."""
    waiting = selectors.DefaultSelector()
    for listener in listeners:
        listener.setblocking(False)
        waiting.register(listener, selectors.EVENT_READ)
    left: dict[socket.socket, int] = {}
    while True:
        for key, _ in waiting.select():
            one = cast(socket.socket, key.fileobj)
            if one in listeners:
                connection, _ = one.accept()
                port = connection.getsockname()[1]
                connection.setblocking(False)
                if port == _SELECTS:
                    _select_again(connection, law)
                if port != _RECEIVES:
                    # The socket buffer holds all of it.
                    connection.sendall(bytes(SIZE_BYTES))
                left[connection] = SIZE_BYTES if port == _RECEIVES else 0
                waiting.register(connection, selectors.EVENT_READ)
                continue
            data = one.recv(1 << 16)
            if not data:
                waiting.unregister(one)
                del left[one]
                one.close()
            elif left[one] > 0:
                left[one] -= len(data)
                if left[one] <= 0:
                    one.sendall(_DONE)


def _batch(on: RunNetwork, stream: Stream, kind: ConnectionKind, count: int) -> list[socket.socket]:
    """Open `count` connections, transfer their data, and return them while they are still open."""
    wanted = len(_DONE) if kind.sender == "client" else SIZE_BYTES
    waiting = selectors.DefaultSelector()
    left: dict[socket.socket, int] = {}
    opened: set[socket.socket] = set()
    with on.topology.namespace(stream.source).entered():
        for _ in range(count):
            one = socket.socket(on.topology.family, socket.SOCK_STREAM)
            one.setblocking(False)
            kind.before(one, stream.congestion)
            one.connect_ex((stream.sink_address, kind.port))
            kind.during(one, stream.congestion)
            left[one] = wanted
            waiting.register(one, selectors.EVENT_WRITE)
    end_s = time.monotonic() + _BATCH_S
    while any(left.values()):
        if time.monotonic() > end_s:
            raise RuntimeError(f"{kind.name}: connections without data after {_BATCH_S:g} s")
        for key, _ in waiting.select(0.1):
            one = cast(socket.socket, key.fileobj)
            if one not in opened:
                number = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if number:
                    raise RuntimeError(f"{kind.name}: {os.strerror(number)}")
                opened.add(one)
                waiting.modify(one, selectors.EVENT_READ)
                kind.opened(one, stream.congestion)
                if kind.sender == "client":
                    one.sendall(bytes(SIZE_BYTES))
                continue
            data = one.recv(1 << 16)
            left[one] = max(0, left[one] - len(data)) if data else 0
    waiting.close()
    return list(left)


# --- the hunt -----------------------------------------------------------------------------------


def _network(ip_version: int) -> RunNetwork:
    link = {"name": "l", "from": "r1", "to": "r2", "rate": "1 Gbit/s", "delay": "1 ms",
            "buffer": "10 MB"}  # fmt: skip
    # The third flow is there for the router that it gives the way back.
    flows = [{"name": LAW, "from": "a", "to": "b", "path": ["l"]},
             {"name": "curl", "from": "c", "to": "d", "path": ["l"],
              "size": f"{SIZE_BYTES} B"},
             {"name": "back", "from": "b", "to": "a", "path": ["l:rev"]}]  # fmt: skip
    document = {"duration": "600 s", "ip_version": ip_version, "link": [link], "flow": flows}
    return bed(document)


def _hunt(connections: int, seconds: float, ip_version: int) -> list[Document]:
    on = _network(ip_version)
    assert on.laws is not None
    (host,) = on.laws.hosts
    mine, downloads, _ = streams(on)
    stream = mine.stream
    with on.topology.namespace(stream.sink).entered():
        # Closed connections keep their ports for a minute.
        listeners = [
            socket.create_server((stream.sink_address, port), family=on.topology.family,
                                 backlog=2 * BATCH)
            for port in (_RECEIVES, _SENDS, _SELECTS)
        ]  # fmt: skip
    server = os.fork()
    if server == 0:
        try:
            _serve(listeners, stream.congestion)
        finally:
            os._exit(1)
    with on.topology.namespace(stream.source).entered(), open(
        "/proc/sys/net/ipv4/ip_local_port_range", "w"
    ) as file:  # fmt: skip
        file.write("10000 65535")
    listen(downloads)
    end_s = time.monotonic() + seconds
    found = []
    each = -(-connections // (len(KINDS) + 1))
    # Batches of all kinds take turns, so that an early end has some of each.
    kinds = [(kind, Found(kind.name)) for kind in KINDS]
    turns: list[tuple[ConnectionKind | None, Found]] = [*kinds, (None, Found(CURL))]
    before = host.status()["counters"]
    while time.monotonic() < end_s and any(one.opened < each for _, one in turns):
        for kind, one in turns:
            if one.opened >= each:
                continue
            if kind is None:
                count = min(_CURL_BATCH, each - one.opened)
                _curl(downloads.stream, on, count)
                one.opened += count
            else:
                count = min(BATCH, each - one.opened)
                batch = _batch(on, stream, kind, count)
                one.note(_senders(host, kind))
                one.opened += count
                for connection in batch:
                    connection.close()
            now = host.status()["counters"]
            one.counters = _sum(one.counters, difference(now, before))
            before = now
    found = [one.to_dict() for _, one in turns]
    downloads.stop()
    on.close()
    return found


def _senders(host: daemon.Daemon, kind: ConnectionKind) -> list[Document]:
    """Return the states of a batch's senders, once all have a price or a time limit has passed."""
    end_s = time.monotonic() + _ECHO_S
    while True:
        found = kind.senders(host.status()["flows"])
        if all("was priced" in flow["flags"] for flow in found) or time.monotonic() > end_s:
            return found
        time.sleep(0.01)


def _sum(total: Document, more: Document) -> Document:
    plain = {k: total.get(k, 0) + n for k, n in more.items() if k not in BY_REASON}
    return plain | {k: Counter(total.get(k, {})) + Counter(more[k]) for k in BY_REASON}


def _curl(stream: Stream, on: RunNetwork, count: int) -> None:
    """Download a file `count` times with curl, each time over a new connection."""
    address = stream.source_address
    host = f"[{address}]" if ":" in address else address
    command = ["curl", "--silent", "--show-error", "--fail", "--globoff", "--parallel"]
    command += ["--parallel-max", str(BATCH), "--header", "Connection: close"]
    for _ in range(count):
        command += ["--output", "/dev/null", f"http://{host}:{HTTP_PORT}/data"]
    with on.topology.namespace(stream.sink).entered():
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_BATCH_S, check=False
        )
    if done.returncode:
        raise RuntimeError(f"curl: {done.stderr.strip()[:200]}")


def hunt(connections: int, seconds: float, ip_version: int = 4) -> list[Document]:
    """Open connections of every kind in a separate process tree. Return the observations of each
    kind.

    Each entry has the keys of `Found.to_dict`. Ends after `seconds` with the connections so far.
    Raises RunError if the network cannot be built or a connection fails.
    """
    return list(isolated("connections", lambda: _hunt(connections, seconds, ip_version)))


def _row(name: str, *values: int | str) -> str:
    return f"{name:52}" + "".join(f" {value:>8}" for value in values)


def table(found: Sequence[Document]) -> str:
    """Return a text table with a line for each kind of connection and one for all."""
    lines = [_row("kind", "opened", "started", "priced", "no init")]
    for one in found:
        counted = one["counters"]
        shown = [one["opened"], *(counted.get(k, 0) for k in COLUMNS)]
        lines.append(_row(one["kind"], *shown))
        lines += [f"  {name}: {counted[name]}" for name in ODD if counted.get(name)]
        lines += [f"  {n} fell back: {why}" for why, n in counted.get("fallbacks", {}).items()]
        lines += [f"  fault: {what}" for what in one["faults"]]
    sums = [sum(one["counters"].get(key, 0) for one in found) for key in COLUMNS]
    lines.append(_row("all", sum(one["opened"] for one in found), *sums))
    return "\n".join(lines)


def work(options: Options) -> Report:
    """Open the connections and report the observations."""
    found = hunt(options.connections, options.seconds, 6 if options.ipv6 else 4)
    faults = [f"{one['kind']}: {fault}" for one in found for fault in one["faults"]]
    return Report(table(found), found, faults)


STUDY: Study[None, None] = Study(
    shows="each of 10,000 short MaxNet connections on the kernel asks for prices",
    minutes=10,
    needs=(on_linux(http=True), DAEMON),
    options=(
        Option("--connections", 10_000, "number of all kinds together", low=1),
        Option("--seconds", 600.0, "end after this time", low=1.0),
        Option("--ipv6", False, "use IPv6"),
    ),
    quick={"connections": 200, "seconds": 30.0},
    work=work,
)
