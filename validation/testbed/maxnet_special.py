"""MaxNet experiments that no scenario can express: offloads, many flows, crashes, hostile paths.

Each is a function of a factor on its times that returns goals as `maxnet.verdict` does. All run in
a process tree of `isolate`, on a network that a scenario describes, with traffic of their own.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from waterfill.errors import RunError
from waterfill.network import protocols
from waterfill.runs.result import Document
from waterfill.scenario.loading import from_dict
from waterfill.testbed import backend, checks, daemon, isolate, kernel, netlink, plan, sampling
from waterfill.testbed.bed import RunNetwork
from waterfill.testbed.daemon import Daemon, Laws
from waterfill.testbed.flows import Running
from waterfill.testbed.plan import CLIENT_PORT, HTTP_PORT, IPERF_PORT, Plan, Stream

LAW = "maxnet"
TARGET = 0.94
# The requirements, relative to CUBIC and to the fair share.
OF_CUBIC = 0.95
SHARE_WITHIN = 0.10
MAX_SLOWDOWN = 1.05
_WARM_S = 3.0
_SETTLE_S = 60.0
# Flows, pairs of hosts, clients per host. A client's flows start together and the next client's a
# second later: if all 500 start at once, each with the link's whole spare capacity as its start
# rate, the law needs 20 s to recover, in the simulator too.
_CROWD, _HOSTS, _CLIENTS = 500, 4, 5
_CLIENT_EVERY_S = 1.0
_PATIENCE_S = 300.0
_PATHS = 3
_COST_TURNS = 3


# --- goals ------------------------------------------------------------------------------------


def goal(
    name: str, measured: float | None, unit: str = "", *, least: float | None = None,
    most: float | None = None, near: float | None = None, within: float = 0.0,
) -> Document:  # fmt: skip
    """Return a goal as a document, with its measured value and its reference, if any."""
    kind, reference, ok = "shown", None, None
    if least is not None:
        kind, reference = "least", least
        ok = measured is not None and measured >= least
    elif most is not None:
        kind, reference = "most", most
        ok = measured is not None and measured <= most
    elif near is not None:
        kind, reference = "near", near
        ok = measured is not None and abs(measured - near) <= within * near
    return {"goal": name, "unit": unit, "kind": kind, "measured": measured,
            "reference": reference, "within": within, "scale": 1.0, "ok": ok}  # fmt: skip


# --- a tree of its own ------------------------------------------------------------------------


def run(name: str, times: float = 1.0) -> list[Document]:
    """Run one experiment in a separate process tree. Raises RunError if it fails."""
    return list(isolated(name, lambda: SPECIALS[name][1](times)))


def isolated(name: str, function: Callable[[], Any]) -> Any:
    """Call a function in a separate process tree, which may be nested in another, and return its
    result.
    """
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_inside, args=(function, theirs))
    process.start()
    theirs.close()
    try:
        found, failure = ours.recv()
    except EOFError:
        raise RunError(f"linux: {name} ended early") from None
    finally:
        process.join()
    if failure is not None:
        raise RunError(f"linux: {name}: {failure}")
    return found


def _inside(function: Callable[[], Any], answer: Any) -> None:
    kept = os.dup(answer.fileno())  # the waiting parent of the tree closes only 0 and 1
    found, failure = None, None
    try:
        isolate.enter()
        found = function()
    except Exception as error:
        if os.environ.get("WATERFILL_DEBUG"):
            raise
        failure = f"{type(error).__name__}: {error}"
    multiprocessing.connection.Connection(kept, readable=False).send((found, failure))
    os._exit(0)


def bed(document: Document, *, offloads: bool = False, laws: type[Laws] = Laws) -> RunNetwork:
    """Build a scenario's network. The network is removed with the process tree."""
    scenario = from_dict({"protocol": LAW, "params": {LAW: {"mu": TARGET}}} | document)
    resolved = backend.resolve(scenario)
    names = kernel.congestion(kernel.offered(), protocols.load(), daemon.run_name())
    made: Plan = plan.of(scenario, resolved, names, protocols.targets(resolved.params))
    made.offloads = offloads
    return RunNetwork(made, backend.params_of(resolved), laws)


