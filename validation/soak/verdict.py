"""Requirements of a soak, as pure functions of its samples, totals and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from validation.soak.traffic import QUIET_S, Totals
from validation.soak.watch import Sample
from waterfill.runs.result import Document

# Limits, decided before the first run of an hour. The daemon's was 1 MiB when a life counted from
# its second sample on: a rise at a constant rate fails as before.
OWN_GROWTH_BYTES = 3 << 18
LOCKED_GROWTH_BYTES = 1 << 16
KERNEL_GROWTH_BYTES = 2 << 20
# Of the connections that the law began to control. Many flows are shorter than three RTTs.
MIN_PRICED = 0.2
# Samples of one life below which its halves say nothing.
_MIN_LIFE = 6
COUNTS = ("programs", "maps", "links", "pins")


@dataclass
class Event:
    """A reload or kill of the daemon, with its time, duration and any error."""

    kind: str
    """Kind of the event: "reload", "kill", the name of a disturbance, or "end"."""
    time_s: float
    took_s: float
    error: str | None = None


@dataclass
class SoakRun:
    """Observations of a soak."""

    samples: list[Sample]
    """Samples taken while traffic ran."""
    before: Sample
    """Sample of the loaded daemon before the first connection."""
    after: Sample
    """Sample after the last connection."""
    totals: list[Totals]
    """Traffic totals of each host."""
    events: list[Event]
    seconds: float
    """Time during which flows arrived, in seconds."""
    floors: bool = True
    """True if reloads are far enough apart for old programs to be freed between them."""
    rates_bps: dict[str, float] = field(default_factory=dict)
    """Mean load of each router device in bit/s, over `seconds`."""
    not_unloaded: list[str] = field(default_factory=list)
    """Descriptions of objects that still exist after `waterfilld unload`."""
    kernel_errors: list[str] | None = None
    """Errors in the kernel's log, or None if the log is not readable."""
    daemon_errors: list[str] = field(default_factory=list)
    refused: int = 0
    """Number of wrong configuration files that the daemon refused to load."""
    unscraped: int = 0
    """Number of failed fetches of the metrics page, out of one per sample."""
    unexpected_ends: int = 0


@dataclass
class Criterion:
    """A requirement with its measurement and verdict."""

    name: str
    measured: str
    required: str
    ok: bool | None
    """True if the requirement is met, or None if this host cannot show it."""


def growth(
    samples: Sequence[Sample], value: Callable[[Sample], float], fewest: int = _MIN_LIFE
) -> float | None:
    """Return the rise of a level: the minimum of the second half minus the minimum of the first
    half.

    Peaks of either half do not count, a level that never comes down again does. None with fewer
    samples than `fewest`.
    """
    if len(samples) < fewest:
        return None
    middle = len(samples) // 2
    return min(map(value, samples[middle:])) - min(map(value, samples[:middle]))


