"""Soak `waterfilld` for an hour, or for one minute of traffic with `--short`.

Two hosts and a router have namespaces of their own; flows of both directions come and go every
second; the daemon is reloaded and killed while they run. With `--events` a delay line is on the
path, and twelve events happen in turn (`disturbances`). Nothing is left behind, however the run
ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from validation import study
from validation.soak import disturbances, network, objects, verdict
from validation.soak.disturbances import Disturber
from validation.soak.service import Service, ServiceError, ServiceRefusal, Settings
from validation.soak.traffic import Load, Totals, Worker
from validation.soak.verdict import Event, SoakRun
from validation.soak.watch import KernelLog, Sample, Watch, join, memory_group, show_every_warning
from validation.testbed.maxnet_special import isolated
from waterfill.errors import InputError
from waterfill.testbed import daemon, isolate

TARGETS = (0.9, 0.85)
# How long the kernel may take to free what is no longer used, and an event to show its effect.
_FREE_S = 30.0
_EFFECT_S = 20.0
_PROGRESS_S = 60.0
# Kind of an event that ends another one.
_END = "end"


@dataclass(frozen=True)
class Course:
    """Times of a soak run in seconds, with the sizes and rates of its traffic."""

    seconds: float
    reload_s: float
    kill_s: float
    sample_s: float
    rate_bps: float = 300e6
    """Rate of the router's links, in bit/s."""
    long_bytes: tuple[int, int] = (5_000_000, 25_000_000)
    deadline_s: float = 120.0
    """Age in seconds at which a flow counts as stuck. Sixteen long flows share both directions of a
    link.
    """
    least_rate_bps: float | None = None
    disturb_s: float | None = None
    """Interval of the events of `disturbances`, or None without them."""


HOUR = Course(3600, 60, 300, 5, least_rate_bps=200e6)
# Shorter flows, so that the last ones end soon on a busy host.
SHORT = Course(60, 10, 25, 1, long_bytes=(1_000_000, 6_000_000), deadline_s=240)


# With events: flows that live through one and return from it.
_LONG_BYTES = (5_000_000, 60_000_000)
_DISTURBED_DEADLINE_S = 600.0
_SHORT_EVERY_S = 31.0


def planned(course: Course) -> list[tuple[float, str]]:
    """Return the times and kinds of all events. A kill replaces a reload at the same time."""
    kinds: dict[float, str] = {}
    for kind, every_s in (("reload", course.reload_s), ("kill", course.kill_s)):
        count = 1
        while count * every_s < course.seconds:
            kinds[count * every_s] = kind
            count += 1
    return sorted(kinds.items())


