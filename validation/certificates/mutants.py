"""Study `certificate-mutants-rust`: check that certificates reject mutants of the laws in Rust.

A random sample of the mutants that cargo-mutants lists for a law. `examples/law_steps.rs` makes
the same calls of the changed law and of the unchanged one and logs their steps. Where the log
differs, the certificates' equations must reject it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from validation import mutants
from validation.certificates import log, replay
from validation.certificates.laws import LAWS as CHECKERS
from validation.certificates.log import Header, Step
from validation.mutants import PACKAGE, Mutant, Tree
from validation.study import ROOT, Option, Options, Study, tool
from validation.tables import markdown
from waterfill.network import protocols
from waterfill.runs.steps import LISTS

EXAMPLE = "law_steps"
SOURCE = ROOT / "crates" / PACKAGE / "examples" / f"{EXAMPLE}.rs"
ROWS = 10_000
CPU_S = 20
CALLS = "other calls: "
# Each law's parameters that select other equations, in SI units.
SETTINGS: dict[str, tuple[str, ...]] = {
    "maxnet": (
        "",
        "dt_p=0.01 order=rate-first promise=true load_average=0.05",
        "dt_p=0.005 average=off compensate=false dt_min=0.01 t_0=0.05",
    ),
    "maxnet2006": (
        "",
        "dt=0.01 mark_every=3 wnd_update_freq=2 average=false epsilon=0.02",
        "dt=0.01 quickstart=false max_wnd=20 dt_source=0.01 compensate=false",
        "dt=0.005 rateinc=2 mindeltaq=100 qs_min_divisor=4 x_max=1e12",
    ),
    "rcp": ("", "average=reluctant writes=departure", "max_interval=1 first_rtt=0.01 r_min=1e6"),
    "xcp": (
        "",
        "header=falk counts=own",
        "feedback_at=receiver first_window=4",
        "halve_on_loss=false min_interval=0.01 max_interval=0.05 first_interval=0.02",
    ),
    "ixcp": ("", "header=falk claim=least-feedback shuffle=draft"),
    "pxcp": ("", "header=falk max_interval=0.05 first_interval=0.02"),
    "aecp": (
        "",
        "form=exact step=acknowledgement source=window r_0=capacity t_2=0.02",
        "rounding=nearest ceiling=capacity window_rtt=base source=window t_2=0.01 q_0=2",
    ),
    "jetmax": ("", "interval=0.01 epsilon=0.1 urgent=0.3", "interval=0.002 x_min=1e6 tau=1.5"),
    "vcp": (
        "",
        "t_rho=0.02 t_q=0.003 whole_percent=true freeze=overload t_d=0.1 kappa_q=2",
        "t_rho=0.005 t_q=0.002 queue_weight=1 alpha=3 beta=0.5",
    ),
}
# XCP's folder has the router of its two variants.
RUN = {"xcp": ("xcp", "ixcp", "pxcp")}
# Files whose code no logged step of these parameters runs.
WITHOUT_STEPS = {
    "fixed_point.rs": "other arithmetics",
    "printed.rs": "other arithmetics",
    "maxnet2006/variants.rs": "other arithmetics",
}
# Why a function's mutants change no recorded step.
REASONS = (
    (r"::observe$", "shows signals"),
    (r"(::|^)check\w*$|::validate$", "checks parameters"),
    (r"::(decode\w*|part|joined)$|^read_\w+$", "no step decodes, divides or joins headers"),
    (r"Protocol for \w+>::(target|paced)$", "read by resolvers, not by steps"),
    (r"^Sliding::|::sliding", "a parameter that the equations refuse"),
    (r"::interval$", "read by engines, not by steps"),
)


@dataclass(frozen=True)
class MutantCase:
    """A law, with the parameters of its calls."""

    law: str
    settings: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.law, self.settings)))

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the law, with defaults where the case sets none."""
        changed: dict[str, Any] = {}
        for setting in self.settings.split():
            name, _, text = setting.partition("=")
            changed[name] = {"true": True, "false": False}.get(text, text)
            if re.fullmatch(r"[0-9.e]+", text):
                changed[name] = float(text)
        known = protocols.load()
        assert changed.keys() <= {p.name for p in known[self.law].params}, self
        found = protocols.with_defaults([self.law], {self.law: changed}, known)[self.law]
        if found.get("average") == "off":
            found["average"] = False
        return dict(found)