def worst_life(samples: Sequence[Sample], value: Callable[[Sample], float]) -> float | None:
    """Return the largest `growth` within one life of the daemon after its warm-up, the first
    quarter of its samples. Return None if every life is too short.

    A daemon that starts on a busy host grows until its code is in memory and its tables are filled.
    """
    lives = [list(life) for _, life in groupby(samples, key=lambda sample: sample.life)]
    lives = [life[max(1, len(life) // 4) :] for life in lives]
    return max((g for life in lives if (g := growth(life, value)) is not None), default=None)


def after_first_kill(run: SoakRun) -> list[Sample]:
    """Return the samples taken after the daemon has restarted from the first kill, or all samples
    if there was no kill.

    By then everything has been loaded twice, and the hosts' listeners hold the first version.
    """
    first_s = min((e.time_s + e.took_s for e in run.events if e.kind == "kill"), default=0.0)
    return [sample for sample in run.samples if sample.time_s > first_s]


def judge(run: SoakRun, least_rate_bps: float | None) -> list[Criterion]:
    """Return all criteria in the order of the report."""
    return [*_traffic(run, least_rate_bps), *_daemon(run), *_leaks(run)]


def _none(name: str, count: int, detail: Sequence[str] = ()) -> Criterion:
    return Criterion(name, "; ".join([str(count), *detail[:3]]), "0", count == 0)


def _least(name: str, measured: float, least: float, unit: str = "") -> Criterion:
    return Criterion(name, f"{measured:.4g}{unit}", f">= {least:.4g}{unit}", measured >= least)


def _growth(name: str, measured: float | None, most: float, unit: str, scale: float) -> Criterion:
    required = f"<= {most / scale:.4g}{unit}"
    if measured is None:
        return Criterion(name, "not shown", required, None)
    return Criterion(name, f"{measured / scale:+.4g}{unit}", required, measured <= most)


def _traffic(run: SoakRun, least_rate_bps: float | None) -> list[Criterion]:
    def total(name: str) -> int:
        return sum(int(getattr(one, name)) for one in run.totals)

    errors = [error for one in run.totals for error in one.errors]
    opened, delivered = total("opened"), total("delivered")
    found = [
        Criterion("flows delivered, digest right", f"{delivered} of {opened}", "all",
                  0 < delivered == opened),
        _none("flows with a wrong digest", total("wrong")),
        _none("flows that failed", total("failed"), errors),
        _none("stuck flows", total("stuck"), errors),
        _none("sockets that did not get the law", total("unselected")),
    ]  # fmt: skip
    if least_rate_bps is not None:
        found += [
            _least(f"rate of {device}", rate / 1e6, least_rate_bps / 1e6, " Mbit/s")
            for device, rate in run.rates_bps.items()
        ]
    return found


def _daemon(run: SoakRun) -> list[Criterion]:
    failed = [f"{e.kind} at {e.time_s:.0f} s: {e.error}" for e in run.events if e.error]
    found = []
    for kind in ("reload", "kill"):
        mine = [event for event in run.events if event.kind == kind]
        right = sum(event.error is None for event in mine)
        found.append(
            Criterion(f"{kind}s", f"{right} of {len(mine)}", "all", 0 < right == len(mine))
        )
    reloads = sum(event.kind == "reload" for event in run.events)
    found.append(
        Criterion("wrong files refused", f"{run.refused} of {reloads}", "all",
                  run.refused == reloads)
    )  # fmt: skip
    counters = run.after.counters
    started = counters.get("started", 0)
    log = run.kernel_errors
    return [
        *found,
        _none("events that failed", len(failed), failed),
        _none("scrapes of the metrics that failed", run.unscraped),
        _none("daemons that ended by themselves", run.unexpected_ends),
        _none("warnings and errors in the daemon's log", len(run.daemon_errors), run.daemon_errors),
        Criterion("kernel warnings", "not shown", "0", None)
        if log is None
        else _none("kernel warnings", len(log), log),
        _least("connections priced, of those started", counters.get("priced", 0) / max(1, started),
               MIN_PRICED),
        _none("connections without memory or state",
              counters.get("no_memory", 0) + counters.get("without_state", 0)),
        Criterion("counters of packets never went back", "yes" if _monotone(run) else "no", "yes",
                  _monotone(run)),
    ]  # fmt: skip


def _monotone(run: SoakRun) -> bool:
    samples = [run.before, *run.samples, run.after]
    return all(
        later.packets.get(device, -1) >= count
        for earlier, later in pairwise(samples)
        if earlier.routers == later.routers
        for device, count in earlier.packets.items()
    )


def rates_bps(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the mean load (bit/s) of each router device, whose counters may have begun anew."""
    carried: dict[str, int] = {}
    for earlier, later in pairwise(samples):
        same = earlier.routers == later.routers
        for device, count in later.bytes.items():
            before = earlier.bytes.get(device, 0) if same else 0
            carried[device] = carried.get(device, 0) + count - before
    span_s = samples[-1].time_s - samples[0].time_s
    return {device: 8 * count / span_s for device, count in carried.items()}


def _leaks(run: SoakRun) -> list[Criterion]:
    found = []
    for name in COUNTS:
        first, last = getattr(run.before, name), getattr(run.after, name)
        found.append(Criterion(f"{name} without connections", f"{first}, then {last}", "the same",
                               first == last))  # fmt: skip
    steady = after_first_kill(run)
    if run.floors:
        found += [
            _growth("lowest number of programs", growth(steady, lambda s: s.programs), 0, "", 1),
            _growth("lowest number of maps", growth(steady, lambda s: s.maps), 0, "", 1),
        ]
    mega = float(1 << 20)
    kernel = None
    if run.before.kernel_bytes is not None and run.after.kernel_bytes is not None:
        kernel = run.after.kernel_bytes - run.before.kernel_bytes
    shown = [sample for sample in steady if sample.kernel_bytes is not None]
    locked = run.after.locked_bytes - run.before.locked_bytes
    return [
        *found,
        _none("programs, maps and links after unload", len(run.not_unloaded), run.not_unloaded),
        _growth("memory of programs and maps", locked, LOCKED_GROWTH_BYTES, " MiB", mega),
        _growth("kernel memory without connections", kernel, KERNEL_GROWTH_BYTES, " MiB", mega),
        _growth("kernel memory, lowest level", growth(shown, _kernel), KERNEL_GROWTH_BYTES, " MiB",
                mega),
        _growth("daemon's memory within a life", worst_life(run.samples, lambda s: s.own_bytes),
                OWN_GROWTH_BYTES, " MiB", mega),
        _growth("daemon's descriptors within a life",
                worst_life(run.samples, lambda s: s.descriptors), 0, "", 1),
        _none("sockets without connections", max(0, run.after.sockets - run.before.sockets)),
    ]  # fmt: skip


def _kernel(sample: Sample) -> float:
    return float(sample.kernel_bytes or 0)


# What a soak causes itself: wrong files, and fallbacks, which the summary shows.
_EXPECTED = ("not reloaded: ", " connections fell back in ", " messages like this one: ")


def complaints(log: str) -> list[str]:
    """Return the unexpected warnings, errors and unstructured lines in the daemon's log."""
    calm = (" INFO ", " DEBUG ", " TRACE ", *_EXPECTED)
    return [line for line in log.splitlines() if line and not any(word in line for word in calm)]


def document(run: SoakRun, criteria: Sequence[Criterion]) -> Document:
    """Return the observations and criteria as the `--json` document."""
    return {"ok": all(one.ok is not False for one in criteria), "criteria": criteria, **vars(run)}


def table(criteria: Sequence[Criterion]) -> str:
    """Return the criteria as an aligned text table."""
    words = {True: "ok", False: "FAILED", None: "not shown"}
    rows = [("criterion", "measured", "required", "")]
    rows += [(one.name, one.measured, one.required, words[one.ok]) for one in criteria]
    widths = [max(len(row[n]) for row in rows) for n in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        .rstrip()
        for row in rows
    )  # fmt: skip


def away(sample: Sample) -> float:
    """Return the share of the ends of connections that have fallen back."""
    return sample.modes.get("fallen back", 0) / max(1, sum(sample.modes.values()))


def disturbed(run: SoakRun) -> list[str]:
    """Return a line for each kind of disturbance, with the shares of ends that had fallen back
    from its begin to the next one, and just before that one.
    """
    starts = [one for one in run.events if one.kind not in ("reload", "kill", "end")]
    found: dict[str, list[tuple[float, float]]] = {}
    for number, one in enumerate(starts):
        end_s = starts[number + 1].time_s if number + 1 < len(starts) else run.after.time_s
        shares = [away(s) for s in run.samples if one.time_s <= s.time_s < end_s]
        if shares:
            found.setdefault(one.kind, []).append((max(shares), shares[-1]))
    return [
        f"{kind}: {len(rows)} times, fallen back at most {max(most for most, _ in rows):.0%}, "
        f"before the next event {max(last for _, last in rows):.0%}"
        for kind, rows in found.items()
    ]


def summary(run: SoakRun) -> str:
    """Return notable observations that have no limit, one per line."""
    fallbacks = {k: n for k, n in run.after.counters.get("fallbacks", {}).items() if n}
    started = run.after.counters.get("started", 0)
    longest = max(one.longest_s for one in run.totals)
    quiet = sum(one.quiet_seconds for one in run.totals)
    delivered = sum(one.delivered_bytes for one in run.totals)
    returns = {k: n for k, n in run.after.counters.get("returns", {}).items() if n}
    lines = [
        f"{run.seconds:.0f} s, {delivered / 1e9:.2f} GB delivered, longest flow {longest:.1f} s, "
        f"seconds in which no flow of a host ended: {quiet} of {2 * run.seconds:.0f}",
        f"{started} ends of connections ran the law; fallen back: "
        + (", ".join(f"{n} {why}" for why, n in fallbacks.items()) or "none"),
        "returned: " + (", ".join(f"{n} {why}" for why, n in returns.items()) or "none"),
        *disturbed(run),
    ]
    pauses = [text for one in run.totals for text in one.quiet]
    lines.append(f"sockets without a byte for {QUIET_S:.0f} s: {len(pauses)}")
    lines += [f"  {text}" for text in pauses[:4]]
    for device in run.after.prices_s:
        prices = sorted(sample.prices_s.get(device, 0.0) for sample in run.samples)
        if prices:
            middle = prices[len(prices) // 2]
            lines.append(
                f"{device}: {run.rates_bps.get(device, 0) / 1e6:.0f} Mbit/s, price "
                f"{prices[0]:.2f} to {prices[-1]:.2f} s, median {middle:.2f} s"
            )
    return "\n".join(lines)
