"""Measure what twelve events of links, routers and hosts do to MaxNet flows on the kernel.

Four flows share one link of 50 Mbit/s with an RTT of 20 ms. An event begins after `WARM_S`; the run
goes on for `AFTER_S` after it. Both ends' daemons are asked four times per second who follows the
law, and the kernel which bytes were acknowledged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

from validation.study import DAEMON, Options, Study, linux_code, on_linux, only
from validation.tables import markdown
from validation.testbed.maxnet_special import LAW, SendersOnly, isolated, listen, streams
from waterfill.network import protocols
from waterfill.runs.result import Document
from waterfill.scenario.loading import from_dict
from waterfill.testbed import backend, daemon, kernel, netlink
from waterfill.testbed import plan as plans
from waterfill.testbed.bed import RunNetwork
from waterfill.testbed.daemon import Daemon, Laws
from waterfill.testbed.flows import Running
from waterfill.testbed.plan import CLIENT_PORT
from waterfill.testbed.variation import Variation

FLOWS = 4
WARM_S, AFTER_S = 10.0, 40.0
_SAMPLE_S = 0.25
_BACK = 0.9
"""Share of the rate before the event at which the flows are back."""
_DELAY_MS = 10.0


class EventCase(NamedTuple):
    """An event and its duration (s)."""

    name: str
    seconds: float


def _down(seconds: float) -> list[Document]:
    return [{"at": f"{WARM_S} s", "up": False}, {"at": f"{WARM_S + seconds} s", "up": True}]


def _longer(milliseconds: float) -> list[Document]:
    """Return a reroute that adds this to the RTT, and the way back."""
    longer = f"{_DELAY_MS + milliseconds / 2:g} ms"
    return [{"at": f"{WARM_S} s", "delay": longer},
            {"at": f"{WARM_S + 10} s", "delay": f"{_DELAY_MS:g} ms"}]  # fmt: skip


class Remembering(Laws):
    """Laws that can take a router away and bring it back."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._arguments: dict[Daemon, tuple[int, list[str]]] = {}

    def start(self, namespace: int, arguments: list[str]) -> Daemon:
        """Start a daemon, and remember how."""
        started = super().start(namespace, arguments)
        self._arguments[started] = (namespace, arguments)
        return started

    def remove(self) -> None:
        """End the routers' daemons, and with them their programs."""
        for router, _ in self.routers:
            router.close()

    def bring_back(self) -> None:
        """Start the routers' daemons again."""
        for number, (router, directions) in enumerate(self.routers):
            again = self.start(*self._arguments[router])
            again.wait()
            self.routers[number] = (again, directions)


@contextmanager
def _router_gone(on: RunNetwork, _: list[Running]) -> Iterator[None]:
    assert isinstance(on.laws, Remembering)
    on.laws.remove()
    yield
    on.laws.bring_back()


@contextmanager
def _restarted(on: RunNetwork, _: list[Running]) -> Iterator[None]:
    assert isinstance(on.laws, Remembering)
    on.laws.remove()
    on.laws.bring_back()
    yield


@contextmanager
def _busy(_: RunNetwork, __: list[Running]) -> Iterator[None]:
    count = 2 * (os.cpu_count() or 1)
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@contextmanager
def _stalled(_: RunNetwork, running: list[Running]) -> Iterator[None]:
    receiver = running[0].listener
    assert receiver is not None
    receiver.send_signal(signal.SIGSTOP)
    yield
    receiver.send_signal(signal.SIGCONT)


@contextmanager
def _nothing(_: RunNetwork, __: list[Running]) -> Iterator[None]:
    yield


