"""A function per test case of draft-ietf-ccwg-bbr's appendix A (text of 3 August 2026).

Each takes a path and returns a verdict. Where a case says "upon entering a state", a first run
finds the time, and a second one with the same seed has the event at that time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from validation.bbr3.paths import (
    CRUISE,
    DOWN,
    DRAIN,
    NAMES,
    PROBE_RTT,
    REFILL,
    STARTUP,
    UP,
    Path,
    Span,
    Timeline,
    plain,
    run,
    write,
)

# BBR.MinPipeCwnd, and the number of losses in a round that end Startup (packets).
_MIN_PIPE, _FULL_LOSSES = 4, 6


class Verdict(NamedTuple):
    """Whether a case passes, None where it does not apply, and what was seen."""

    passes: bool | None
    seen: str


class Absent(Exception):
    """A state was not reached; the message says which."""


def _first(timeline: Timeline, state: int, after_s: float = 0.0) -> Span:
    span = timeline.first(state, after_s)
    if span is None:
        raise Absent(f"{NAMES[state]} not reached after {after_s:.3g} s")
    return span


def _inflight(path: Path, bps: float, min_rtt_s: float, pacing_bps: float) -> float:
    """Return Inflight(1.0) in packets: the BDP, three send quanta, four packets at least."""
    bits = 8 * path.packet_bytes
    quantum = max(2.0, min(pacing_bps / bits * 1e-3, 64_000 / path.packet_bytes))
    return float(max(bps / bits * min_rtt_s, 3 * quantum, _MIN_PIPE))


def _inflight_at(line: Timeline, i: int, bw: Any) -> float:
    """Return Inflight(1.0) at a sample. The quantum is that of the pacing rate just before."""
    pacing_bps = max(line.pacing_bps[i - 1], line.pacing_bps[i])
    return _inflight(line.path, bw[i], line.min_rtt[i], pacing_bps)


def _probes_each_round(path: Path) -> bool:
    """Return true if fewer than three packets of BDP make every third round a probe."""
    return path.bdp_packets < 3


def _drained(path: Path) -> tuple[int, ...]:
    """Return the states that follow Startup. A window within Inflight(1) needs no Drain: the
    acknowledgement that begins it also ends it, and a BDP below three packets then begins a probe.
    """
    enough = _inflight(path, path.rate_bps, path.rtt_s, 2.77 * path.rate_bps)
    return (DRAIN,) if 2 * path.bdp_packets > enough else (DRAIN, DOWN, CRUISE, REFILL)


def _down(path: Path) -> tuple[int, ...]:
    """Return the states that follow UP. The acknowledgement that begins DOWN may also end it: after
    losses less than a BDP is in flight, and below three packets of BDP the next probe is due.
    """
    return (DOWN, CRUISE, REFILL) if _probes_each_round(path) else (DOWN, CRUISE)


def _reached(in_flight: float, target: float) -> bool:
    """Return true if the data in flight is down to a target, as a sample shortly after shows it:
    a packet may have left since.
    """
    return bool(in_flight <= target + max(0.1 * target, 1.0))


def _as_expected(checks: dict[str, bool], seen: str) -> Verdict:
    missed = [name for name, holds in checks.items() if not holds]
    return Verdict(not missed, seen + (f"; not: {', '.join(missed)}" if missed else ""))


# --- Startup and Drain ---------------------------------------------------------------------------


def startup_plateau(path: Path) -> Verdict:
    """A.1: three rounds without a quarter more bandwidth end Startup; max_bw is right to 2 %."""
    line = plain(path)
    i = line.spans()[0].end
    off = line.max_bw[i] / path.rate_bps - 1
    grown = line.max_bw[:i] < line.max_bw[i] / 1.25
    last = int(np.flatnonzero(grown)[-1]) if grown.any() else 0
    rounds = line.round_count[i] - line.round_count[last]
    seen = f"max_bw {100 * off:+.1f} %, {rounds:.0f} rounds after growth"
    checks = {"max_bw within 2 %": abs(off) <= 0.02, "3 rounds": rounds >= 3}
    return _as_expected(checks | {"Drain follows": line.state[i] in _drained(path)}, seen)


def startup_loss(path: Path) -> Verdict:
    """A.2: a round with over 2 % and six losses ends the Startup of a limited application."""
    if 0.8 * path.bdp_packets * 0.3 < 1.5 * _FULL_LOSSES:
        return Verdict(None, "a round has too few packets for six losses")
    start_s = path.duration_s(0)
    # Slower than Startup could send, so that nothing waits.
    steps = math.ceil(math.log2(0.8 * path.bdp_packets / 3))
    rising = [
        (1.5 * n * path.rtt_s, 0.8 * path.rate_bps / 2 ** (steps - n)) for n in range(steps + 1)
    ]
    points = [[f"{at!r} s", f"{bps!r} bit/s"] for at, bps in rising]
    demand = {"demand_trace": {"points": points, "repeat": False}}
    start_s = max(start_s, 3 * steps * path.rtt_s)
    clean = run(path, 1.5 * start_s, flow=demand)
    lossy = run(path, 1.5 * start_s, flow=demand, wire={"loss": 0.3},
                via_wire=[(0.5 * start_s, 1.5 * start_s - 1e-3)])  # fmt: skip
    before = {state for state, _ in clean.states()}
    end = lossy.spans()[0].end
    if end == len(lossy.s):
        raise Absent("no state after Startup")
    longterm = lossy.inflight_longterm[min(end + 1, len(lossy.s) - 1)]
    rounds = lossy.round_count[end] - lossy.round_count[lossy.at(0.5 * start_s)]
    return _as_expected(
        {
            "stays in Startup without loss": before <= {STARTUP, PROBE_RTT},
            "inflight_longterm is set": bool(np.isfinite(longterm)),
            "after the loss": lossy.s[end] > 0.5 * start_s,
        },
        f"ends {rounds:.0f} rounds after the losses began",
    )


def drain_inflight(path: Path) -> Verdict:
    """A.3: Drain, at a gain of 0.5, ends when a BDP is in flight."""
    line = plain(path)
    drain = line.first(DRAIN)
    span = drain or line.spans()[1]
    gains = set(np.round(line.pacing_gain[span.first : span.end], 6)) if drain else {0.5}
    i = span.end if drain else span.first
    target = _inflight_at(line, i, line.bw)
    ratio = line.in_flight[i] / target
    return _as_expected(
        {"gain 0.5": gains == {0.5}, "at Inflight(1)": _reached(line.in_flight[i], target),
         "ProbeBW follows": line.state[i] in (DOWN, CRUISE, REFILL)},
        f"in flight ÷ Inflight(1) = {ratio:.2f} after "
        + (f"{line.rounds(drain):.0f} rounds" if drain else "an acknowledgement"),
    )  # fmt: skip


def drain_time(path: Path) -> Verdict:
    """A.4: Drain ends after its rounds although more than a BDP is in flight.

    With a tenth less bandwidth, as in the draft, Drain at half the rate still ends by the data in
    flight. So the bandwidth falls to a quarter.
    """
    if DOWN in _drained(path):
        return Verdict(None, "Inflight(1) is above the window of Startup")
    at_s = _first(plain(path, buffer_bdp=8.0), DRAIN).from_s
    slower = {"event": [{"at": f"{at_s!r} s", "rate": f"{path.rate_bps / 4!r} bit/s"}]}
    line = run(path, at_s + 30 * path.round_s, buffer_bdp=8.0, link=slower)
    drain = _first(line, DRAIN)
    i = drain.end - 1
    rounds = line.rounds(drain)
    ratio = line.in_flight[i] / _inflight_at(line, i, line.bw)
    return _as_expected(
        {"3 rounds": 3 <= rounds <= 4, "above Inflight(1)": ratio > 1},
        f"{rounds:.0f} starts of rounds, in flight ÷ Inflight(1) = {ratio:.2f}",
    )


# --- ProbeBW -------------------------------------------------------------------------------------


def up_plateau(path: Path) -> Verdict:
    """A.5: three rounds without a quarter more bandwidth end UP, without losses."""
    line = plain(path)
    up = _first(line, UP)
    rounds = line.rounds(up)
    drops = line.drops(up.from_s, up.to_s)
    return _as_expected(
        {"3 rounds": 2 <= rounds <= 6, "DOWN follows": line.after(up) in _down(path),
         "no loss": drops == 0},
        f"{rounds:.0f} rounds in UP",
    )  # fmt: skip


def _limited_in_up(path: Path, share: float, lossy: bool) -> tuple[Timeline, float]:
    """Return a run whose application writes at a share of the rate from the start of UP on."""
    before = run(path, path.duration_s(2), flow={"demand_trace": write(path, 1e9, [])})
    at_s = _first(before, UP).from_s
    demand = write(path, before.sent_packets(at_s), [(at_s, share * path.rate_bps)])
    more_s = 20 * path.round_s + 6
    via = [(at_s, at_s + 8 * path.round_s)] if lossy else []
    line = run(path, at_s + more_s, flow={"demand_trace": demand}, wire={"loss": 0.2}, via_wire=via)
    return line, at_s


def up_loss_limited(path: Path) -> Verdict:
    """A.6: a round with over 2 % lost ends UP although the application limits."""
    line, at_s = _limited_in_up(path, 0.8, lossy=True)
    up = _first(line, UP, at_s - 2 * path.round_s)
    return _as_expected(
        {"DOWN follows": line.after(up) in _down(path), "soon": up.to_s - at_s < 8 * path.round_s},
        f"DOWN {(up.to_s - at_s) / path.round_s:.1f} rounds after the losses began",
    )


def never_when_limited(path: Path) -> Verdict:
    """A.7: without losses a limited application ends neither Startup nor UP, but for ProbeRTT."""
    line, at_s = _limited_in_up(path, 0.5, lossy=False)
    up = _first(line, UP, at_s - 2 * path.round_s)
    follows = line.after(up)
    start = run(path, 2 * path.duration_s(0), flow={"demand": f"{0.1 * path.rate_bps!r} bit/s"})
    states = {state for state, _ in start.states()}
    stayed_s = (line.s[-1] if math.isinf(up.to_s) else up.to_s) - at_s
    return _as_expected(
        {"stays in UP": follows is None, "stays in Startup": states == {STARTUP}},
        f"{stayed_s / path.round_s:.0f} rounds in UP, then "
        + (NAMES[follows] if follows else "the end"),
    )


def down_inflight(path: Path) -> Verdict:
    """A.8: DOWN, at a gain of 0.9, ends when a BDP and the headroom are in flight."""
    if _probes_each_round(path):
        return Verdict(None, "as many rounds as the BDP has packets are over before DOWN is")
    line = plain(path)
    gains = set(np.round(line.pacing_gain[line.state == DOWN], 6))
    begins = [span.first for state, span in line.states() if state == CRUISE]
    if not begins:
        raise Absent("CRUISE not reached")
    ratio = max(line.in_flight[i] / _inflight_at(line, i, line.max_bw) for i in begins)
    targets = [_inflight_at(line, i, line.max_bw) for i in begins]
    bounds = line.inflight_longterm[begins]
    limits = np.fmax(bounds - np.fmax(0.15 * bounds, 1), _MIN_PIPE)
    limits[np.isnan(bounds)] = np.inf
    return _as_expected(
        {
            "gain 0.9": gains == {0.9},
            "at Inflight(1)": all(map(_reached, line.in_flight[begins], targets)),
            "headroom": all(map(_reached, line.in_flight[begins], limits)),
        },
        f"in flight ÷ Inflight(1) = {ratio:.2f} at most",
    )


def down_time(path: Path) -> Verdict:
    """A.9: with less bandwidth DOWN does not drain; the next probe ends it.

    DOWN paces at 0.89 of the bandwidth, so the draft's tenth less would drain slowly. It is 0.85.
    """
    if _probes_each_round(path):
        return Verdict(None, "as many rounds as the BDP has packets are over before DOWN is")
    up_bps = 1.25 * path.rate_bps
    if 1.25 * path.bdp_packets <= _inflight(path, path.rate_bps, path.rtt_s, up_bps):
        return Verdict(None, "Inflight(1) is above what UP has in flight")
    before = plain(path)
    up = _first(before, UP)
    at_s = up.to_s
    slower = {"event": [{"at": f"{at_s!r} s", "rate": f"{0.85 * path.rate_bps!r} bit/s"}]}
    line = run(path, at_s + 12 * path.round_s + 4, link=slower)
    down = _first(line, DOWN, at_s - 2 * path.round_s)
    wait_s = down.to_s - down.from_s
    rounds = line.rounds(down)
    return _as_expected(
        {"REFILL follows": line.after(down) == REFILL, "in time": wait_s < 3 + 3 * path.round_s},
        f"{wait_s:.2f} s, {rounds:.0f} rounds, then {NAMES[line.after(down) or 0]}",
    )


def probe_rtt(path: Path) -> Verdict:
    """A.10: after 5 s ProbeRTT keeps half a BDP in flight for 200 ms and a round."""
    line = run(path, path.duration_s(1) + 8, probe_rtt_interval_s=5.0)
    spans = [span for state, span in line.states() if state == PROBE_RTT and span.to_s < line.s[-1]]
    full = [span for span in spans if CRUISE in line.state[: span.first]]
    if not full:
        raise Absent("ProbeRTT not reached from ProbeBW")
    span = full[0]
    took_s = span.to_s - span.from_s
    low = line.cwnd[span.first + 1 : span.end].min()
    limit = max(0.5 * line.bw[span.first] * line.min_rtt[span.first] / (8 * path.packet_bytes), 4)
    after = line.after(span)
    return _as_expected(
        {
            "200 ms and a round": took_s >= 0.2 and line.rounds(span) >= 1,
            "half a BDP": low <= 1.1 * limit,
            "ProbeBW follows": after in (DOWN, CRUISE, REFILL),
        },
        f"at {span.from_s:.2f} s for {1e3 * took_s:.0f} ms, cwnd {low:.3g} of {limit:.3g}",
    )


def idle_skips_probe_rtt(path: Path) -> Verdict:
    """A.11: after a pause of more than 5 s the flow goes on without ProbeRTT."""
    probing = {"probe_rtt_interval_s": 5.0}
    before = run(path, path.duration_s(1), flow={"demand_trace": write(path, 1e9, [])}, **probing)
    at_s = next((span.from_s for state, span in before.states() if state in (DOWN, CRUISE)), None)
    if at_s is None:
        raise Absent("ProbeBW not reached")
    again_s = at_s + 6 + 4 * path.round_s
    sent = before.sent_packets(at_s)
    demand = write(path, sent, [(again_s, 10 * path.rate_bps)])
    end_s = again_s + 2 + 6 * path.round_s
    line = run(path, end_s, flow={"demand_trace": demand}, **probing)
    i = line.at(again_s)
    # The next interval of 5 s begins with the first acknowledgement.
    soon = [state for state, span in line.states(again_s) if span.from_s < again_s + 4]
    idle = line.in_flight[i - 2] == 0
    resumed = (
        float(np.nanmean(line.rate_bps[line.at(again_s + 3 * path.round_s) :])) / path.rate_bps
    )
    return _as_expected(
        {"idle": bool(idle), "no ProbeRTT": PROBE_RTT not in soon, "resumes": resumed > 0.8},
        f"paused {again_s - at_s:.1f} s; then {100 * resumed:.0f} % of the rate",
    )


# --- aggregation, small and changing paths --------------------------------------------------------


def _held(path: Path, at_s: float) -> tuple[float, dict[str, Any]]:
    """Return a time, at which acknowledgements are released together, and the link's key."""
    every_s = max(path.rtt_s / 2, 8 * path.packet_s)
    return every_s, {"ack_aggregation": {"every": f"{every_s!r} s", "at": f"{at_s!r} s"}}


