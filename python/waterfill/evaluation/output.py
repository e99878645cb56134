"""Files of an evaluation: verdicts.json and a scenario file for each cell."""

from __future__ import annotations

from pathlib import Path

from waterfill.evaluation.api import Evaluation
from waterfill.runs.directory import Stage
from waterfill.runs.files import write_text
from waterfill.runs.result import to_json

DOCUMENT = "verdicts.json"


def write(evaluation: Evaluation, folder: Path) -> None:
    """Write an evaluation to a folder atomically; raise WriteError if that is not possible."""
    with Stage(folder) as stage:
        write_text(stage.folder / DOCUMENT, to_json(evaluation.document) + "\n")
        for criterion, cells in evaluation.cells.items():
            for cell in cells:
                if "law" not in cell.scenarios:
                    continue
                path = stage.folder / "cells" / criterion / f"{cell.slug}.toml"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, cell.scenarios["law"].to_toml())
        stage.publish()
