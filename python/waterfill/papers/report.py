"""One page with every reproduced experiment: verdicts, figures, and the scenario behind each.

`write` makes `report.html`, which needs no other file and no network, and `report.md`, which links
to the figures beside it. Both read the folders that `reproduce` writes: DIR/PAPER/EXPERIMENT with
claims.json, figures and runs.
"""

from __future__ import annotations

import base64
import html
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from waterfill._core import version
from waterfill.errors import InputError
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import VERDICTS
from waterfill.papers.claims.text import SHORT_TITLE, claim_cells, is_short, remark
from waterfill.papers.claims.verdict import Judged
from waterfill.runs.result import write_text

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 2px solid #ddd; }
h3 { margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd;
         vertical-align: top; }
.number { text-align: right; white-space: nowrap; }
.reproduced { color: #00624a; } .differs { color: #a33b00; font-weight: 600; }
.unchecked { color: #5a5a5a; font-style: italic; }
.why { font-size: .88rem; color: #444; }
img { max-width: 100%; border: 1px solid #eee; box-sizing: border-box; }
.figures { display: flex; flex-wrap: wrap; gap: .6rem; margin: .6rem 0; align-items: flex-start; }
@media (min-width: 60rem) { .several img { width: calc(50% - .3rem); } }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: .82rem; }
pre.prose { white-space: pre-wrap; }
summary { cursor: pointer; }
nav { margin: 1rem 0; } nav a { margin-right: 1rem; } code { font-size: .92em; }
"""

_CLASSES = {"reproduced": "reproduced", "differs": "differs", "cannot be checked": "unchecked"}


@dataclass(frozen=True)
class Entry:
    """One experiment as found on disk: its judged claims and its figures."""

    experiment: Experiment
    claims: list[Judged]
    figures: list[Path]


def collect(root: Path, experiments: Iterable[Experiment]) -> list[Entry]:
    """Return the experiments that have been reproduced below `root`, in the given order.

    Raises InputError if there is none, or if a claims.json was not written by `reproduce`.
    """
    found = []
    for experiment in experiments:
        file = root / experiment.path / "claims.json"
        if not file.is_file():
            continue
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            claims = [Judged.of(claim) for claim in document["claims"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(str(file), "", "expected the claims.json of a reproduction") from None
        figures = [
            path
            for figure in experiment.figures
            if (path := file.parent / f"{figure.name}.svg").is_file()
        ]
        found.append(Entry(experiment, claims, figures))
    if not found:
        raise InputError(
            str(root), "", "expected folders PAPER/EXPERIMENT that reproduce has written, got none"
        )
    return found


def write(root: Path, entries: Sequence[Entry]) -> list[Path]:
    """Write report.html and report.md into `root` and return their paths."""
    return [
        write_text(root / "report.html", page(entries)),
        write_text(root / "report.md", markdown(root, entries)),
    ]


def counts(entries: Sequence[Entry]) -> Counter[str]:
    """Count the claims with each verdict."""
    return Counter(claim.verdict for entry in entries for claim in entry.claims)


def _summary(entries: Sequence[Entry]) -> str:
    number = counts(entries)
    total = sum(number.values())
    words = {"differs": "differs" if number["differs"] == 1 else "differ"}
    parts = ", ".join(f"{number[verdict]} {words.get(verdict, verdict)}" for verdict in VERDICTS)
    checked = number["reproduced"] + number["differs"]
    share = f" ({number['reproduced'] / checked:.0%} of the checkable)" if checked else ""
    return f"{total} claims of {len(entries)} experiment{'s' * (len(entries) != 1)}: {parts}{share}"


def _short_note(entries: Sequence[Entry]) -> list[str]:
    """Return a sentence that names the experiments whose verdicts are of short versions."""
    named = [entry.experiment.path for entry in entries if is_short(entry.claims)]
    return [f"{', '.join(named)}: {SHORT_TITLE}."] if named else []


def _papers(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    papers: dict[str, list[Entry]] = {}
    for entry in entries:
        papers.setdefault(entry.experiment.paper, []).append(entry)
    return papers


def page(entries: Sequence[Entry]) -> str:
    """Return the HTML page."""
    papers = _papers(entries)
    text = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Waterfill: what reproduces</title><style>{_STYLE}</style></head><body>",
        "<h1>What the papers say, and whether it holds</h1>",
        f"<p>{_summary(entries)}. Waterfill {html.escape(version())}.</p>",
        *(f"<p class='differs'>{html.escape(note)}</p>" for note in _short_note(entries)),
        "<nav>",
    ]
    text += [f"<a href='#{paper}'>{paper}</a>" for paper in papers]
    text.append("</nav>")
    text += _overview(entries)
    for paper, group in papers.items():
        text.append(f"<h2 id='{paper}'>{paper}</h2>")
        for entry in group:
            text += _section(entry)
    text.append("</body></html>\n")
    return "\n".join(text)


def _overview(entries: Sequence[Entry]) -> list[str]:
    """Return a table with one row per experiment: how many claims have each verdict."""
    heads = "".join(f"<th class='number'>{verdict}</th>" for verdict in VERDICTS)
    text = [f"<table><thead><tr><th>experiment</th><th></th>{heads}</tr></thead><tbody>"]
    for entry in entries:
        number = counts([entry])
        cells = "".join(
            f"<td class='number {_CLASSES[verdict] if number[verdict] else ''}'>"
            f"{number[verdict] or ''}</td>"
            for verdict in VERDICTS
        )
        experiment = entry.experiment
        link = f"<a href='#{_anchor(experiment)}'>{experiment.path}</a>"
        text.append(f"<tr><td>{link}</td><td>{html.escape(experiment.title)}</td>{cells}</tr>")
    text.append("</tbody></table>")
    return text


def _anchor(experiment: Experiment) -> str:
    return experiment.path.replace("/", "-")


def _section(entry: Entry) -> list[str]:
    experiment = entry.experiment
    anchor = _anchor(experiment)
    text = [
        f"<h3 id='{anchor}'>{html.escape(experiment.title)}</h3>",
        f"<p><code>waterfill reproduce {experiment.path}</code></p>",
    ]
    if entry.figures:
        text.append(f"<div class='figures{' several' if len(entry.figures) > 1 else ''}'>")
        for figure in entry.figures:
            data = base64.b64encode(figure.read_bytes()).decode("ascii")
            name = html.escape(f"{experiment.path}: {figure.stem}")
            text.append(f"<img alt='{name}' src='data:image/svg+xml;base64,{data}'>")
        text.append("</div>")
    text.append(
        "<table><thead><tr><th>claim</th><th>source</th><th class='number'>paper</th>"
        "<th class='number'>measured</th><th>verdict</th></tr></thead><tbody>"
    )
    for claim in entry.claims:
        paper, measured = map(html.escape, claim_cells(claim))
        kind = _CLASSES[claim.verdict]
        note = remark(claim)
        why = f"<div class='why'>{html.escape(note)}</div>" if note else ""
        text.append(
            f"<tr id='{anchor}-{claim.id}'><td>{html.escape(claim.statement)}{why}</td>"
            f"<td>{html.escape(claim.source)}</td><td class='number'>{paper}</td>"
            f"<td class='number'>{measured}</td><td class='{kind}'>{claim.verdict}</td></tr>"
        )
    text.append("</tbody></table>")
    # The README that claims refer to: readings, parameters, findings.
    files = ["README.md", *sorted({run.scenario for run in experiment.runs})]
    for path in [experiment.folder / name for name in files]:
        if path.is_file():
            kind = " class='prose'" if path.suffix == ".md" else ""
            source = html.escape(path.read_text(encoding="utf-8"))
            text.append(
                f"<details><summary>{path.name}</summary><pre{kind}>{source}</pre></details>"
            )
    return text


def markdown(root: Path, entries: Sequence[Entry]) -> str:
    """Return the Markdown page; figures are links relative to `root`."""
    text = ["# What the papers say, and whether it holds", "", f"{_summary(entries)}.", ""]
    text += [line for note in _short_note(entries) for line in (f"**{note}**", "")]
    for paper, group in _papers(entries).items():
        text += [f"## {paper}", ""]
        for entry in group:
            experiment = entry.experiment
            text += [
                *(f"### {experiment.title}", ""),
                *(f"    waterfill reproduce {experiment.path}", ""),
            ]
            for figure in entry.figures:
                path = figure.with_suffix(".png").relative_to(root)
                text += [f"![{figure.stem}](<{path}>)", ""]
            text += ["| claim | source | paper | measured | verdict |", "|---|---|---|---|---|"]
            for claim in entry.claims:
                cells = [claim.statement, claim.source, *claim_cells(claim)]
                verdict = f"**{claim.verdict}**" if claim.verdict == "differs" else claim.verdict
                row = " | ".join(cell.replace("|", "\\|") for cell in [*cells, verdict])
                text.append(f"| {row} |")
            notes = [f"- {c.id}: {remark(c)}" for c in entry.claims if remark(c)]
            text += ["", *notes, ""] if notes else [""]
    return "\n".join(text)
