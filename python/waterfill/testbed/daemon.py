"""Laws that `waterfilld` loads into the kernel for one run, on hosts and routers.

Nothing is pinned: what a daemon loads is unloaded when its process ends. TCP's laws and control
groups belong to the whole host, so a law gets a name per run, and its programs act only on
connections of the run's network namespaces, which they know by their cookies.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from waterfill.errors import shown
from waterfill.network import protocols
from waterfill.network.protocols import ProtocolInfo
from waterfill.testbed.answer import (
    ChangeMade,
    ConnectionState,
    DaemonStatus,
    LawSample,
    LinkChanged,
)
from waterfill.testbed.child import Child, installed
from waterfill.testbed.isolate import Namespace
from waterfill.testbed.plan import CLIENT_PORT, HTTP_PORT, WIRES, Plan, Pricing, Stream

_NAME = "waterfilld"
# How long the verifier may take for its programs, on a host with other load.
_READY_S = 60.0
_SO_NETNS_COOKIE = 71
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
# Sampling more often would disturb the measurement.
MIN_SAMPLE_S = 0.1


class DaemonError(RuntimeError):
    """Error for a daemon that did not start or ended early."""


class DaemonRefusal(DaemonError):
    """Error for a daemon's refusal of a wrong argument, or of a host that lacks a feature."""


def binary() -> str | None:
    """Return the path of the daemon's program, or None if it is not installed."""
    return installed(_NAME, "WATERFILLD")


@dataclass(frozen=True)
class LoadableLaw:
    """A law that the daemon can load, with its parameters and the keys of its status in JSON.

    The first key of `source` is the path's signal, 0 before one was received.
    """

    name: str
    parameters: tuple[str, ...]
    link: tuple[str, ...]
    source: tuple[str, ...]


def laws() -> Mapping[str, LoadableLaw]:
    """Return the laws that the installed daemon can load, by name. The mapping is empty if no
    compatible daemon is installed.
    """
    path = binary()
    return {} if path is None else _laws(path, os.stat(path).st_mtime_ns)