def streams(on: RunNetwork, first: int = 0) -> list[Running]:
    """Return the processes of every stream without starting them. `first` is the first process
    number.
    """
    return [Running(stream, on.topology, first + n) for n, stream in enumerate(on.plan.streams)]


def listen(running: Running) -> None:
    """Start the server of a stream and wait until it listens."""
    running.prepare()
    end_s = time.monotonic() + 10
    while not running.ready:
        if time.monotonic() > end_s:
            raise RuntimeError(f"the server of {running.stream.name} does not listen")
        time.sleep(0.01)


def _sender(on: RunNetwork, stream: Stream) -> netlink.TcpInfo | None:
    with on.topology.namespace(stream.source).entered():
        sockets = netlink.SockDiag().sockets(on.topology.family)
    port = HTTP_PORT if stream.kind == "http" else CLIENT_PORT
    return next((info for info in sockets if info.sport == port), None)


def goodput(on: RunNetwork, running: Running, seconds: float, warm_s: float = _WARM_S) -> Document:
    """Measure a greedy flow after its start-up: goodput (bit/s), retransmissions, RTT
    and CPU load.
    """
    listen(running)
    running.start()
    time.sleep(warm_s)
    before, began, busy = _sender(on, running.stream), time.monotonic(), sampling.host_load()
    time.sleep(seconds)
    after, took_s = _sender(on, running.stream), time.monotonic() - began
    spent = _ticks(busy, sampling.host_load())
    running.stop()
    if before is None or after is None:
        raise RuntimeError(running.trouble() or f"{running.stream.name} does not send")
    return {
        "bps": 8 * (after.bytes_acked - before.bytes_acked) / took_s,
        "resent": after.total_retrans - before.total_retrans,
        "rtt_s": after.rtt_us * 1e-6, "busy": spent,
    }  # fmt: skip


def _ticks(before: Document, after: Document) -> float:
    """Return the fraction of CPU time between two samples that was not idle."""
    spent = {k: after["cpu_ticks"][k] - before["cpu_ticks"][k] for k in before["cpu_ticks"]}
    return float(1 - (spent["idle"] + spent["iowait"]) / max(1, sum(spent.values())))


def _modes(on: RunNetwork) -> list[Document]:
    if on.laws is None:
        return []
    return [flow for host in on.laws.hosts for flow in host.status()["flows"]]


# --- 10 Gbit/s through one hop, offloads on -----------------------------------------------------


def ten_gigabit(times: float) -> list[Document]:
    """Compare the goodput of MaxNet and CUBIC over one 10 Gbit/s hop, with packets of 64 kB.

    The target is the whole link, as CUBIC's is. The router counts a header for each segment of a
    super-packet, the shaper one for all: that alone is 4 %.
    """
    link = {
        "name": "l",
        "from": "r1",
        "to": "r2",
        "rate": "10 Gbit/s",
        "buffer": "4 MB",
        "target": 1.0,
    }
    flows = [{"name": name, "from": f"a{name}", "to": f"b{name}", "path": ["l"], "protocol": law}
             for name, law in ((LAW, LAW), ("cubic", "cubic"))]  # fmt: skip
    on = bed({"duration": "60 s", "link": [link], "flow": flows}, offloads=True)
    mine, cubic = (goodput(on, r, 10 * times) for r in streams(on))
    on.close()
    return [
        goal("MaxNet's goodput, against CUBIC's", mine["bps"], "Mbit/s",
             least=OF_CUBIC * cubic["bps"]),
        goal("CUBIC's goodput", cubic["bps"], "Mbit/s"),
        goal("RTT under MaxNet", mine["rtt_s"], "ms"),
        goal("RTT under CUBIC", cubic["rtt_s"], "ms"),
        goal("retransmissions of MaxNet", mine["resent"]),
        goal("retransmissions of CUBIC", cubic["resent"]),
        goal("CPU time under MaxNet", mine["busy"], "%", most=1.1 * cubic["busy"]),
        goal("CPU time under CUBIC", cubic["busy"], "%"),
    ]  # fmt: skip


