"""Loading of experiments from their claims.toml. Errors in the file are InputErrors."""

from __future__ import annotations

import inspect
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from waterfill.errors import InputError, nearest, shown
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import UNITS, Claim, ExperimentRun, Figure, File
from waterfill.papers.figures import PLOTS
from waterfill.papers.measures.registry import MEASURES
from waterfill.scenario.loading import toml_error

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def papers_folder() -> Path:
    """Return the folder of the experiments: a folder of the wheel, or `papers/` in a checkout.

    Raises InputError if there is none.
    """
    folder = (Path(__file__).resolve().parents[1] / "experiments").resolve()
    if not folder.is_dir():
        raise InputError(str(folder), "", "no experiments of papers found")
    return folder


def experiments(root: Path | None = None) -> list[Experiment]:
    """Load all experiments below `root` (default: `papers_folder()`), sorted by path.

    Raises InputError if a claims.toml is wrong.
    """
    folder = papers_folder() if root is None else root
    return [load(file) for file in sorted(folder.glob("*/*/claims.toml"))]


def experiments_in(folder: Path) -> list[Experiment]:
    """Load the experiments in a user's folder, at any depth, sorted by path.

    Raises InputError if there is none, if two have the same path, or if a claims.toml is wrong.
    """
    root = folder.resolve()
    found = [load(file) for file in sorted(root.rglob("claims.toml"))]
    if not found:
        advice = "write one, or name the folder that has it"
        raise InputError("reproduce", "claims", f"no claims.toml in {folder}", advice)
    for path, count in Counter(experiment.path for experiment in found).items():
        if count > 1:
            raise InputError("reproduce", "claims", f"{count} experiments in {folder} are {path}")
    return found


_LIST = "waterfill reproduce --list shows all"


def select(names: Iterable[str], known: Sequence[Experiment]) -> list[Experiment]:
    """Return the experiments named by PAPER or PAPER/EXPERIMENT, in the order of `known`.

    Raises InputError for a name that is neither.
    """
    wanted = [name.strip("/") for name in names]
    for name in wanted:
        if not any(name in (e.paper, e.path) for e in known):
            if drawing := _drawing(name, known):
                message = f"not an experiment, but a figure of {' and '.join(drawing)}"
                advice = f"type waterfill reproduce {' '.join(drawing)}"
                raise InputError("reproduce", name, message, advice)
            close = nearest(name, {e.path for e in known} | {e.paper for e in known})
            meant, advice = (close, "") if "did you mean" in close else ("", _LIST)
            raise InputError("reproduce", name, f"unknown experiment{meant}", advice)
    return [e for e in known if e.paper in wanted or e.path in wanted]


def _drawing(name: str, known: Iterable[Experiment]) -> list[str]:
    """Return the paths of the experiments that draw PAPER/FIGURE, such as maxnet-2007/figure-9."""
    paper, _, wanted = name.rpartition("/")
    figure = re.compile(re.escape(wanted) + r"(?![0-9a-z])")
    mine = (e for e in known if e.paper == paper)
    return [e.path for e in mine if any(figure.match(f.name) for f in e.figures)]


def load(file: Path) -> Experiment:
    """Load one experiment from its claims.toml.

    Raises InputError if the file cannot be read, is not TOML or has an error: an unknown key or
    measure, wrong arguments, a unit of another dimension.
    """
    content = read_file(file, File)
    for key, message in _contradictions(content):
        raise InputError(str(file), key, message)
    runs = grid_runs(content.grid, content.run)
    kept = [run for run in content.run if run.short]
    short = grid_runs(content.grid | content.short.grid, kept, content.short.set)
    names = [run.name for run in runs]
    for name, count in Counter(names).items():
        if count > 1:
            message = "must be unique, got the name twice"
            raise InputError(str(file), f"run.{name}", message)
    figures = [_checked_figure(figure, names, file) for figure in content.figure]
    claims = [
        checked_claim(claim, names, str(file), f"claim.{claim.id}") for claim in content.claim
    ]
    return Experiment(
        paper=file.parent.parent.name,
        name=file.parent.name,
        folder=file.parent,
        title=content.title,
        figures=tuple(figures),
        claims=tuple(claims),
        runs=tuple(runs),
        short_runs=tuple(short),
        seeds=content.seeds,
    )


_Content = TypeVar("_Content", bound=BaseModel)


def read_file(file: Path, content: type[_Content]) -> _Content:
    """Read a TOML file of this content; raise InputError if it cannot be read or a key is wrong."""
    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(str(file), "", f"cannot read the file: {reason}") from None
    except ValueError as error:
        raise InputError(str(file), "", f"not TOML in UTF-8: {toml_error(error, text)}") from None
    try:
        return content.model_validate(raw)
    except ValidationError as error:
        # An unknown key explains a missing one.
        errors = error.errors(include_url=False)
        first = min(errors, key=lambda e: e["type"] != "extra_forbidden")
        raise InputError(str(file), _key(raw, first["loc"]), _message(first)) from None


def grid_runs(
    grid: Mapping[str, Sequence[object]], single: Sequence[ExperimentRun], sets: Sequence[str] = ()
) -> list[ExperimentRun]:
    """Return the grid's runs followed by the single runs, or one run of the plain scenario."""
    found = []
    if grid:
        for values in itertools.product(*grid.values()):
            # Of one key with an empty text, there is nothing to name the run by.
            name = " ".join(map(_plain, values)) or '""'
            own = [
                f"{key.strip()}={_toml(value)}"
                for keys, value in zip(grid, values, strict=True)
                for key in keys.split(",")
            ]
            found.append(ExperimentRun(name=name, set=[*own, *sets]))
    found += [run.model_copy(update={"set": [*run.set, *sets]}) for run in single]
    return found or [ExperimentRun(name="run", set=list(sets))]


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _toml(value: object) -> str:
    return json.dumps(value) if isinstance(value, (str, bool)) else f"{value}"


