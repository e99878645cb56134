"""The command `sweep`, which runs a scenario at many points on the workers of a Dask cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import (
    INTERRUPTED,
    Json,
    OwnLaw,
    ScenarioFile,
    Seed,
    Sets,
    Style,
    laws_of,
    overrides,
    place,
    quantity,
)
from waterfill.cli.console import Unwritten, print_json, print_text, show
from waterfill.errors import InputError

if TYPE_CHECKING:
    from waterfill.analysis.looks import Look
    from waterfill.sweeps.api import Sweep
    from waterfill.sweeps.plan import Plan


Texts = list[str] | None
Protocols = Annotated[
    str | None,
    Option(
        metavar="A,B,C",
        help="Protocols to run each point with.",
        autocompletion=completion.protocols,
    ),
]
Backend = Annotated[
    str,
    Option(metavar="BACKEND", help="Backend: sim or fluid.", autocompletion=completion.backend),
]
Columns = Annotated[
    Texts,
    Option(
        "--column",
        metavar="NAME[=PATH]",
        help="Additional column, as in r=flows.a.rate_bps; repeatable.",
    ),
]
Shown = Annotated[
    str | None,
    Option("--show", metavar="A,B,C", help="Columns of the table; the figure shows the first."),
]
Folder = Annotated[
    Path | None,
    Option(
        "-o", "--output", metavar="DIR", help="Output directory. Default: S.sweep.", parser=place
    ),
]

Resume = Annotated[
    bool,
    Option("--resume", help="Fail if DIR has no sweep yet. An existing one is always resumed."),
]

ShowCluster = Annotated[
    bool,
    Option("--show-cluster", help="Print the jobs of --cluster FILE without starting them."),
]


def sweep(
    scenario: ScenarioFile,
    ranges: Annotated[
        Texts, Argument(metavar="[KEY=LOW..HIGH]…", help="Ranges for --random or --latin.")
    ] = None,
    grid: Annotated[
        Texts,
        Option(metavar="KEY=A,B,C", help="Values of a key, or LOW..HIGH:N[:log]; repeatable."),
    ] = None,
    random: Annotated[int, Option(metavar="N", help="Draw N random points from the ranges.")] = 0,
    latin: Annotated[int, Option(metavar="N", help="Draw a Latin hypercube of N points.")] = 0,
    draw_seed: Annotated[
        int | None, Option(metavar="N", help="Seed of random points. Default: 1.")
    ] = None,
    protocols: Protocols = None,
    seeds: Annotated[int, Option(metavar="N", help="Run each point with N seeds.")] = 0,
    on: Backend = "sim",
    sets: Sets = None,
    seed: Seed = None,
    columns: Columns = None,
    shown: Shown = None,
    refine: Annotated[
        str | None, Option(metavar="KEY=LOW..HIGH", help="Find where --verdict changes along KEY.")
    ] = None,
    verdict: Annotated[
        str | None, Option(metavar="COLUMN<X", help="Verdict of --refine, such as stable<0.5.")
    ] = None,
    tolerance: Annotated[
        str | None, Option(metavar="X%", help="Precision at which --refine stops. Default: 1%.")
    ] = None,
    output: Folder = None,
    resume: Resume = False,
    retry: Annotated[bool, Option("--retry", help="Run failed points again.")] = False,
    keep: Annotated[bool, Option("--keep", help="Also keep each run in DIR/runs/<key>.")] = False,
    max_time: Annotated[str | None, Option(metavar="TIME", help="Time limit of a point.")] = None,
    max_memory: Annotated[
        str | None, Option(metavar="SIZE", help="Memory limit of a point.")
    ] = None,
    workers: Annotated[
        int | None, Option(metavar="N", help="Number of parallel points. Default: one per CPU.")
    ] = None,
    cluster: Annotated[
        str | None,
        Option(metavar="WHERE", help="Cluster: tcp://HOST:PORT, or a file (SLURM, Kubernetes)."),
    ] = None,
    show_cluster: ShowCluster = False,
    json: Json = False,
    law: OwnLaw = None,
    style: Style = "screen",
) -> None:
    """Run a scenario at many points, in parallel.

    The results are one dataset, one table and one figure.
    """
    from waterfill.analysis.looks import look
    from waterfill.scenario.units import SPAN, VOLUME
    from waterfill.sweeps import api
    from waterfill.sweeps import cluster as clusters
    from waterfill.sweeps.plan import SweepSpec, plan

    drawn_as = look(style)
    _refuse_idle("draw-seed", draw_seed, "--random or --latin", there=bool(random or latin))
    _refuse_idle("tolerance", tolerance, "--refine", there=refine is not None)
    if show_cluster:
        print_text(clusters.described(clusters.place(cluster, workers)).rstrip("\n"))
        return
    spec = SweepSpec(
        grid=grid or [], ranges=ranges or [], random=random, latin=latin, protocols=protocols,
        draw_seed=1 if draw_seed is None else draw_seed, seeds=seeds, on=on, keep=keep, retry=retry,
        sets=overrides(None, sets, seed), columns=columns or [], refine=refine, verdict=verdict,
        tolerance=0.01 if tolerance is None else _share(tolerance), output=output, workers=workers,
        max_time_s=quantity("max-time", SPAN, max_time), cluster=cluster, quiet=False,
        max_memory_bytes=int(quantity("max-memory", VOLUME, max_memory)), laws=laws_of(law),
    )  # fmt: skip
    checked = plan(scenario, spec)
    chosen = _shown(shown, checked)
    _check_start(checked, "resume" if resume else "retry" if retry else None)
    _end(api.run(checked), chosen, json, drawn_as)


def _check_start(checked: Plan, again: str | None) -> None:
    """Raise InputError if there is no sweep to resume or retry (`again`), or nothing to vary."""
    if again is not None and not (checked.folder / "sweep.json").exists():
        why = f"no sweep to {again} here"
        raise InputError(str(checked.folder), "", why, f"leave out --{again}")
    if not checked.design.axes() and not checked.design.seeds:
        advice = "add --grid KEY=A,B, --random N KEY=LOW..HIGH, --protocols or --seeds"
        raise InputError("sweep", "", "nothing to vary", advice)


def _refuse_idle(name: str, value: object, needed: str, *, there: bool) -> None:
    """Raise InputError if an option is given without the option that it refines."""
    if value is not None and not there:
        raise InputError("command line", name, f"no effect without {needed}, got {value}")


def _end(done: Sweep, chosen: list[str], json: bool, drawn_as: Look) -> None:
    """Print a sweep's results, and exit with the code for its outcome."""
    unwritten = Unwritten()
    if done.unwritten is not None:
        unwritten.errors.append(done.unwritten)
    _answer(done, chosen, json, unwritten, drawn_as)
    failed = unwritten.report()
    if done.interrupted:
        raise typer.Exit(INTERRUPTED)
    if done.failed or failed:
        raise typer.Exit(1)


