"""Arguments and options that several commands share, and help examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.process import INTERRUPTED as INTERRUPTED
from waterfill.errors import InputError, nearest, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from waterfill.runs.laws import PythonLaw
    from waterfill.scenario.document import Scenario
    from waterfill.scenario.units import Quantity


def examples(*lines: str) -> str:
    """Return examples for the end of a command's help, one per line."""
    # \b keeps click from filling the lines into a paragraph.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def place(text: str) -> Path:
    """Return a command-line argument as a path; raise BadParameter if the argument is empty.

    An empty one, of a variable that is not set, is no name of the current directory.
    """
    if not text:
        raise typer.BadParameter("must not be empty")
    return Path(text)


ScenarioFile = Annotated[Path, Argument(metavar="S.toml", help="Scenario file.", parser=place)]
Backend = Annotated[
    str,
    Option(
        metavar="BACKEND", help="Backend: sim, fluid or linux.", autocompletion=completion.backend
    ),
]
Protocol = Annotated[
    str | None,
    Option(
        metavar="P",
        help="Protocol of flows that do not name one.",
        autocompletion=completion.protocol,
    ),
]
Sets = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key, as in link.link1.rate='1 Gbit/s'.",
        autocompletion=completion.assignment,
    ),
]
Seed = Annotated[int | None, Option(metavar="N", help="Random seed.")]
OwnLaw = Annotated[
    Path | None,
    Option(
        "--law",
        metavar="FILE.py",
        help='Your own laws (sim only); FILE defines LAWS = {"name": …}.',
        parser=place,
    ),
]
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]
Output = Annotated[
    Path | None, Option("-o", "--output", metavar="DIR", help="Output directory.", parser=place)
]
Style = Annotated[
    str,
    Option(
        metavar="STYLE",
        help="Style of figures: screen, paper (3.33 inches wide), paper-wide (7 inches) or slide.",
        autocompletion=completion.styles,
    ),
]
NewFile = Annotated[
    Path | None,
    Option(
        "-o",
        "--output",
        metavar="S.toml",
        help="Output file. Default: standard output.",
        parser=place,
    ),
]


def laws_of(file: Path | None) -> dict[str, PythonLaw]:
    """Return the laws in a Python file, or an empty dict if no file is given."""
    if file is None:
        return {}
    from waterfill.runs import law_files

    return law_files.read(file)


def laws_used(
    own: Mapping[str, PythonLaw], scenarios: Iterable[Scenario], file: Path | None, option: str
) -> dict[str, PythonLaw]:
    """Return the file's laws that the scenarios use; raise InputError if they use none."""
    if not own:
        return {}
    from waterfill.network import protocols
    from waterfill.runs import laws

    scenarios = list(scenarios)
    found: dict[str, PythonLaw] = {}
    for scenario in scenarios:
        found |= laws.used(own, scenario)
    if not found:
        names = " or ".join(map(str, own))
        for name in sorted(set().union(*(one.protocols() for one in scenarios))):
            close = nearest(name, own)
            if name not in protocols.load() and "did you mean" in close:
                problem = f"unknown protocol {shown(name)}{close}"
                raise InputError("command line", option.strip("-"), problem)
        why = f"no flow uses the law {names} of {file}; see {option}"
        raise InputError("command line", "law", why)
    return found


def quantity(option: str, kind: Quantity, text: str | None) -> float:
    """Return an option's value in SI units, or 0 if the option is not given; raise InputError for
    an invalid value.
    """
    try:
        return 0.0 if text is None else kind.parse(text)
    except ValueError as error:
        raise InputError("command line", option, str(error)) from None


def overrides(protocol: str | None, sets: list[str] | None, seed: int | None = None) -> list[str]:
    """Return the assignments of `--protocol`, `--set` and `--seed` in one list.

    Raises InputError for a key with two values.
    """
    chosen = [] if protocol is None else [f"protocol={protocol}"]
    chosen += sets or []
    chosen += [] if seed is None else [f"seed={seed}"]
    values: dict[str, str] = {}
    for key, _, value in ([part.strip() for part in one.partition("=")] for one in chosen):
        if key in values:
            got = f"got {shown(values[key])} and {shown(value)}"
            raise InputError("command line", key, f"given twice, {got}", "remove one of them")
        values[key] = value
    return chosen