def _contradictions(content: File) -> Iterable[tuple[str, str]]:
    for section, names in (
        ("claim", [claim.id for claim in content.claim]),
        ("figure", [figure.name for figure in content.figure]),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield f"{section}.{name}", "must be unique, got the name twice"
    for claim in content.claim:
        key = f"claim.{claim.id}"
        if claim.expect != "reproduced" and claim.why is None:
            yield f"{key}.why", f'missing; write why "{claim.expect}" is expected'
        if claim.sentence is not None and claim.beyond is not None:
            yield f"{key}.beyond", "is no sentence of the paper; remove `sentence` or `beyond`"
        for name in claim.in_force:
            if name not in claim.args:
                yield (
                    f"{key}.in_force.{name}",
                    "is no argument in `args`; write its paper's value there",
                )
        if (claim.measure is None) != (claim.unit is None):
            yield f"{key}.unit", "needs both a measure and its unit, got one of them"


def _checked_figure(figure: Figure, runs: Sequence[str], file: Path) -> Figure:
    key = f"figure.{figure.name}"
    if figure.plot not in PLOTS:
        raise InputError(str(file), f"{key}.plot", f"unknown plot{nearest(figure.plot, PLOTS)}")
    plot = PLOTS[figure.plot]
    _check_run(figure.run, plot.of, runs, str(file), f"{key}.run")
    args = _checked_args(plot.function, plot.of, figure.args, str(file), f"{key}.args")
    return figure.model_copy(update={"args": args})


def _check_run(run: str | None, of: str, runs: Sequence[str], file: str, key: str) -> None:
    if of != "run":
        if run is not None:
            raise InputError(file, key, f"not allowed here, got {shown(run)}")
    elif run is None:
        if len(runs) > 1:
            raise InputError(file, key, "missing", "write the name of a run")
    elif run not in runs:
        raise InputError(file, key, f"unknown run {shown(run)}{nearest(run, runs)}")


def checked_claim(claim: Claim, runs: Sequence[str], file: str, key: str) -> Claim:
    """Return a claim with the arguments of its measure converted to the measure's types.

    `runs` are the names of the experiment's runs; `key` is the claim's in messages. Raises
    InputError for an unknown measure or run, wrong arguments, and a unit of another dimension.
    """
    if claim.measure is None or claim.unit is None:
        return claim
    if claim.measure not in MEASURES:
        known = nearest(claim.measure, MEASURES)
        raise InputError(file, f"{key}.measure", f"unknown measure{known}")
    measure = MEASURES[claim.measure]
    _check_run(claim.run, measure.of, runs, file, f"{key}.run")
    if claim.of is not None:
        _check_run(claim.of, measure.of, runs, file, f"{key}.of")
    units = [unit for unit, (dimension, _) in UNITS.items() if dimension == measure.dimension]
    if claim.unit not in units:
        problem = f"must be {' or '.join(units)}, got {shown(claim.unit)}"
        raise InputError(file, f"{key}.unit", problem)
    function = measure.function
    args = _checked_args(function, measure.of, claim.args, file, f"{key}.args")
    both = claim.args | claim.short_args
    short = _checked_args(function, measure.of, both, file, f"{key}.short_args")
    return claim.model_copy(update={"args": args, "short_args": short})


def _checked_args(
    function: Callable[..., Any], of: str, args: Mapping[str, Any], file: str, key: str
) -> dict[str, Any]:
    """Return the arguments of a measure or plot, converted to the types of its signature."""
    known, types = _parameters(function, of)
    for name in args:
        if name not in known:
            raise InputError(file, f"{key}.{name}", f"unknown argument{nearest(name, known)}")
    for name, parameter in known.items():
        if name not in args and parameter.default is parameter.empty:
            raise InputError(file, f"{key}.{name}", "missing")
    checked = {}
    for name, value in args.items():
        try:
            checked[name] = types[name].validate_python(value)
        except ValidationError as error:
            message = _message(error.errors(include_url=False)[0])
            raise InputError(file, f"{key}.{name}", message) from None
    return checked


@cache
def _parameters(
    function: Callable[..., Any], of: str
) -> tuple[Mapping[str, inspect.Parameter], Mapping[str, TypeAdapter[Any]]]:
    """Return the parameters of a measure or plot by name, except the argument for results, and
    their types.

    Kept, since to make these types costs more than all else of reading a claim.
    """
    parameters = list(inspect.signature(function).parameters.values())[of != "nothing" :]
    # These two names are imported only for type checking.
    unloaded = {name: object for name in ("Result", "Figure", "Drawing")}
    hints = get_type_hints(function, localns=unloaded, include_extras=True)
    types = {p.name: TypeAdapter(hints[p.name]) for p in parameters}
    return {p.name: p for p in parameters}, types


def _key(raw: Mapping[str, Any], location: Sequence[str | int]) -> str:
    """Return a key path such as `claim.rise.unit` for ("claim", 0, "unit")."""
    steps: list[str] = []
    node: Any = raw
    for step in location:
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            node = None
        named = node.get("id", node.get("name")) if isinstance(node, dict) else None
        steps.append(str(named if isinstance(step, int) and named else step))
    return ".".join(steps)


def _message(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "unknown key"
    if error["type"] == "missing":
        return "missing"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return f"{error['msg'].lower()}, got {shown(error['input'])}"
