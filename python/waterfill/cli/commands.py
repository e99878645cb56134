"""The command `waterfill`.

Standard output has the answer, a table or with `--json` one document; standard error has progress
and errors. Exit codes: 0 done, 1 a verdict is not the one on record or a check of a run failed,
2 the input is wrong (one line), 130 interrupted (what there is has been written), 141 nobody reads
the output any more.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waterfill.cli.console import print_json, print_text, show
from waterfill.cli.theory import app as theory_app
from waterfill.errors import InputError, RunError, one_line

if TYPE_CHECKING:
    from waterfill.papers.claims.experiment import Experiment
    from waterfill.runs.result import Document

# Everything heavier than this is imported by the command that needs it: --help shall be quick.
app = typer.Typer(
    name="waterfill",
    help="Explicit congestion control, from the equation to the kernel.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(theory_app)

INTERRUPTED = 130

ScenarioFile = Annotated[Path, typer.Argument(metavar="S.toml", help="The scenario.")]
Protocol = Annotated[
    str | None, typer.Option(metavar="P", help="Protocol of every flow that names none.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key: link.link1.rate='1 Gbit/s'."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of the run.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write here.")]


def main() -> None:
    """Entry point: runs the command and exits."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that knows no → gets \u2192, which JSON readers know too.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except RunError as error:
        print(error, file=sys.stderr)
        sys.exit(1)


