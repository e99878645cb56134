"""Response functions: the mean window of a TCP at a given loss rate, compared with theory.

A single flow on a link that is never its bottleneck loses packets at rate p; its mean window in
packets is throughput × RTT. There are two kinds of loss, each with its theory:

- *periodic*: one packet in every 1/p. Reno's window is then Mathis's √(3/2)/√p, and CUBIC's RFC
  9438's eq. 5, or its Reno-friendly region (eq. 4 and figure 1 there) where that is larger.
- *independent*: each packet with probability p. The window laws' own Monte-Carlo (`monte_carlo`)
  is the reference: RTTs, losses, one reduction per episode, recovery and time-outs, nothing else.
  Padhye's formula and RFC 9438's closed form are shown too; both average over a deterministic
  loss process, so independent losses give larger windows at small p.

`waterfill response` prints both tables.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from waterfill import _core
from waterfill.contract.summary import Summary
from waterfill.runs.pool import run_each
from waterfill.runs.progress import Tick
from waterfill.runs.result import Document
from waterfill.scenario.loading import from_dict

Loss: TypeAlias = Literal["periodic", "independent"]

PROBABILITIES = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
RTTS_S = (0.010, 0.020, 0.050, 0.100, 0.200)
PACKET_BYTES = 1500
# Far above the largest window ÷ the smallest RTT, so that no queue forms.
_RATE_BPS = 10e9
RTO_MIN_S = 1.0
# At smaller mean windows whole packets and time-outs matter, which the closed forms neglect: such
# cases are shown but not judged.
MIN_WINDOW = 20.0
TOLERANCE = 0.10


# --- closed forms ------------------------------------------------------------------------------


def mathis_window(p: float) -> float:
    """Return Reno's mean window (packets) at one loss per 1/p packets [mathis-1997:eq3].

    Without delayed acknowledgements.
    """
    return math.sqrt(3 / 2) / math.sqrt(p)


def padhye_window(p: float, rtt_s: float, rto_s: float, b: int = 1) -> float:
    """Return Reno's mean window (packets) with time-outs [padhye-1998:eq30].

    `b` is the number of packets per acknowledgement, `rto_s` the first time-out.
    """
    timeouts = rto_s * min(1.0, 3 * math.sqrt(3 * b * p / 8)) * p * (1 + 32 * p * p)
    return rtt_s / (rtt_s * math.sqrt(2 * b * p / 3) + timeouts)


def cubic_window(p: float, rtt_s: float, c: float = 0.4, beta: float = 0.7) -> float:
    """Return CUBIC's mean window (packets) [rfc9438:eq5], or the Reno-friendly one if larger.

    The Reno-friendly estimate is AIMD(3(1 − β)/(1 + β), β), whose mean is Mathis's [rfc9438:§4.3].
    """
    cubic = _core.pow(c * (3 + beta) / (4 * (1 - beta)), 0.25) * _core.pow(rtt_s / p, 0.75)
    return max(cubic, mathis_window(p))


# --- Monte-Carlo of the window laws ------------------------------------------------------------


class _Window(Protocol):
    """Interface of a window law without a network. Units are packets and seconds."""

    cwnd: float

    def grow(self, rtt_s: float) -> None:
        """Apply one RTT of congestion avoidance in which every packet is acknowledged."""

    def reduce(self) -> None:
        """Apply the window reduction of a loss episode."""


class RenoWindow:
    """Window law of Reno: one more packet per RTT, and half the window after a loss."""

    def __init__(self) -> None:
        self.cwnd = 10.0

    def grow(self, rtt_s: float) -> None:
        """[rfc5681:eq3] Increase the window by one packet."""
        self.cwnd += 1.0

    def reduce(self) -> None:
        """[rfc5681:eq4] Halve the window, to at least two packets."""
        self.cwnd = max(self.cwnd / 2, 2.0)


class CubicWindow:
    """Window law of CUBIC by RFC 9438 §4.2–4.7, updated once per RTT."""

    c, beta = 0.4, 0.7

    def __init__(self) -> None:
        self.cwnd = 10.0
        self._w_max = self._k = self._since_s = 0.0
        self._w_est = self._prior = self.cwnd

    def grow(self, rtt_s: float) -> None:
        """[rfc9438:eq1] to [rfc9438:eq4] Grow the window to the cubic or Reno-friendly target."""
        self._since_s += rtt_s
        # The target is the curve's value one RTT ahead, at most 1.5 times the window.
        from_plateau_s = self._since_s - self._k
        target = self.c * from_plateau_s * from_plateau_s * from_plateau_s + self._w_max
        alpha = 1.0 if self._w_est >= self._prior else 3 * (1 - self.beta) / (1 + self.beta)
        self._w_est += alpha
        self.cwnd = max(self._w_est, min(max(target, self.cwnd), 1.5 * self.cwnd))

    def reduce(self) -> None:
        """[rfc9438:eq2], [rfc9438:§4.6], [rfc9438:§4.7] Reduce the window by β, with fast
        convergence.
        """
        self._prior = self.cwnd
        fast = self.cwnd < self._w_max
        self._w_max = self.cwnd * (1 + self.beta) / 2 if fast else self.cwnd
        self.cwnd = max(self.cwnd * self.beta, 2.0)
        self._w_est = self.cwnd
        self._k = _core.pow(max(self._w_max - self.cwnd, 0.0) / self.c, 1 / 3)
        self._since_s = 0.0


def monte_carlo(
    make: Callable[[], _Window],
    p: float,
    rtt_s: float,
    *,
    episodes: int = 4000,
    seed: int = 1,
    rto_min_s: float = RTO_MIN_S,
) -> float:
    """Return the mean window (packets) of a window law under independent losses, by simulation.

    Simulates RTT by RTT. An episode is: packets until the first loss; one more RTT, in which the
    loss is detected; the reduction; one RTT of recovery, and one more per retransmission that is
    lost. With fewer than three packets arriving after the lost one there is a time-out of
    max(rto_min, RTT), doubled per lost retransmission, and slow start to the threshold. The first
    tenth of the episodes is discarded.
    """
    draw = random.Random(seed)
    log_q = _core.ln_1p(-p)

    def until_loss() -> int:
        return int(_core.ln(1.0 - draw.random()) / log_q) + 1

    law = make()
    time_s = packets = 0.0
    from_s = from_packets = 0.0
    next_loss = until_loss()
    for episode in range(episodes):
        if episode == episodes // 10:
            from_s, from_packets = time_s, packets
        while next_loss > law.cwnd:
            next_loss -= int(law.cwnd)
            packets += int(law.cwnd)
            time_s += rtt_s
            law.grow(rtt_s)
        # The lost packet is sent within this RTT; one more window follows it.
        part = next_loss / law.cwnd
        packets += next_loss
        time_s += part * rtt_s
        behind = int(law.cwnd)
        losses, next_loss = 1, until_loss()
        while next_loss <= behind:
            behind -= next_loss
            losses += 1
            next_loss = until_loss()
        next_loss -= behind
        packets += int(law.cwnd)
        time_s += rtt_s
        law.grow(rtt_s)
        arrived = int(law.cwnd) - losses
        law.reduce()
        lost_again = sum(draw.random() < p for _ in range(losses))
        if arrived < 3 or (lost_again and law.cwnd < 4):
            rto_s = max(rto_min_s, rtt_s)
            time_s += rto_s
            while draw.random() < p:
                rto_s = min(2 * rto_s, 60.0)
                time_s += rto_s
            threshold, slow = law.cwnd, 1.0
            while slow < threshold:
                time_s += rtt_s
                packets += slow
                next_loss = max(1, next_loss - int(slow))
                slow *= 2
        else:
            # Recovery: one reduced window per RTT, retransmissions included.
            rounds = 1 + lost_again
            time_s += rounds * rtt_s
            packets += rounds * law.cwnd
            next_loss = max(1, next_loss - int(rounds * law.cwnd))
    return (packets - from_packets) * rtt_s / (time_s - from_s)


# --- the simulator -----------------------------------------------------------------------------


@dataclass(frozen=True)
class LossCase:
    """One case of a response table: its settings and its mean windows (packets)."""

    protocol: str
    loss: Loss
    p: float
    rtt_s: float
    window: float
    reference: float
    closed_forms: dict[str, float]
    losses: int
    timeouts: int

    @property
    def judged(self) -> bool:
        """True if the mean window is large enough for the reference to be valid."""
        return self.loss == "independent" or self.reference >= MIN_WINDOW

    @property
    def error(self) -> float:
        """Relative difference of the mean window from the reference."""
        return self.window / self.reference - 1

    @property
    def within(self) -> bool:
        """True if the error is within `TOLERANCE`, or the case is not judged."""
        return not self.judged or abs(self.error) <= TOLERANCE

    def document(self) -> Document:
        """Return the case's entry in `waterfill response --json`."""
        return {
            "protocol": self.protocol,
            "loss": self.loss,
            "p": self.p,
            "rtt_s": self.rtt_s,
            "window_packets": self.window,
            "reference_packets": self.reference,
            "error": self.error,
            "judged": self.judged,
            "within": self.within,
            "closed_forms_packets": self.closed_forms,
            "losses": self.losses,
            "timeouts": self.timeouts,
        }