def cases(law: str) -> list[MutantCase]:
    """Return the cases on which a law's mutants are tried."""
    return [MutantCase(one, settings) for one in RUN.get(law, (law,)) for settings in SETTINGS[one]]


def has_steps(mutant: Mutant) -> bool:
    """Return True if a mutant's file has code that logged steps may run."""
    return not mutant.file.endswith(tuple(WITHOUT_STEPS))


def chosen(law: str, count: int, seed: int) -> list[Mutant]:
    """Return a random sample of a law's mutants."""
    everything = [mutant for mutant in mutants.listed(law) if has_steps(mutant)]
    everything.sort(key=lambda m: hashlib.sha256(f"{seed} {m.name}".encode()).digest())
    return everything[:count]


# ------------------------------------------------------------------ one log


def logged(program: str, case: MutantCase) -> list[str] | None:
    """Return the lines of a case's log, or None if the law crashes or does not end."""
    done = subprocess.run(
        [program, case.law, str(ROWS), *case.settings.split()],
        preexec_fn=lambda: mutants.limit(CPU_S),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines() if done.returncode == 0 else None


def read(case: MutantCase, lines: Sequence[str]) -> tuple[Header, Iterator[Step]]:
    """Read a log from its lines, as `verify` reads it from a file."""
    entries = [json.loads(line) for line in lines]
    fields = {
        (case.law, entry["part"], entry["call"]): entry["lists"]
        for entry in entries
        if isinstance(entry, dict)
    }
    header = Header("sim", {case.law: case.params}, fields, 0)
    readers = {
        key: tuple(log.reader(lists[name]) for name in LISTS) for key, lists in fields.items()
    }
    rows = (entry for entry in entries if isinstance(entry, list))
    return header, (
        Step(
            number,
            "sim",
            case.law,
            part,
            str(entity),
            call,
            time_ps,
            *(one(words) for one, words in zip(readers[case.law, part, call], lists, strict=True)),
        )
        for number, (part, entity, call, time_ps, *lists) in enumerate(rows)
    )


def verdict(case: MutantCase, lines: Sequence[str]) -> replay.Wrong | None:
    """Return the first step of a log that the equations reject, or None."""
    header, steps = read(case, lines)
    return replay.replay("log", header, steps, CHECKERS).wrong


def difference(case: MutantCase, before: Sequence[str], after: Sequence[str]) -> str:
    """Return the first difference between two logs: a call, an input, a state, an output, a field
    or the number of calls.
    """
    (_, left), (_, right) = read(case, before), read(case, after)
    for a, b in zip(left, right, strict=False):
        if (a.part, a.entity, a.call, a.time) != (b.part, b.entity, b.call, b.time):
            return f"{CALLS}{b.part} {b.call} instead of {a.part} {a.call}, row {a.row}"
        for name in LISTS:
            old, new = getattr(a, name), getattr(b, name)
            field = next((f for f in {**old, **new} if old.get(f) != new.get(f)), None)
            if field is not None or old.keys() != new.keys():
                return f"row {a.row}: {a.part} {a.call}: {field} in {name}"
    return f"{CALLS}{len(after) - len(before)} more"


# ------------------------------------------------------------------ trials


class Trials:
    """Trials of one law's mutants, which are compared with the log of the unchanged law."""

    def __init__(self, tree: Tree, law: str) -> None:
        self.tree, self.unchanged = tree, dict[MutantCase, list[str]]()
        program = self.program()
        assert program is not None, "the unchanged laws do not compile"
        for case in cases(law):
            lines = logged(program, case)
            assert lines is not None, case
            wrong = verdict(case, lines)
            if wrong is not None:
                raise SystemExit(f"{case}: the unchanged law is rejected: {wrong}")
            self.unchanged[case] = lines

    def program(self) -> str | None:
        """Compile the program that makes the calls and return its path, or None if that fails."""
        command = ("build", "--profile", "test")
        programs = self.tree.built("--example", EXAMPLE, command=command)
        return None if programs is None else programs[EXAMPLE]

    def tried(self, mutant: Mutant) -> tuple[str, str]:
        """Try a mutant. Return its result and the log row that shows it."""
        with self.tree.mutated(mutant):
            program = self.program()
            return ("unviable", "") if program is None else self.judged(program)

    def judged(self, program: str) -> tuple[str, str]:
        """Judge a compiled program by its logs. Return the result and the row that shows it."""
        found = ("same", "")
        for case, unchanged in self.unchanged.items():
            lines = logged(program, case)
            if lines is None:
                return "crashed", str(case)
            if lines == unchanged:
                continue
            wrong = verdict(case, lines)
            if wrong is None:
                what = difference(case, unchanged, lines)
                return "calls" if what.startswith(CALLS) else "accepted", f"{case}: {what}"
            found = found if found[0] == "rejected" else ("rejected", f"{case}: {wrong}")
        return found


# ------------------------------------------------------------------ the table


def function(name: str) -> str:
    """Return the function that a mutant changes, according to the mutant's name."""
    place = name.split(": ", 1)[1]
    found = re.match(r"replace (\S.*?)(?: -> .*)? with ", place) if " in " not in place else None
    return found[1] if found else place.rpartition(" in ")[2]


def reason(name: str) -> str:
    """Return the reason why a mutant changed no step, or "see below" if its function does not
    explain it.
    """
    place = function(name)
    return next((why for pattern, why in REASONS if re.search(pattern, place)), "see below")


def table(results: dict[str, dict[str, str]]) -> str:
    """Return the results as a Markdown table, followed by the mutants that had no effect, changed
    the calls or were accepted.
    """
    counts = {law: _counted(found) for law, found in results.items()}
    counts["all"] = sum(counts.values(), Counter[str]())
    kinds = ("unviable", "rejected", "crashed", "no step", "same", "calls", "accepted")
    rows = [[law, n.total(), *(n[kind] for kind in kinds)] for law, n in counts.items()]
    left = [
        f"- {result}: `{name}`" + (f": {reason(name)}" if result == "same" else "")
        for found in results.values()
        for name, result in found.items()
        if result in ("same", "calls", "accepted")
    ]
    head = f"law|tried:|{':|'.join(kinds)}:"
    return "\n".join([markdown(head, rows), "", *sorted(left)])


def _counted(found: dict[str, str]) -> Counter[str]:
    kinds = Counter[str]()
    for name, result in found.items():
        named = result == "same" and reason(name) != "see below"
        kinds["no step" if named else result] += 1
    return kinds


# ------------------------------------------------------------------ the study


@dataclass(frozen=True)
class Trial:
    """A mutant of a law, to be tried."""

    law: str
    mutant: Mutant


def sample(options: Options) -> list[Trial]:
    """Return a random sample of each law's mutants."""
    return [
        Trial(law, mutant)
        for law in options.laws or SETTINGS
        for mutant in chosen(law, options.count, options.seed)
    ]


@functools.cache
def _tree() -> Tree:
    mutants.OUT.mkdir(parents=True, exist_ok=True)
    tree = Tree(1)
    tree.copy()
    return tree


@functools.cache
def _trials(law: str) -> Trials:
    return Trials(_tree(), law)


def measure(trial: Trial) -> tuple[str, str]:
    """Return the result of a mutant and the log row that shows it."""
    return _trials(trial.law).tried(trial.mutant)


def _table(found: Mapping[Trial, tuple[str, str]]) -> str:
    results: dict[str, dict[str, str]] = {}
    for trial, (result, _) in found.items():
        results.setdefault(trial.law, {})[trial.mutant.name] = result
    return table(results)


def _code() -> str:
    """Return a hash of the Rust laws and of the program that calls them."""
    files = sorted((ROOT / "crates" / PACKAGE / "src").rglob("*.rs"))
    read = b"".join(file.read_bytes() for file in [*files, SOURCE])
    return hashlib.sha256(read).hexdigest()


STUDY = Study[Trial, "tuple[str, str]"](
    shows="mutants of the laws in Rust that cargo-mutants lists, judged by the papers' equations",
    minutes=50,
    needs=(tool("cargo-mutants", "cargo install --locked cargo-mutants"),),
    options=(
        Option("laws", (), "laws to change; without any, all", tuple(SETTINGS)),
        Option("--count", 40, "mutants of each law", low=1),
        Option("--seed", 1, "seed of the sample"),
    ),
    quick={"count": 2},
    cases=sample,
    measure=measure,
    row=tuple[str, str],
    code=_code,
    line=lambda trial, found: f"{found[0]:8} {trial.mutant.name} {found[1]}".rstrip(),
    table=_table,
    failed=lambda found: [
        t.mutant.name for t, (result, _) in found.items() if result == "accepted"
    ],
)