def version(wanted: bool) -> None:
    """Prints the version and stops, for `--version`."""
    if wanted:
        from waterfill._core import version as core_version

        print_text(f"waterfill {core_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Explicit congestion control, from the equation to the kernel."""


@app.command()
def run(
    scenario: ScenarioFile,
    on: Annotated[
        str, typer.Option(metavar="BACKEND", help="Where to run it: sim, fluid or linux.")
    ] = "sim",
    protocol: Protocol = None,
    sets: Sets = None,
    seed: Seed = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a scenario and print what its flows and links got."""
    from waterfill.cli import tables
    from waterfill.runs import backends
    from waterfill.runs.progress import Bar
    from waterfill.runs.result import make_directory
    from waterfill.scenario.loading import load

    backends.check(on)
    loaded = load(scenario, _overrides(protocol, sets, seed))
    if output is not None:
        make_directory(output)  # before the run: nobody shall wait for an hour to hear of a typo
    with Bar(one_line(loaded.name)) as bar:
        result = backends.run(loaded, on=on, progress=bar)
    if output is not None:
        from waterfill.analysis import plots

        result.write(output)
        plots.save(plots.overview(result), output / "figure")
    if json:
        print_text(result.to_json())
    else:
        show(*tables.run(result.summary))
        if output is not None:
            print_text(f"written to {output}")
    if "interrupted_at_s" in result.summary:
        raise typer.Exit(INTERRUPTED)
    if _failed(result.summary):
        raise typer.Exit(1)


@app.command()
def compare(
    scenario: ScenarioFile,
    names: Annotated[
        str | None,
        typer.Option(
            "--protocols",
            metavar="A,B,C",
            help="Protocols to compare, for every flow that names none. Default: all explicit.",
        ),
    ] = None,
    on: Annotated[
        str, typer.Option(metavar="BACKENDS", help="Where to run them: sim, or sim,linux.")
    ] = "sim",
    sets: Sets = None,
    seed: Seed = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a scenario under several protocols and print one table."""
    from waterfill.analysis import compare
    from waterfill.cli import tables
    from waterfill.runs import backends, pool
    from waterfill.runs.progress import Bars
    from waterfill.runs.result import make_directory

    places = list(dict.fromkeys(backend.strip() for backend in on.split(",")))
    for backend in places:
        backends.check(backend)
    chosen = compare.on_each(names, places)
    loaded = {
        backend: compare.load_each(scenario, _overrides(None, sets, seed), chosen, backend)
        for backend in places
    }
    scenarios, where = {}, {}
    for name in chosen:
        for backend in places:
            label = f"{name}@{backend}" if len(places) > 1 else name
            scenarios[label], where[label] = loaded[backend][name], backend
    if output is not None:
        make_directory(output)  # before the runs, as in `run`
        for name in scenarios:
            make_directory(output / name)
    with Bars(scenarios) as bars:
        results = pool.run_each(scenarios, on=where, progress=bars.show)
    if not results:
        raise typer.Exit(INTERRUPTED)
    comparison = compare.of(results)
    document = comparison.document()
    if len(places) > 1:
        document["differences"] = compare.differences(document["runs"])
    if output is not None:
        comparison.write(document, output)
    if json:
        print_json(document)
    else:
        show(*tables.compare(document["runs"]))
        if len(places) > 1:
            show(*tables.differences(document["differences"]))
        if output is not None:
            print_text(f"written to {output}")
    if len(results) < len(scenarios) or any(
        "interrupted_at_s" in r.summary for r in results.values()
    ):
        raise typer.Exit(INTERRUPTED)
    if _failed(*(result.summary for result in results.values())):
        raise typer.Exit(1)


@app.command()
def maxmin(
    scenario: ScenarioFile, protocol: Protocol = None, sets: Sets = None, json: Json = False
) -> None:
    """Print the exact max-min rates of a scenario, by interval."""
    from waterfill.cli import tables
    from waterfill.network import shares
    from waterfill.scenario.loading import load

    document = shares.document(load(scenario, _overrides(protocol, sets)))
    if json:
        print_json(document)
    else:
        show(*tables.maxmin(document))


@app.command()
def protocols(json: Json = False) -> None:
    """List the protocols, their parameters and defaults."""
    from waterfill.cli import tables
    from waterfill.network import protocols

    known = protocols.load()
    if json:
        print_json(tables.protocols_document(known.values()))
    else:
        show(*tables.protocols(known.values()))


@app.command()
def response(
    losses: Annotated[
        int, typer.Option(min=20, metavar="N", help="Losses in a cell, the warm-up left out.")
    ] = 300,
    quick: Annotated[bool, typer.Option("--quick", help="Loss of 1e-3 and more only.")] = False,
    json: Json = False,
) -> None:
    """Hold Reno's and CUBIC's windows under loss against theory (minutes; --quick: seconds)."""
    from waterfill.analysis import response
    from waterfill.cli import tables
    from waterfill.runs.progress import Bars

    chosen = [p for p in response.PROBABILITIES if p >= 1e-3 or not quick]
    with Bars([]) as bars:
        found = response.cells(probabilities=chosen, losses=losses, progress=bars.show)
    document = response.document(found)
    if json:
        print_json(document)
    else:
        show(*tables.response(document))
    asked = len(response.TABLES) * len(chosen) * len(response.RTTS_S)
    if len(found) < asked:
        raise typer.Exit(INTERRUPTED)


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None, typer.Argument(metavar="PAPER[/EXPERIMENT]", help="What to reproduce.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the claims, run nothing.")] = False,
    short: Annotated[bool, typer.Option("--short", help="Shorter runs of fewer points.")] = False,
    seed: Seed = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Use no earlier runs, keep none.")] = False,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run papers' experiments and judge their claims.

    Runs are kept in the cache directory and used again while scenario and code are the same.
    Data and figures go to out/PAPER/EXPERIMENT below the current directory. With -o they go
    to DIR itself for one experiment named in full, else to DIR/PAPER/EXPERIMENT.
    """
    from waterfill.cli import tables
    from waterfill.cli.live import LiveList
    from waterfill.papers import report
    from waterfill.papers.claims import loading, verdict
    from waterfill.papers.claims.experiment import claim_list
    from waterfill.papers.reproduce import reproduce as run_all
    from waterfill.runs.result import make_directory

    names = experiments or []
    known = loading.experiments()
    if not names and not every and not listing:
        expected = "expected PAPER, PAPER/EXPERIMENT or --all (--list names them), got nothing"
        raise InputError("reproduce", "", expected)
    chosen = loading.select(names, known) if names and not every else known
    if listing:
        lines = [f"{e.path}/{c.id}  {c.statement}" for e in chosen for c in e.claims]
        print_json(claim_list(chosen)) if json else print_text("\n".join(lines))
        return
    alone = len(chosen) == 1 and names == [chosen[0].path]
    flat, base = alone and output is not None, output or Path("out")
    folders = {e.path: make_directory(base if flat else base / e.path) for e in chosen}

    def finished(experiment: Experiment, judged: list[Document], figures: list[Path]) -> None:
        live.done(experiment.path, judged)
        if not json:
            show(*tables.claims(f"{experiment.path}: {experiment.title}", judged))
            for figure in figures:
                print_text(f"figure: {figure}")
            print_text("")

    with LiveList(len(chosen)) as live:
        found = run_all(
            chosen,
            lambda e: folders[e.path],
            short=short,
            seed=seed,
            cached=not fresh,
            planned=live.planned,
            progress=live.show,
            done=finished,
        )
    judged = [claim for e in chosen for claim in found.claims.get(e.path, [])]
    document = verdict.document(judged)
    if json and not (found.interrupted and not judged):
        print_json(document)
    elif judged:
        print_text(
            ", ".join(f"{verdict}: {count}" for verdict, count in document["counts"].items())
        )
    if every and not found.interrupted:
        for page in report.write(base, report.collect(base, chosen)):
            print(f"written to {page}", file=sys.stderr)
    if found.interrupted:
        done = f"{len(found.claims)} of {len(chosen)} experiments are done"
        print(f"interrupted; {done}, what they left is in {base}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    changed = [claim for claim in judged if claim["verdict"] != claim["expect"]]
    for claim in changed:
        path = f"{claim['paper']}/{claim['experiment']}/{claim['id']}"
        print(f"{path}: {claim['verdict']}, on record is {claim['expect']}", file=sys.stderr)
    if changed:
        raise typer.Exit(1)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="What reproduce -o wrote.")],
) -> None:
    """Write report.html and report.md: all verdicts and figures on one page."""
    from waterfill.papers import report
    from waterfill.papers.claims import loading

    entries = report.collect(directory, loading.experiments())
    for path in report.write(directory, entries):
        print_text(f"written to {path}")


def _failed(*summaries: Document) -> bool:
    """Says on standard error which checks of these runs failed; whether any did."""
    failed = False
    for summary in summaries:
        for check in summary.get("checks", ()):
            if not check["ok"]:
                failed = True
                title = one_line(summary["scenario"])
                wanted = f"expected {check['wanted']}"
                print(f"{title}: check failed: {check['name']}: {wanted}", file=sys.stderr)
    return failed


def _overrides(protocol: str | None, sets: list[str] | None, seed: int | None = None) -> list[str]:
    """`--set` assignments, those of the shorter options included; the later one wins."""
    chosen = [] if protocol is None else [f"protocol={protocol}"]
    chosen += sets or []
    return chosen if seed is None else [*chosen, f"seed={seed}"]
