"""Commands about the papers: `reproduce` and `report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import (
    INTERRUPTED,
    Json,
    Output,
    OwnLaw,
    Seed,
    Style,
    laws_of,
    laws_used,
    place,
)
from waterfill.cli.console import Unwritten, print_json, print_text, show
from waterfill.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from waterfill.papers.claims.experiment import Experiment
    from waterfill.papers.claims.verdict import Judged


Experiments = Annotated[
    list[str] | None,
    Argument(
        metavar="PAPER[/EXPERIMENT]",
        help="Papers or experiments to run.",
        autocompletion=completion.experiment,
    ),
]
ExpectedVerdict = Annotated[
    str | None,
    Option(metavar="V", help="With --list: show only claims with this expected verdict."),
]
Match = Annotated[
    str | None,
    Option(metavar="TEXT", help="With --list: show only lines with this text; case is ignored."),
]


OwnClaims = Annotated[
    Path | None,
    Option(
        "--claims",
        metavar="DIR",
        help="Your own experiments: folders with a claims.toml in DIR.",
        parser=place,
    ),
]


def reproduce(
    experiments: Experiments = None,
    every: Annotated[bool, Option("--all", help="Run all experiments.")] = False,
    listing: Annotated[bool, Option("--list", help="List the claims without running.")] = False,
    verdict: ExpectedVerdict = None,
    match: Match = None,
    short: Annotated[bool, Option("--short", help="Run shorter and fewer cases.")] = False,
    seed: Seed = None,
    fresh: Annotated[bool, Option("--fresh", help="Do not use the cache.")] = False,
    json: Json = False,
    output: Output = None,
    style: Style = "screen",
    claims: OwnClaims = None,
    law: OwnLaw = None,
) -> None:
    """Run the papers' experiments and check their claims.

    With --claims, experiments of your own in place of the papers'. Runs are cached until their
    scenario or the code changes. Data and figures are written to out/PAPER/EXPERIMENT, or with
    --short below out/short. With -o they are written to DIR/PAPER/EXPERIMENT, or to DIR if a single
    experiment is named in full.
    """
    from waterfill.analysis.looks import look
    from waterfill.papers.claims import loading
    from waterfill.papers.reproduce import reproduce as run_all
    from waterfill.runs.files import make_directory
    from waterfill.runs.progress import ExperimentBars

    names, drawn_as = experiments or [], look(style)
    known, own = _known(claims, law), laws_of(law)
    every = every or (claims is not None and not names)
    _check_names(names, every, listing)
    chosen = loading.select(names, known) if names else known
    if listing:
        given = {"--short": short, "--seed": seed is not None, "--fresh": fresh}
        _refuse_with_list(given | {"--output": output is not None, "--law": law is not None})
        _list(chosen, verdict, match, json=json)
        return
    if verdict is not None or match is not None:
        option = "--verdict" if verdict is not None else "--match"
        raise InputError("reproduce", option, "only filters --list", "add --list")
    alone = len(chosen) == 1 and names == [chosen[0].path]
    scenarios = (one for e in chosen for one in e.scenarios(short).values())
    own = laws_used(own, scenarios, law, "waterfill reproduce --help")
    # Short verdicts never overwrite those of the full experiments.
    flat, base = alone and output is not None, output or Path("out/short" if short else "out")
    folders = {e.path: make_directory(base if flat else base / e.path) for e in chosen}

    drawn: dict[str, list[Path]] = {}

    def finished(experiment: Experiment, judged: list[Judged], figures: list[Path]) -> None:
        live.done(experiment.path, [claim.verdict for claim in judged])
        drawn[experiment.path] = figures

    with ExperimentBars(len(chosen)) as live:
        found = run_all(
            chosen,
            lambda e: folders[e.path],
            short=short,
            seed=seed,
            cached=not fresh,
            planned=live.planned,
            progress=live.show,
            done=finished,
            look=drawn_as,
            laws=own,
        )
    judged = [claim for e in chosen for claim in found.claims.get(e.path, [])]
    _conclude(judged, json=json and not (found.interrupted and not judged))
    if not json:
        _show_finished([e for e in chosen if e.path in drawn], found.claims, drawn)
    unwritten = Unwritten()
    if every and claims is None and not found.interrupted and not found.unwritten:
        _write_pages(base, chosen, unwritten)
    unwritten.errors += found.unwritten
    failed = unwritten.report()
    if found.interrupted:
        _end_interrupted(len(found.claims), len(chosen), base)
    if _unexpected(judged) or failed:
        raise typer.Exit(1)


def _end_interrupted(finished: int, wanted: int, base: Path) -> NoReturn:
    """Say where the results of the finished experiments are, and end the program."""
    done = f"{finished} of {wanted} experiments finished"
    print(f"interrupted: {done}; their results are in {base}", file=sys.stderr)
    raise typer.Exit(INTERRUPTED)


def _check_names(names: Sequence[str], every: bool, listing: bool) -> None:
    """Raise InputError if there is nothing to run, or names besides all experiments."""
    if not names and not every and not listing:
        advice = "type PAPER, PAPER/EXPERIMENT or --all (--list shows them)"
        raise InputError("reproduce", "", "no experiment given", advice)
    if names and every:
        why = f"no effect with --all, got {' '.join(names)}"
        raise InputError("reproduce", "", why, "remove --all or the names")


def _known(claims: Path | None, law: Path | None) -> list[Experiment]:
    """Return the papers' experiments, or a user's own; raise InputError for `--law` alone."""
    from waterfill.papers.claims import loading

    if claims is not None:
        return loading.experiments_in(claims)
    if law is not None:
        raise InputError("reproduce", "law", "no effect without --claims", "add --claims DIR")
    return loading.experiments()


def _show_finished(
    experiments: Sequence[Experiment],
    claims: Mapping[str, list[Judged]],
    figures: Mapping[str, list[Path]],
) -> None:
    """Print each experiment's table of claims and the paths of its figures."""
    from waterfill.cli import claim_tables

    for experiment in experiments:
        path = experiment.path
        print_text("")
        show(*claim_tables.claims(f"{path}: {experiment.title}", claims[path]))
        for figure in figures[path]:
            print_text(f"figure: {figure}")


