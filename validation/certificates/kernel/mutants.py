"""Study `certificate-mutants`: check that certificates reject mutants of the laws' fixed-point C.

A sample of single changes of the law's headers (an operator, a comparison, a constant), in the
functions that logged calls reach, is compiled for the host. Each mutant makes the recorded calls
again, each from the recorded state. Where an output or the state after differs, the checker gets
the mutant's row and must reject it. A mutant that makes all of them as before then makes calls
that are drawn at random (`drawn`; --drawn of each kind), judged in the same way.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path

from validation.certificates import replay
from validation.certificates.fixed import log
from validation.certificates.fixed.laws import LAWS, LAYOUTS
from validation.certificates.kernel.calls import ROOT, SOURCES, CompiledLaw, again, compiled
from validation.certificates.kernel.drawn import CALLS, any_step
from validation.certificates.log import Step
from validation.study import Option, Options, Study, tool
from validation.tables import markdown
from waterfill.errors import InputError, RunError

RECORDED = ROOT / "tests" / "validation" / "certificates"
ROOTS = {"router": ("law_mark", "law_tick", "law_idle"), "host": ("law_ack", "law_receive")}
# What a token becomes. Constants become one more.
CHANGES = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "%": "/",
    "<": "<=",
    ">": ">=",
    "<=": "<",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "<<": ">>",
    ">>": "<<",
    "&&": "||",
    "||": "&&",
    "+=": "-=",
    "-=": "+=",
}
_TOKEN = re.compile(
    r"<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|[-+*/%<>]|\b\d+(?=u|ull|ll|\b)"
)
_SKIPPED = re.compile(r"/\*.*?\*/|//[^\n]*|\"[^\"]*\"|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
# A function's name and body: of the first of two definitions that a #if chooses from.
_FUNCTION = re.compile(
    r"^(?:\w+_INLINE|static inline) [\w *]*?\b(\w+)\([^;{]*\)\s*(\{.*?\n\})",
    re.DOTALL | re.MULTILINE,
)
# Forms of XCP are compiled from its header.
_LIKE = {"pxcp": "xcp.h", "ixcp": "xcp.h"}
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Mutant:
    """A change of one token in a C header."""

    file: str
    place: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} to {self.after}"


@dataclass(frozen=True)
class Body:
    """Body of a function in a C header, without comments, and its position in the file."""

    file: str
    place: int
    text: str


def reached(law: str, roles: Sequence[str]) -> list[Body]:
    """Return the bodies of all functions that the logged calls of the given roles reach."""
    bodies: dict[str, Body] = {}
    files = (_LIKE.get(law, f"{law}.h"), "fixed.h", "float.h")
    for file in files:
        text = (SOURCES / file).read_text()
        blank = _SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        for match in _FUNCTION.finditer(blank):
            bodies.setdefault(match[1], Body(file, match.start(2), match[2]))
    waiting, found = [root for role in roles for root in ROOTS[role]], dict[str, Body]()
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in found:
            found[name] = bodies[name]
            waiting += re.findall(r"\b(\w+)\(", bodies[name].text)
    return sorted(found.values(), key=lambda body: (files.index(body.file), body.place))


def mutants(law: str, roles: Sequence[str]) -> list[Mutant]:
    """Return every mutant of the functions that the logged calls reach."""
    found = []
    for body in reached(law, roles):
        text = (SOURCES / body.file).read_text()
        for match in _TOKEN.finditer(body.text):
            token, place = match[0], body.place + match.start()
            after = str(int(token) + 1) if token.isdigit() else CHANGES.get(token)
            if after is not None:
                line = text.count("\n", 0, place) + 1
                found.append(Mutant(body.file, place, line, token, after))
    return found


def apply(mutant: Mutant, sources: Path) -> None:
    """Apply a mutant to a copy of the C sources."""
    path = sources / mutant.file
    text = path.read_text()
    end = mutant.place + len(mutant.before)
    path.write_text(text[: mutant.place] + mutant.after + text[end:])


def recordings(law: str) -> list[Path]:
    """Return the recorded logs of a law in the tests' directory."""
    return sorted(RECORDED.glob(f"{law}-*.steps"))


def steps_of(files: Sequence[Path]) -> list[Step]:
    """Read the recorded steps of log files."""
    return [step for file in files for step in log.read(file, LAYOUTS)[1]]


def drawn(law: str, count: int) -> list[Step]:
    """Return `count` random calls of each kind, as steps of the unchanged law."""
    with tempfile.TemporaryDirectory(prefix="waterfill-mutant-") as name:
        library = compiled(law, Path(name))
        assert library is not None
        unchanged, draw = CompiledLaw(law, library), random.Random(law)
        return [
            again(unchanged, any_step(unchanged, law, call, draw))
            for call in CALLS
            for _ in range(count)
        ]


def judge(name: str, library: Path, steps: Sequence[Step]) -> str:
    """Repeat the calls with a mutant's library. Return `same`, `rejected`, or `accepted` with the
    row.
    """
    law, checks = CompiledLaw(name, library), LAWS[name]
    for step in steps:
        made = again(law, step)
        if (made.after, made.outputs) != (step.after, step.outputs):
            check = getattr(checks, step.part)({})
            wrong = replay.compare(made, check(made))
            return "rejected" if wrong is not None else f"accepted: row {step.row}, {step.call}"
    return "same"


