"""The faults by another hand: lines of `healthy_N.py`, and the lines that `law-N` has instead."""

from __future__ import annotations

CHANGES = {
    "law-1": ("self.recovery_since = now_s", "self.recovery_since = sent_s"),
    "law-2": ("        self._shift(ack)\n", ""),
    "law-3": (
        """\
        if renewed:
            self.previous = self.current
""",
        """\
        if renewed:
            self.previous = min(self.previous, self.current)
""",
    ),
    "law-4": (
        """\
            self.window = self.ssthresh
        elif event == "timeout":
""",
        """\
        elif event == "timeout":
""",
    ),
    "law-5": (
        """\
        if not self.collapsed:
            self._set_threshold()
        self.cwnd = float(MIN_PACKETS)
""",
        """\
        self.cwnd = float(MIN_PACKETS)
        if not self.collapsed:
            self._set_threshold()
""",
    ),
    "law-6": ("float = 2 * self.mss", "float = connection.initial_window_bytes"),
}