# Under periodic loss RFC 5681 suffices. Under independent loss several packets of a window may be
# lost: SACK repairs that, so that the result shows the window law alone.
TABLES: tuple[tuple[str, Loss], ...] = (
    ("reno", "periodic"),
    ("cubic", "periodic"),
    ("sack", "independent"),
    ("cubic", "independent"),
)


def scenario(protocol: str, loss: Loss, p: float, rtt_s: float, losses: int) -> Document:
    """Return the scenario of a case, long enough for `losses` losses after the warm-up."""
    expected = cubic_window(p, rtt_s) if protocol == "cubic" else mathis_window(p)
    # Losses per second. Independent losses give larger windows at small p: the run may be a
    # little longer than needed.
    rate = p * expected / rtt_s
    if loss == "independent":
        rate = p * min(expected, padhye_window(p, rtt_s, max(RTO_MIN_S, rtt_s)) * 1.2)
        rate /= rtt_s
    measured_s = losses / rate
    # Slow start overshoots before the first loss, and each episode removes part of that.
    warm_s = max(measured_s / 4, 12 / rate)
    model: Any = {"kind": "periodic", "every": round(1 / p)} if loss == "periodic" else None
    link = {
        "name": "link",
        "from": "a",
        "to": "b",
        "rate": f"{_RATE_BPS} bit/s",
        "delay": f"{rtt_s / 2} s",
        "buffer": "1 bdp",
        **({"loss_model": model} if model else {"loss": p}),
    }
    return {
        "name": f"{protocol} p={p:g} rtt={rtt_s:g}",
        "duration": f"{warm_s + measured_s} s",
        "measure": [f"{warm_s} s", f"{warm_s + measured_s} s"],
        "sample": f"{warm_s + measured_s} s",
        "rto_min": f"{RTO_MIN_S} s",
        "packet_size": f"{PACKET_BYTES} B",
        "protocol": protocol,
        "link": [link],
        "flow": [{"name": "flow", "from": "a", "to": "b"}],
    }


