"""The verdict of a soak, from made-up observations: each requirement fails by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from validation.soak import verdict
from validation.soak.traffic import Totals
from validation.soak.verdict import Event, SoakRun
from validation.soak.watch import Sample


def sample(time_s=0.0, **changes):
    counters = {"started": 100, "priced": 90, "no_memory": 0, "without_state": 0,
                "fallbacks": {"no echo arrives": 2, "other": 0}}  # fmt: skip
    base = Sample(
        time_s=time_s, life=1, own_bytes=10 << 20, descriptors=30, programs=11, maps=13, links=5,
        pins=14, locked_bytes=1 << 20, kernel_bytes=20 << 20, sockets=0, time_wait=0,
        prices_s={"ra": 6.2}, packets={"ra": int(1000 * time_s)}, bytes={"ra": 0},
        marked={"ra": 0}, targets={"ra": 0.9}, modes={}, counters=counters,
    )  # fmt: skip
    return replace(base, **changes)


def run(**changes):
    samples = [sample(float(t), programs=18, maps=16, sockets=40) for t in range(1, 101)]
    base = SoakRun(
        samples=samples, before=sample(0.0), after=sample(200.0),
        totals=[Totals(opened=50, delivered=50, delivered_bytes=10**9, longest_s=3.0)] * 2,
        events=[Event("reload", 10.0, 0.5), Event("kill", 20.0, 2.0)],
        seconds=100.0, rates_bps={"ra": 250e6}, kernel_errors=[], refused=1,
    )  # fmt: skip
    return replace(base, **changes)


def failed(one, least_rate_bps=200e6):
    return [c.name for c in verdict.judge(one, least_rate_bps) if c.ok is False]


def test_a_clean_run_meets_every_criterion():
    criteria = verdict.judge(run(), 200e6)
    assert [c for c in criteria if c.ok is not True] == []
    assert verdict.document(run(), criteria)["ok"] is True
    assert "2 no echo arrives" in verdict.summary(run())


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"totals": [Totals(opened=9, delivered=8, failed=1, errors=["reset"])]},
         ["flows delivered, digest right", "flows that failed"]),
        ({"totals": [Totals()]}, ["flows delivered, digest right"]),
        ({"totals": [Totals(opened=9, delivered=8, wrong=1)]},
         ["flows delivered, digest right", "flows with a wrong digest"]),
        ({"totals": [Totals(opened=9, delivered=9, stuck=1)]}, ["stuck flows"]),
        ({"totals": [Totals(opened=9, delivered=9, unselected=1)]},
         ["sockets that did not get the law"]),
        ({"rates_bps": {"ra": 199e6}}, ["rate of ra"]),
        ({"events": [Event("kill", 20.0, 2.0)], "refused": 0}, ["reloads"]),
        ({"refused": 0}, ["wrong files refused"]),
        ({"events": [Event("reload", 1.0, 1.0, "no"), Event("kill", 2.0, 2.0)]},
         ["reloads", "events that failed"]),
        ({"kernel_errors": ["BUG: x"]}, ["kernel warnings"]),
        ({"daemon_errors": ["WARN x"]}, ["warnings and errors in the daemon's log"]),
        ({"unscraped": 1}, ["scrapes of the metrics that failed"]),
        ({"unexpected_ends": 1}, ["daemons that ended by themselves"]),
        ({"not_unloaded": ["map 5"]}, ["programs, maps and links after unload"]),
        ({"after": sample(200.0, maps=14)}, ["maps without connections"]),
        ({"after": sample(200.0, pins=13)}, ["pins without connections"]),
        ({"after": sample(200.0, locked_bytes=2 << 20)}, ["memory of programs and maps"]),
        ({"after": sample(200.0, kernel_bytes=25 << 20)}, ["kernel memory without connections"]),
        ({"after": sample(200.0, sockets=1)}, ["sockets without connections"]),
        ({"after": sample(5.0)}, ["counters of packets never went back"]),
    ],
)  # fmt: skip
def test_each_fault_fails_its_criterion_alone(changes, names):
    assert failed(run(**changes)) == names


def test_connections_without_prices_or_state_fail():
    counters = {"started": 100, "priced": 19, "no_memory": 1, "without_state": 0}
    one = run(after=sample(200.0, counters=counters))
    assert failed(one) == ["connections priced, of those started",
                           "connections without memory or state"]  # fmt: skip


def rising(name, step, start=0):
    return [sample(float(t), **{name: start + step * t}) for t in range(1, 101)]


@pytest.mark.parametrize(
    ("name", "step", "criterion"),
    [
        ("own_bytes", 1 << 16, "daemon's memory within a life"),
        ("descriptors", 1, "daemon's descriptors within a life"),
        ("kernel_bytes", 1 << 18, "kernel memory, lowest level"),
        ("programs", 1, "lowest number of programs"),
        ("maps", 1, "lowest number of maps"),
    ],
)
def test_a_level_that_keeps_rising_is_a_leak_and_peaks_are_none(name, step, criterion):
    assert failed(run(samples=rising(name, step))) == [criterion]
    flat = [sample(float(t), **{name: 5 + step * (t % 10)}) for t in range(1, 101)]
    assert failed(run(samples=flat)) == []


def test_a_new_process_begins_anew():
    samples = [sample(float(t), life=t // 10, own_bytes=(t // 10) << 20) for t in range(1, 101)]
    assert verdict.worst_life(samples, lambda s: s.own_bytes) == 0


def test_a_daemon_that_fills_its_memory_and_stays_there_does_not_leak():
    """Sixty samples of a life on a busy host, in KiB: the code is read in within 100 s."""
    start = [4000, 8556, 8900, 9412, 9412, 9600, 9600, 9800, 9800, 9900, 9900, 10000]
    life = [*start, *[10016, 10424, 10072] * 16]
    samples = [sample(float(t), own_bytes=kib << 10) for t, kib in enumerate(life)]
    assert verdict.growth(samples[1:], lambda s: s.own_bytes) > 1 << 20
    assert failed(run(samples=samples)) == []
    leak = [replace(s, own_bytes=s.own_bytes + (int(s.time_s) * 36 << 10)) for s in samples]
    assert failed(run(samples=leak)) == ["daemon's memory within a life"]


def test_too_few_samples_are_no_level():
    assert verdict.growth(rising("own_bytes", 1)[:5], lambda s: s.own_bytes) is None
    (one,) = [c for c in verdict.judge(run(samples=[]), None) if "within a life" in c.name][:1]
    assert (one.measured, one.ok) == ("not shown", None)


def test_what_a_host_does_not_show_is_said_and_fails_nothing():
    hidden = sample(0.0, kernel_bytes=None)
    one = run(before=hidden, kernel_errors=None)
    criteria = {c.name: c.ok for c in verdict.judge(one, None)}
    assert criteria["kernel warnings"] is None
    assert criteria["kernel memory without connections"] is None
    assert failed(one) == []
    assert "not shown" in verdict.table(verdict.judge(one, None))


def test_samples_before_the_first_kill_are_warm_up():
    kept = verdict.after_first_kill(run())
    assert kept[0].time_s == 23.0


def test_the_daemons_log_is_calm_up_to_info():
    calm = "2026-11-22T16:15:30Z  INFO stopped by SIGTERM\n"
    calm += "2026-11-22T16:15:31Z ERROR not reloaded: waterfilld.toml:9: router.target 2\n"
    calm += "2026-11-22T16:15:32Z  WARN 12 connections fell back in 10 s: a reason\n"
    calm += "2026-11-28T05:02:45Z  WARN suppressed 5 messages like this one: a:1 to b:2 fell back\n"
    assert verdict.complaints(calm) == []
    assert verdict.complaints(calm + "2026-11-22T16:15:30Z  WARN x\nthread panicked\n") == [
        "2026-11-22T16:15:30Z  WARN x",
        "thread panicked",
    ]


def test_counters_begin_anew_with_routers_that_were_away():
    def at(time_s, routers, count):
        known = {} if count is None else {"ra": count}
        return sample(time_s, routers=routers, packets=known, bytes=known)

    samples = [at(0.0, 0, 100), at(1.0, 0, 300), at(2.0, 1, None), at(3.0, 2, 50), at(4.0, 4, 10),
               at(5.0, 4, 90)]  # fmt: skip
    assert verdict.rates_bps(samples) == {"ra": 8 * (200 + 50 + 10 + 80) / 5}
    one = run(before=samples[0], samples=samples[1:-1], after=samples[-1])
    assert all(c.ok for c in verdict.judge(one, None) if "never went back" in c.name)
    back = [*samples[1:-1], replace(samples[-1], packets={"ra": 9})]
    one = run(before=samples[0], samples=back, after=samples[-1])
    assert not all(c.ok for c in verdict.judge(one, None) if "never went back" in c.name)


def test_a_line_says_who_had_fallen_back_after_each_kind_of_event():
    def modes(at_s):
        return {"priced": 4} if at_s < 20 or at_s >= 30 else {"priced": 3, "fallen back": 1}

    events = [Event("reload", 5.0, 0.1), Event("link down for 2 s", 20.0, 0.1),
              Event("end", 22.0, 0.1), Event("router restarts", 60.0, 0.1)]  # fmt: skip
    one = run(events=events, samples=[sample(float(t), modes=modes(t)) for t in range(1, 100)])
    assert verdict.disturbed(one) == [
        "link down for 2 s: 1 times, fallen back at most 25%, before the next event 0%",
        "router restarts: 1 times, fallen back at most 0%, before the next event 0%",
    ]
    counters = sample().counters | {"returns": {"no echo arrives": 3, "other": 0}}
    text = verdict.summary(replace(one, after=sample(200.0, counters=counters)))
    assert "returned: 3 no echo arrives\n" in text
