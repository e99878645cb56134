"""What papers say, held against what a run measures.

Each experiment is a folder papers/PAPER/EXPERIMENT with a scenario.toml and a claims.toml:

    title = "Two hops"

    [[figure]]                       # waterfill.analysis.plots.PLOTS, with its arguments
    name = "figure-7"                # figure-7.png and figure-7.svg
    plot = "rates"
    args = { average_s = 1.0 }

    [[claim]]
    id = "rise-red-blue"
    source = "§VII.A.1"
    statement = "Red→Blue rises to 90 % of its share in less than 1 s"
    measure = "rise_time"            # waterfill.analysis.metrics.MEASURES, with its arguments
    args = { flow = "red-blue", at_s = 0.0, target_bps = 559.8e6 }
    unit = "s"
    relation = "<"                   # measured =, < or > the paper's value; = by default
    paper_value = 1.0
    tolerance = "5 %"                # of the paper's value, or a number in `unit`; 0 by default
    expect = "reproduced"            # the verdict of the last look; else `why` is needed too

An experiment of several runs names them, and its figures and claims say which they mean:

    [grid]                           # a run for each combination, named by its values: "xcp 64"
    protocol = ["xcp", "ixcp"]
    "flow.long.count" = [4, 64]      # "a, b" = […] gives both keys the same value

    [[run]]                          # and single ones
    name = "small buffer"
    scenario = "other.toml"          # scenario.toml by default
    set = ["link.l.buffer=100 packets"]

    [short]                          # what `make test` runs: these overrides, these grid points
    set = ["duration=10 s"]
    grid = { "flow.long.count" = [4] }

    seeds = 3                        # a random scenario: runs with so many seeds, and means
                                     # over them; short versions have one run all the same

    [[claim]]
    run = "xcp 64"                   # for measures of one run; others take all, or compute
    short_args = { stop_s = 10.0 }   # where the short version needs other arguments
    short = false                    # where a short version says nothing
    over_seeds = { runs = 15, least = 0.8, most = 1.1 }  # single runs: waterfill.papers.chance

The verdict is *reproduced* when the relation holds within the tolerance, *differs* when it does
not, *cannot be checked* when the paper gives no value, the run no sample, or chance decides on
which side of the tolerance a single run like the paper's lies (`waterfill.papers.chance`).
`expect` never enters into it: a verdict that is not the one expected makes `reproduce`
fail, in either direction.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from waterfill.analysis import (  # those that nothing here names put themselves on the lists
    metrics,
    plots,
    plots_flows,  # noqa: F401
)
from waterfill.errors import InputError, nearest, shown
from waterfill.papers import (
    chance,
    measures_convergence,  # noqa: F401
    measures_equilibrium,  # noqa: F401
    measures_theory,  # noqa: F401
    signals,  # noqa: F401
    sweeps,  # noqa: F401
)
from waterfill.runs.result import Document, Result, make_directory, to_json, write_text
from waterfill.scenario.document import Scenario
from waterfill.scenario.document import load as load_scenario
from waterfill.scenario.units import number

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Verdict: TypeAlias = Literal["reproduced", "differs", "cannot be checked"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "differs", "cannot be checked")

# Each unit's dimension and its size in SI.
_UNITS: Mapping[str, tuple[metrics.Dimension, float]] = {
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "bit/s": ("bit/s", 1.0),
    "Mbit/s": ("bit/s", 1e6),
    "Gbit/s": ("bit/s", 1e9),
    "Pbit/s": ("bit/s", 1e15),
    "B": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "%": ("ratio", 1e-2),
    "ratio": ("ratio", 1.0),
    "times": ("count", 1.0),
    "packets": ("count", 1.0),
    "bits": ("count", 1.0),
    "rad/s": ("1/s", 1.0),
}


def _id(value: str) -> str:
    if not value or any(not (c.isascii() and c.isalnum()) and c not in "-." for c in value):
        raise ValueError(f"expected letters, digits, - and ., got {shown(value)}")
    return value


_Id = Annotated[str, AfterValidator(_id)]
_Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Figure(_Table):
    """One [[figure]]: a plot of the run, NAME.png and NAME.svg."""

    name: _Id
    plot: str
    run: str | None = None
    args: dict[str, Any] = {}


class Run(_Table):
    """One [[run]]: a scenario file of the folder with overrides."""

    name: _Text
    scenario: _Text = "scenario.toml"
    set: list[str] = []


class Short(_Table):
    """[short]: what the short version overrides, and which grid points it keeps."""

    set: list[str] = []
    grid: dict[str, list[str | int | float | bool]] = {}


def edges(relation: str, value: float, slack: float) -> tuple[float, ...]:
    """Where a verdict changes: the value less or plus the tolerance, as the relation has it."""
    return {
        "=": (value - slack, value + slack),
        "<": (value + slack,),
        ">": (value - slack,),
    }[relation]


class Claim(_Table):
    """One [[claim]]; see the module's text for the keys."""

    id: _Id
    source: _Text
    statement: _Text
    run: str | None = None
    measure: str | None = None
    args: dict[str, Any] = {}
    short: bool = True
    short_args: dict[str, Any] = {}
    unit: str | None = None
    relation: Literal["=", "<", ">"] = "="
    paper_value: float | None = None
    tolerance: float | str = 0.0
    over_seeds: chance.OverSeeds | None = None
    expect: Verdict
    why: _Text | None = None

    @property
    def tolerance_in_unit(self) -> float | None:
        """How far from the paper's value still counts, in `unit`; None without a value."""
        if self.paper_value is None:
            return None
        if isinstance(self.tolerance, str):
            return abs(self.paper_value) * float(self.tolerance.removesuffix("%")) / 100
        return self.tolerance

    def verdict(self, measured: float | None, recorded: bool = True) -> Verdict:
        """The verdict on a value in `unit`: infinite means never, None not measured.

        `recorded` is whether what is on record of single runs is of these; of short ones it is not.
        """
        slack = self.tolerance_in_unit
        if measured is None or self.paper_value is None or slack is None:
            return "cannot be checked"
        record = self.over_seeds if recorded else None
        around = edges(self.relation, self.paper_value, slack)
        if record and record.parted_by(around) and record.holds(measured):
            return "cannot be checked"
        holds = {
            "=": abs(measured - self.paper_value) <= slack,
            "<": measured < self.paper_value + slack,
            ">": measured > self.paper_value - slack,
        }
        return "reproduced" if holds[self.relation] else "differs"

    def measured(self, runs: Mapping[str, Result], short: bool = False) -> float | None:
        """What the runs measure, in `unit`; None when they cannot."""
        if self.measure is None or self.unit is None:
            return None
        measure = metrics.MEASURES[self.measure]
        args = self.args | (self.short_args if short else {})
        if measure.of == "nothing":
            value = measure.function(**args)
        elif measure.of == "runs":
            value = measure.function(runs, **args)
        else:
            value = measure.function(runs[self.run or next(iter(runs))], **args)
        return None if value is None else value / _UNITS[self.unit][1]