def _refuse_with_list(given: Mapping[str, bool]) -> None:
    """Raise InputError if an option is given that has no effect with --list."""
    for option, is_given in given.items():
        if is_given:
            raise InputError("reproduce", option, "no effect with --list", "remove it")


def _write_pages(base: Path, chosen: Sequence[Experiment], unwritten: Unwritten) -> None:
    """Write the report pages of all experiments."""
    from waterfill.report import reproduction

    with unwritten.collected():
        for page in reproduction.write(base, reproduction.collect(base, chosen)):
            print(f"written to {page}", file=sys.stderr)


def _list(
    chosen: Sequence[Experiment], verdict: str | None, match: str | None, *, json: bool
) -> None:
    """Print the claims of experiments that `--verdict` and `--match` select."""
    from waterfill.papers import output as written

    kept = written.matching(chosen, verdict, match)
    if json:
        print_json(written.claim_list(kept))
    else:
        print_text("\n".join(written.line(experiment, claim) for experiment, claim in kept))


def _conclude(judged: list[Judged], *, json: bool) -> None:
    """Print all judged claims as JSON, or the number of sentences and claims with each verdict."""
    from waterfill.papers import output as written
    from waterfill.papers.claims.text import is_short

    document = written.document(judged)
    if json:
        print_json(document)
    elif judged:
        short = " (short version)" if is_short(judged) else ""
        print_text(f"by sentence: {_tally(document['sentences'])}{short}")
        sentences = f"{document['sensitive']} of {document['sentences']['reproduced']}"
        print_text(f"reproduced sentences that would notice a wrong law: {sentences}")
        if beyond := document["beyond"]:
            print_text(f"claims beyond the papers, not among the sentences: {beyond}")
        print_text(f"by claim: {_tally(document['counts'])}{short}")


def _tally(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{verdict}: {count}" for verdict, count in counts.items())


def _unexpected(judged: list[Judged]) -> bool:
    """Print the claims that lack their expected verdict; return True if there are any."""
    changed = [claim for claim in judged if claim.verdict != claim.expect]
    for claim in changed:
        print(f"{claim.path}: {claim.verdict}, expected {claim.expect}", file=sys.stderr)
    return bool(changed)