def _judge(law: str, library: Path, steps: Sequence[Step], answer: Connection) -> None:
    answer.send(judge(law, library, steps))


def judge_in_process(law: str, library: Path, steps: Sequence[Step]) -> str:
    """Judge a mutant in a separate process, because it may crash or never end.

    RunError where the equations fail.
    """
    context = multiprocessing.get_context("fork")
    answer, asked = context.Pipe(duplex=False)
    child = context.Process(target=_judge, args=(law, library, steps, asked))
    child.start()
    asked.close()
    child.join(_TIMEOUT_S)
    if child.is_alive():
        child.kill()
        child.join()
        return "no end"
    if child.exitcode is not None and child.exitcode > 0:
        raise RunError(f"{law}: the equations fail on a mutant's row, see above")
    return str(answer.recv()) if child.exitcode == 0 else "crashed"


def tried(
    law: str, mutant: Mutant | None, steps: Sequence[Step], drawn_steps: Sequence[Step] = ()
) -> str:
    """Compile a mutant and judge it, first on logged calls and then on random calls. A result of
    random calls begins with `drawn, `.
    """
    with tempfile.TemporaryDirectory(prefix="waterfill-mutant-") as name:
        change = None if mutant is None else partial(apply, mutant)
        library = compiled(law, Path(name), change)
        if library is None:
            return "not compiled"
        result = judge_in_process(law, library, steps)
        if result == "same":
            by_draw = judge_in_process(law, library, drawn_steps)
            result = by_draw if by_draw == "same" else f"drawn, {by_draw}"
        return result


# ------------------------------------------------------------------ the study


@dataclass(frozen=True)
class KernelCase:
    """A mutant, with the logs and the number of random calls that it is judged on."""

    law: str
    mutant: Mutant
    logs: tuple[str, ...]
    drawn: int


@cache
def _steps(law: str, logs: tuple[str, ...]) -> list[Step]:
    return steps_of([Path(log) for log in logs] or recordings(law))


_drawn = cache(drawn)


def cases(options: Options) -> list[KernelCase]:
    """Return a random sample of each law's mutants. Raises InputError if the logs do
    not fit a law.
    """
    found = []
    for law in options.laws:
        steps = _steps(law, options.logs)
        if not steps or any(step.law != law for step in steps):
            raise InputError(
                "command line", "logs", f"must have steps of {law}, and of no other law"
            )
        if tried(law, None, steps, _drawn(law, options.drawn)) != "same":
            raise InputError("command line", "logs", f"differ from the calls of this {law}")
        roles = ["router"] if all(step.part == "router" for step in steps) else list(ROOTS)
        everything = mutants(law, roles)
        count = min(options.count, len(everything))
        chosen = random.Random(options.seed).sample(everything, count)
        found += [KernelCase(law, mutant, options.logs, options.drawn) for mutant in chosen]
    return found


def measure(case: KernelCase) -> str:
    """Judge a mutant and return the outcome."""
    steps = _steps(case.law, case.logs)
    return tried(case.law, case.mutant, steps, _drawn(case.law, case.drawn))


def table(found: Mapping[KernelCase, str]) -> str:
    """Return the counts by law, and a list of the mutants that had no effect or were accepted."""
    kinds = ("rejected", "drawn, rejected", "crashed", "not compiled", "same", "accepted")
    rows = []
    for law in dict.fromkeys(case.law for case in found):
        counts = Counter(_kind(result) for case, result in found.items() if case.law == law)
        rows.append([law, counts.total(), *(counts[kind] for kind in kinds)])
    left = [f"- {c.law}: {c.mutant}: {r}" for c, r in found.items() if _kind(r) in kinds[-2:]]
    return "\n".join([markdown(f"law|mutants:|{':|'.join(kinds)}:", rows), "", *left])


def _kind(result: str) -> str:
    if "accepted" in result:
        return "accepted"
    return "crashed" if result.removeprefix("drawn, ") in ("crashed", "no end") else result


def _code() -> str:
    """Return a hash of the C sources and the recorded logs, on which the results depend."""
    files = [*sorted(SOURCES.glob("*.[ch]")), *sorted(RECORDED.glob("*.steps"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


STUDY = Study[KernelCase, str](
    shows="changes of single tokens of the laws' C, judged by equations in whole numbers",
    minutes=150,
    needs=(tool("cc", "apt-get install gcc"),),
    options=(
        Option("--laws", tuple(LAWS), "laws to change", tuple(LAWS)),
        Option("--count", 200, "mutants of each law", low=1),
        Option("--seed", 1, "seed of the sample"),
        Option("--drawn", 3000, "drawn calls of each kind", low=1),
        Option("logs", (), "logs of one law in the kernel instead of those that tests have"),
    ),
    quick={"count": 5, "drawn": 200},
    cases=cases,
    measure=measure,
    row=str,
    code=_code,
    line=lambda case, result: f"{case.law}: {case.mutant}: {result}",
    table=table,
    failed=lambda found: [
        f"{c.law}: {c.mutant}: {r}" for c, r in found.items() if _kind(r) == "accepted"
    ],
)
