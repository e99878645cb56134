"""Find planted faults with the suite of RFC 9743: laws with one fault each, and healthy laws.

A fault is *found* if the law is worse in a criterion than its healthy version, and *named* if the
criterion made for such a fault is among these. The faults of `laws.py` are by the suite's author.
Those in `others/` are by somebody who had not seen the suite; each is a healthy law with a few
lines changed. The healthy variants of `laws.py` must not be worse than the law that they vary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from validation.evaluate.laws import BASE, FAULTS, HEALTHY
from validation.evaluate.others.faults import CHANGES
from validation.evaluate.study import verdicts
from validation.study import Option, Options, Report, Study
from validation.tables import markdown
from waterfill.runs.law_files import read
from waterfill.runs.laws import PythonLaw

OTHERS = Path(__file__).parent / "others"


class Planted(NamedTuple):
    """A law, its healthy version, what the law does, and the criterion or section that names it.

    A law without a fault has no such criterion.
    """

    law: str
    healthy: str
    does: str
    criterion: str | None = None


def _first_line(source: type) -> str:
    return (source.__doc__ or "").removeprefix("Fault: ").splitlines()[0].rstrip(".")


OTHER_FAULTS: Mapping[str, tuple[str, str]] = {
    "law-1": ("Reno: each loss of a round reduces the window again", "5.1.5"),
    "law-2": ("CUBIC: its curve goes on while the application pauses", "7.8-bursts"),
    "law-3": ("delay-based: the base RTT is never forgotten", "7.3-learned"),
    "law-4": ("AIMD: a mark lowers the threshold, not the window", "7.1-ecn"),
    "law-5": ("Reno: no slow start after a time-out", "7.8-outage"),
    "law-6": ("delay-based: the window is never below ten packets", "7.4-many"),
}
"""By law: the fault, and the criterion or section that names it."""

PLANTED = (
    *(Planted(n, BASE, _first_line(law), where) for n, (law, where) in FAULTS.items()),
    *(Planted(n, n.replace("law", "healthy"), *found) for n, found in OTHER_FAULTS.items()),
    *(Planted(name, BASE, _first_line(law)) for name, law in HEALTHY.items() if name != BASE),
)


def own_laws(name: str) -> dict[str, PythonLaw]:
    """Return the law of `others/` with this name, or an empty dictionary for a law of `laws.py`.

    Raises ValueError if the healthy law does not have the lines of the fault exactly once.
    """
    healthy = name.replace("law", "healthy")
    file = OTHERS / f"{healthy.replace('-', '_')}.py"
    if not file.exists():
        return {}
    if name == healthy:
        return read(file)
    text = file.read_text()
    for lines, changed in (CHANGES[name], (f'"{healthy}":', f'"{name}":')):
        if text.count(lines) != 1:
            raise ValueError(f"{file}: must have {lines!r} once, got {text.count(lines)}")
        text = text.replace(lines, changed)
    with TemporaryDirectory() as folder:
        faulty = Path(folder, f"{name}.py")
        faulty.write_text(text)
        return read(faulty)


def worse(verdict: Mapping[str, str], base: Mapping[str, str]) -> list[str]:
    """Return the criteria on which a law is worse than another: fails before mixed before meets."""
    order = ("fails", "mixed", "meets")
    return [
        criterion
        for criterion, one in verdict.items()
        if one in order and base[criterion] in order
        if order.index(one) < order.index(base[criterion])
    ]


def found(one: Planted, criteria: Sequence[str] = ()) -> list[str]:
    """Return the criteria, of those given or of all, in which a law is worse than its healthy
    version.
    """
    law, healthy = (
        verdicts(name, "cubic", criteria, laws=own_laws(name)) for name in (one.law, one.healthy)
    )
    return worse(law, healthy)


def problem(one: Planted, criteria: Iterable[str]) -> str | None:
    """Return what is not as it should be about the criteria in which a law is worse, or None."""
    names = list(criteria)
    if one.criterion is None:
        return f"{one.law} is healthy, but is worse in {', '.join(names)}" if names else None
    if any(name.startswith(one.criterion) for name in names):
        return None
    return f"{one.law}: {one.criterion} did not find the fault"


def work(options: Options) -> Report:
    """Evaluate the chosen laws and their healthy versions."""
    rows, failed = [], []
    for one in PLANTED:
        if one.law not in options.laws:
            continue
        names = found(one)
        rows.append([f"`{one.law}`", one.does, one.criterion or "–", ", ".join(names) or "–"])
        failed += [text] if (text := problem(one, names)) else []
    head = "law|what it does|criterion for it|worse than its healthy version in"
    return Report(markdown(head, rows), failed=failed)


_NAMES = tuple(one.law for one in PLANTED)
STUDY: Study[None, None] = Study(
    shows="the suite of RFC 9743 finds and names planted faults, and none in healthy laws",
    minutes=12,
    options=(Option("laws", _NAMES, "laws of validation/evaluate", _NAMES),),
    quick={"laws": ("no-timeout", "no-restart")},
    work=work,
)
