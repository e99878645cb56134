"""Tests of the grids of readings: changes of a cell, the table, and that all cells run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from validation.readings import study as program
from validation.readings.grid import Change, Grid, table
from waterfill.errors import InputError
from waterfill.papers.claims import loading
from waterfill.papers.claims.schema import ExperimentRun

KNOWN = {experiment.path: experiment for experiment in loading.experiments()}


def small(**changes: object) -> Grid:
    fields = {
        "name": "small",
        "question": "?",
        "experiments": ("maxnet-2007/encoding",),
        "axes": {"x": {"as-is": (Change(),), "other": (Change(("seed=2",)),)}},
        "adopted": {"x": "as-is"},
    }
    return Grid(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_change_applies_to_the_runs_it_names():
    run = ExperimentRun(name="20 ms", set=["a=1"])
    assert Change(("b=2",), run="20*").applied("p/e", run).set == ["a=1", "b=2"]
    assert Change(("b=2",), run="100*").applied("p/e", run) is run
    assert Change(("b=2",), experiment="p/f").applied("p/e", run) is run
    assert Change(scenario="other.toml").applied("p/e", run).scenario == "other.toml"


def test_a_change_of_arguments_applies_to_the_claims_it_names():
    grid = small(axes={"x": {"as-is": (Change(args={"t_s": 9.0}, claim="*-bits"),)}})
    claims = {claim.id: claim.args for claim in grid.variants(KNOWN)[0][1].claims}
    before = {claim.id: claim.args for claim in KNOWN["maxnet-2007/encoding"].claims}
    assert claims["integer-bits"] == {**before["integer-bits"], "t_s": 9.0}
    assert claims["smallest-rate"] == before["smallest-rate"]
    grid = small(axes={"x": {"as-is": (Change(measure="rate_bits", claim="integer-bits"),)}})
    measures = {claim.id: claim.measure for claim in grid.variants(KNOWN)[0][1].claims}
    assert measures["integer-bits"] == "rate_bits"
    assert measures["fraction-bits"] == "price_fraction_bits"
    assert (
        Change(args={"t_s": 9.0}, experiment="p/*").judged(
            "maxnet-2007/encoding", KNOWN["maxnet-2007/encoding"].claims[0]
        )
        is KNOWN["maxnet-2007/encoding"].claims[0]
    )


def test_cells_are_all_combinations():
    axes = {"x": {"a": (), "b": ()}, "y": {"c": (), "d": ()}}
    cells = small(axes=axes, adopted={"x": "b", "y": "c"}).cells()
    assert len(cells) == 4
    assert [small(axes=axes, adopted={"x": "b", "y": "c"}).is_adopted(cell) for cell in cells] == [
        False,
        False,
        True,
        False,
    ]


def test_unknown_names_are_errors():
    with pytest.raises(InputError, match="unknown experiment maxnet-2007/encodin"):
        small(experiments=("maxnet-2007/encodin",)).variants(KNOWN)
    with pytest.raises(InputError, match="unknown grid"):
        program.select(["nothing"], [small()])


def test_a_grid_runs_and_names_what_changes():
    """`cross-traffic` with another η: at least one verdict is not the one on record."""
    grid = small(
        experiments=("maxnet-2007/cross-traffic",),
        axes={"eta": {"printed": (Change(),), "half": (Change(("params.maxnet.eta=0.01",)),)}},
        adopted={"eta": "printed"},
    )
    found = program.judge([grid])
    printed, half = found["small"]
    assert not printed.changed
    assert half.changed
    assert sum(half.counts.values()) == len(KNOWN["maxnet-2007/cross-traffic"].claims)
    lines = table(found["small"]).splitlines()
    assert len(lines) == 4
    assert lines[2].startswith("| printed (adopted) |")
    assert f"cross-traffic/{half.changed[0].id} " in lines[3]
    entry = program.document(found)["small"]["cells"][1]
    assert entry["readings"] == {"eta": "half"}
    assert json.dumps(entry)


def test_every_cell_of_every_grid_can_be_loaded():
    names = [grid.name for grid in program.grids()]
    assert len(set(names)) == len(names)
    for grid in program.grids():
        assert grid.experiments
        for axis, readings in grid.axes.items():
            assert grid.adopted[axis] is None or grid.adopted[axis] in readings, grid.name
        for _, experiment in grid.variants(KNOWN):
            assert experiment.scenarios(), grid.name


RECORDS = sorted((Path(__file__).parents[2] / "docs" / "validation").glob("readings-*.md"))


def former() -> list[list[str]]:
    """Return the rows of the tables of former verdicts."""
    texts = [page.read_text(encoding="utf-8").split("## Former verdicts")[1] for page in RECORDS]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("|")]
    rows = [line.strip("| ").split(" | ") for line in lines]
    return [row for row in rows if row[0] != "claim" and not set(row[0]) <= set("-|")]


def test_the_record_of_former_verdicts_is_true():
    """Rows name claims as PAPER/EXPERIMENT/CLAIM; *after* is the verdict in claims.toml."""
    letters = {"reproduced": "R", "differs": "D", "cannot be checked": "C"}
    now = {
        f"{experiment.path}/{claim.id}": letters[claim.expect]
        for experiment in KNOWN.values()
        for claim in experiment.claims
    }
    for row in former():
        assert len(row) == 6, row
        for name in row[0].split(", "):
            assert row[3] in ("D", "C"), row
            assert now.get(name.strip("`"), "–") == row[4], (name, row)
