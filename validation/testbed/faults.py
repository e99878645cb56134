"""What faults cost on the kernel, beside the simulator: `make linux-faults`, as root.

Two flows share a link of 20 Mbit/s with an RTT of 40 ms and a buffer of one bandwidth-delay
product. A fault acts from 5 to 8 s of a run of 14 s, which is compared with the run without it, on
each backend (`validation.faults`). Every run on the kernel takes its 14 s and is kept in DIR/runs,
so the command continues where it was stopped. Several may run at once, with different protocols;
--kept then makes the tables of what is there, and --repeat runs again what the host disturbed.
Run: python -m validation.testbed.faults [-o DIR] [--kept] [--repeat] [PROTOCOL ...]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import waterfill
from validation import faults
from validation.faults import Cost, Course, Fault, Times
from waterfill.errors import InputError, RunError
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_toml
from waterfill.testbed import checks

SHORT = Times(5.0, 8.0, 14.0)
# The kernel's XCP and its kin: their signal is a number of bytes, which the delay line leaves.
NO_LIES = ("xcp", "ixcp", "pxcp")
PROTOCOLS = ("maxnet", "maxnet2006", *NO_LIES, "aecp", "rcp", "jetmax", "vcp", "cubic")
LIES = ("zero", "max", "random")
GROUPS = (
    ("Links", ("down", "half")),
    ("Restart, corruption", ("restart", "corrupt")),
    ("Headers stripped", ("strip", "strip-half")),
    ("Routers that lie", LIES),
    ("Acknowledgements", ("ack-loss", "ack-hold")),
)
FAULTS = {fault.name: fault for fault in faults.faults_at(SHORT)}
# Checks whose failure says that the host disturbed a run.
DISTURBED = ("delay line", "clock", "sampling", "drops elsewhere")


@dataclass(frozen=True)
class Run:
    """A run on the kernel: its samples, checks that failed, the host's load at its end.

    `left_s` is when the first flow left its law for CUBIC, `why` the reasons of all that did.
    """

    course: Course
    failed: Sequence[str]
    left_s: float | None
    why: Sequence[str]
    load: float


@dataclass(frozen=True)
class Pair:
    """What a fault cost on the kernel and on the simulator."""

    linux: Cost
    sim: Cost
    left_s: float | None


def faults_of(protocol: str) -> list[Fault]:
    """Return the faults that the kernel can run and that concern a protocol."""
    names = [name for _, group in GROUPS for name in group]
    mine = [FAULTS[name] for name in names if protocol in FAULTS[name].on]
    return [one for one in mine if one.name not in LIES or protocol not in NO_LIES]


def text_of(protocol: str, fault: Fault | None) -> str:
    """Return the scenario of a run."""
    return faults.scenario_text(protocol, fault, end_s=SHORT.end_s)


def judged(result: Result) -> Run:
    """Return what is kept of a run."""
    of_run = result.summary.get("checks", [])
    flows = [flow for check in of_run if check["name"] == "law" for flow in check["found"]]
    left = [flow["left_s"] for flow in flows if flow["left_s"] is not None]
    why = dict.fromkeys(reason for flow in flows for reason in flow["without_price"])
    failed = [check["name"] for check in of_run if not check["ok"]]
    load = round(os.getloadavg()[0], 1)
    return Run(faults.course(result), failed, min(left, default=None), list(why), load)


def read(text: str, path: Path) -> Run | None:
    """Return the run of a scenario that has been kept."""
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    if kept.pop("scenario") != text:
        return None
    return Run(**{**kept, "course": Course(**kept["course"])})


def keep(text: str, path: Path, run: Run) -> None:
    """Keep a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"scenario": text, **asdict(run)}))
    os.replace(partial, path)


def disturbed(run: Run) -> bool:
    """Return whether the host disturbed a run, by its checks."""
    return any(name in DISTURBED for name in run.failed)


def run_all(protocol: str, folder: Path, *, repeat: bool) -> None:
    """Run a protocol without a fault and with each, unless such a run has been kept."""
    for fault in (None, *faults_of(protocol)):
        name = fault.name if fault else "plain"
        text, path = text_of(protocol, fault), folder / protocol / f"{name}.json"
        known = read(text, path)
        if known is not None and not (repeat and disturbed(known)):
            continue
        try:
            run = judged(waterfill.run(from_toml(text, "faults"), on="linux"))
        except RunError as error:
            print(f"faults: {protocol} {name}: {error}", file=sys.stderr, flush=True)
            continue
        keep(text, path, run)
        said = f"; failed: {', '.join(run.failed)}" if run.failed else ""
        print(f"faults: {protocol} {name}: load {run.load}{said}", file=sys.stderr, flush=True)