class _File(_Table):
    title: _Text
    seeds: Annotated[int, Field(ge=1)] = 1
    grid: dict[str, list[str | int | float | bool]] = {}
    run: list[Run] = []
    short: Short = Short()
    figure: list[Figure] = []
    claim: list[Claim] = Field(min_length=1)


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper: its folder and what it claims."""

    paper: str
    name: str
    folder: Path
    title: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    runs: tuple[Run, ...]
    short_runs: tuple[Run, ...]
    seeds: int = 1

    @property
    def path(self) -> str:
        """PAPER/EXPERIMENT, as the command line names it."""
        return f"{self.paper}/{self.name}"

    def scenarios(self, short: bool = False, sets: Iterable[str] = ()) -> dict[str, Scenario]:
        """The scenarios of its runs by their names, `sets` after their own overrides.

        Raises InputError when one of them is wrong.
        """
        chosen = self.short_runs if short else self.runs
        return {
            run.name: load_scenario(self.folder / run.scenario, [*run.set, *sets]) for run in chosen
        }

    def samples(self, short: bool = False, seed: int | None = None) -> list[dict[str, Scenario]]:
        """Its scenarios once for each of its `seeds`; short versions have one.

        `seed` replaces every scenario's own. Raises InputError when one of them is wrong.
        """
        base = self.scenarios(short, [] if seed is None else [f"seed={seed}"])
        if short or self.seeds == 1:
            return [base]
        each = {name: chance.seeds(scenario.seed, self.seeds) for name, scenario in base.items()}
        return [
            {
                name: scenario.model_copy(update={"seed": each[name][place]})
                for name, scenario in base.items()
            }
            for place in range(self.seeds)
        ]

    def evaluate(self, *samples: Mapping[str, Result], short: bool = False) -> list[Document]:
        """One document a claim, in the file's order: the entries of `reproduce --json`.

        Each sample is all runs by their names, one sample a seed. Raises InputError when a claim
        names a flow or link that its run does not have.
        """
        wanted = [claim for claim in self.claims if claim.short or not short]
        return [self._document(claim, samples, short) for claim in wanted]

    def _document(
        self, claim: Claim, samples: Sequence[Mapping[str, Result]], short: bool
    ) -> Document:
        try:
            values = [claim.measured(runs, short) for runs in samples]
        except KeyError as error:
            file, key = str(self.folder / "claims.toml"), f"claim.{claim.id}.args"
            message = f"expected a name of its run, got {shown(error.args[0])}"
            raise InputError(file, key, message) from None
        measured = chance.mean(values)
        return self.statement(claim) | {
            "measured": _finite(measured),
            "values": [_finite(value) for value in values],
            "verdict": claim.verdict(measured, recorded=not short),
        }

    def statement(self, claim: Claim) -> Document:
        """What is known of a claim before the run."""
        return {
            "id": claim.id,
            "paper": self.paper,
            "experiment": self.name,
            "source": claim.source,
            "statement": claim.statement,
            "relation": claim.relation,
            "paper_value": claim.paper_value,
            "tolerance": claim.tolerance_in_unit,
            "unit": claim.unit,
            "over_seeds": claim.over_seeds.model_dump() if claim.over_seeds else None,
            "expect": claim.expect,
            "why": claim.why,
        }

    def write(
        self, samples: Sequence[Mapping[str, Result]], claims: Sequence[Document], folder: Path
    ) -> list[Path]:
        """Writes the runs, claims.json and the figures; returns the figures' paths.

        One run is written into `folder` itself, several into folders of their names, with the
        seed after the first sample. Figures show the first sample.
        """
        runs = samples[0]
        for place, sample in enumerate(samples):
            for name, result in sample.items():
                label = f"{name} seed {result.summary['seed']}" if place else name
                alone = len(runs) == len(samples) == 1
                result.write(folder if alone else folder / label.replace("/", "-"))
        write_text(make_directory(folder) / "claims.json", to_json(document(claims)) + "\n")
        figures = []
        for figure in self.figures:
            figures += plots.save(self._draw(figure, runs), folder / figure.name)
        return figures

    def _draw(self, figure: Figure, runs: Mapping[str, Result]) -> Any:
        plot = plots.PLOTS[figure.plot]
        if plot.of == "runs":
            return plot.function(runs, **figure.args)
        if plot.of == "nothing":
            return plot.function(**figure.args)
        return plot.function(runs[figure.run or next(iter(runs))], **figure.args)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def document(claims: Sequence[Document]) -> Document:
    """The document of `reproduce --json`: the claims, and how many have each verdict."""
    counts = Counter(claim["verdict"] for claim in claims)
    return {"claims": list(claims), "counts": {verdict: counts[verdict] for verdict in VERDICTS}}


def listing(chosen: Iterable[Experiment]) -> Document:
    """The document of `reproduce --list --json`: the claims, nothing measured."""
    return {"claims": [e.statement(claim) for e in chosen for claim in e.claims]}


def papers_folder() -> Path:
    """Where the experiments are: `papers/` of the source checkout.

    Raises InputError where there is none.
    """
    folder = Path(__file__).resolve().parents[3] / "papers"
    if not folder.is_dir():
        raise InputError(str(folder), "", "expected the papers' experiments, found none")
    return folder


def experiments(root: Path | None = None) -> list[Experiment]:
    """Every experiment below `root` (default: `papers_folder()`), sorted by path.

    Raises InputError when a claims.toml is wrong.
    """
    folder = papers_folder() if root is None else root
    return [load(file) for file in sorted(folder.glob("*/*/claims.toml"))]


def select(names: Iterable[str], known: Sequence[Experiment]) -> list[Experiment]:
    """The experiments that PAPER or PAPER/EXPERIMENT names, in the order of `known`.

    Raises InputError for a name that is neither.
    """
    wanted = [name.strip("/") for name in names]
    for name in wanted:
        if not any(name in (e.paper, e.path) for e in known):
            paths = {e.path for e in known} | {e.paper for e in known}
            raise InputError("reproduce", name, f"unknown experiment{nearest(name, paths)}")
    return [e for e in known if e.paper in wanted or e.path in wanted]


def load(file: Path) -> Experiment:
    """One experiment from its claims.toml.

    Raises InputError when the file cannot be read, is not TOML, or says something wrong: unknown
    keys, an unknown measure, arguments that it does not take, a unit of another dimension.
    """
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(str(file), "", f"cannot be read: {reason}") from None
    except ValueError as error:
        raise InputError(str(file), "", f"expected TOML in UTF-8: {error}") from None
    try:
        content = _File.model_validate(raw)
    except ValidationError as error:
        # An unknown key explains a missing one.
        errors = error.errors(include_url=False)
        first = min(errors, key=lambda e: e["type"] != "extra_forbidden")
        raise InputError(str(file), _key(raw, first["loc"]), _message(first)) from None
    for key, message in _contradictions(content):
        raise InputError(str(file), key, message)
    runs = _runs(content.grid, content.run)
    short = _runs(content.grid | content.short.grid, content.run, content.short.set)
    names = [run.name for run in runs]
    for name, count in Counter(names).items():
        if count > 1:
            message = "expected a name of its own, got one used twice"
            raise InputError(str(file), f"run.{name}", message)
    figures = [_checked_figure(figure, names, file) for figure in content.figure]
    claims = [_checked_claim(claim, names, file) for claim in content.claim]
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


def _runs(
    grid: Mapping[str, Sequence[object]], single: Sequence[Run], sets: Sequence[str] = ()
) -> list[Run]:
    """The grid's runs, then the single ones; the scenario as it is when there are neither."""
    found = []
    if grid:
        for values in itertools.product(*grid.values()):
            name = " ".join(map(_plain, values))
            own = [
                f"{key.strip()}={_toml(value)}"
                for keys, value in zip(grid, values, strict=True)
                for key in keys.split(",")
            ]
            found.append(Run(name=name, set=[*own, *sets]))
    found += [run.model_copy(update={"set": [*run.set, *sets]}) for run in single]
    return found or [Run(name="run", set=list(sets))]


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _toml(value: object) -> str:
    return json.dumps(value) if isinstance(value, (str, bool)) else f"{value}"