# --- five hundred flows -------------------------------------------------------------------------


def crowd(slower: int) -> Callable[[float], list[Document]]:
    """Return the experiment with 500 flows at 1 Gbit/s and 28 ms, slowed down `slower` times.

    Each has a window of 4.4 packets.
    """
    return lambda times: _crowd(times, slower)


def _crowd(times: float, slower: int) -> list[Document]:
    rate_bps = 1e9 / slower
    link = {"name": "l", "from": "r1", "to": "r2", "rate": f"{rate_bps:g} bit/s",
            "delay": f"{14 * slower} ms", "buffer": "1 bdp"}  # fmt: skip
    flows = [{"name": "f", "path": ["l"], "count": _HOSTS}]
    on = bed({"duration": "120 s", "link": [link], "flow": flows})
    for stream in on.plan.streams:
        for end in (stream.source, stream.sink):
            with on.topology.namespace(end).entered():
                # Buffers for small windows, not for 500 windows of the whole path.
                for name, default_bytes in (("tcp_rmem", 1 << 21), ("tcp_wmem", 1 << 19)):
                    _setting(name, f"4096 131072 {default_bytes}")
                _setting("tcp_notsent_lowat", str(1 << 15))
    started = [process for r in streams(on) for process in _clients(r)]
    seconds = 30 * times
    _wait_for_flows(on, _CROWD)
    time.sleep(_SETTLE_S * times)
    before, began = _acked(on), time.monotonic()
    sent_before, busy_before = _link_bytes(on), sampling.host_load()
    time.sleep(seconds)
    after, took_s = _acked(on), time.monotonic() - began
    utilization = 8 * (_link_bytes(on) - sent_before) / took_s / rate_bps
    busy = _ticks(busy_before, sampling.host_load())
    modes = _modes(on)
    for process in started:
        process.kill()
    on.close()
    # The rate of IP bytes, from payload of full packets.
    rates = sorted(
        8 * (after[key][0] - before[key][0]) / took_s * on.plan.mtu_bytes / after[key][1]
        for key in before.keys() & after.keys()
    )
    share = TARGET * rate_bps / _CROWD
    reasons = Counter(f["fallback_reason"] for f in modes if f["fallback_reason"])
    return [
        goal("flows", len(rates), least=_CROWD),
        goal("mean rate of the slowest flow, against its share", rates[0], "Mbit/s",
             least=(1 - SHARE_WITHIN) * share),
        goal("mean rate of the fastest flow, against its share", rates[-1], "Mbit/s",
             most=(1 + SHARE_WITHIN) * share),
        goal("mean rate of all flows", statistics.fmean(rates), "Mbit/s"),
        goal("utilization", utilization, "%"),
        goal("CPU time", busy, "%"),
        goal("flows with a price at the end", sum(f["price_s"] > 0 for f in modes)),
        *(goal(f"connections without a price: {why}", count) for why, count in reasons.items()),
    ]  # fmt: skip


