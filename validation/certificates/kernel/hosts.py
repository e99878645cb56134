"""Logs of laws' hosts in the kernel: two hosts send to each other over a router and a delay.

The network namespaces have no names, and the daemons and the delay line end when their standard
input closes, so that nothing is left when this process ends, in whatever way.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from validation.certificates.fixed.laws import LAYOUTS
from waterfill.errors import RunError
from waterfill.testbed import daemon, delayline
from waterfill.testbed.isolate import Namespace

RATE = "50 Mbit/s"
DELAY_NS = 2_000_000
_HOLD_BYTES = 1 << 22
_FRAME_BYTES = 1518
_PORT = 5001
_DAEMON = ("--no-pin", "--line")
_WAIT_S, _CONNECT_S = 0.2, 5.0
# Addresses of the hosts and of the router's sides.
_ADDRESSES = {"a": ("10.89.1.1", "10.89.1.2"), "b": ("10.89.2.1", "10.89.2.2")}

# The laws whose hosts can be logged: parameters of all, and of host b alone, which select other
# equations. With its own parameters AECP needs seconds to start.
HOSTS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "maxnet": (
        (),
        (
            *("--set", "average=false", "--set", "compensate=false"),
            *("--set", "order=rate-first"),
        ),
    ),
    "maxnet2006": (
        (),
        (
            *("--set", "rtt_unit=100 us", "--set", "average=false"),
            *("--set", "wnd_update_freq=3", "--set", "compensate=false"),
        ),
    ),
    "rcp": (("--set", "first_rate=0.2"), ()),
    "aecp": (
        ("--set", "x_0=1000", "--set", "t_2=10 ms", "--set", "beta=5"),
        ("--set", "form=exact", "--set", "step=acknowledgement"),
    ),
    "vcp": ((), ("--set", "freeze=overload", "--set", "alpha=2", "--set", "beta=0.75")),
    "xcp": ((), ("--set", "first_window=4", "--set", "halve_on_loss=false")),
    "pxcp": ((), ("--set", "first_window=4", "--set", "halve_on_loss=false")),
    "ixcp": ((), ("--set", "first_window=4", "--set", "halve_on_loss=false")),
    "jetmax": ((), ("--set", "tau=0.3", "--set", "epsilon=0.1")),
}


def laws() -> list[str]:
    """Return the laws whose hosts have equations."""
    layouts = LAYOUTS
    return [law for law in HOSTS if "source" in layouts[law]]


def lacking() -> str | None:
    """Return the missing requirements of a log of hosts in the kernel."""
    if os.geteuid() != 0:
        return "root"
    for name, path in (("waterfilld", daemon.binary()), ("waterfill-delay", delayline.binary())):
        if path is None:
            return name
    return next((name for name in ("ip", "tc", "ethtool") if shutil.which(name) is None), None)


class Network:
    """Host a, a router, wires that delay, host b."""

    def __init__(self) -> None:
        """Build it; RunError if a command fails."""
        self.spaces = {name: Namespace() for name in ("a", "router", "wires", "b")}
        try:
            self._veth(("a", "eth0"), ("router", "toa"))
            self._veth(("router", "tob"), ("wires", "w0"))
            self._veth(("wires", "w1"), ("b", "eth0"))
            for host, (own, other) in _ADDRESSES.items():
                self._do(host, "ip", "addr", "add", f"{own}/24", "dev", "eth0")
                self._do(host, "ip", "route", "add", "default", "via", other)
                self._do("router", "ip", "addr", "add", f"{other}/24", "dev", f"to{host}")
            with self.spaces["router"].entered():
                Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            # The delay line takes frames as they are: no larger than the MTU, with checksums.
            for name, device in (("router", "tob"), ("b", "eth0")):
                off = ("tx", "off", "tso", "off", "gso", "off")
                self._do(name, "ethtool", "-K", device, *off)
            self._line = self._delay_line()
        except BaseException:
            self._close_spaces()
            raise

    def close(self) -> None:
        """End the delay line, and leave the namespaces to the kernel."""
        self._line.communicate()  # closes its standard input
        self._close_spaces()

    def _close_spaces(self) -> None:
        for space in self.spaces.values():
            os.close(space.fd)

    def _do(self, name: str, *command: str) -> None:
        with self.spaces[name].entered():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RunError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-200:]}")

    def _veth(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        there = f"/proc/{os.getpid()}/fd/{self.spaces[other[0]].fd}"
        peer = ("type", "veth", "peer", "name", other[1], "netns", there)
        self._do(one[0], "ip", "link", "add", one[1], *peer)
        for name, device in (one, other):
            self._do(name, "ip", "link", "set", device, "up")

    def _delay_line(self) -> subprocess.Popen[str]:
        ends = (("w0", "w1"), ("w1", "w0"))
        lines = [
            {"name": a, "from": a, "to": b, "delay_ns": DELAY_NS, "hold_bytes": _HOLD_BYTES}
            for a, b in ends
        ]
        config = {"frame_bytes": _FRAME_BYTES, "realtime": False, "lines": lines}
        with self.spaces["wires"].entered():
            pipe = subprocess.PIPE
            line = subprocess.Popen(
                [delayline.binary() or ""], stdin=pipe, stdout=pipe, stderr=pipe, text=True
            )
        assert line.stdin is not None
        assert line.stdout is not None
        line.stdin.write(json.dumps(config) + "\n")
        line.stdin.flush()
        if not line.stdout.readline():
            raise RunError(f"waterfill-delay: {line.communicate()[1].strip()[-200:]}")
        return line


@contextmanager
def network() -> Iterator[Network]:
    """Build the network, and remove it at the end."""
    built = Network()
    try:
        yield built
    finally:
        built.close()


def recorded(law: str, seconds: float, folder: Path, over: Network, seed: int = 1) -> list[Path]:
    """Run a law on both hosts and the router under traffic; return the hosts' logs.

    Raises DaemonError or RunError if it fails.
    """
    files, names, running = [], {}, []
    run = daemon.run_name()
    common, own = HOSTS[law]
    with ExitStack() as stack:
        for host in ("a", "b"):
            names[host] = f"wf{host}{run}"[:15]
            files.append(folder / f"{law}-host-{host}.steps")
            space = over.spaces[host]
            options = ["--name", names[host], "--netns-cookie", str(daemon.cookie(space))]
            options += ["--log-steps", str(files[-1]), *(own if host == "b" else ())]
            running.append((space, ["host", *options]))
        links = [option for side in "ab" for option in ("--dev", f"to{side}", "--rate", RATE)]
        running.append((over.spaces["router"], ["router", *links, "--shape"]))
        started = []
        for space, arguments in running:
            with space.entered():
                started.append(daemon.Daemon([*arguments, "--law", law, *common, *_DAEMON]))
            stack.callback(started[-1].close)
        for one in started:
            one.wait()
        Traffic(over, names, seed).run(seconds)
    return files


class Traffic:
    """Flows of both hosts to each other: without end, limited by their application, and short."""

    def __init__(self, over: Network, names: dict[str, str], seed: int) -> None:
        """`names`: the congestion control of each host."""
        self.over, self.names, self.draw = over, names, random.Random(seed)
        self.ended = threading.Event()
        self.threads: list[threading.Thread] = []
        self.failed: list[OSError] = []

    def run(self, seconds: float) -> None:
        """Send for so many seconds; RunError if a connection could not be made."""
        for host in ("a", "b"):
            listener = self._socket(host)
            listener.bind((_ADDRESSES[host][0], _PORT))
            listener.listen()
            self._start(self._accept, listener)
        for host, kinds in (("a", "bulk bulk paused paused short"), ("b", "bulk paused short")):
            for kind in kinds.split():
                self._start(self._send, host, kind)
        time.sleep(seconds)
        self.ended.set()
        for thread in self.threads:
            thread.join()
        if self.failed:
            raise RunError(f"traffic: {self.failed[0]}")

    def _start(self, function: Callable[..., None], *arguments: object) -> None:
        def keep() -> None:
            try:
                function(*arguments)
            except OSError as error:
                if not self.ended.is_set():
                    self.failed.append(error)

        self.threads.append(threading.Thread(target=keep, daemon=True))
        self.threads[-1].start()

    def _socket(self, host: str) -> socket.socket:
        with self.over.spaces[host].entered():
            found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        found.settimeout(_WAIT_S)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return found

    def _accept(self, listener: socket.socket) -> None:
        with listener:
            while not self.ended.is_set():
                with suppress(TimeoutError):
                    one, _ = listener.accept()
                    one.settimeout(_WAIT_S)
                    self._start(self._read, one)

    def _read(self, one: socket.socket) -> None:
        with one:
            while not self.ended.is_set():
                with suppress(TimeoutError):
                    if not one.recv(1 << 20):
                        return

    def _send(self, host: str, kind: str) -> None:
        other = _ADDRESSES["b" if host == "a" else "a"][0]
        while not self.ended.is_set():
            with self._socket(host) as one:
                name = self.names[host].encode()
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
                one.settimeout(_CONNECT_S)
                one.connect((other, _PORT))
                one.settimeout(_WAIT_S)
                left = self.draw.randrange(1, 1 << 19) if kind == "short" else 1 << 62
                while left > 0 and not self.ended.is_set():
                    size = min(
                        self.draw.randrange(1, 30_000) if kind == "paused" else 1 << 16, left
                    )
                    with suppress(TimeoutError):
                        left -= one.send(bytes(size))
                    if kind == "paused":
                        self.ended.wait(self.draw.random() / 20)
            self.ended.wait(0.02)
