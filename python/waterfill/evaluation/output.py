"""Files of an evaluation: verdicts.json, verdicts.md, junit.xml, expected.toml, and its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waterfill.evaluation import expected, junit, markdown
from waterfill.evaluation.plan import Cell
from waterfill.evaluation.verdict import EvaluationDocument
from waterfill.runs.directory import Stage
from waterfill.runs.files import write_text
from waterfill.runs.result import to_json

DOCUMENT = "verdicts.json"


def write(
    document: EvaluationDocument,
    cells: Mapping[str, Sequence[Cell]],
    stage: Stage,
    differences: Sequence[str] | None = None,
) -> None:
    """Write an evaluation to a staged folder and publish it; raise WriteError on failure.

    With `differences` from a record, the failures of junit.xml are these.
    """
    folder = stage.folder
    write_text(folder / DOCUMENT, to_json(document) + "\n")
    write_text(folder / "verdicts.md", markdown.text(document))
    write_text(folder / "junit.xml", junit.text(document, differences))
    write_text(folder / "expected.toml", expected.text(document))
    for criterion, own in cells.items():
        for cell in own:
            if "law" in cell.scenarios:
                path = folder / "cells" / criterion / f"{cell.slug}.toml"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, cell.scenarios["law"].to_toml())
    stage.publish()