def _clients(running: Running) -> list[subprocess.Popen[bytes]]:
    """Start the iperf3 clients of a host, one per second, each with a separate server."""
    found = []
    stream = running.stream
    for n in range(_CLIENTS):
        port = str(IPERF_PORT + n)
        server = ["iperf3", "--server", "--interval", "0", "--bind", stream.sink_address, "--port",
                  port]  # fmt: skip
        client = ["iperf3", "--client", stream.sink_address, "--port", port, "--parallel",
                  str(_CROWD // _HOSTS // _CLIENTS), "--time", "3600", "--interval", "0",
                  "--congestion", stream.congestion,
                  # A write above tcp_notsent_lowat blocks all streams of its process.
                  "--length", "16K"]  # fmt: skip
        found.append(running.run(stream.sink, server, f"server{n}"))
        time.sleep(_CLIENT_EVERY_S)
        found.append(running.run(stream.source, client, f"client{n}"))
    return found


def _setting(name: str, value: str) -> None:
    with open(f"/proc/sys/net/ipv4/{name}", "w") as file:
        file.write(value)


def _acked(on: RunNetwork) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the acknowledged bytes and the MSS of each data connection, by (host, port)."""
    found = {}
    for stream in on.plan.streams:
        with on.topology.namespace(stream.source).entered():
            for info in netlink.SockDiag().sockets(on.topology.family):
                ours = IPERF_PORT <= info.dport < IPERF_PORT + _CLIENTS
                if ours and info.bytes_acked > 2048:  # not iperf3's control connection
                    found[stream.source, info.sport] = (info.bytes_acked, info.mss_bytes)
    return found


def _wait_for_flows(on: RunNetwork, count: int) -> None:
    """Wait until `count` flows send, but at most for a minute."""
    end_s = time.monotonic() + 60
    while len(_acked(on)) < count and time.monotonic() < end_s:
        time.sleep(0.2)


def _link_bytes(on: RunNetwork) -> int:
    port, _ = next(pair for pair in on.plan.shapers() if pair[1].direction == 0)
    return on.topology.routes[port.namespace].queue(on.topology.index(port)).bytes


# --- a download whose daemons die ---------------------------------------------------------------


class Pinned(Laws):
    """Daemons whose programs stay loaded while a daemon is killed and restarted."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.folder = Path(isolate.SCRATCH) / "bpf"
        self.folder.mkdir()
        isolate.mount("bpf", str(self.folder), "bpf")
        self._started: list[tuple[int, list[str]]] = []
        self.kills = 0

    def start(self, namespace: int, arguments: list[str]) -> Daemon:
        """Start a daemon that pins its programs in a separate folder."""
        pins = self.folder / str(len(self._started))
        kept = [w for w in arguments if w != "--no-pin"] + ["--pins", str(pins)]
        self._started.append((namespace, kept))
        return super().start(namespace, kept)

    def everyone(self) -> list[Daemon]:
        """Return all daemons in order of their start."""
        return [*self.hosts, *(daemon for daemon, _ in self.routers)]

    def kill(self, number: int) -> None:
        """Kill a daemon, given by number, with SIGKILL."""
        self.everyone()[number].kill()
        self.kills += 1

    def restart(self, number: int) -> None:
        """Restart a killed daemon with the same arguments."""
        namespace, arguments = self._started[number]
        new = super().start(namespace, arguments)
        new.wait()
        if number < len(self.hosts):
            self.hosts[number] = new
        else:
            place = number - len(self.hosts)
            self.routers[place] = (new, self.routers[place][1])


def download(times: float) -> list[Document]:
    """Download 1 GB with curl over two links with router programs and losses, while each daemon in
    turn is killed.
    """
    size = round(1e9 * times)
    links = [
        {"name": "l1", "from": "r1", "to": "r2", "rate": "400 Mbit/s", "delay": "5 ms",
         "buffer": "40 packets", "loss": 0.0005},
        {"name": "l2", "from": "r2", "to": "r3", "rate": "300 Mbit/s", "delay": "5 ms",
         "buffer": "40 packets", "loss": 0.0005},
    ]  # fmt: skip
    flow = {"name": "file", "path": ["l1", "l2"], "size": f"{size} B"}
    on = bed({"duration": "600 s", "link": links, "flow": [flow]}, laws=Pinned)
    laws = on.laws
    assert isinstance(laws, Pinned)
    (running,) = streams(on)
    listen(running)
    sent = _fill(running.folder / "files" / "data", size)
    stream = running.stream
    with on.topology.namespace(stream.sink).entered():
        client = subprocess.Popen(
            ["curl", "--silent", "--show-error", f"http://{stream.source_address}:{HTTP_PORT}/data"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
    began = time.monotonic()
    received, got = hashlib.sha256(), 0
    step_s, number, down = 2.0 * times, 0, False
    next_s = began + step_s
    assert client.stdout is not None
    while piece := os.read(client.stdout.fileno(), 1 << 20):
        received.update(piece)
        got += len(piece)
        if time.monotonic() >= next_s:
            # Each daemon in turn is down for one step and up for the next.
            if down:
                laws.restart(number)
                number = (number + 1) % len(laws.everyone())
            else:
                laws.kill(number)
            down, next_s = not down, time.monotonic() + step_s
    took_s = time.monotonic() - began
    client.wait()
    if down:
        laws.restart(number)
    reasons = Counter(f["fallback_reason"] for f in _modes(on) if f["fallback_reason"])
    marked = [link["marked"] for daemon, _ in laws.routers for link in daemon.status()["links"]]
    line = on.line.stats()["lines"] if on.line is not None else {}
    running.stop()
    on.close()
    return [
        goal("bytes received", got, least=size, most=None),
        goal("correct hash (1: yes)", float(received.hexdigest() == sent), least=1),
        goal("curl's exit code", client.returncode, most=0),
        goal("daemons killed and started again", laws.kills, least=min(3, took_s // 4)),
        goal("fewest packets marked by a router", min(marked, default=0), least=1),
        goal("packets lost on the path", sum(entry["lost"] for entry in line.values()), least=1),
        *(goal(f"connections without a price: {why}", n) for why, n in reasons.items()),
        goal("goodput", 8 * got / took_s, "Mbit/s"),
    ]  # fmt: skip


def _fill(path: Path, size: int) -> str:
    """Write a file of random bytes and return its SHA-256 hash."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        left = size
        while left > 0:
            piece = os.urandom(min(left, 1 << 22))
            digest.update(piece)
            file.write(piece)
            left -= len(piece)
    return digest.hexdigest()


# --- paths that do not want the option ----------------------------------------------------------


class SendersOnly(Laws):
    """Laws whose daemon runs only on the sending hosts."""

    def ends(self, stream: Stream) -> tuple[int, ...]:
        """Return the hosts of a stream that run the daemon: only the source."""
        return (stream.source,)


def _attach_middlebox(on: RunNetwork, program: str) -> None:
    """Attach a middlebox program to the ingress of each interface of the far router."""
    source = Path(__file__).parent / "middlebox.bpf.c"
    compiled = Path(isolate.SCRATCH) / "middlebox.o"
    include = f"/usr/include/{platform.machine()}-linux-gnu"
    _do([_clang() or "clang", "-O2", "-g", "-target", "bpf", f"-I{include}", "-c", str(source),
         "-o", str(compiled)])  # fmt: skip
    node = on.plan.namespaces.index("node r2")
    ports = {p.name for c in on.plan.cables for p in (c.a, c.b) if p.namespace == node}
    with on.topology.namespace(node).entered():
        for port in sorted(ports):
            _do(["tc", "qdisc", "add", "dev", port, "clsact"])
            _do(["tc", "filter", "add", "dev", port, "ingress", "bpf", "direct-action",
                 "object-file", str(compiled), "section", f"tc/{program}"])  # fmt: skip


def _clang() -> str | None:
    """Return the clang that the daemon's build would use for BPF programs, or None."""
    names = os.environ.get("CLANG", "clang-19 clang-18 clang-17 clang-16 clang-15 clang").split()
    return next((name for name in names if shutil.which(name)), None)


def _do(command: list[str]) -> None:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": path})  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")


def _against_cubic(times: float, box: str | None, laws: type[Laws] = Laws, **link: Any) -> Document:
    """Time four successive downloads on a new path: CUBIC, MaxNet, MaxNet, CUBIC.

    Also returns why MaxNet's downloads had no price, and how many had one.
    """
    size = round(250e6 * times)
    path = {"name": "l", "from": "r1", "to": "r2", "rate": "200 Mbit/s", "delay": "14 ms",
            "buffer": "1 bdp"} | link  # fmt: skip
    flows = [{"name": name, "from": "a", "to": "b", "path": ["l"], "protocol": name,
              "size": f"{size} B"} for name in (LAW, "cubic")]  # fmt: skip
    on = bed({"duration": "600 s", "link": [path], "flow": flows}, laws=laws)
    if box is not None:
        _attach_middlebox(on, box)
    mine, cubic = streams(on)
    for running in (mine, cubic):
        listen(running)
    found: Document = {"reasons": [], "priced": 0}
    took = [_download(on, running, times, found) for running in (cubic, mine, mine, cubic)]
    for running in (mine, cubic):
        running.stop()
    on.close()
    return found | {"first": [took[1]], "second": [took[2]], "cubic": [took[0], took[3]]}


def _download(on: RunNetwork, running: Running, times: float, found: Document) -> float:
    """Return the duration (s) of a download, and record its connection's state after about a
    quarter of it.
    """
    running.start()
    began = time.monotonic()
    looked = not running.stream.loaded
    while (transfer := running.transfer()) is None:
        now_s = time.monotonic() - began
        if now_s > _PATIENCE_S or running.trouble():
            raise RuntimeError(running.trouble() or f"{running.stream.name} takes too long")
        if not looked and now_s > 3 * times:
            looked = True
            local, _ = daemon.data_sender(running.stream, on.plan.ip_version)
            for flow in _modes(on):
                # Connections of an earlier download may still be there.
                if flow["local"] == local and flow["mode"] != "receiving":
                    found["reasons"] += [flow["fallback_reason"]] * bool(flow["fallback_reason"])
                    found["priced"] += flow["price_s"] > 0
        time.sleep(0.02)
    return transfer[0]


def hostile(box: str | None, **more: Any) -> Callable[[float], list[Document]]:
    """Return the experiment on a path that lacks the option, the peer's daemon or a
    router's price.
    """

    def experiment(times: float) -> list[Document]:
        # Downloads of one kind differ by 10 % and more, so the median counts. Every path is new, so
        # that hosts have no cached state of it.
        each = [isolated("path", lambda: _against_cubic(times, box, **more)) for _ in range(_PATHS)]

        def seconds(which: str) -> float:
            return float(statistics.median(took for found in each for took in found[which]))

        most = MAX_SLOWDOWN * seconds("cubic")
        return [
            goal("seconds of the first download, against CUBIC's", seconds("first"), most=most),
            goal("seconds of the second download, against CUBIC's", seconds("second"), most=most),
            goal("seconds under CUBIC", seconds("cubic")),
            goal("downloads without a price", sum(len(f["reasons"]) for f in each),
                 least=2 * _PATHS),
            goal("downloads with a price", sum(f["priced"] for f in each), most=0),
        ]  # fmt: skip

    return experiment


# --- what a router costs ------------------------------------------------------------------------


@contextmanager
def run_time_statistics() -> Iterator[None]:
    """Enable the kernel's run-time statistics of BPF programs while the context is open."""
    number = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
    if number is None:
        raise RuntimeError(f"the system call number of bpf() on {platform.machine()} is unknown")
    attributes = ctypes.create_string_buffer(128)  # enable_stats.type = BPF_STATS_RUN_TIME = 0
    libc = ctypes.CDLL(None, use_errno=True)
    held = libc.syscall(number, 32, attributes, ctypes.c_uint(len(attributes)))
    if held < 0:
        raise OSError(ctypes.get_errno(), f"bpf: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        os.close(held)


def _programs() -> dict[int, Document]:
    done = subprocess.run([_bpftool(), "--json", "prog", "show"], capture_output=True, text=True,
                          check=True)  # fmt: skip
    return {p["id"]: p for p in json.loads(done.stdout)}


def _bpftool() -> str:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = shutil.which("bpftool", path=path)
    if found is None:
        raise RuntimeError("the program bpftool is missing")
    return found


def _spent(before: Mapping[int, Document], ids: set[int]) -> tuple[int, int]:
    """Return the run time (ns) and the number of runs of some programs since `before`."""
    now = _programs()
    totals = [0, 0]
    for number in ids:
        for place, key in enumerate(("run_time_ns", "run_cnt")):
            was = before.get(number, {}).get(key, 0)
            totals[place] += now.get(number, {}).get(key, 0) - was
    return totals[0], totals[1]


def cost(times: float) -> list[Document]:
    """Measure the CPU cost of 1 Gbit/s of 1500-byte packets over one hop, with and without the
    router program.
    """
    seconds, found = 8 * times, []
    link = {"name": "l", "from": "r1", "to": "r2", "rate": "1 Gbit/s", "buffer": "1 MB"}
    # A stream's ports can be used once, so each measurement has its own hosts.
    plain = {"name": "cubic", "path": ["l"], "protocol": "cubic"}
    document = {"duration": "60 s", "link": [link]}
    others = set(_programs())
    bare = bed(document | {"flow": [plain | {"count": _COST_TURNS}]})
    alone = streams(bare)
    marked = {"name": LAW, "path": ["l"]}
    priced = bed(document | {"flow": [plain | {"count": _COST_TURNS + 1}, marked]})
    *beside, mine = streams(priced, first=len(alone))
    tc = {n for n, p in _programs().items() if n not in others and p["type"] == "sched_cls"}
    with run_time_statistics():
        for running, name in ((beside.pop(), "not of MaxNet"), (mine, "marked")):
            before = _programs()
            goodput(priced, running, seconds)
            ns, runs = _spent(before, tc)
            found.append(goal(f"router, packets {name}", 1e-9 * ns / max(1, runs), "ns"))
            found.append(
                goal(
                    f"router's share of one CPU, packets {name}",
                    ns * 1e-9 / (seconds + _WARM_S),
                    "%",
                )
            )
    shares: dict[str, list[float]] = {"without the program": [], "with the program": []}
    for without, with_ in zip(alone, beside, strict=True):
        # In turn, so that the host's other load affects both.
        shares["without the program"].append(goodput(bare, without, seconds)["busy"])
        shares["with the program"].append(goodput(priced, with_, seconds)["busy"])
    for name, values in shares.items():
        found.append(goal(f"CPU time at 1 Gbit/s, {name}", statistics.median(values), "%"))
    priced.close()
    bare.close()
    return found


SPECIALS: Mapping[str, tuple[str, Callable[[float], list[Document]]]] = {
    "ten-gigabit": ("10 Gbit/s through one hop, offloads on", ten_gigabit),
    "crowd": ("500 flows, 1 Gbit/s and 28 ms", crowd(1)),
    "crowd-fifth": ("500 flows, 200 Mbit/s and 140 ms: the same windows", crowd(5)),
    "download": ("1 GB by curl while routers mark and drop, and daemons are killed", download),
    "stripped": ("A path that removes the option", hostile("strip")),
    "syn-dropped": ("A path that drops SYNs with the option", hostile("drop_syn")),
    "peer-without": ("A peer without the daemon", hostile(None, laws=SendersOnly)),
    "router-without": ("A router without the daemon", hostile(None, routers=[])),
    "router-cost": ("CPU cost of a router at 1 Gbit/s", cost),
}


def missing(name: str) -> str | None:
    """Return a requirement of an experiment that this host lacks, or None."""
    lacking = checks.missing()
    if lacking is None and name in ("stripped", "syn-dropped") and _clang() is None:
        return "clang 15 or newer, got none"
    if lacking is None and name == "router-cost":
        with suppress(RuntimeError):
            _bpftool()
            return None
        return "the program bpftool, got none"
    return lacking