@cache
def _laws(path: str, _changed: int) -> Mapping[str, LoadableLaw]:
    done = subprocess.run([path, "laws", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {}  # a daemon of another version
    return {
        law["name"]: LoadableLaw(
            law["name"], tuple(parameter["name"] for parameter in law["parameters"]),
            tuple(law["link"]), tuple(law["source"]),
        )
        for law in json.loads(done.stdout)
    }  # fmt: skip


# What status JSON adds to a signal's name in the registry: what it is of, and its unit.
_SUFFIXES = re.compile(r"(_heard)?(_s|_bps|_bytes|_pps)?$")


def columns(law: LoadableLaw, info: ProtocolInfo) -> dict[str, dict[str, str]]:
    """Return the keys of a law's JSON status that are signals in the registry, for links and flows.

    Each maps to the signal's name.
    """

    def known(keys: Sequence[str]) -> dict[str, str]:
        names = {key: _SUFFIXES.sub("", key) for key in keys}
        return {key: name for key, name in names.items() if name in info.signals}

    return {"links": known(law.link), "flows": known(law.source)}


def name_of(law: str, run: str) -> str:
    """Return the kernel's name of a law for one run, of at most 15 characters.

    Two and the last characters of the law's name tell the laws of a run apart.
    """
    return f"bpf_{law[:2]}{law[-1]}{run}"[:15]


def run_name() -> str:
    """Return a random word that identifies this run. A process ID is unique only in its PID
    namespace.
    """
    number, digits = int.from_bytes(os.urandom(5), "big"), ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def cookie(space: Namespace) -> int:
    """Return the cookie by which BPF programs identify a network namespace."""
    with space.entered(), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        value = one.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
    return int.from_bytes(value, sys.byteorder)


# --- arguments: the registry's parameters as the daemon names them -------------------------------

Params = Mapping[str, Any]

# The parameter that the daemon's --target sets, unless the law takes it as a parameter.
TARGET = "mu"


def host_arguments(
    law: LoadableLaw,
    info: ProtocolInfo,
    params: Params,
    name: str,
    cookies: Sequence[int],
    window_s: float | None,
) -> list[str]:
    """Return the `waterfilld host` arguments for these namespaces. `params` are in SI units.

    `window_s` is the time (s) after which hosts forget an RTT as the smallest, or None for never.
    """
    found = ["host", "--no-pin", "--line", "--law", law.name, "--name", name]
    for number in cookies:
        found += ["--netns-cookie", str(number)]
    if info.base_rtt is not None:
        found += ["--base-rtt-window", "unlimited" if window_s is None else _text("time", window_s)]
    return found + _set(law, info, params)


def router_arguments(
    law: LoadableLaw, info: ProtocolInfo, params: Params, pricings: Sequence[Pricing]
) -> list[str]:
    """Return the `waterfilld router` arguments for links with one namespace, target and queue."""
    found = ["router", "--no-pin", "--line", "--law", law.name]
    for pricing in pricings:
        found += ["--dev", pricing.port.name, "--rate", f"{pricing.rate_bps:.0f}bit"]
    if pricings[0].own_target or (TARGET in params and TARGET not in law.parameters):
        found += ["--target", f"{pricings[0].target:.9g}"]
    return [*found, "--overhead", "0", *_set(law, info, params), *pricings[0].cohabit]


def _set(law: LoadableLaw, info: ProtocolInfo, params: Params) -> list[str]:
    found = []
    for name in law.parameters:
        if name in params:
            found += ["--set", f"{name}={_text(info.param(name).unit, params[name])}"]
    return found


def _text(unit: str, value: Any) -> str:
    """Return a parameter's value, given in SI units, as text for the daemon."""
    if unit == "rate":
        return f"{value:.0f}bit"
    if unit == "time":
        return f"{value * 1e9:.0f}ns"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else f"{value:.9g}"


# The parameters of options that have another name.
_OPTIONS = {"target": TARGET}


def refused(said: str, params: Params) -> tuple[str | None, str]:
    """Return the parameter that a refusal names, or None, and the problem with it."""
    problem = "(must be .*)"
    for pattern in (rf"--([a-z0-9-]+)[^:]*: {problem}", rf"\b([a-z0-9_]+)[^:]*: {problem}"):
        found = re.search(pattern, said)
        if found is not None:
            name = _OPTIONS.get(found[1], found[1].replace("-", "_"))
            if name in params:
                limit = found[2].partition(", got ")[0].removesuffix(" in kernel arithmetic")
                return name, f"{limit} on linux, got {shown(params[name])}"
    return None, said


# --- processes --------------------------------------------------------------------------------


class Daemon(Child):
    """One running `waterfilld` process.

    It answers each line with its state. `ask` and `poll` do not wait, since the sampler must not
    block on a process that may not be scheduled at once.
    """

    error, refusal = DaemonError, DaemonRefusal

    def __init__(self, arguments: Sequence[str]) -> None:
        """Start the daemon without waiting until it is ready; `wait` does that.

        Raises DaemonError if it is not installed.
        """
        super().__init__(_NAME, binary(), arguments)
        self._buffer = b""
        self._asked = 0
        self._answers: deque[DaemonStatus] = deque()
        self.changes: list[LinkChanged] = []
        """Answers received so far to `set_rate` and `restart`."""

    def wait(self) -> DaemonStatus:
        """Wait until the daemon is ready and return its first answer; raise DaemonError on
        failure.
        """
        return self._receive()

    def ask(self) -> None:
        """Request the daemon's state, unless an answer is outstanding."""
        if self._asked == 0:
            self._ask()

    def poll(self) -> DaemonStatus | None:
        """Return the answer to `ask` if it has arrived, or None."""
        self._read_available()
        if not self._answers:
            return None
        self._asked -= 1
        return self._answers.popleft()

    def set_rate(self, device: str, rate_bps: float) -> None:
        """Set the rate of a router's link. A later read appends the daemon's answer to
        `changes`.
        """
        self._read_available()  # or its answers might fill the pipe
        self._write(f"rate {device} {rate_bps:.0f}bit")

    def restart(self, device: str) -> None:
        """Restart a router's link. The link loses its signal, and a later read appends the daemon's
        answer to `changes`.
        """
        self._read_available()
        self._write(f"restart {device}")

    def status(self) -> DaemonStatus:
        """Wait for the daemon's current state and return it. `changes` is then complete."""
        while self._asked:
            self._answer_waited()
        self._ask()
        return self._answer_waited()

    def _ask(self) -> None:
        self._write("status")
        self._asked += 1

    def _answer_waited(self) -> DaemonStatus:
        self._asked -= 1
        return self._receive()

    def _receive(self) -> DaemonStatus:
        while not self._answers:
            self._take(os.read(self._out.fileno(), 1 << 20))
        return self._answers.popleft()

    def _read_available(self) -> None:
        os.set_blocking(self._out.fileno(), False)
        try:
            self._take(os.read(self._out.fileno(), 1 << 20))
        except BlockingIOError:
            pass
        finally:
            os.set_blocking(self._out.fileno(), True)

    def _take(self, piece: bytes) -> None:
        """Parse complete lines of the daemon's output, and store each answer by its kind."""
        if not piece:
            self._raise_ended()
        *lines, self._buffer = (self._buffer + piece).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if "at_s" in answer:
                self.changes.append(LinkChanged.read(answer))
            else:
                self._answers.append(DaemonStatus.read(answer))


class Laws:
    """The daemons of a run: one per law for all hosts, and one per law and namespace for routers.

    A router daemon has one target, so links of one namespace with different targets have separate
    daemons.
    """

    def __init__(
        self, plan: Plan, params: Mapping[str, Params], spaces: Sequence[Namespace]
    ) -> None:
        """Prepare the daemons. `params` holds each loaded law's parameters, `spaces` the plan's
        namespaces.
        """
        self._plan, self._params, self._spaces = plan, params, spaces
        self._laws, self._infos = laws(), protocols.load()
        self.hosts: list[Daemon] = []
        self.routers: list[tuple[Daemon, dict[str, int]]] = []
        self._ends: dict[tuple[str, str], int] = {}
        for index, stream in enumerate(plan.streams):
            if stream.loaded:
                self._ends[data_sender(stream, plan.ip_version)] = index
        self.samples: list[LawSample] = []
        self._sample: LawSample | None = None
        # Daemons that have not answered for the sample yet.
        self._left = 0
        self._planned: list[tuple[Daemon, float]] = []

    def load(self) -> None:
        """Load the laws for all hosts. This precedes the hosts' routes, which name the laws."""
        streams = [stream for stream in self._plan.streams if stream.loaded]
        for protocol in dict.fromkeys(stream.protocol for stream in streams):
            mine = [stream for stream in streams if stream.protocol == protocol]
            cookies = [cookie(self._spaces[end]) for s in mine for end in self.ends(s)]
            window_s = self._plan.base_rtt_windows_s[protocol]
            law = self._law(protocol)
            arguments = host_arguments(*law, mine[0].congestion, cookies, window_s)
            with _naming(protocol):
                self.hosts.append(self.start(WIRES, arguments))
                self.hosts[-1].wait()

    def _law(self, protocol: str) -> tuple[LoadableLaw, ProtocolInfo, Params]:
        return self._laws[protocol], self._infos[protocol], self._params[protocol]

    def ends(self, stream: Stream) -> tuple[int, ...]:
        """Return the namespaces of a stream's hosts that run the daemon."""
        return (stream.source, stream.sink)

    def start(self, namespace: int, arguments: list[str]) -> Daemon:
        """Start a daemon in a namespace of the plan, given by its number."""
        with self._spaces[namespace].entered():
            return Daemon(arguments)

    def attach_routers(self) -> None:
        """Attach router laws to the links' interfaces, which must already exist."""
        groups: dict[tuple[str, int, float, bool, tuple[str, ...]], list[Pricing]] = {}
        for p in self._plan.pricings:
            key = (p.protocol, p.port.namespace, p.target, p.own_target, p.cohabit)
            groups.setdefault(key, []).append(p)
        for (protocol, namespace, *_), mine in groups.items():
            arguments = router_arguments(*self._law(protocol), mine)
            directions = {p.port.name: p.direction for p in mine}
            with _naming(protocol):
                self.routers.append((self.start(namespace, arguments), directions))
                self.routers[-1][0].wait()

    def set_rate(self, direction: int, rate_bps: float, at_s: float) -> None:
        """Set the rate of a link direction's routers. The change was planned for `at_s`."""
        for daemon, device in self._routers_of(direction):
            daemon.set_rate(device, rate_bps)
            self._planned.append((daemon, at_s))

    def restart_routers(self, direction: int, at_s: float) -> None:
        """Restart the routers of a link direction. The change was planned for `at_s`."""
        for daemon, device in self._routers_of(direction):
            daemon.restart(device)
            self._planned.append((daemon, at_s))

    def _routers_of(self, direction: int) -> Iterator[tuple[Daemon, str]]:
        for daemon, directions in self.routers:
            for device, mine in directions.items():
                if mine == direction:
                    yield daemon, device

    def changes(self, start_s: float) -> list[ChangeMade]:
        """Return all changes of routers, with their lateness. Call `finish` first.

        Each has `at_s`, `late_s` and `error`; `start_s` is the run's time 0 (monotonic).
        """
        answers = {id(daemon): iter(daemon.changes) for daemon, _ in self.routers}
        found = []
        for daemon, at_s in self._planned:
            answer = next(answers[id(daemon)])
            late_s = answer.at_s - start_s - at_s
            found.append(ChangeMade(at_s=at_s, late_s=late_s, error=answer.error))
        return found

    def take(self, now_s: float) -> None:
        """Collect the daemons' answers that have arrived, and request new ones if a sample is
        due.
        """
        self._collect()
        last = self._sample
        if last is not None and (self._left or now_s < last.time_s + 0.99 * MIN_SAMPLE_S):
            return
        daemons = [*self.hosts, *(daemon for daemon, _ in self.routers)]
        self._sample, self._left = LawSample(time_s=now_s, flows={}, links={}), len(daemons)
        for daemon in daemons:
            daemon.ask()

    def _collect(self) -> None:
        sample = self._sample
        if sample is None or not self._left:
            return
        for daemon in self.hosts:
            self._note(sample, daemon.poll(), None)
        for daemon, directions in self.routers:
            self._note(sample, daemon.poll(), directions)
        if not self._left:
            self.samples.append(sample)

    def _note(
        self, sample: LawSample, answer: DaemonStatus | None, directions: dict[str, int] | None
    ) -> None:
        if answer is None:
            return
        self._left -= 1
        if directions is None:
            for index, state in self._flows(answer):
                sample.flows[str(index)] = state
        else:
            for link in answer.links:
                sample.links.setdefault(str(directions[link.device]), {})[link.law] = link

    def _flows(self, answer: DaemonStatus) -> Iterator[tuple[int, ConnectionState]]:
        """Yield the connections that carry a stream's data, each with the stream's index.

        `signal` of each is the law's first: that of the path, 0 before one was received.
        """
        for flow in answer.flows:
            index = self._ends.get((flow.local, flow.remote.rpartition(":")[0]))
            if index is not None:
                signal = flow[self._laws[flow.law].source[0]]
                yield index, ConnectionState.read({**flow, "signal": signal})

    def finish(self, now_s: float) -> list[LawSample]:
        """Return all samples, after waiting for a last one."""
        self._collect()
        last = LawSample(time_s=now_s, flows={}, links={})
        for daemon in self.hosts:
            self._note(last, daemon.status(), None)
        for daemon, directions in self.routers:
            self._note(last, daemon.status(), directions)
        self.samples.append(last)
        return self.samples

    def close(self) -> None:
        """End all daemons, routers first, so that hosts' daemons end without traffic."""
        with ExitStack() as stack:
            for daemon in [*self.hosts, *(daemon for daemon, _ in self.routers)]:
                stack.callback(daemon.close)


@contextmanager
def _naming(protocol: str) -> Iterator[None]:
    """Prefix a daemon's refusal with the law's name, because laws share names of parameters."""
    try:
        yield
    except DaemonRefusal as error:
        raise DaemonRefusal(f"{protocol}: {error}") from None


def data_sender(stream: Stream, ip_version: int) -> tuple[str, str]:
    """Return the local address:port and the remote address of a stream's data connection."""
    port = HTTP_PORT if stream.kind == "http" else CLIENT_PORT
    local, remote = stream.source_address, stream.sink_address
    return (f"{local}:{port}", remote) if ip_version == 4 else (f"[{local}]:{port}", f"[{remote}]")