def _contradictions(content: _File) -> Iterable[tuple[str, str]]:
    for section, names in (
        ("claim", [claim.id for claim in content.claim]),
        ("figure", [figure.name for figure in content.figure]),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield f"{section}.{name}", "expected a name of its own, got one used twice"
    for claim in content.claim:
        key = f"claim.{claim.id}"
        if claim.expect != "reproduced" and claim.why is None:
            yield f"{key}.why", f'expected why "{claim.expect}" is expected, got nothing'
        if (claim.measure is None) != (claim.unit is None):
            yield f"{key}.unit", "expected a measure and its unit, got one of them"
        try:
            slack = claim.tolerance_in_unit
            if slack is not None:
                number(slack, least=0)
            if isinstance(claim.tolerance, str) and not claim.tolerance.endswith("%"):
                raise ValueError
        except ValueError:
            expected = 'a number or a share such as "5 %", not below zero'
            yield f"{key}.tolerance", f"expected {expected}, got {shown(claim.tolerance)}"


def _checked_figure(figure: Figure, runs: Sequence[str], file: Path) -> Figure:
    key = f"figure.{figure.name}"
    if figure.plot not in plots.PLOTS:
        raise InputError(
            str(file), f"{key}.plot", f"unknown plot{nearest(figure.plot, plots.PLOTS)}"
        )
    plot = plots.PLOTS[figure.plot]
    _check_run(figure.run, plot.of, runs, str(file), f"{key}.run")
    args = _checked_args(plot.function, plot.of, figure.args, str(file), f"{key}.args")
    return figure.model_copy(update={"args": args})


def _check_run(run: str | None, of: str, runs: Sequence[str], file: str, key: str) -> None:
    if of != "run":
        if run is not None:
            raise InputError(file, key, f"expected nothing, got {shown(run)}")
    elif run is None:
        if len(runs) > 1:
            raise InputError(file, key, "expected the name of a run, got nothing")
    elif run not in runs:
        raise InputError(file, key, f"unknown run {shown(run)}{nearest(run, runs)}")


def _checked_claim(claim: Claim, runs: Sequence[str], file: Path) -> Claim:
    if claim.measure is None or claim.unit is None:
        return claim
    key = f"claim.{claim.id}"
    if claim.measure not in metrics.MEASURES:
        known = nearest(claim.measure, metrics.MEASURES)
        raise InputError(str(file), f"{key}.measure", f"unknown measure{known}")
    measure = metrics.MEASURES[claim.measure]
    _check_run(claim.run, measure.of, runs, str(file), f"{key}.run")
    units = [unit for unit, (dimension, _) in _UNITS.items() if dimension == measure.dimension]
    if claim.unit not in units:
        expected = f"expected {' or '.join(units)}, got {shown(claim.unit)}"
        raise InputError(str(file), f"{key}.unit", expected)
    function = measure.function
    args = _checked_args(function, measure.of, claim.args, str(file), f"{key}.args")
    both = claim.args | claim.short_args
    short = _checked_args(function, measure.of, both, str(file), f"{key}.short_args")
    return claim.model_copy(update={"args": args, "short_args": short})


def _checked_args(
    function: Callable[..., Any], of: str, args: Mapping[str, Any], file: str, key: str
) -> dict[str, Any]:
    """The arguments, converted to the types that the function's signature asks for."""
    parameters = list(inspect.signature(function).parameters.values())[of != "nothing" :]
    known = {parameter.name: parameter for parameter in parameters}
    for name in args:
        if name not in known:
            raise InputError(file, f"{key}.{name}", f"unknown argument{nearest(name, known)}")
    for name, parameter in known.items():
        if name not in args and parameter.default is parameter.empty:
            raise InputError(file, f"{key}.{name}", "expected a value, got nothing")
    # These two names are imported for type checkers only.
    hints = get_type_hints(function, localns={"Result": object, "Figure": object})
    checked = {}
    for name, value in args.items():
        try:
            checked[name] = TypeAdapter(hints[name]).validate_python(value)
        except ValidationError as error:
            message = _message(error.errors(include_url=False)[0])
            raise InputError(file, f"{key}.{name}", message) from None
    return checked


def _key(raw: Mapping[str, Any], location: Sequence[str | int]) -> str:
    """`claim.rise.unit` for ("claim", 0, "unit"): an entry goes by its id or name."""
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
        return "expected a value, got nothing"
    if error["type"] == "value_error":
        return str(error["ctx"]["error"])
    return f"{error['msg'].lower()}, got {shown(error['input'])}"