def startup_aggregation(path: Path) -> Verdict:
    """A.12: acknowledgements in bursts do not keep Startup from the bandwidth."""
    every_s, fault = _held(path, 0.0)
    slow = path._replace(rtt_s=path.rtt_s + every_s)
    line = run(path, slow.duration_s(2), buffer_bdp=8.0, link=fault)
    i = min(line.spans()[0].end, len(line.s) - 1)
    share = line.max_bw[i] / path.rate_bps
    extra, cwnd = line.extra_acked[:i].max(), line.cwnd[: i + 1].max()
    return _as_expected(
        {
            "extra_acked": extra >= 0.5 * every_s / path.packet_s,
            "cwnd above 2 BDP": cwnd > 2 * path.bdp_packets,
            "bandwidth": share >= 0.95,
        },
        f"max_bw {100 * share:.0f} %, extra_acked {extra:.3g} with bursts of "
        f"{every_s / path.packet_s:.3g}",
    )


def cruise_aggregation(path: Path) -> Verdict:
    """A.13: the window allows acknowledgements in bursts, and the link stays full."""
    before = plain(path)
    cruise = before.first(CRUISE)
    at_s = (cruise or _first(before, DOWN)).from_s
    every_s, fault = _held(path, at_s)
    slow = path._replace(rtt_s=path.rtt_s + every_s)
    line = run(path, at_s + 3 * slow.duration_s(1), buffer_bdp=8.0, link=fault)
    share = line.result.summary["flows"][0]["rate_bps"] / path.rate_bps
    extra = np.median(line.extra_acked[line.at(at_s + 12 * slow.round_s) :])
    return _as_expected(
        {"extra_acked": extra >= 0.5 * every_s / path.packet_s, "full": share >= 0.9},
        f"rate {100 * share:.0f} %, extra_acked {extra:.3g} with bursts of "
        f"{every_s / path.packet_s:.3g}",
    )


