"""Whether certificates reject mutants of a law's fixed-point C.

    make certificate-mutants [LAW=maxnet] [COUNT=200] [SEED=1] [STEPS="router.steps host.steps"]

A sample of single changes of the law's headers (an operator, a comparison, a constant), in the
functions that logged calls reach, is compiled for the host. Each mutant makes the recorded calls
again, each from the recorded state. Where an output or the state after differs, the checker gets
the mutant's row and must reject it. A mutant that makes all of them as before then makes calls
that are drawn at random (`drawn`; --drawn of each kind), judged in the same way.

Results are kept in out/certificate-mutants.json: the same call goes on where it was interrupted.
They count for the headers, equations, logs and draws that they are of.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from validation.certificates import fixed, replay
from validation.certificates.fixed import log
from validation.certificates.fixed.laws import LAWS, LAYOUTS
from validation.certificates.kernel.calls import ROOT, SOURCES, CompiledLaw, again, compiled
from validation.certificates.kernel.drawn import CALLS, any_step
from validation.certificates.log import Step
from waterfill.errors import RunError

RECORDED = ROOT / "tests" / "validation" / "certificates"
OUT = ROOT / "out" / "certificate-mutants.json"
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
    """A change of one token of a header."""

    file: str
    place: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} to {self.after}"


@dataclass(frozen=True)
class Body:
    """A function of a header, without comments: where its body begins, and the body."""

    file: str
    place: int
    text: str


def reached(law: str, roles: Sequence[str]) -> list[Body]:
    """Return the bodies of the functions that the logged calls of these roles reach."""
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
    """Return every change in the functions that the logged calls reach."""
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
    """Write a mutant into a copy of the sources."""
    path = sources / mutant.file
    text = path.read_text()
    end = mutant.place + len(mutant.before)
    path.write_text(text[: mutant.place] + mutant.after + text[end:])


def recordings(law: str) -> list[Path]:
    """Return the recorded logs of a law that tests have."""
    return sorted(RECORDED.glob(f"{law}-*.steps"))


def steps_of(files: Sequence[Path]) -> list[Step]:
    """Read the recorded steps."""
    return [step for file in files for step in log.read(file, LAYOUTS)[1]]


def drawn(law: str, count: int) -> list[Step]:
    """Return so many drawn calls of each kind, as the unchanged law makes them."""
    with tempfile.TemporaryDirectory(prefix="waterfill-mutant-") as name:
        library = compiled(law, Path(name))
        assert library is not None
        unchanged, draw = CompiledLaw(law, library), random.Random(law)
        return [
            again(unchanged, any_step(unchanged, law, call, draw))
            for call in CALLS
            for _ in range(count)
        ]


def digest(files: Sequence[Path], drawn_of_each: int) -> str:
    """Return a mark of these logs, the headers, the equations, the draws and this program."""
    own = Path(__file__).parent
    seen = [*files, *sorted(SOURCES.glob("*.h")), *sorted(own.glob("drawn/*.py"))]
    seen += [own / "calls.py", own / "routers.py", Path(__file__)]
    seen += sorted(Path(fixed.__file__).parent.glob("*.py"))
    read = b"".join(file.read_bytes() for file in seen)
    return hashlib.sha256(read + str(drawn_of_each).encode()).hexdigest()[:8]


def judge(name: str, library: Path, steps: Sequence[Step]) -> str:
    """Return `same`, `rejected`, or `accepted` with the row, for a law that makes the calls."""
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
    """Judge a mutant in a process of its own, which it may crash or keep.

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
    """Compile a mutant and judge it; what only drawn calls show begins with `drawn, `."""
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a mutant that changes an output was accepted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--law", choices=sorted(LAWS), default="maxnet")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=3000, help="drawn calls of each kind")
    parser.add_argument("files", type=Path, nargs="*", metavar="STEPS")
    given = parser.parse_args(arguments)
    law = given.law
    files = given.files or recordings(law)
    steps = steps_of(files)
    if not steps:
        print(f"no recorded steps of {law}", file=sys.stderr)
        return 1
    drawn_steps = drawn(law, given.drawn)
    if tried(law, None, steps, drawn_steps) != "same":
        print("the unchanged law does not make the recorded steps again", file=sys.stderr)
        return 1
    roles = ["router"] if all(step.part == "router" for step in steps) else ["router", "host"]
    everything = mutants(law, roles)
    chosen = random.Random(given.seed).sample(everything, min(given.count, len(everything)))
    of = digest(files, given.drawn)
    known: dict[str, str] = json.loads(OUT.read_text()) if OUT.exists() else {}
    OUT.parent.mkdir(exist_ok=True)
    results = {}
    for mutant in chosen:
        key = f"{of} {law}: {mutant}, at {mutant.place}"
        if key not in known:
            known[key] = tried(law, mutant, steps, drawn_steps)
            OUT.write_text(json.dumps(known, indent=1))
        results[key] = known[key]
    counts = Counter(result.partition(":")[0] for result in results.values())
    sample = f"{len(chosen)} of {len(everything)} mutants, seed {given.seed}"
    print(f"{law}: {sample}, {len(steps)} steps, {len(drawn_steps)} drawn:")
    for result, number in counts.most_common():
        print(f"  {result}: {number}")
    accepted = False
    for key, result in results.items():
        accepted |= "accepted" in result
        if result == "same" or "accepted" in result:
            print(f"{key.partition(' ')[2]}: {result}")
    return int(accepted)


if __name__ == "__main__":
    sys.exit(main())