def _answer(
    done: Sweep, chosen: list[str], json: bool, unwritten: Unwritten, drawn_as: Look
) -> None:
    """Print the table of a sweep, and write its figure if the sweep is complete."""
    from waterfill.cli import sweep_table

    if len(done) and not unwritten.errors and not done.interrupted:
        from waterfill.analysis import draw
        from waterfill.sweeps import figure

        drawn = figure.draw(done, chosen[0])
        if drawn is not None:
            with unwritten.collected():
                draw.save(draw.styled(drawn, drawn_as), done.plan.folder / "figure")
    if json:
        print_json(sweep_table.document(done, chosen))
        return
    show(*sweep_table.tables(done, chosen))
    _hint(done.plan)
    if not unwritten.errors:
        print_text(f"written to {done.plan.folder}")


def _hint(plan: Plan) -> None:
    """Print a hint if the sweep compares TCP flows in single runs."""
    from waterfill.cli.running import hint_of_chance

    if plan.base.on != "sim" or len(plan.design.seeds) > 1:
        return
    names = plan.design.protocols or ("",)
    scenarios = (plan.base.scenario([f"protocol={name}"] if name else []) for name in names)
    hint_of_chance(scenarios, plan.base.laws, "waterfill sweep {} … --seeds 10")


def _shown(text: str | None, plan: Plan) -> list[str]:
    from waterfill.errors import nearest
    from waterfill.sweeps import table

    if text is None:
        first = [] if plan.verdict is None else [plan.verdict.column]
        return list(dict.fromkeys([*first, *plan.extra, *table.DEFAULT, *table.IF_ANY]))
    known = plan.numbers()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise InputError("command line", "show", f"unknown column {name}{nearest(name, known)}")
    return list(dict.fromkeys(names))


def _share(text: str) -> float:
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        raise InputError(
            "command line", "tolerance", f"must be a share such as 1%, got {text}"
        ) from None
    return number / 100 if text.strip().endswith("%") else number