def sub_packet_bdp(path: Path) -> Verdict:
    """A.14: with half a packet of BDP the window has four packets, and pacing the link's rate."""
    small = path._replace(rtt_s=min(path.rtt_s, 0.5 * path.packet_s))
    end_s = max(200 * small.round_s, 4)
    line = run(small, end_s, sample_s=max(small.round_s / 10, end_s / 2000))
    i = line.at(2 * end_s / 3)  # a timeout in Startup leaves one packet
    share = line.result.summary["flows"][0]["rate_bps"] / path.rate_bps
    cwnd = line.cwnd[i:].min()
    off = np.abs(line.bw[i:] / path.rate_bps - 1).max()
    paced = line.pacing_bps[i:] / (0.99 * line.pacing_gain[i:] * line.bw[i:])
    return _as_expected(
        {
            "cwnd of 4": cwnd >= _MIN_PIPE,
            "bw within 2 %": off <= 0.02,
            "pacing at bw": bool(np.allclose(paced, 1, rtol=1e-6)),
            "no stall": share >= 0.95,
        },
        f"{small.bdp_packets:.2g} packets: cwnd from {cwnd:.3g}, bw to {100 * off:.1f} %, "
        f"rate {100 * share:.0f} %",
    )


def ten_times_faster(path: Path) -> Verdict:
    """A.15: ten times the bandwidth is found in a number of rounds that grows as its logarithm."""
    slow = path._replace(rate_bps=path.rate_bps / 10)
    at_s = _first(plain(slow), DOWN).from_s
    faster = {"event": [{"at": f"{at_s!r} s", "rate": f"{path.rate_bps!r} bit/s"}]}
    line = run(slow, at_s + 6 + 50 * slow.round_s, buffer_bdp=40.0, link=faster)
    found = np.flatnonzero(line.max_bw >= 0.9 * path.rate_bps)
    if not found.size:
        return Verdict(False, f"{100 * line.max_bw.max() / path.rate_bps:.0f} % of the rate found")
    refill = _first(line, REFILL, at_s)
    rounds = line.round_count[found[0]] - line.round_count[refill.first]
    return _as_expected(
        {"within 40 rounds": rounds <= 40},
        f"{rounds:.0f} rounds, {line.s[found[0]] - at_s:.2f} s",
    )