Act = Callable[[RunNetwork, list[Running]], Any]
# Of each event: its duration (s), additions to the link, what the study does, and the laws.
EVENTS: Mapping[str, tuple[float, Document, Act, type[Laws]]] = {
    "link down for 0.2 s": (0.2, {"event": _down(0.2)}, _nothing, Laws),
    "link down for 2 s": (2.0, {"event": _down(2.0)}, _nothing, Laws),
    "link down for 20 s": (20.0, {"event": _down(20.0)}, _nothing, Laws),
    "RTT + 1 ms for 10 s": (10.0, {"event": _longer(1)}, _nothing, Laws),
    "RTT + 3 ms for 10 s": (10.0, {"event": _longer(3)}, _nothing, Laws),
    "RTT + 30 ms for 10 s": (10.0, {"event": _longer(30)}, _nothing, Laws),
    "routers restart": (0.0, {}, _restarted, Remembering),
    "no router for 10 s": (10.0, {}, _router_gone, Remembering),
    "CPUs busy for 10 s": (10.0, {}, _busy, Laws),
    "one receiver stalls for 5 s": (5.0, {}, _stalled, Laws),
    "peer without the option": (0.0, {}, _nothing, SendersOnly),
    "loss of 1 %": (0.0, {"loss": 0.01}, _nothing, Laws),
}


# --- a run --------------------------------------------------------------------------------------


def network(case: EventCase) -> tuple[RunNetwork, Variation]:
    """Build the network, and plan the changes of its link."""
    seconds, more, _, laws = EVENTS[case.name]
    link = {"name": "l", "from": "r1", "to": "r2", "rate": "50 Mbit/s",
            "delay": f"{_DELAY_MS:g} ms", "buffer": "1 bdp", **more}  # fmt: skip
    flow = {"name": "f", "path": ["l"], "count": FLOWS}
    scenario = from_dict({"protocol": LAW, "duration": f"{WARM_S + seconds + AFTER_S} s",
                          "link": [link], "flow": [flow]})  # fmt: skip
    resolved = backend.resolve(scenario)
    names = kernel.congestion(kernel.offered(), protocols.load(), daemon.run_name())
    made = plans.of(scenario, resolved, names, protocols.targets(resolved.params))
    on = RunNetwork(made, backend.params_of(resolved), laws)
    return on, Variation(made, resolved, on.topology, on.laws)


def acked(on: RunNetwork, running: list[Running]) -> list[int]:
    """Return the acknowledged bytes of each flow."""
    found = []
    for one in running:
        with on.topology.namespace(one.stream.source).entered():
            sockets = netlink.SockDiag().sockets(on.topology.family)
        found.append(max((s.bytes_acked for s in sockets if s.sport == CLIENT_PORT), default=0))
    return found


def modes(on: RunNetwork, running: list[Running]) -> list[str]:
    """Return each flow's reason to have left the law, or an empty text."""
    flows = [flow for host in on.laws.hosts for flow in host.status()["flows"]] if on.laws else []
    reasons = []
    for one in running:
        address = one.stream.source_address
        mine = [flow for flow in flows if flow["local"].endswith(f":{CLIENT_PORT}")
                and flow["local"].startswith((address, f"[{address}]"))]  # fmt: skip
        reasons.append(mine[0]["fallback_reason"] or "" if mine else "not seen")
    return reasons


def observe(case: EventCase) -> Document:
    """Run an event in this process tree. Returns samples of times, bytes and reasons."""
    seconds, _, act, _ = EVENTS[case.name]
    on, variation = network(case)
    running = streams(on)
    for one in running:
        listen(one)
    start_s = time.monotonic()
    changes = sorted(variation.actions(lambda: time.monotonic() - start_s), key=lambda a: a[0])
    if on.line is not None:
        on.line.start(time.time_ns())
    for one in running:
        one.start()
    samples: list[Document] = []
    with ExitStack() as stack:
        begun = ended = False
        while (now := time.monotonic() - start_s) < WARM_S + seconds + AFTER_S:
            while changes and changes[0][0] <= now:
                changes.pop(0)[1]()
            if not begun and now >= WARM_S:
                begun = True
                stack.enter_context(act(on, running))
            if begun and not ended and now >= WARM_S + seconds:
                ended = True
                stack.close()
            samples.append({"at_s": time.monotonic() - start_s, "bytes": acked(on, running),
                            "left": modes(on, running)})  # fmt: skip
            due_s = min([_SAMPLE_S, *(at - now for at, _ in changes[:1])])
            time.sleep(max(0.0, due_s))
    for one in running:
        one.stop()
    on.close()
    return judged(case, samples) | {"host_load": os.getloadavg()[0]}