@dataclass(frozen=True)
class Point:
    """Parameters of a response case: protocol, kind of loss, loss rate and RTT."""

    protocol: str
    loss: Loss
    p: float
    rtt_s: float

    def __str__(self) -> str:
        return f"{self.protocol} {self.loss} p={self.p:g} rtt={self.rtt_s * 1e3:g}ms"


def case_of(point: Point, summary: Summary) -> LossCase:
    """Return the response case that a finished run has measured."""
    flow, link = summary.flows[0], summary.links[0]
    p, rtt_s, cubic = point.p, point.rtt_s, point.protocol == "cubic"
    closed = (
        {"rfc9438": cubic_window(p, rtt_s)}
        if cubic
        else {"mathis": mathis_window(p), "padhye": padhye_window(p, rtt_s, max(RTO_MIN_S, rtt_s))}
    )
    if point.loss == "periodic":
        reference = next(iter(closed.values()))
    else:
        reference = monte_carlo(CubicWindow if cubic else RenoWindow, p, rtt_s)
    return LossCase(
        point.protocol,
        point.loss,
        p,
        rtt_s,
        window=(flow.rate_bps or 0.0) * rtt_s / (8 * PACKET_BYTES),
        reference=reference,
        closed_forms=closed,
        losses=link.lost,
        timeouts=flow.timeouts,
    )


def cells(
    tables: Sequence[tuple[str, Loss]] = TABLES,
    probabilities: Iterable[float] = PROBABILITIES,
    rtts_s: Iterable[float] = RTTS_S,
    losses: int = 300,
    progress: Callable[[str, Tick], None] | None = None,
) -> list[LossCase]:
    """Run the cases of the response tables on all CPUs; return the finished ones in order. Ctrl-C
    skips the rest.
    """
    points = [
        Point(protocol, loss, p, rtt_s)
        for protocol, loss in tables
        for p in sorted(probabilities)
        for rtt_s in rtts_s
    ]
    scenarios = {
        str(point): from_dict(scenario(point.protocol, point.loss, point.p, point.rtt_s, losses))
        for point in points
    }
    results = run_each(scenarios, progress=progress)
    return [
        case_of(point, results[str(point)].summary)
        for point in points
        if str(point) in results and "interrupted_at_s" not in results[str(point)].summary
    ]


def document(found: Sequence[LossCase]) -> Document:
    """Return the document of `waterfill response --json`."""
    return {
        "tolerance": TOLERANCE,
        "least_window_packets": MIN_WINDOW,
        "cells": [one.document() for one in found],
        "outside": sum(not one.within for one in found),
    }
