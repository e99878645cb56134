"""The command `waterfill`.

The answer goes to standard output, as tables or with `--json` as one document; progress and errors
go to standard error. Exit codes: 0 done, 1 a verdict differs from the expected one or a check of a
run failed, 2 wrong input (one line), 130 interrupted (partial results are written), 141 the reader
of standard output has gone.
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
    from waterfill.contract.summary import Summary
    from waterfill.papers.claims.experiment import Experiment
    from waterfill.papers.claims.verdict import Judged

# Commands import what they need themselves, so that --help starts quickly.
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

ScenarioFile = Annotated[Path, typer.Argument(metavar="S.toml", help="Scenario file.")]
Protocol = Annotated[
    str | None, typer.Option(metavar="P", help="Protocol of the flows that name none.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key: link.link1.rate='1 Gbit/s'."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of the random streams.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="DIR", help="Output directory.")
]


def main() -> None:
    """Run the command given on the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Where the encoding lacks →, write \u2192, which JSON readers understand.
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
    """Print the version and exit, for `--version`."""
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
        str, typer.Option(metavar="BACKEND", help="Backend: sim, fluid or linux.")
    ] = "sim",
    protocol: Protocol = None,
    sets: Sets = None,
    seed: Seed = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a scenario; print its flows' rates and its links' queues."""
    from waterfill.cli import tables
    from waterfill.runs import backends
    from waterfill.runs.progress import Bar
    from waterfill.runs.result import make_directory
    from waterfill.scenario.loading import load

    backends.check(on)
    loaded = load(scenario, _overrides(protocol, sets, seed))
    if output is not None:
        make_directory(output)  # before the run, so that a typo fails at once
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
            help="Protocols for the flows that name none. Default: all explicit ones.",
        ),
    ] = None,
    on: Annotated[
        str, typer.Option(metavar="BACKENDS", help="Backends, one or several: sim, or sim,linux.")
    ] = "sim",
    sets: Sets = None,
    seed: Seed = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a scenario under several protocols; print one table."""
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
    """Print the exact max-min rates of a scenario over time."""
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
        int, typer.Option(min=20, metavar="N", help="Losses per case after the warm-up.")
    ] = 300,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only loss rates of 1e-3 and above.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare Reno's and CUBIC's windows under loss with theory.

    Takes minutes, with --quick seconds.
    """
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
    planned = len(response.TABLES) * len(chosen) * len(response.RTTS_S)
    if len(found) < planned:
        raise typer.Exit(INTERRUPTED)


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAPER[/EXPERIMENT]", help="Papers or experiments."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the claims without running.")
    ] = False,
    short: Annotated[bool, typer.Option("--short", help="Shorter runs and fewer cases.")] = False,
    seed: Seed = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Neither read nor write the cache.")
    ] = False,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run the papers' experiments and check their claims.

    Runs are cached until their scenario or the code changes. Data and figures go to
    out/PAPER/EXPERIMENT, with -o to DIR/PAPER/EXPERIMENT, or to DIR itself for a single
    experiment named in full.
    """
    from waterfill.cli import tables
    from waterfill.cli.live import LiveList
    from waterfill.papers import output as written
    from waterfill.papers import report
    from waterfill.papers.claims import loading
    from waterfill.papers.reproduce import reproduce as run_all
    from waterfill.runs.result import make_directory

    names = experiments or []
    known = loading.experiments()
    if not names and not every and not listing:
        expected = "expected PAPER, PAPER/EXPERIMENT or --all (--list shows them), got nothing"
        raise InputError("reproduce", "", expected)
    chosen = loading.select(names, known) if names and not every else known
    if listing:
        lines = [f"{e.path}/{c.id}  {c.statement}" for e in chosen for c in e.claims]
        print_json(written.claim_list(chosen)) if json else print_text("\n".join(lines))
        return
    alone = len(chosen) == 1 and names == [chosen[0].path]
    flat, base = alone and output is not None, output or Path("out")
    folders = {e.path: make_directory(base if flat else base / e.path) for e in chosen}

    def finished(experiment: Experiment, judged: list[Judged], figures: list[Path]) -> None:
        live.done(experiment.path, [claim.verdict for claim in judged])
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
    document = written.document(judged)
    if json and not (found.interrupted and not judged):
        print_json(document)
    elif judged:
        counts = document["counts"].items()
        print_text(", ".join(f"{name}: {count}" for name, count in counts))
    if every and not found.interrupted:
        for page in report.write(base, report.collect(base, chosen)):
            print(f"written to {page}", file=sys.stderr)
    if found.interrupted:
        done = f"{len(found.claims)} of {len(chosen)} experiments finished"
        print(f"interrupted: {done}; their results are in {base}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    if _unexpected(judged):
        raise typer.Exit(1)


@app.command()
def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Output directory of reproduce.")
    ],
) -> None:
    """Write report.html and report.md with all verdicts and figures."""
    from waterfill.papers import report
    from waterfill.papers.claims import loading

    entries = report.collect(directory, loading.experiments())
    for path in report.write(directory, entries):
        print_text(f"written to {path}")


def _unexpected(judged: list[Judged]) -> bool:
    """Print the claims without their expected verdict; return whether there are any."""
    changed = [claim for claim in judged if claim.verdict != claim.expect]
    for claim in changed:
        print(f"{claim.path}: {claim.verdict}, expected {claim.expect}", file=sys.stderr)
    return bool(changed)


def _failed(*summaries: Summary) -> bool:
    """Print the failed checks of these runs on standard error; return whether there are any."""
    failed = False
    for summary in summaries:
        for check in summary.get("checks", ()):
            if not check["ok"]:
                failed = True
                title = one_line(summary["scenario"])
                expected = f"expected {check['wanted']}"
                print(f"{title}: check failed: {check['name']}: {expected}", file=sys.stderr)
    return failed


def _overrides(protocol: str | None, sets: list[str] | None, seed: int | None = None) -> list[str]:
    """Return all assignments, those of --protocol and --seed included; later ones win."""
    chosen = [] if protocol is None else [f"protocol={protocol}"]
    chosen += sets or []
    return chosen if seed is None else [*chosen, f"seed={seed}"]