def ten_times_slower(path: Path) -> Verdict:
    """A.16: a tenth of the bandwidth lowers bw_shortterm by losses, and max_bw in two cycles."""
    # A round stays below the 2 s of bw_probe_wait, or DOWN ends before the filter advances.
    size = {"buffer_bdp": min(0.5, 0.1 / path.rtt_s), "buffer_packets": 10.0}
    before = run(path, path.duration_s(3), **size)
    at_s = _first(before, UP).to_s + path.round_s
    slower = {"event": [{"at": f"{at_s!r} s", "rate": f"{path.rate_bps / 10!r} bit/s"}]}
    slow = path._replace(rate_bps=path.rate_bps / 10)
    # Packets keep their size, which a path of the lower rate might not have.
    packet_s = 10 * path.packet_s
    queue_packets = max(size["buffer_bdp"] * path.bdp_packets, size["buffer_packets"])
    round_s = max(path.rtt_s + 2 * packet_s, 6 * packet_s) + queue_packets * packet_s
    line = run(path, at_s + 20 * round_s + 9, **size, link=slower)
    after = line.at(at_s)
    lowered = np.isfinite(line.bw_shortterm[after:]).any()
    off = line.max_bw[-1] / slow.rate_bps
    lost = line.drops(at_s)
    return _as_expected(
        {
            "bw_shortterm falls": bool(lowered) or lost == 0 or _probes_each_round(slow),
            "max_bw": off <= 1.1 and off >= 0.9,
        },
        f"max_bw {off:.2f} of the new rate; {'with' if lost else 'without'} losses",
    )


