"""Conformance battery of a law in Python, for `waterfill check --law FILE.py`.

Small runs on one link of 10 Mbit/s and 40 ms. Judged: limits are valid in every run, the same seed
gives the same series, an idle path is used, a transfer completes over random loss and after an
outage, and an unused window does not grow (RFC 7661 §4.3). Reported, and not judged, because they
are the law's choice: the answers to a loss, a time-out and a mark, the queue, Jain's index of two
flows, and the speed. Parameters have their defaults.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeAlias

from waterfill.errors import InputError
from waterfill.runs import backends
from waterfill.runs.laws import PythonLaw
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.scenario.units import percent

# Least share of an idle link that a flow must use, largest time of a transfer (s), and growth of
# an unused window that counts as none.
MIN_UTILIZATION = 0.5
TRANSFER_S = 30.0
MAX_GROWTH = 1.05
_TRANSFER = "300 kB"
# An RTT with some queue, and a window that can hardly be reduced.
_RTT_S = 0.06
_SMALL_BYTES = 3000.0
# Time (s) and window (bytes).
_Seen: TypeAlias = tuple[float, float | None]


@dataclass(frozen=True)
class Finding:
    """One line of the battery: what was looked at, what was found, and what is wanted.

    `ok` is None for what is reported and not judged.
    """

    check: str
    found: str
    wanted: str
    ok: bool | None


def findings(name: str, law: PythonLaw) -> list[Finding]:
    """Run the battery on a law and return its findings. Wrong limits end it early."""
    found: list[Finding] = []
    try:
        for check in (_alone, _transfers, _idle, _reactions, _two):
            found += check(name, law)
    except InputError as error:
        found.append(Finding("calls of the law", str(error), "valid in every run", False))
        return found
    return [Finding("calls of the law", "valid", "valid in every run", True), *found]


def _scenario(
    name: str, duration: str, flow: Mapping[str, Any], link: Mapping[str, Any], *others: Any
) -> Scenario:
    """Return one flow of the law on one link, with other flows of it that have these keys."""
    base = {"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "20 ms"}
    one = {"name": "f", "from": "a", "to": "b", "protocol": name}
    document = {
        "name": "battery", "duration": duration, "sample": "20 ms",
        "link": [{**base, **link}], "flow": [{**one, **keys} for keys in (flow, *others)],
    }  # fmt: skip
    return from_dict(document, "battery")


def _run(name: str, law: PythonLaw, scenario: Scenario) -> Result:
    return backends.run(scenario, laws={name: law})


def _alone(name: str, law: PythonLaw) -> Iterator[Finding]:
    """Yield what one flow does on an idle link, and whether a second run equals the first."""
    scenario = _scenario(name, "20 s", {}, {"loss": 0.001})
    started = time.perf_counter()
    first = _run(name, law, scenario)
    took_s = time.perf_counter() - started
    again = _run(name, law, scenario)
    same = first.flows.equals(again.flows) and first.links.equals(again.links)
    found = "equal" if same else "differ"
    yield Finding("two runs with one seed", f"series {found}", "equal series", same)
    clean = _run(name, law, _scenario(name, "20 s", {}, {})).summary.links[0]
    used = clean.utilization
    wanted = f"at least {percent(MIN_UTILIZATION)}"
    yield Finding("utilization of an idle link", percent(used, 1), wanted, used >= MIN_UTILIZATION)
    queue_ms = clean.queue_bytes.mean * 8 / 10e6 * 1e3
    yield Finding("mean queue of an idle link", f"{queue_ms:.3g} ms", "", None)
    hops = first.summary.engine.packet_hops
    yield Finding("speed", f"{hops / took_s / 1e3:.0f} k packets/s", "", None)


def _transfers(name: str, law: PythonLaw) -> Iterator[Finding]:
    """Yield whether a transfer completes over random loss, and over an outage of 3 s."""
    outage = [{"at": "150 ms", "up": False}, {"at": "3.15 s", "up": True}]
    for title, link in (
        ("2 % of random loss", {"loss": 0.02}),
        ("an outage of 3 s", {"event": outage}),
    ):
        scenario = _scenario(name, f"{TRANSFER_S:g} s", {"size": _TRANSFER}, link)
        done_s = _run(name, law, scenario).summary.flows[0].completed_s
        found = "not completed" if done_s is None else f"completed at {done_s:.3g} s"
        wanted = f"within {TRANSFER_S:g} s"
        yield Finding(f"{_TRANSFER} over {title}", found, wanted, done_s is not None)


def _idle(name: str, law: PythonLaw) -> Iterator[Finding]:
    """Yield whether the window grows while the application uses a tenth of the link."""
    result = _run(name, law, _scenario(name, "20 s", {"demand": "1 Mbit/s"}, {}))
    windows = [window for window in result.flows["window_bytes"].to_pylist() if window]
    check, wanted = "window of an application-limited flow", "no growth in the second half"
    if len(windows) < 4:
        yield Finding(check, "the law has no window", wanted, None)
        return
    half = windows[len(windows) // 2]
    growth = windows[-1] / half
    yield Finding(check, f"× {growth:.3g}", wanted, growth <= MAX_GROWTH)


def _two(name: str, law: PythonLaw) -> Iterator[Finding]:
    """Yield how two flows share a link, the second of which starts 5 s later."""
    scenario = _scenario(name, "60 s", {}, {}, {"name": "late", "start": "5 s"})
    index = _run(name, law, scenario).summary.jain_index
    found = "none" if index is None else f"{index:.3f}"
    yield Finding("Jain's index of two flows", found, "", None)


# --- reactions ---------------------------------------------------------------------------------


class _Recorder:
    """A source that records the windows of the law's own source, and the place of each event."""

    def __init__(self, inner: Any, events: dict[int, str], windows: list[_Seen]) -> None:
        self._inner, self._events, self._windows, self._now_s = inner, events, windows, 0.0
        if hasattr(inner, "stamp"):
            self.stamp = inner.stamp
        if hasattr(inner, "on_lost"):
            self.on_lost = inner.on_lost

    def on_ack(self, ack: Any) -> None:
        """Pass on an acknowledgement."""
        self._now_s = ack.now_s
        self._inner.on_ack(ack)

    def on_event(self, now_s: float, event: str) -> None:
        """Record the window before an event, and pass the event on."""
        self._now_s = now_s
        self._events[len(self._windows)] = event
        self.limit()
        if hasattr(self._inner, "on_event"):
            self._inner.on_event(now_s, event)

    def limit(self) -> Any:
        """Record the window and return the limits."""
        limit = self._inner.limit()
        self._windows.append((self._now_s, limit[0]))
        return limit