def kept_runs(protocol: str, folder: Path) -> Iterator[tuple[str, Run]]:
    """Yield the name of each fault whose run has been kept, and of "plain", with the run."""
    for fault in (None, *faults_of(protocol)):
        name = fault.name if fault else "plain"
        run = read(text_of(protocol, fault), folder / protocol / f"{name}.json")
        if run is not None:
            yield name, run


def pairs(protocol: str, folder: Path) -> dict[str, Pair]:
    """Return what each fault whose run has been kept cost on both backends."""
    runs = dict(kept_runs(protocol, folder / "runs"))
    sim = folder / "sim" / protocol
    found = {}
    for fault in faults_of(protocol):
        if fault.name in runs and "plain" in runs:
            run, plain = runs[fault.name], runs["plain"]
            beside = [
                faults.measured(text_of(protocol, one), sim / f"{name}.json")
                for name, one in ((fault.name, fault), ("plain", None))
            ]
            found[fault.name] = Pair(
                linux=faults.cost(run.course, plain.course, fault, SHORT),
                sim=faults.cost(beside[0], beside[1], fault, SHORT),
                left_s=run.left_s,
            )
    return found


def cells(pair: Pair | None) -> list[str]:
    """Return the cells of one fault in a protocol's row: kernel, stroke, simulator."""
    if pair is None:
        return [""] * 4
    found = [
        f"{linux} / {sim}"
        for linux, sim in zip(faults.cells(pair.linux), faults.cells(pair.sim), strict=True)
    ]
    if pair.left_s is not None:
        found[0] = f"{found[0]} †{pair.left_s:.1f}"
    return found


def tables(found: dict[str, dict[str, Pair]]) -> str:
    """Return one table for each group of faults, a row for each protocol that it concerns."""
    out = []
    for heading, names in GROUPS:
        head = ["protocol"]
        for name in names:
            head += [f"{FAULTS[name].title}: lost s", "back s", "queue ms (drops)", "other %"]
        out += [f"#### {heading}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        for protocol, of_protocol in found.items():
            if any(name in of_protocol for name in names):
                row = [cell for name in names for cell in cells(of_protocol.get(name))]
                out.append(f"| `{protocol}` | {' | '.join(row)} |")
        out.append("")
    return "\n".join(out)


def host(runs: Sequence[Run]) -> str:
    """Return what the host did: runs, its load, how often each check failed."""
    if not runs:
        return "no run has been kept\n"
    loads = [run.load for run in runs]
    failed = Counter(name for run in runs for name in run.failed)
    said = ", ".join(f"{name} {count}" for name, count in failed.most_common()) or "none"
    why = Counter(reason for run in runs for reason in run.why)
    left = "".join(f"- {count} runs: {reason}\n" for reason, count in why.most_common())
    return (
        f"{len(runs)} runs, load {min(loads):.1f} to {max(loads):.1f}, "
        f"{sum(map(disturbed, runs))} disturbed; failed checks: {said}\n{left}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the faults; print the tables and write them."""
    parser = argparse.ArgumentParser(description="what faults cost on the kernel")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/linux-faults"))
    parser.add_argument("--kept", action="store_true", help="run nothing, show what was kept")
    parser.add_argument("--repeat", action="store_true", help="run again what was disturbed")
    parser.add_argument("protocols", nargs="*", help=f"default: {' '.join(PROTOCOLS)}")
    given = parser.parse_args(arguments)
    for protocol in given.protocols:
        if protocol not in PROTOCOLS:
            parser.error(f"{protocol}: expected one of {', '.join(PROTOCOLS)}")
    chosen = given.protocols or PROTOCOLS
    lacks = None if given.kept else checks.missing()
    if lacks is not None:
        print(f"faults: needs {lacks}", file=sys.stderr)
        return 2
    folder: Path = given.output
    found: dict[str, dict[str, Pair]] = {}
    runs: list[Run] = []
    try:
        for protocol in chosen:
            if not given.kept:
                run_all(protocol, folder / "runs", repeat=given.repeat)
            found[protocol] = pairs(protocol, folder)
            runs += (run for _, run in kept_runs(protocol, folder / "runs"))
    except InputError as error:
        print(f"faults: {error}", file=sys.stderr)
        return 2
    text = tables(found) + "\n" + host(runs)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.md").write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
