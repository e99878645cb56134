"""Compare the cost of faults on the kernel and on the simulator.

Two flows share a link of 20 Mbit/s with an RTT of 40 ms and a buffer of one bandwidth-delay
product. A fault acts from 5 to 8 s of a run of 14 s, which is compared with the run without it, on
each backend (`validation.faults`). A run that the host disturbed is repeated by the next call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validation import faults
from validation.faults import Cost, Fault, FaultCase, Times
from validation.study import Option, Options, Study, StudyRun, failed_checks, on_linux
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_toml

SHORT = Times(5.0, 8.0, 14.0)
# The kernel's XCP and its kin: their signal is a number of bytes, which the delay line leaves.
NO_LIES = ("xcp", "ixcp", "pxcp")
PROTOCOLS = ("maxnet", "maxnet2006", *NO_LIES, "aecp", "rcp", "jetmax", "vcp", "cubic")
LIES = ("zero", "max", "random")
GROUPS = (
    ("Links", ("down", "half")),
    ("Restart, corruption", ("restart", "corrupt")),
    ("Headers stripped", ("strip", "strip-half")),
    ("Routers that misreport", LIES),
    ("Acknowledgements", ("ack-loss", "ack-hold")),
)
FAULTS = {fault.name: fault for fault in faults.faults_at(SHORT)}
# Checks whose failure says that the host disturbed a run.
DISTURBED = ("delay line", "clock", "sampling", "drops elsewhere")


@dataclass(frozen=True)
class Pair:
    """Costs of one fault on the kernel and on the simulator.

    `failed` are the checks that the run on the kernel failed, `left_s` is when the first flow left
    its law for CUBIC, `why` are the reasons of all flows that did.
    """

    linux: Cost
    sim: Cost
    failed: Sequence[str]
    left_s: float | None
    why: Sequence[str]


def faults_of(protocol: str) -> list[Fault]:
    """Return the faults that the kernel can run and that affect a protocol."""
    names = [name for _, group in GROUPS for name in group]
    mine = [FAULTS[name] for name in names if protocol in FAULTS[name].on]
    return [one for one in mine if one.name not in LIES or protocol not in NO_LIES]


def text_of(protocol: str, fault: Fault | None) -> str:
    """Return the scenario of a run with a fault, or without one, as TOML."""
    return faults.scenario_text(protocol, fault, end_s=SHORT.end_s)


def undisturbed(result: Result) -> bool:
    """Return True if no check reports that the host disturbed a run."""
    return not any(name in DISTURBED for name in failed_checks(result))


def cases(options: Options) -> list[FaultCase]:
    """Return the cases of the chosen protocols, one for each fault that affects them."""
    return [
        FaultCase(protocol, fault.name)
        for protocol in options.protocols
        for fault in faults_of(protocol)
    ]


def runs(case: FaultCase) -> dict[str, StudyRun]:
    """Return the runs with and without the fault on both backends."""
    texts = {
        "fault": text_of(case.protocol, FAULTS[case.fault]),
        "plain": text_of(case.protocol, None),
    }
    return {
        f"{name} {on}": StudyRun(from_toml(text, "faults"), on)
        for name, text in texts.items()
        for on in ("linux", "sim")
    }


def measure(case: FaultCase, results: Mapping[str, Result]) -> Pair:
    """Compare the runs with and without a fault, on each backend."""
    linux, sim = (
        faults.cost(
            faults.course(results[f"fault {on}"]),
            faults.course(results[f"plain {on}"]),
            FAULTS[case.fault],
            SHORT,
        )
        for on in ("linux", "sim")
    )
    of_run = results["fault linux"].summary.get("checks", [])
    flows = [flow for check in of_run if check["name"] == "law" for flow in check["found"]]
    left = [flow["left_s"] for flow in flows if flow["left_s"] is not None]
    why = dict.fromkeys(reason for flow in flows for reason in flow["without_price"])
    return Pair(
        linux, sim, failed_checks(results["fault linux"]), min(left, default=None), list(why)
    )


def cells(pair: Pair | None) -> list[str]:
    """Return the table cells of one fault in a protocol's row, as kernel / simulator."""
    if pair is None:
        return [""] * 4
    found = [
        f"{linux} / {sim}"
        for linux, sim in zip(faults.cells(pair.linux), faults.cells(pair.sim), strict=True)
    ]
    if pair.left_s is not None:
        found[0] = f"{found[0]} †{pair.left_s:.1f}"
    return found


def tables(found: Mapping[FaultCase, Pair]) -> str:
    """Return one table for each group of faults, followed by the failed checks."""
    return f"{faults.grouped(found, '####', GROUPS, cells)}\n{checked(list(found.values()))}"


def checked(pairs: Sequence[Pair]) -> str:
    """Return the number of failures of each check, and the reasons why flows left their law."""
    counts = Counter(name for pair in pairs for name in pair.failed)
    disturbed = sum(any(name in DISTURBED for name in pair.failed) for pair in pairs)
    said = ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"
    why = Counter(reason for pair in pairs for reason in pair.why)
    lines = [f"- {count} runs: {reason}" for reason, count in why.most_common()]
    head = f"{len(pairs)} runs with a fault, {disturbed} disturbed; failed checks: {said}"
    return "\n".join([head, *lines])


STUDY = Study(
    shows="the cost of the faults that the kernel can run, compared with the simulator",
    minutes=35,
    needs=(on_linux(),),
    options=(Option("protocols", PROTOCOLS, "default: all", PROTOCOLS),),
    quick={"protocols": ("cubic",)},
    cases=cases,
    runs=runs,
    measure=measure,
    valid=undisturbed,
    table=tables,
)