def policer(path: Path) -> Verdict:
    """A.17: a token bucket without a buffer: the rate conforms without lasting losses."""
    depth = math.ceil(max(path.bdp_packets / 4, 10)) * path.packet_bytes
    shaper = {"rate": f"{path.rate_bps!r} bit/s", "depth": f"{depth} B"}
    fast = {"rate": f"{10 * path.rate_bps!r} bit/s", "buffer": "1 packets", "shaper": shaper}
    line = run(path, path.duration_s(6) + 4, link=fast)
    flow = line.result.summary["flows"][0]
    share, lost = flow["rate_bps"] / path.rate_bps, flow["loss_rate"]
    bounded = (
        np.isfinite(line.inflight_shortterm).any() or np.isfinite(line.inflight_longterm).any()
    )
    return _as_expected(
        {"a bound is set": bool(bounded), "conforms": share >= 0.7, "2 % lost": lost <= 0.02},
        f"rate {100 * share:.0f} %, {100 * lost:.1f} % lost",
    )


# --- spurious recovery, and losses in probes ------------------------------------------------------


def spurious_recovery(path: Path) -> Verdict:
    """A.18: a recovery by reordering in UP is undone: UP again, and the bounds are as before."""
    at_s = _first(plain(path), UP).from_s
    until_s = at_s + 2 * path.round_s
    late_s = path.rtt_s / 2 + 8 * path.packet_s
    wire = {"reorder": {"share": 0.05, "delay": f"{late_s!r} s"}}
    line = run(path, until_s + 12 * path.round_s, wire=wire, via_wire=[(at_s, until_s)])
    flow = line.result.summary["flows"][0]
    if not flow["retransmissions"]:
        return Verdict(None, "no packet is late enough to be sent again")
    states = [
        state for state, span in line.states(at_s) if span.from_s < until_s + 8 * path.round_s
    ]
    end = line.at(until_s + 8 * path.round_s)
    bounded = np.isfinite(line.inflight_longterm[end]) or np.isfinite(line.bw_shortterm[end])
    return _as_expected(
        {
            "no bound remains": not bounded,
            "probes again": REFILL in states or DOWN not in states[:1],
        },
        f"{flow['retransmissions']} sent again; {' '.join(NAMES[state] for state in states[:6])}",
    )


