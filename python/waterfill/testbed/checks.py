"""Checks that make a run valid: of the host before the run, and of the samples after it.

A check has a name, a verdict, what was found and what was required. A failed check makes the
command exit with 1; the results are still printed, so that the cause can be seen.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import select
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from waterfill.contract.network import Network
from waterfill.contract.summary import Check, CoreFlow, LinkSummary
from waterfill.errors import InputError
from waterfill.runs.result import Document
from waterfill.scenario.units import percent
from waterfill.testbed import cohabit, delayline, isolate, kernel
from waterfill.testbed.answer import Answer
from waterfill.testbed.plan import Congestion, Faults, Plan
from waterfill.testbed.topology import Topology, setting

_CAP_NET_ADMIN, _CAP_NET_RAW, _CAP_SYS_ADMIN = 12, 13, 21

# Limits, decided before the first run.
MAX_STREAMS = 64
# Less does not hold a handshake and a round of acknowledgements.
MIN_DURATION_S = 0.1
MIN_SAMPLE_S = 0.01
RTT_ERROR_S = 1e-3
LATE_P99_NS = 200_000
MIN_IDLE = 0.05
CLOCK_STEP_S = 1e-3
LATE_CHANGE_S = 0.01
HOST_LIMITED = 0.01
# Utilization, relative to the law's target, above which a link counts as full.
FULL = 0.9
# Frames per second that one CPU carries over one link with its delay line
# (docs/reference/testbed.md).
FRAMES_PER_S = 150_000
# The fraction of free memory that frames may take.
_MEMORY_SHARE = 0.25


def refuse(plan: Plan, scenario: Any, congestion: Mapping[str, Congestion]) -> None:
    """Raise InputError for a plan that this host, its kernel or the testbed cannot run."""
    _refuse_host(plan)
    for index, link in enumerate(scenario.link):
        key = f"{scenario.key('link', index)}.rate"
        most = FRAMES_PER_S * (os.cpu_count() or 1) * 8 * plan.mtu_bytes
        for at, rate in ((key, link.rate), (f"{key}_reverse", link.backward.rate)):
            if rate > most:
                raise scenario.error(
                    at,
                    f"must be at most {most / 1e9:.3g} Gbit/s of {plan.mtu_bytes}-byte packets on "
                    f"this host, got {rate / 1e9:.3g} Gbit/s",
                )
    if len(plan.streams) > MAX_STREAMS:
        raise scenario.error(
            "flow", f"must have at most {MAX_STREAMS} flows on linux, got {len(plan.streams)}"
        )
    if scenario.duration < MIN_DURATION_S:
        raise scenario.error(
            "duration",
            f"must be at least {MIN_DURATION_S * 1e3:g} ms on linux, which runs in real time; "
            f"got {scenario.duration:g} s",
        )
    if scenario.sample < MIN_SAMPLE_S:
        raise scenario.error(
            "sample", f"must be at least 10 ms on linux, got {scenario.sample * 1e3:g} ms"
        )
    if scenario.ack_size != 40:
        raise scenario.error("ack_size", "not possible on linux, where the kernel decides")
    least = 576 if plan.ip_version == 4 else 1280
    if plan.mtu_bytes < least or plan.mtu_bytes > 65000:
        raise scenario.error(
            "packet_size", f"must be {least} B to 65 kB on linux, got {plan.mtu_bytes} B"
        )
    for index, flow in enumerate(scenario.flow):
        key = scenario.key("flow", index)
        protocol = flow.protocol or scenario.protocol
        if flow.weight != 1:
            raise scenario.error(f"{key}.weight", f"must be 1 on linux, got {flow.weight:g}")
        law = congestion[str(protocol)]
        if flow.pacing is False and law.paced:
            raise scenario.error(
                f"{key}.pacing", f"must be true, because the kernel's {protocol} always paces"
            )
        if flow.pacing and law.loaded and not law.paced:
            raise scenario.error(
                f"{key}.pacing", f"must be false, because the kernel's {protocol} never paces"
            )
        if flow.size is not None and flow.demand is not None:
            raise scenario.error(f"{key}.demand", "not possible on linux for a flow with a size")
        if flow.size is not None and flow.pacing:
            raise scenario.error(f"{key}.pacing", "not possible on linux for a flow with a size")
    buffers = sum(4 * stream.window_bytes for stream in plan.streams)
    need = sum(hold.hold_bytes for hold in plan.holds()) + min(buffers, _tcp_memory_bytes())
    free = _free_bytes()
    if need > _MEMORY_SHARE * free:
        raise scenario.error(
            "link",
            f"queues and delays need {need / 1e9:.3g} GB, more than the "
            f"{_MEMORY_SHARE * free / 1e9:.3g} GB that this host can give",
        )


def _refuse_host(plan: Plan) -> None:
    lacking = missing(
        http=any(s.kind == "http" for s in plan.streams),
        iperf=any(s.kind != "http" for s in plan.streams),
        held=bool(plan.holds()),
    )
    if lacking:
        raise InputError("command line", "on", f"linux needs {lacking}")


def missing(*, http: bool = True, iperf: bool = True, held: bool = True) -> str | None:
    """Return a feature that this host lacks, such as "root, got user 1000", or None."""
    if platform.system() != "Linux":
        return f"a Linux kernel, got {platform.system()}"
    wanted = (_CAP_NET_ADMIN, _CAP_NET_RAW, _CAP_SYS_ADMIN)
    capabilities = _capabilities()
    if any(not capabilities >> bit & 1 for bit in wanted):
        return (
            "root (CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW), "
            f"got user {os.geteuid()} without them"
        )
    programs = ["iperf3"] * iperf + ["nginx", "curl"] * http
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    for program in programs:
        if shutil.which(program, path=path) is None:
            return f"the program {program}, got none"
    if held and delayline.binary() is None:
        beside = "beside this Python (make build, in a checkout)"
        return f"the delay line waterfill-delay {beside}, got none"
    return None


def _capabilities() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith("CapEff"))


def _free_bytes() -> int:
    with open("/proc/meminfo") as file:
        kilobytes = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    return kilobytes * 1024


def _tcp_memory_bytes() -> float:
    """Return the memory limit of all TCP sockets (bytes), or inf if the kernel reports none."""
    told = (_read("/proc/sys/net/ipv4/tcp_mem") or "").split()
    return int(told[2]) * os.sysconf("SC_PAGE_SIZE") if len(told) == 3 else math.inf


# --- before, inside the tree ------------------------------------------------------------------


def facts(topology: Topology) -> Document:
    """Return the settings that the kernel reports, for comparisons between hosts."""
    stream = topology.plan.streams[0]
    with topology.namespace(stream.source).entered():
        names = ("tcp_rmem", "tcp_wmem", "tcp_no_metrics_save",
                 "tcp_timestamps", "tcp_sack", "tcp_recovery", "tcp_early_retrans", "tcp_ecn",
                 "tcp_notsent_lowat", "tcp_slow_start_after_idle")  # fmt: skip
        settings = {name: " ".join(setting(f"ipv4/{name}").split()) for name in names}
    release = platform.uname()
    return {
        "kernel": f"{release.system} {release.release} {release.machine}",
        "cpus": os.cpu_count(),
        "user": os.geteuid(),
        "capabilities": f"{_capabilities():x}",
        "available_congestion_control": kernel.available(),
        "cubic_hystart": _read("/sys/module/tcp_cubic/parameters/hystart"),
        "loaded": sorted({s.congestion for s in topology.plan.streams if s.loaded}),
        "awake": isolate.awake(),
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "programs": {name: _version(name) for name in ("iperf3", "nginx", "curl")},
        "ip_version": topology.plan.ip_version,
        "header_bytes": (52 if topology.plan.ip_version == 4 else 72),
        "offloads": topology.offloads(),
        "first_source": settings,
    }


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def _version(program: str) -> str | None:
    flag = "-v" if program == "nginx" else "--version"
    try:
        done = subprocess.run(
            [program, flag], capture_output=True, text=True, check=False, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).splitlines()[0].strip()


def base_rtts(topology: Topology, most: int = 8) -> list[float | None]:
    """Return the minimum of five ping RTTs (s) for each of the first streams, or None without an
    answer.

    These are small packets over the idle network: time beyond the base RTT is the host's.
    """
    found: list[float | None] = []
    for stream in topology.plan.streams[:most]:
        with topology.namespace(stream.source).entered():
            found.append(_ping(topology.family, stream.sink_address, 1.0 + 2 * stream.first_rtt_s))
    return found


def _ping(family: int, address: str, wait_s: float, count: int = 5) -> float | None:
    ours = os.getpid() & 0xFFFF
    six = family == socket.AF_INET6
    protocol = socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP
    kind, answer = (128, 129) if six else (8, 0)
    best: float | None = None
    with socket.socket(family, socket.SOCK_RAW, protocol) as raw:
        for number in range(count):
            body = struct.pack(">BBHHH", kind, 0, 0, ours, number)
            if not six:  # the kernel computes ICMPv6 checksums itself
                total = sum(struct.unpack(">4H", body))
                body = body[:2] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + body[4:]
            began = time.monotonic()
            raw.sendto(body, (address, 0))
            while (left := began + wait_s - time.monotonic()) > 0:
                if not select.select([raw], [], [], left)[0]:
                    break
                got = raw.recv(2048)
                took = time.monotonic() - began
                start = 0 if six else (got[0] & 15) * 4
                fields = struct.unpack_from(">BBHHH", got, start)
                if (fields[0], fields[3], fields[4]) == (answer, ours, number):
                    best = took if best is None else min(best, took)
                    break
    return best


# --- after ------------------------------------------------------------------------------------


def _check(name: str, ok: bool, found: Any, wanted: str) -> Check:
    return Check(name=name, ok=bool(ok), found=found, wanted=wanted)


def after(
    raw: Answer, resolved: Network, flows: Sequence[CoreFlow], links: Sequence[LinkSummary]
) -> list[Check]:
    """Return the results of all checks that apply to a finished run.

    `raw` is the process tree's answer; `flows` and `links` are the summary's.
    """
    checks = [
        _base_rtt(raw), _delay_line(raw), _processor(raw), _clock(raw), _elsewhere(raw),
        _offloads(raw), _hosts(raw), _traffic(raw), _sampling(raw, resolved),
        _bottleneck(raw, resolved, flows, links), _law(raw, resolved), _changes(raw),
    ]  # fmt: skip
    return [check for check in checks if check is not None]


def _base_rtt(raw: Answer) -> Check:
    worst, pairs = 0.0, []
    for stream, found in zip(raw.plan.streams, raw.base_rtts_s, strict=False):
        if stream.kind == "cbr":
            continue
        error = float("inf") if found is None else found - stream.first_rtt_s
        worst = max(worst, abs(error))
        pairs.append({"flow": stream.name, "base_ms": stream.first_rtt_s * 1e3,
                      "found_ms": None if found is None else found * 1e3})  # fmt: skip
    wanted = f"within {RTT_ERROR_S * 1e3:g} ms of the base RTT"
    return _check("base RTT", worst <= RTT_ERROR_S, pairs, wanted)


def _delay_line(raw: Answer) -> Check | None:
    line = raw.delay_line
    if line is None:
        return None
    entries = [
        {"line": name, "late_ns": entry.late_ns, "ring_drops": entry.ring_drops,
         "overflow": entry.overflow}
        for name, entry in line.lines.items()
    ]  # fmt: skip
    ok = all(
        entry.ring_drops == 0
        and entry.overflow == 0
        and (entry.late_ns is None or entry.late_ns.abs_p99 <= LATE_P99_NS)
        for entry in line.lines.values()
    )
    found = {"lines": entries, "cpu_s": line.cpu_s, "punctuality": line.punctuality}
    wanted = f"no frame dropped; 99 % leave within {LATE_P99_NS / 1e3:g} µs of their time"
    return _check("delay line", ok, found, wanted)


def _processor(raw: Answer) -> Check:
    before, after_ = (m.hosts_ticks for m in raw.machine)
    spent = {name: after_[name] - before[name] for name in before}
    total = max(1, sum(spent.values()))
    idle, yielding = (spent["idle"] + spent["iowait"]) / total, spent["nice"] / total
    found = {"idle": idle, "yielding": yielding, "stolen": spent["steal"] / total,
             "softirq": spent["softirq"] / total}  # fmt: skip
    # CPU time of processes at a lowered priority was available: they yield.
    wanted = f"CPUs of hosts and routers: {percent(MIN_IDLE)} idle or used at lowered priority"
    return _check("processor", idle + yielding >= MIN_IDLE, found, wanted)


def _clock(raw: Answer) -> Check:
    before, after_ = (m.realtime_less_monotonic_s for m in raw.machine)
    step = after_ - before
    wanted = f"the clock of packet timestamps stepped by less than {CLOCK_STEP_S * 1e3:g} ms"
    return _check("clock", abs(step) < CLOCK_STEP_S, {"step_s": step}, wanted)


def _elsewhere(raw: Answer) -> Check:
    before, after_ = raw.machine
    dropped = after_.softnet_dropped - before.softnet_dropped
    sockets = {
        stream.name: totals.socket_drops
        for stream, totals in zip(raw.plan.streams, raw.samples.totals, strict=True)
        if totals.socket_drops
    }
    found = {"interfaces": raw.host_drops, "softnet": dropped, "sockets": sockets}
    ok = not raw.host_drops and dropped == 0 and not sockets
    return _check("drops elsewhere", ok, found, "none outside the scenario's queues and losses")


def _offloads(raw: Answer) -> Check:
    offloads = raw.facts["offloads"]
    return _check("offloads", not any(offloads.values()), offloads, "all off: a frame is a packet")


def _hosts(raw: Answer) -> Check:
    worst: Document = {}
    for stream, totals in zip(raw.plan.streams, raw.samples.totals, strict=True):
        tcp = totals.tcp
        if tcp is None or tcp.busy_us == 0:
            continue
        counted = (tcp.rwnd_limited_us + tcp.sndbuf_limited_us) / tcp.busy_us
        # The kernel counts a full send buffer only while the window does not limit the sender, and
        # that it takes from the last window acknowledged: seconds ago, in a recovery without SACK.
        share = max(counted, totals.send_buffer_full / max(1, totals.looks))
        if share > HOST_LIMITED:
            worst[stream.name] = share
    wanted = (
        f"no sender limited by a socket buffer for more than {percent(HOST_LIMITED)} of its time"
    )
    return _check("socket buffers", not worst, worst, wanted)


def _traffic(raw: Answer) -> Check:
    found = {
        stream.name: trouble
        for stream, trouble in zip(raw.plan.streams, raw.troubles, strict=True)
        if trouble is not None
    }
    return _check("traffic", not found, found, "every client and server ran without an error")


def _sampling(raw: Answer, resolved: Network) -> Check:
    times = raw.samples.coarse.time_s
    gaps = [b - a for a, b in itertools.pairwise(times)]
    found = {
        "asked_s": resolved.sample_s,
        "longest_s": max(gaps, default=None),
        "fine_s": raw.samples.fine_s,
    }
    longest = max(gaps, default=0.0)
    return _check("sampling", longest <= 2 * resolved.sample_s + 0.05, found, "no sample missed")


def _bottleneck(
    raw: Answer, resolved: Network, flows: Sequence[CoreFlow], links: Sequence[LinkSummary]
) -> Check:
    """Check that the scenario's links explain retransmissions and limit greedy flows.

    A flow is limited by a link if that has losses, a queue, or is full.
    """
    retransmitted = sum(flow.retransmissions for flow in flows)
    dropped = sum(rows[-1][2] for rows in raw.samples.coarse.queues)
    dropped += cohabit.dropped(raw.samples.laws)
    line = raw.delay_line
    lost = 0 if line is None else sum(entry.lost for entry in line.lines.values())
    # A loaded law fills a link to its target without a queue.
    targets: dict[int, float] = {}
    for p in raw.plan.pricings:
        targets[p.direction] = min(p.target, targets.get(p.direction, 1.0))
    reordered = any(Faults(**h.faults).causes_retransmissions for h in raw.plan.holds)
    unbounded = []
    for index, flow in enumerate(flows):
        stream = raw.plan.streams[index]
        if stream.kind != "iperf" or stream.rate_bps is not None or not flow.rate_bps:
            continue
        group = next(f for f in resolved.flows if f.name == flow.group)
        if not any(
            links[i].utilization > FULL * targets.get(i, 1.0)
            or links[i].drops
            or links[i].lost
            or links[i].queue_packets.mean > 1
            for i in group.forward
        ):
            unbounded.append(flow.name)
    found = {
        "retransmissions": retransmitted,
        "dropped": dropped,
        "lost": lost,
        "unbounded": unbounded,
    }
    ok = not unbounded and (retransmitted == 0 or dropped + lost > 0 or reordered)
    wanted = "greedy flows limited by a link; no retransmission without a drop or a loss"
    return _check("bottleneck", ok, found, wanted)


def _law(raw: Answer, resolved: Network) -> Check | None:
    """Check that loaded laws controlled their connections, with a router's signal at all times;
    None without loaded laws.

    Only connections with a router on every link are judged. A link without the law's router is the
    scenario's choice, and its effect the run's result.
    """
    samples = raw.samples.laws
    if samples is None:
        return None
    priced = {(p.protocol, p.direction) for p in raw.plan.pricings}
    paths = {flow.name: set(flow.forward) for flow in resolved.flows}
    found: list[Document] = []
    ok = True
    for index, stream in enumerate(raw.plan.streams):
        if not stream.loaded:
            continue
        mine = [s for s in samples if str(index) in s.flows]
        states = [s.flows[str(index)] for s in mine]
        left = (s.time_s for s in mine if s.flows[str(index)].fallback_reason)
        whole = all((stream.protocol, i) in priced for i in paths[stream.group])
        reasons = dict.fromkeys(s.fallback_reason for s in states if s.fallback_reason)
        # A transfer may end before the first sample.
        seen = bool(states) or stream.kind == "http"
        controlled = seen and not reasons and (not states or states[-1].signal != 0)
        ok &= controlled or not whole
        found.append({"flow": stream.name, "samples": len(states), "routers": whole,
                      "mode": states[-1].mode if states else None,
                      "without_price": list(reasons), "left_s": next(left, None)})  # fmt: skip
    wanted = "every flow with its law's router on all its links had a price at all times"
    return _check("law", ok, found, wanted)


def _changes(raw: Answer) -> Check | None:
    """Check that the links' queues and routers changed on time; return None if no link changes.

    A change of the delay needs no check: it holds from its time on by the packets' own timestamps.
    """
    changes = raw.changes
    if not changes:
        return None
    late_s = [change.late_s for change in changes]
    errors = list(dict.fromkeys(change.error for change in changes if change.error))
    found = {"changes": len(late_s), "latest_s": max(late_s), "errors": errors}
    wanted = f"every change of a link within {LATE_CHANGE_S * 1e3:g} ms of its time"
    return _check("link changes", max(late_s) <= LATE_CHANGE_S and not errors, found, wanted)
