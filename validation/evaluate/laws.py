"""CUBIC in Python with one planted fault each, and healthy variants without any.

All laws share `Healthy`, which is examples/own_cubic.py.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import waterfill
from waterfill.runs.laws import PythonLaw

_SPEC = importlib.util.spec_from_file_location(
    "own_cubic", Path(__file__).resolve().parents[2] / "examples" / "own_cubic.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_OWN = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_OWN)
_Cubic: Any = _OWN.Cubic

TICK_S = 0.001
BASE = "healthy"


class Healthy(_Cubic):  # type: ignore[misc]  # loaded from its file
    """CUBIC without a fault."""

    cwnd: float
    ssthresh: float
    w_max: float
    cwnd_prior: float


class Paced(Healthy):
    """Paces at `gain` × window ÷ RTT, in slow start at twice that."""

    gain = 1.2

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.rtt_s: float | None = None

    def on_ack(self, ack: Any) -> None:
        """Handle an acknowledgement."""
        super().on_ack(ack)
        self.rtt_s = ack.smoothed_rtt_s

    def limit(self) -> tuple[float | None, float | None]:
        """Return the window (bytes) and the pacing rate (bit/s)."""
        window_bytes = self.cwnd * self.packet_bytes
        if not self.rtt_s:
            return window_bytes, None
        gain = 2.0 * self.gain if self.cwnd < self.ssthresh else self.gain
        return window_bytes, gain * window_bytes * 8 / self.rtt_s


class Undamped(Healthy):
    """Does not reduce a shrinking flow further (no fast convergence)."""

    def _reduced(self, *, timeout: bool) -> float:
        reduced = super()._reduced(timeout=timeout)
        self.w_max = self.cwnd_prior
        return float(reduced)


class LateStart(Healthy):
    """Leaves slow start only at a loss (no HyStart++)."""

    def on_ack(self, ack: Any) -> None:
        """Handle an acknowledgement."""
        super().on_ack(ack)
        self.slow_start.leave = False


class Gentle(Healthy):
    """Reduces its window to 65 % instead of 70 %."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.alpha = 3.0 * (1.0 - 0.65) / (1.0 + 0.65)

    def _reduced(self, *, timeout: bool) -> float:
        return float(super()._reduced(timeout=timeout)) * 0.65 / 0.7


class PacingTimer(Healthy):
    """Fault: a timer of 1 ms sends one packet each time, whatever the window is."""

    def limit(self) -> tuple[float | None, float | None]:
        """Return the window (bytes) and the pacing rate (bit/s)."""
        return self.cwnd * self.packet_bytes, self.packet_bytes * 8 / TICK_S


class NoTimeout(Healthy):
    """Fault: a time-out changes nothing."""

    def on_event(self, now_s: float, event: str) -> None:
        """Handle an event of the host."""
        if event != "timeout":
            super().on_event(now_s, event)


class _Unlimited:
    """An acknowledgement that claims that the window was in use."""

    window_limited = True

    def __init__(self, ack: Any) -> None:
        self._ack = ack

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ack, name)


class GrowsUnused(Healthy):
    """Fault: the window grows while the application does not fill it."""

    def on_ack(self, ack: Any) -> None:
        """Handle an acknowledgement."""
        super().on_ack(_Unlimited(ack))


class Beta90(Healthy):
    """Fault: β is 0.9, without the slower growth that would balance it."""

    def _reduced(self, *, timeout: bool) -> float:
        return float(super()._reduced(timeout=timeout)) * 0.9 / 0.7


class NoRestart(Healthy):
    """Fault: the window survives a pause of any length."""

    def on_event(self, now_s: float, event: str) -> None:
        """Handle an event of the host."""
        if event != "idle_restart":
            super().on_event(now_s, event)


class RareReduction(Healthy):
    """Fault: the window is reduced at most once in five seconds."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.reduced_s = -5.0

    def on_event(self, now_s: float, event: str) -> None:
        """Handle an event of the host."""
        if event in ("loss", "marked"):
            if now_s < self.reduced_s + 5.0:
                return
            self.reduced_s = now_s
        super().on_event(now_s, event)


class DeafToMarks(Healthy):
    """Fault: the flows send ECN-capable packets, and the law ignores marks."""

    def on_event(self, now_s: float, event: str) -> None:
        """Handle an event of the host."""
        if event != "marked":
            super().on_event(now_s, event)


HEALTHY = {
    BASE: Healthy,
    "healthy-paced": Paced,
    "healthy-undamped": Undamped,
    "healthy-late-start": LateStart,
    "healthy-gentle": Gentle,
}
FAULTS = {
    "pacing-timer": (PacingTimer, "6.3-wired"),
    "no-timeout": (NoTimeout, "5.2-feedback"),
    "grows-unused": (GrowsUnused, "7.8-limited"),
    "beta-0-9": (Beta90, "5.2-harm"),
    "no-restart": (NoRestart, "7.8-idle"),
    "rare-reduction": (RareReduction, "5.1.3"),
    "deaf-to-marks": (DeafToMarks, "7.1-ecn"),
}
"""The faults, with the criterion, or the section, that must find each."""


def _law(source: Any) -> PythonLaw:
    own = _OWN.LAWS["my-cubic"]
    return waterfill.PythonLaw(
        source=source, paced=issubclass(source, Paced | PacingTimer), ecn="classic",
        reduction="proportional", params=own.params, signals=own.signals, recovery="rack",
    )  # fmt: skip


LAWS = {name: _law(source) for name, source in HEALTHY.items()} | {
    name: _law(source) for name, (source, _) in FAULTS.items()
}