def spurious_timeout(path: Path) -> Verdict:
    """A.19: a timeout by a delay of 3 s is undone: window and bounds are as before."""
    before = plain(path)
    at_s = _first(before, UP).from_s
    later_s = path.rtt_s / 2 + 3
    end_s = at_s + path.round_s
    events = [{"at": f"{at_s!r} s", "delay": f"{later_s!r} s"},
              {"at": f"{end_s!r} s", "delay": f"{path.rtt_s / 2!r} s"}]  # fmt: skip
    line = run(path, end_s + 5 + 8 * path.duration_s(1) / 4, link={"event": events})
    flow = line.result.summary["flows"][0]
    i = line.at(end_s + 4.5)
    bounded = np.isfinite(line.inflight_longterm[i])
    cwnd, had = line.cwnd[i:].max(), line.cwnd[line.at(at_s)]
    rate = flow["rate_bps"] / path.rate_bps
    return _as_expected(
        {
            "a timeout": flow["timeouts"] >= 1,
            "no bound remains": not bounded,
            "the window returns": cwnd >= 0.8 * had,
        },
        f"{flow['timeouts']} timeouts; cwnd {cwnd:.3g} after {had:.3g}; rate {100 * rate:.0f} %",
    )


def startup_probe_rtt(path: Path) -> Verdict:
    """A.20: ProbeRTT in Startup leads back to Startup."""
    line = run(path, 0.3 + 12 * path.round_s, probe_rtt_interval_s=1.5 * path.round_s)
    states = [state for state, _ in line.states()]
    return _as_expected(
        {"Startup, ProbeRTT, Startup": states[:3] == [STARTUP, PROBE_RTT, STARTUP]},
        " ".join(NAMES[state] for state in states[:4]),
    )