class Soak:
    """One soak run, inside its own process tree."""

    def __init__(self, course: Course, law: str, memory: Path | None) -> None:
        """Create the network and mount a BPF file system. Both are removed with the
        process tree.
        """
        if memory is not None:
            join(memory)
        self._course, self._law = course, law
        folder = Path(isolate.SCRATCH) / "bpf"
        folder.mkdir()
        isolate.mount("bpf", str(folder), "bpf")
        show_every_warning()
        disturbed = course.disturb_s is not None
        self._network = network.build(wires=disturbed)
        program = daemon.binary()
        assert program is not None
        settings = Settings(
            program, law, Path(isolate.SCRATCH), folder / "waterfill", course.rate_bps
        )
        self._line = None
        if course.disturb_s is not None:
            changes = disturbances.delays(
                disturbances.planned(course.seconds, course.disturb_s), course.rate_bps
            )
            self._line = network.delay_line(self._network, changes)
        self._log = settings.log
        self._service = Service(settings, self._network)
        self._folder = settings.pins
        self._watch = Watch(self._service, self._network, law, self._folder, memory)
        self._kernel = KernelLog()
        self._reloads = 0

    def run(self) -> SoakRun:
        """Run the soak and return the observations.

        Raises ServiceError if the daemon does not start or cannot be unloaded.
        """
        course = self._course
        self._service.start(TARGETS[0])
        self._select(self._law)
        before = self._watch.take()
        load = Load(0, long_bytes=course.long_bytes, deadline_s=course.deadline_s)
        hosts = zip(self._network.hosts, network.ADDRESSES, network.ADDRESSES[::-1], strict=True)
        workers = [
            Worker(space, mine, peer, self._law, replace(load, seed=seed))
            for seed, (space, mine, peer) in enumerate(hosts, 1)
        ]
        run = SoakRun([], before, before, [], [], course.seconds,
                  floors=course.reload_s > course.deadline_s / 4)  # fmt: skip
        turns = self._turns(workers)
        for worker in workers:
            worker.ask("start")
        start_s = time.monotonic()
        if self._line is not None:
            self._line.start(time.time_ns())
        first = self._watch.take()
        self._course_of_events(run, start_s, turns)
        last = self._watch.take()
        run.rates_bps = verdict.rates_bps([first, *run.samples, last])
        run.totals = self._drain(workers)
        # Only what the last connections held goes now.
        _until(lambda: self._resting(before), _FREE_S)
        run.after = self._watch.take()
        run.unexpected_ends += self._service.ended()
        run.not_unloaded = self._unload()
        self._kernel.read()
        run.kernel_errors = self._kernel.errors if self._kernel.readable else None
        run.daemon_errors = verdict.complaints(self._log.read_text(errors="replace"))
        run.refused = self._service.refused
        return run

    # --- parts of it

    def _select(self, law: str) -> None:
        for host in self._network.hosts:
            with host.entered():
                network.setting("ipv4/tcp_congestion_control", law)

    def _turns(self, workers: Sequence[Worker]) -> list[tuple[float, str, Callable[[], None]]]:
        """Return the time, the kind and the function of each event, in order."""
        actions = {"kill": self._kill, "reload": self._reload}
        turns = [(at_s, kind, actions[kind]) for at_s, kind in planned(self._course)]
        every_s = self._course.disturb_s
        if every_s is None:
            return turns
        others = disturbances.planned(self._course.seconds, every_s)
        disturber = Disturber(self._network, self._service, workers, self._route)
        for at_s, one in others:
            turns.append((at_s, one.name, partial(disturber.begin, one)))
            turns.append((at_s + one.seconds, _END, partial(disturber.end, one)))
        return sorted(turns, key=lambda turn: turn[0])

    def _route(self, routed: bool) -> None:
        self._watch.routers += 1
        self._service.configure(self._target(), routed=routed)

    def _course_of_events(
        self, run: SoakRun, start_s: float, events: list[tuple[float, str, Callable[[], None]]]
    ) -> None:
        course = self._course
        sample_s = shown_s = 0.0
        while (now_s := time.monotonic() - start_s) < course.seconds:
            if events and now_s >= events[0][0]:
                run.unexpected_ends += self._service.ended()
                _, kind, act = events.pop(0)
                run.events.append(self._event(kind, act))
            elif now_s >= sample_s:
                sample_s = max(sample_s + course.sample_s, now_s)
                self._kernel.read()
                sample = self._watch.take()
                run.samples.append(sample)
                run.unscraped += not self._service.scrape()
                if now_s >= shown_s:
                    shown_s += _PROGRESS_S
                    _progress(sample)
            else:
                due_s = min([sample_s, course.seconds, *(at_s for at_s, *_ in events[:1])])
                time.sleep(max(0.01, due_s - now_s))

    def _event(self, kind: str, act: Callable[[], None]) -> Event:
        start_s = time.monotonic()
        event = Event(kind, self._watch.take().time_s, 0.0)
        try:
            act()
        except (ServiceError, RuntimeError) as error:
            event.error = str(error)
            if not self._service.pids:
                self._service.start(self._target())
        event.took_s = time.monotonic() - start_s
        return event

    def _kill(self) -> None:
        self._service.kill()
        before = sum(self._watch.take().packets.values())
        carried = _until(lambda: sum(self._watch.take().packets.values()) > before, _EFFECT_S)
        self._watch.life += 1
        self._service.start(self._target())
        if not carried:
            raise ServiceError("no packet was counted after the kill")

    def _reload(self) -> None:
        self._reloads += 1
        target = self._target()
        self._service.reload(target)
        if not _until(lambda: set(self._watch.take().targets.values()) == {target}, _EFFECT_S):
            raise ServiceError(f"the routers' target is not {target:g} after a reload")

    def _target(self) -> float:
        return TARGETS[self._reloads % len(TARGETS)]

    def _drain(self, workers: Sequence[Worker]) -> list[Totals]:
        for worker in workers:
            worker.ask("stop")
        _until(
            lambda: all(worker.ask("status").open == 0 for worker in workers),
            2 * self._course.deadline_s,
        )
        totals = [worker.ask("status") for worker in workers]
        for worker in workers:
            worker.end()
        return totals

    def _resting(self, before: Sample) -> bool:
        now = self._watch.take()
        same = all(getattr(now, name) == getattr(before, name) for name in verdict.COUNTS)
        return same and now.sockets <= before.sockets

    def _unload(self) -> list[str]:
        """Stop and unload the daemon, and return a description of everything left over."""
        # A namespace's default holds the law.
        self._select("reno")
        self._service.stop()
        self._service.unload()
        seen = self._watch.seen
        _until(lambda: not objects.left(seen), _FREE_S)
        found = [f"{id.kind} {id.number}" for id in objects.left(seen)]
        found += [f"pin {path.name}" for path in self._folder.rglob("*") if path.is_file()]
        with self._network.router.entered():
            shown = network.run("tc", "qdisc", "show")
        found += [line for line in shown.splitlines() if "tbf" in line or "clsact" in line]
        names = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
        return found + [name for name in names if name == self._law]


