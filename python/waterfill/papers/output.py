"""Output of `reproduce`: runs, claims.json, figures, and the document of `--json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from waterfill.analysis import draw
from waterfill.analysis.looks import SCREEN, Look
from waterfill.contract.versions import versioned
from waterfill.errors import InputError, nearest, shown
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import VERDICTS, Claim, Figure
from waterfill.papers.claims.sentences import by_sentence, sensitive
from waterfill.papers.claims.verdict import Judged, state
from waterfill.papers.figures import PLOTS
from waterfill.runs.directory import Stage
from waterfill.runs.files import WriteError, write_text
from waterfill.runs.result import Document, Result, to_json


def document(judged: Iterable[Judged]) -> Document:
    """Return the document of `reproduce --json`: the claims, and their number by verdict, also by
    sentence. `sensitive` counts the reproduced sentences that would notice a wrong law.
    """
    claims = list(judged)
    verdicts = [(claim, claim.verdict) for claim in claims]
    counts = Counter(claim.verdict for claim in claims)
    return {
        "claims": claims,
        "counts": {verdict: counts[verdict] for verdict in VERDICTS},
        "sentences": by_sentence(verdicts),
        "sensitive": sensitive(verdicts),
        "beyond": sum(claim.beyond is not None for claim in claims),
    }


def matching(
    chosen: Iterable[Experiment], verdict: str | None = None, text: str | None = None
) -> list[tuple[Experiment, Claim]]:
    """Return the claims with this expected verdict whose line contains this text, ignoring case.

    Raises InputError for an unknown verdict.
    """
    if verdict is not None and verdict not in VERDICTS:
        message = f"unknown verdict {shown(verdict)}{nearest(verdict, VERDICTS)}"
        raise InputError("command line", "--verdict", message)
    return [
        (experiment, claim)
        for experiment in chosen
        for claim in experiment.claims
        if verdict in (None, claim.expect)
        and (text is None or text.casefold() in line(experiment, claim).casefold())
    ]


def line(experiment: Experiment, claim: Claim) -> str:
    """Return the line of a claim in `reproduce --list`."""
    return f"{experiment.path}/{claim.id}  {claim.statement}"


def claim_list(chosen: Iterable[tuple[Experiment, Claim]]) -> Document:
    """Return the document of `reproduce --list --json`, which lists unmeasured claims."""
    return {"claims": [state(experiment, claim) for experiment, claim in chosen]}


def write(
    experiment: Experiment,
    samples: Sequence[Mapping[str, Result]],
    judged: Iterable[Judged],
    folder: Path,
    look: Look = SCREEN,
) -> tuple[list[Path], list[WriteError]]:
    """Write the runs, claims.json and figures of an experiment atomically; return the figures'
    paths and any errors.

    A single run is written into `folder` itself, several into folders of their names, with the seed
    after those of the first sample. Figures show the first sample. Returns the figures' paths, and
    why files were not written: all of them, or those with a directory in the way of one.
    """
    runs = samples[0]
    try:
        with Stage(folder) as stage:
            for place, sample in enumerate(samples):
                for name, result in sample.items():
                    label = f"{name} seed {result.summary.seed}" if place else name
                    alone = len(runs) == len(samples) == 1
                    result.write_into(
                        stage.folder if alone else stage.folder / label.replace("/", "-")
                    )
            write_text(stage.folder / "claims.json", to_json(versioned(document(judged))) + "\n")
            figures: list[Path] = []
            for figure in experiment.figures:
                figures += draw.save(
                    draw.styled(_draw(figure, runs), look), stage.folder / figure.name
                )
            stage.publish()
    except WriteError as error:
        return [], [error]
    return [folder / figure.name for figure in figures], []


def _draw(figure: Figure, runs: Mapping[str, Result]) -> Any:
    plot = PLOTS[figure.plot]
    if plot.of == "runs":
        return plot.function(runs, **figure.args)
    if plot.of == "nothing":
        return plot.function(**figure.args)
    return plot.function(runs[figure.run or next(iter(runs))], **figure.args)
