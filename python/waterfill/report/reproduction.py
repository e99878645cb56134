"""Page of reproduced experiments, with the verdict, figure and reasons of each claim.

`write` makes `report.html`, which needs no other file and no network, and `report.md`, which links
to the figures beside it. Both read what `reproduce` writes: DIR/PAPER/EXPERIMENT with claims.json,
figures and runs, or DIR itself where it has one experiment's claims.json.
"""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from waterfill.errors import InputError, one_line
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import VERDICTS, ExperimentRun, Figure
from waterfill.papers.claims.sentences import tally
from waterfill.papers.claims.text import SHORT_TITLE, claim_cells, is_short, remark
from waterfill.papers.claims.verdict import Judged
from waterfill.report import checks, page
from waterfill.report.detect import CLAIMS
from waterfill.runs.files import open_regular, write_text
from waterfill.scenario.units import percent

if TYPE_CHECKING:
    from waterfill.papers.claims.schema import Claim
    from waterfill.runs.result import Document

_CLASSES = {"reproduced": "reproduced", "differs": "differs", "cannot be checked": "unchecked"}
_MAX_FIGURE_BYTES = 5_000_000


@dataclass(frozen=True)
class Entry:
    """One experiment as found on disk, with its judged claims and its figures."""

    experiment: Experiment
    claims: list[Judged]
    figures: list[Path]

    @property
    def anchor(self) -> str:
        """Name of the experiment's HTML anchor on the page."""
        return self.experiment.path.replace("/", "-")


def collect(root: Path, experiments: Iterable[Experiment]) -> list[Entry]:
    """Return the experiments that have been reproduced below `root`, in the given order.

    Raises InputError if there is none, or if a claims.json was not written by `reproduce`.
    """
    known = list(experiments)
    alone = root / CLAIMS
    if alone.is_file():
        claims = read(alone)
        named = {f"{claim.paper}/{claim.experiment}" for claim in claims}
        chosen = [experiment for experiment in known if {experiment.path} == named]
        if not chosen:
            raise InputError(str(alone), "claims", "not the claims of one experiment")
        return [Entry(chosen[0], claims, _figures(chosen[0], root))]
    found = []
    for experiment in known:
        folder = root / experiment.path
        if (folder / CLAIMS).is_file():
            claims = read(folder / CLAIMS)
            if any(f"{claim.paper}/{claim.experiment}" != experiment.path for claim in claims):
                message = f"not the claims of {experiment.path}"
                raise InputError(str(folder / CLAIMS), "claims", message)
            found.append(Entry(experiment, claims, _figures(experiment, folder)))
    if not found:
        raise InputError(
            str(root), "", "no folder PAPER/EXPERIMENT here", "write some with `reproduce -o`"
        )
    return found


def own(root: Path, known: Iterable[Experiment]) -> list[Experiment]:
    """Return the experiments at or below `root` that are not known: a user's own ones.

    Their claims.toml may be anywhere, so they have only their results: the path PAPER/EXPERIMENT
    as title, and the figures and scenario next to claims.json. Raises InputError for a claims.json
    that was not written by `reproduce`.
    """
    paths = {experiment.path for experiment in known}
    found = []
    alone = root / CLAIMS
    for file in [alone] if alone.is_file() else sorted(root.glob(f"*/*/{CLAIMS}")):
        place = file.parent.relative_to(root).as_posix()
        if place in paths:
            continue
        named = {(claim.paper, claim.experiment) for claim in read(file)}
        path = "/".join(next(iter(named), ()))
        if len(named) == 1 and path not in paths and (file == alone or path == place):
            found.append(_from_results(*named.pop(), file.parent))
    return found


def _from_results(paper: str, name: str, folder: Path) -> Experiment:
    drawn = sorted(path.stem for path in folder.glob("*.svg"))
    # Not checked: the name is that of a file which is there.
    figures = tuple(Figure.model_construct(name=name, plot="") for name in drawn)
    runs = (ExperimentRun(name="run"),)
    return Experiment(paper, name, folder, f"{paper}/{name}", figures, (), runs, ())


def _command(entry: Entry) -> str:
    """Return the command that reproduces an experiment. Claims are read only of known ones."""
    experiment = entry.experiment
    claims = "" if experiment.claims else " --claims DIR"
    short = " --short" if is_short(entry.claims) else ""
    return f"waterfill reproduce {one_line(experiment.path)}{claims}{short}"