def _until(done: Callable[[], bool], seconds: float) -> bool:
    end_s = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.2)
    return True


def _progress(sample: Sample) -> None:
    packets = sum(sample.packets.values())
    print(
        f"{sample.time_s:6.0f} s: {packets} packets, {sample.own_bytes >> 10} KiB, "
        f"{sample.programs} programs, {sample.sockets} sockets, {sample.modes}",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def soak(course: Course) -> SoakRun:
    """Run a soak in a separate process tree and return its observations.

    Raises InputError for what this host's kernel refuses, RunError if the network cannot be built
    or the daemon fails for good.
    """
    law = f"bpf_s{daemon.run_name()}"[:15]

    def inside() -> SoakRun | str:
        try:
            return Soak(course, law, memory).run()
        except ServiceRefusal as error:
            return str(error)

    with memory_group(f"waterfill-{law}") as memory:
        found: SoakRun | str = isolated("soak", inside)
    if isinstance(found, str):
        raise InputError("waterfilld", "", found)
    return found


def course_of(options: study.Options) -> Course:
    """Return the course of a soak with the given command-line options."""
    course = SHORT if options.short else HOUR
    if options.seconds is not None:
        course = replace(course, seconds=options.seconds)
    if options.rate is not None:
        rate_bps = options.rate * 1e6
        slower = max(1.0, course.rate_bps / rate_bps)
        course = replace(course, rate_bps=rate_bps, least_rate_bps=rate_bps / 1.5,
                         deadline_s=course.deadline_s * slower)  # fmt: skip
    if options.events:
        every_s = _SHORT_EVERY_S if options.short else disturbances.EVERY_S
        course = replace(course, long_bytes=_LONG_BYTES, deadline_s=_DISTURBED_DEADLINE_S,
                         disturb_s=every_s)  # fmt: skip
    return course


def work(options: study.Options) -> study.Report:
    """Run the soak and judge its observations."""
    course = course_of(options)
    run = soak(course)
    criteria = verdict.judge(run, course.least_rate_bps)
    found = verdict.document(run, criteria)
    text = f"{verdict.summary(run)}\n\n{verdict.table(criteria)}"
    return study.Report(text, found, () if found["ok"] else ["a criterion is not met"])


STUDY: study.Study[None, None] = study.Study(
    shows="the daemon leaks nothing and loses no flow in an hour of traffic, reloads and kills",
    minutes=62,
    needs=(study.on_linux(iperf=False, held=False), study.DAEMON),
    options=(
        study.Option("--short", False, "one minute of traffic instead of an hour"),
        study.Option("--events", False, "twelve events of links, routers and hosts in turn"),
        study.Option("--seconds", None, "length of the traffic (s)", type=float),
        study.Option(
            "--rate", None, "rate of the links (Mbit/s); two thirds must pass", type=float
        ),
    ),
    quick={"short": True},
    work=work,
)
