"""Compare the bytes of results between targets.

Each scenario of examples/ and papers/, and short ones of every protocol, queue and kind of traffic,
run on this host and on every other target for which it has the tools. Equal hashes mean equal bits
in every column of every series and in the summary. On this host Python resolves the scenario and
runs its core; other targets read the resolved network.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from validation.study import ROOT, Option, Options, Study, only
from validation.tables import markdown
from validation.targets import native
from validation.targets.builds import TARGETS, Target
from validation.targets.cases import BACKENDS, Source, committed, small
from waterfill import _core
from waterfill.errors import InputError

RECORD = Path(__file__).with_name("hashes.json")
"""Hashes of the short scenarios, which every host must repeat."""

Outcomes = Mapping[str, str]
"""Hash of a result, or the sentence with which it was refused, by target."""


@dataclass(frozen=True)
class Case:
    """Sources that run together, with the targets to compare. `events` limits each run, if above
    zero.

    `requests` are the resolved networks, each empty if the backend does not support the scenario.
    """

    name: str
    sources: tuple[Source, ...]
    targets: tuple[str, ...]
    events: int
    requests: tuple[str, ...]


def cases(options: Options) -> list[Case]:
    """Build the targets that this host supports; return every case.

    The sources of a folder or paper are one case, so that programs start once for all. Raises
    InputError if this host supports none of the targets.
    """
    chosen = []
    for name in dict.fromkeys(("native", *options.targets)):
        lacking = TARGETS[name].lacks()
        if lacking is None:
            TARGETS[name].build()
            chosen.append(name)
        else:
            print(f"targets: {name} left out: needs {lacking}", file=sys.stderr)
    if chosen == ["native"]:
        asked = ",".join(options.targets)
        raise InputError("command line", "--targets", f"nothing to compare with, got {asked}")
    groups: dict[str, list[Source]] = {}
    for source in [*small(), *([] if options.short else committed())]:
        groups.setdefault(source.group, []).append(source)
    limit = options.events or None
    return [
        Case(name, tuple(of), tuple(chosen), options.events, tuple(s.request(limit) for s in of))
        for name, of in groups.items()
    ]


def compare(
    sources: Sequence[Source], targets: Sequence[Target], events: int | None = None
) -> list[Outcomes]:
    """Run sources on targets, on as many threads as this host has CPUs; return their outcomes.

    Raises RunError if a target's program fails.
    """
    requests = [source.request(events) for source in sources]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, (source, request) in enumerate(zip(sources, requests, strict=True)):
            native.write(source, events, folder / f"{i}.source")
            (folder / f"{i}.request").write_text(request, encoding="utf-8")

        def run(target: Target) -> dict[int, str]:
            wanted = [i for i, request in enumerate(requests) if request or not target.triple]
            end = "request" if target.triple else "source"
            files = [folder / f"{i}.{end}" for i in wanted]
            return dict(zip(wanted, target.outcomes(files), strict=True)) if files else {}

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = dict(zip([t.name for t in targets], pool.map(run, targets), strict=True))
    places = range(len(sources))
    return [{name: of[i] for name, of in found.items() if i in of} for i in places]


def measure(case: Case) -> list[Outcomes]:
    """Run a case on its targets; return the outcomes of each source."""
    targets = [TARGETS[name] for name in case.targets]
    return compare(case.sources, targets, case.events or None)


def differing(outcomes: Outcomes) -> list[str]:
    """Return the targets whose outcome is not that of this host."""
    return [name for name, one in outcomes.items() if one != outcomes["native"]]


def line(case: Case, found: Sequence[Outcomes]) -> str:
    """Return the line of progress for a case."""
    wrong = dict.fromkeys(name for one in found for name in differing(one))
    return f"{case.name}: {'differs on ' + ', '.join(wrong) if wrong else 'equal'}"


def table(found: Mapping[Case, Sequence[Outcomes]]) -> str:
    """Return a table with a row per group and backend, and for each target the equal results. One
    row per committed scenario follows.
    """
    groups: dict[tuple[str, str], list[Outcomes]] = {}
    for case, rows in found.items():
        for source, one in zip(case.sources, rows, strict=True):
            groups.setdefault((source.group, source.on), []).append(one)
    targets = [t for t in TARGETS if t != "native" and any(t in c.targets for c in found)]
    lines = []
    for (name, on), mine in groups.items():
        ran = [one for one in mine if not one["native"].startswith("refused")]
        equal = [
            f"{sum(one.get(t) == one['native'] for one in ran)} of {sum(t in one for one in ran)}"
            for t in targets
        ]
        lines.append([name, on, len(ran), len(mine) - len(ran), *equal])
    head = "|".join(("scenarios|backend|run:|refused:", *(f"{t}:" for t in targets)))
    return "\n\n".join([markdown(head, lines), *_each(found)])


def _each(found: Mapping[Case, Sequence[Outcomes]]) -> Iterator[str]:
    """Yield a table of the committed scenarios: first digits of each hash, and the targets on which
    it differs.
    """
    cells: dict[str, list[str]] = {}
    for case, rows in found.items():
        for source, one in zip(case.sources, rows, strict=True):
            if not source.text:
                refused = one["native"].startswith("refused")
                wrong = ", ".join(differing(one)) or f"none of {len(one) - 1}"
                cell = ["refused", "–"] if refused else [one["native"][:8], wrong]
                cells.setdefault(source.path, []).extend(cell)
    if cells:
        head = "|".join(["scenario", *(f"{on}|differs on" for on in BACKENDS)])
        yield markdown(head, [[path, *cell] for path, cell in cells.items()])


def failed(found: Mapping[Case, Sequence[Outcomes]]) -> list[str]:
    """Return a sentence for each case that differs between targets."""
    return [
        f"{source.name}: differs on {', '.join(wrong)}"
        for case, rows in found.items()
        for source, one in zip(case.sources, rows, strict=True)
        if (wrong := differing(one))
    ]


def code() -> str:
    """Return a hash of the Rust and C code, and of Python's core, on which outcomes depend."""
    total = hashlib.sha256(Path(_core.__file__).read_bytes())
    for path in sorted(ROOT.glob("crates/*/**/*.*[a-z]")):
        if path.suffix in (".rs", ".c", ".h", ".mjs", ".toml"):
            total.update(path.read_bytes())
    total.update((ROOT / "Cargo.lock").read_bytes())
    return total.hexdigest()


def record() -> None:
    """Write the hashes of the short scenarios, which `make test` compares."""
    sources = small()
    found = compare(sources, [TARGETS["native"]])
    hashes = {s.name: one["native"] for s, one in zip(sources, found, strict=True)}
    RECORD.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
    print(f"{len(hashes)} hashes recorded in {RECORD.relative_to(ROOT)}")


STUDY: Study[Case, list[Outcomes]] = Study(
    shows="one scenario gives the same bytes on other CPUs, C libraries and in WebAssembly",
    minutes=60,
    options=(
        Option("--targets", tuple(TARGETS), "targets to compare", choices=tuple(TARGETS)),
        Option("--events", 0, "end each run after as many events; 0: run it whole", low=0),
        Option("--short", False, "only the short scenarios of `make test`"),
        only("papers/*"),
    ),
    quick={"short": True},
    cases=cases,
    measure=measure,
    row=list[dict[str, str]],
    line=line,
    table=table,
    failed=failed,
    code=code,
)

if __name__ == "__main__":
    record()