def rates(samples: list[Document], from_s: float, to_s: float) -> list[float]:
    """Return the flows' mean rates (bit/s) between the last samples up to two times (s)."""
    first, last = (
        max((s for s in samples if s["at_s"] <= at_s), key=lambda s: float(s["at_s"]))
        for at_s in (from_s, to_s)
    )
    took_s = last["at_s"] - first["at_s"]
    pairs = zip(first["bytes"], last["bytes"], strict=True)
    return [8 * (after - before) / took_s for before, after in pairs]


def judged(case: EventCase, samples: list[Document]) -> Document:
    """Return the share of time under the law, the time to return, and the flows' rates."""
    begin_s, end_s = WARM_S, WARM_S + case.seconds
    after = [sample for sample in samples if sample["at_s"] >= begin_s]
    under = [not reason for sample in after for reason in sample["left"]]
    reasons = Counter(reason for sample in after for reason in set(sample["left"]) if reason)
    before = sum(rates(samples, WARM_S - 5, WARM_S))
    back_s = next(
        (at_s - end_s for at_s in (s["at_s"] for s in samples if s["at_s"] >= end_s + 1)
         if sum(rates(samples, at_s - 1, at_s)) >= _BACK * before),
        None,
    )  # fmt: skip
    away = [s["at_s"] for s in after if any(s["left"])]
    last = rates(samples, end_s + AFTER_S - 10, end_s + AFTER_S)
    return {
        "under": sum(under) / len(under), "back_s": back_s, "before_bps": before,
        "law_s": max(0.0, away[-1] - end_s) if away else 0.0,
        "law_back": not any(samples[-1]["left"]),
        "last_bps": last, "reasons": dict(reasons),
    }  # fmt: skip


def measure(case: EventCase) -> Document:
    """Run an event in a separate process tree."""
    found: Document = isolated(case.name, partial(observe, case))
    return found


# --- the table ----------------------------------------------------------------------------------


def row(case: EventCase, found: Document) -> list[str]:
    """Return a table row."""
    back = "never" if found["back_s"] is None else f"{found['back_s']:.1f} s"
    law = f"{found['law_s']:.1f} s" if found["law_back"] else "not"
    last = [rate / 1e6 for rate in found["last_bps"]]
    why = ", ".join(found["reasons"]) or "–"
    return [case.name, f"{found['under']:.0%}", law, back, f"{min(last):.1f} to {max(last):.1f}",
            f"{sum(last):.1f} ({found['before_bps'] / 1e6:.1f})", why,
            f"{found['host_load']:.1f}"]  # fmt: skip


def table(found: Mapping[EventCase, Document]) -> str:
    """Return the table of all events."""
    head = "event|under the law:|all back on it:|90 % of the rate:|a flow, Mbit/s:"
    head += "|all (before), Mbit/s:|reasons to leave|host load:"
    return markdown(head, [row(case, one) for case, one in found.items()])


def cases(_: Options) -> list[EventCase]:
    """Return a case for each event."""
    return [EventCase(name, event[0]) for name, event in EVENTS.items()]


STUDY = Study(
    shows="who keeps MaxNet on the kernel through twelve events, and who returns to it",
    minutes=14,
    needs=(on_linux(), DAEMON),
    options=(only("link down*"),),
    quick={"only": "routers restart"},
    cases=cases,
    measure=measure,
    code=linux_code,
    line=lambda case, found: " | ".join(row(case, found)),
    table=table,
)
