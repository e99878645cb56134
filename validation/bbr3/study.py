"""The 22 test cases of draft-ietf-ccwg-bbr's appendix A, at 25 pairs of RTT and rate.

Exit code 1 if a case fails where it applies and no reason is on record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from validation.bbr3.cases import CASES, Verdict, judge
from validation.bbr3.paths import Path
from validation.study import Option, Options, Study
from validation.tables import markdown

RTTS_MS = (1.0, 10.0, 40.0, 100.0, 600.0)
RATES_MBPS = (1.0, 10.0, 100.0, 1000.0, 10_000.0)


# Test cases that fail on some paths, with the reason.
DIFFERS = {
    17: "a bucket without a buffer drops what UP sends above its rate",
}


class Bbr3Case(NamedTuple):
    """A test case on a path."""

    number: int
    rtt_ms: float
    rate_mbps: float


def cases(options: Options) -> list[Bbr3Case]:
    """Return the cases of all paths. Those of a path follow each other, and share a run."""
    return [
        Bbr3Case(number, rtt_ms, rate_mbps)
        for rate_mbps in map(float, options.rates)
        for rtt_ms in map(float, options.rtts)
        for number in CASES
    ]


def measure(case: Bbr3Case) -> Verdict:
    """Return the verdict on a case."""
    return judge(case.number, Path(case.rtt_ms / 1e3, case.rate_mbps * 1e6))


def mark(verdict: Verdict | None) -> str:
    """Return a verdict as a sign."""
    return "" if verdict is None else {True: "✓", False: "✗", None: "–"}[verdict.passes]


def line(case: Bbr3Case, verdict: Verdict) -> str:
    """Return a line of progress."""
    path = f"{case.rtt_ms:g} ms, {case.rate_mbps:g} Mbit/s"
    return f"A.{case.number}, {path}: {mark(verdict)} {verdict.seen}"


def _count(found: Mapping[Bbr3Case, Verdict], wanted: Callable[[Verdict], bool]) -> int:
    return sum(wanted(verdict) for verdict in found.values())


def table(found: Mapping[Bbr3Case, Verdict]) -> str:
    """Return the verdicts: a row per test case, a column per rate with a sign for each RTT."""
    rates = list(dict.fromkeys(case.rate_mbps for case in found))
    rtts = list(dict.fromkeys(case.rtt_ms for case in found))
    rows = []
    for number, judged in CASES.items():
        title = (judged.__doc__ or "").split("\n")[0].removeprefix(f"A.{number}: ")
        signs = [
            "".join(mark(found.get(Bbr3Case(number, rtt, rate))) for rtt in rtts) for rate in rates
        ]
        rows.append([f"A.{number}", title, *signs])
    columns = "|".join(("", "test case", *(f"{rate:g} Mbit/s" for rate in rates)))
    passed = _count(found, lambda verdict: verdict.passes is True)
    failing = _count(found, lambda verdict: verdict.passes is False)
    rest = len(found) - passed - failing
    legend = f"Signs in a cell: RTTs of {', '.join(f'{rtt:g}' for rtt in rtts)} ms.\n"
    counts = f"{passed} pass, {failing} fail, {rest} do not apply.\n"
    text = f"{counts}\n{legend}\n{markdown(columns, rows)}"
    seen = [f"- {line(case, one)}" for case, one in found.items() if one.passes is False]
    return text + ("\n" + "\n".join(seen) + "\n" if seen else "")


def failed(found: Mapping[Bbr3Case, Verdict]) -> Sequence[str]:
    """Return the cases that fail without a reason on record."""
    return [
        line(case, verdict)
        for case, verdict in found.items()
        if verdict.passes is False and case.number not in DIFFERS
    ]


STUDY = Study(
    shows="BBRv3 in the 22 test cases of its draft, at five RTTs and five rates",
    minutes=40,
    options=(
        Option("--rtts", tuple(f"{rtt:g}" for rtt in RTTS_MS), "RTTs in ms"),
        Option("--rates", tuple(f"{rate:g}" for rate in RATES_MBPS), "rates in Mbit/s"),
    ),
    quick={"rtts": ("40",), "rates": ("10", "100")},
    cases=cases,
    row=Verdict,
    measure=measure,
    line=line,
    table=table,
    failed=failed,
)