def read(file: Path) -> list[Judged]:
    """Return the claims of a claims.json; raise InputError unless `reproduce` wrote it."""
    claims = checks.claims(file)
    if len({claim.id for claim in claims}) < len(claims):
        raise InputError(str(file), "claims", "two claims have the same id")
    return claims


def _figures(experiment: Experiment, folder: Path) -> list[Path]:
    paths = [folder / f"{figure.name}.svg" for figure in experiment.figures]
    return [p for p in paths if p.is_file() and p.stat().st_size <= _MAX_FIGURE_BYTES]


def write(root: Path, entries: Sequence[Entry]) -> list[Path]:
    """Write report.html and report.md into `root` and return their paths."""
    return [
        write_text(root / "report.html", page.render("reproduction.html.j2", content(entries))),
        write_text(root / "report.md", markdown(root, entries)),
    ]


# --- counts ------------------------------------------------------------------------------------


def counts(claims: Iterable[Judged]) -> Counter[str]:
    """Return the number of claims with each verdict."""
    return Counter(claim.verdict for claim in claims)


def _summary(entries: Sequence[Entry]) -> str:
    """Return a text with the number of claims by verdict, separately for short versions."""
    every = [claim for entry in entries for claim in entry.claims]
    full = [claim for claim in every if claim.short is None]
    short = [claim for claim in every if claim.short is not None]
    parts = [tally((claim, claim.verdict) for claim in full)] if full else []
    parts += [_tally(full)] if full or not short else []
    parts += [f"of short versions {_tally(short)}"] if short else []
    many = f"{len(entries)} experiment{'s' * (len(entries) != 1)}"
    return f"{many}: {'; '.join(parts)}"


def _tally(claims: Sequence[Judged]) -> str:
    number = counts(claims)
    reproduced, differ, _ = (number[verdict] for verdict in VERDICTS)
    words = {"differs": "differs" if differ == 1 else "differ"}
    parts = ", ".join(f"{number[verdict]} {words.get(verdict, verdict)}" for verdict in VERDICTS)
    checked = reproduced + differ
    share = f" ({percent(reproduced / checked)} of the checkable)" if checked else ""
    return f"{len(claims)} claim{'s' * (len(claims) != 1)}, {parts}{share}"


def _short_note(entries: Sequence[Entry]) -> str:
    """Return a sentence that names the experiments with verdicts of short versions, or an empty
    text.
    """
    named = [entry.experiment.path for entry in entries if is_short(entry.claims)]
    short = sum(claim.short is not None for entry in entries for claim in entry.claims)
    if not named:
        return ""
    verdicts = "1 verdict is" if short == 1 else f"{short} verdicts are"
    return f"{verdicts} of a {SHORT_TITLE}: {', '.join(named)}."