def _reactions(name: str, law: PythonLaw) -> Iterator[Finding]:
    """Yield the window after each kind of event, relative to the window before."""
    outage = [{"at": "10 s", "up": False}, {"at": "12 s", "up": True}]
    cases: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
        ("loss", "loss", {"loss": 0.001}, {}),
        ("time-out", "timeout", {"event": outage}, {}),
    ]
    if law.ecn != "off":
        marking = {"queue": "codel", "buffer": "200 packets"}
        cases.append(("mark", "marked", marking, {"ecn": True}))
    for title, event, link, flow in cases:
        ratio = _reaction(name, law, event, link, flow)
        found = "no such event" if ratio is None else f"× {ratio:.2f}"
        yield Finding(f"window within an RTT after a {title}", found, "", None)


def _reaction(
    name: str, law: PythonLaw, event: str, link: Mapping[str, Any], flow: Mapping[str, Any]
) -> float | None:
    events: dict[int, str] = {}
    windows: list[_Seen] = []
    inner: Callable[[Any], Any] = law.source

    def source(connection: Any) -> _Recorder:
        return _Recorder(inner(connection), events, windows)

    recorded: Any = source
    _run(name, replace(law, source=recorded), _scenario(name, "20 s", flow, link))
    ratios = []
    for place in (place for place, what in events.items() if what == event):
        at_s, before = windows[place]
        end = bisect_right(windows, at_s + _RTT_S, lo=place, key=itemgetter(0))
        after = [window for _, window in windows[place:end] if window is not None]
        if before is not None and before > _SMALL_BYTES and after:
            ratios.append(min(after) / before)
    return sorted(ratios)[len(ratios) // 2] if ratios else None