def up_loss_bounded(path: Path) -> Verdict:
    """A.21: losses in UP lower inflight_longterm by 0.7 at most, and end UP."""
    first = _first(plain(path), UP)
    wire = {"loss": 0.2}
    via = [(first.from_s, first.from_s + 2 * path.round_s)]
    more_s = 5 * min(3 + 8 * path.round_s, 75 * path.round_s)
    once = run(path, first.to_s + more_s, wire=wire, via_wire=via)
    bound = once.inflight_longterm[once.at(via[0][1] + 2 * path.round_s)]
    if not np.isfinite(bound):
        return Verdict(False, "the first losses set no bound")
    second = _first(once, UP, via[0][1] + path.round_s)
    via.append((second.from_s - path.round_s, second.from_s + 2 * path.round_s))
    twice = run(path, first.to_s + more_s, wire=wire, via_wire=via)
    up = _first(twice, UP, via[1][0] - path.round_s)
    i = min(up.end + 1, len(twice.s) - 1)
    bdp = twice.bw[i] * twice.min_rtt[i] / (8 * path.packet_bytes)
    lowest = 0.7 * min(bdp, twice.cwnd[i - 2])
    after = twice.inflight_longterm[i]
    return _as_expected(
        {"DOWN follows": twice.after(up) in _down(path), "at least 0.7": after >= 0.99 * lowest},
        f"inflight_longterm {bound:.3g}, then {after:.3g}; UP lasts "
        f"{(up.to_s - up.from_s) / path.round_s:.1f} rounds",
    )


def pause_in_refill(path: Path) -> Verdict:
    """A.22: a pause in REFILL does not lower max_bw, and UP follows."""
    before = run(path, path.duration_s(2), flow={"demand_trace": write(path, 1e9, [])})
    refill = _first(before, REFILL)
    at_s = refill.from_s
    again_s = at_s + path.round_s
    demand = write(path, before.sent_packets(at_s), [(again_s, 10 * path.rate_bps)])
    line = run(path, at_s + path.duration_s(2), flow={"demand_trace": demand})
    same = _first(line, REFILL, at_s - path.round_s)
    had, has = line.max_bw[same.first], line.max_bw[line.at(again_s + 3 * path.round_s)]
    rate = line.result.summary["flows"][0]["rate_bps"] / path.rate_bps
    return _as_expected(
        {
            "max_bw stays": has >= 0.99 * had,
            "UP follows": line.after(same) == UP,
            "resumes": rate > 0.8,
        },
        f"max_bw × {has / had:.3f}; rate {100 * rate:.0f} %",
    )


# By the number in appendix A.
CASES: dict[int, Callable[[Path], Verdict]] = dict(
    enumerate(
        (
            startup_plateau, startup_loss, drain_inflight, drain_time, up_plateau, up_loss_limited,
            never_when_limited, down_inflight, down_time, probe_rtt, idle_skips_probe_rtt,
            startup_aggregation, cruise_aggregation, sub_packet_bdp, ten_times_faster,
            ten_times_slower, policer, spurious_recovery, spurious_timeout, startup_probe_rtt,
            up_loss_bounded, pause_in_refill,
        ),
        start=1,
    )
)  # fmt: skip


def judge(number: int, path: Path) -> Verdict:
    """Run one test case on one path."""
    try:
        return CASES[number](path)
    except Absent as absent:
        return Verdict(False, str(absent))