def _papers(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    papers: dict[str, list[Entry]] = {}
    for entry in entries:
        papers.setdefault(entry.experiment.paper, []).append(entry)
    return papers


# --- the HTML page -----------------------------------------------------------------------------


def content(entries: Sequence[Entry]) -> Document:
    """Return the data of the template `reproduction.html.j2` for these experiments."""
    return {
        "title": "What the papers say, and whether it holds",
        "subtitle": f"{_summary(entries)}.",
        "short_note": _short_note(entries),
        "verdicts": VERDICTS,
        "papers": {
            paper: [_section(entry) for entry in mine] for paper, mine in _papers(entries).items()
        },
        "charts": [],
    }


def _section(entry: Entry) -> Document:
    experiment = entry.experiment
    number = counts(entry.claims)
    groups = _beside(entry)
    files = ["README.md", *sorted({run.scenario for run in experiment.runs})]
    return {
        "anchor": entry.anchor,
        "path": experiment.path,
        "command": _command(entry),
        "title": experiment.title,
        "short": is_short(entry.claims),
        "counts": [(_CLASSES[verdict], number[verdict]) for verdict in VERDICTS],
        "groups": [
            {"claims": [_row(claim) for claim in claims], "figure": figure and _image(figure)}
            for figure, claims in groups
        ],
        "files": [
            (path.name, path.suffix == ".md", path.read_text(encoding="utf-8"))
            for name in files
            if (path := experiment.folder / name).is_file()
        ],
    }


def _row(claim: Judged) -> Document:
    paper, measured = claim_cells(claim)
    return {
        "id": claim.id, "statement": claim.statement, "why": remark(claim), "source": claim.source,
        "paper": paper, "measured": measured, "verdict": claim.verdict,
        "kind": _CLASSES[claim.verdict], "short": claim.short is not None,
        "unexpected": claim.expect if claim.verdict != claim.expect else "",
    }  # fmt: skip


def _image(figure: Path) -> Document:
    with open_regular(figure) as file:
        data = base64.b64encode(file.read()).decode("ascii")
    return {"name": figure.stem, "source": f"data:image/svg+xml;base64,{data}"}


def _beside(entry: Entry) -> list[tuple[Path | None, list[Judged]]]:
    """Return an experiment's claims grouped by figure, with figures without claims last."""
    of_name = {path.stem: path for path in entry.figures}
    there = [figure for figure in entry.experiment.figures if figure.name in of_name]
    known = {claim.id: claim for claim in entry.experiment.claims}
    groups: dict[str, list[Judged]] = {}
    for claim in entry.claims:
        figure = figure_of(claim.source, known.get(claim.id), there)
        groups.setdefault("" if figure is None else figure.name, []).append(claim)
    found: list[tuple[Path | None, list[Judged]]] = [
        (of_name.get(name), claims) for name, claims in groups.items()
    ]
    return found + [(path, []) for name, path in of_name.items() if name not in groups]


def figure_of(source: str, claim: Claim | None, figures: Sequence[Figure]) -> Figure | None:
    """Return the experiment's figure that fits a claim best, or None if there are no figures.

    The paper's number of the figure counts most ("Fig. 5 (a)" and `figure-5a-utilization`), then
    the run that both show, then what is measured. The first of equal ones is taken.
    """
    numbers = _numbers(source)

    def score(figure: Figure) -> int:
        mine = re.match(r"figure-(\d+)([a-z]?)", figure.name)
        points = 0
        if mine is not None:
            number, letter = mine.groups()
            points += 8 if (number, letter) in numbers else 4 * any(number == n for n, _ in numbers)
        if claim is not None:
            points += 2 * (claim.run is not None and claim.run == figure.run)
            points += _same_kind(claim, figure)
        return points

    return max(figures, key=score, default=None)


def _numbers(source: str) -> set[tuple[str, str]]:
    """Return the figures that a claim's source names, each as number and letter."""
    found = re.findall(r"Figs?\.\s*(\d+)\s*\(?([a-z]?)\b\)?", source)
    return {(number, letter) for number, letter in found}


def _same_kind(claim: Claim, figure: Figure) -> bool:
    """Return True if a claim's measure and a figure's plot show the same quantity."""
    if claim.measure is None:
        return False
    if figure.args.get("measure") == claim.measure:
        return True
    measured = _quantity(f"{claim.measure} {' '.join(claim.args)}")
    return measured is not None and measured == _quantity(f"{figure.name} {figure.plot}")


def _quantity(text: str) -> str | None:
    """Return the first quantity in a name, such as "queue", or None if there is none."""
    text = text.replace("share", "rate")
    return next((word for word in ("queue", "utiliz", "rate") if word in text), None)


# --- the Markdown page -------------------------------------------------------------------------


def markdown(root: Path, entries: Sequence[Entry]) -> str:
    """Return the Markdown page, whose figures are links relative to `root`."""
    text = ["# What the papers say, and whether it holds", "", f"{_summary(entries)}.", ""]
    if note := _short_note(entries):
        text += [f"**{note}**", ""]
    for paper, group in _papers(entries).items():
        text += [f"## {_cell(paper)}", ""]
        for entry in group:
            experiment = entry.experiment
            text += [
                *(f"### {_cell(experiment.title)}", ""),
                *(f"    {_command(entry)}", ""),
            ]
            for figure in entry.figures:
                path = figure.with_suffix(".png").relative_to(root)
                text += [f"![{figure.stem}](<{path}>)", ""]
            text += ["| claim | source | paper | measured | verdict |", "|---|---|---|---|---|"]
            for claim in entry.claims:
                cells = map(_cell, [claim.statement, claim.source, *claim_cells(claim)])
                verdict = f"**{claim.verdict}**" if claim.verdict == "differs" else claim.verdict
                short = " (short)" if claim.short is not None else ""
                text.append(f"| {' | '.join([*cells, verdict + short])} |")
            notes = [f"- {_cell(c.id)}: {_cell(remark(c))}" for c in entry.claims if remark(c)]
            text += ["", *notes, ""] if notes else [""]
    return "\n".join(text)


def _cell(text: str) -> str:
    """Return a text for a cell of a Markdown table, on one line and without HTML tags."""
    return html.escape(one_line(text), quote=False).replace("|", "\\|")
