"""Figures of the templates can be read in every style: extents of texts, measured when drawn."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import waterfill
from waterfill.analysis import compare, draw, legible, looks, plots
from waterfill.analysis.drawing import Drawing
from waterfill.errors import InputError
from waterfill.scenario import templates

NAMES = ["maxnet", "xcp", "cubic", "rcp", "jetmax", "vcp", "abc", "aecp", "maxnet2006", "ours_2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("templates")

    @cache
    def of(template: str) -> waterfill.Result:
        path = folder / f"{template}.toml"
        path.write_text(templates.text(template), encoding="utf-8")
        return waterfill.run(path)

    return of


@pytest.fixture(scope="module")
def rates(run):
    """Figures of rates, each drawn once."""
    return cache(lambda template: plots.rates(run(template)))


@pytest.fixture(scope="module")
def compared(run):
    """Figures of one run under several names, which cost less than as many runs."""
    return cache(
        lambda template, count: compare.of(dict.fromkeys(NAMES[:count], run(template))).figure()
    )


@pytest.mark.parametrize("template", templates.names())
def test_a_run_of_each_template_can_be_read(run, template):
    figure = plots.overview(run(template))
    assert legible.problems(figure) == []
    assert tuple(figure.get_size_inches()) == figure.sheet.size  # it did not have to grow


@pytest.mark.parametrize("style", [name for name in looks.LOOKS if name != "screen"])
def test_a_run_can_be_read_in_each_style(rates, style):
    figure = draw.styled(rates("wan"), looks.look(style))
    assert legible.problems(figure) == []
    assert figure.get_figwidth() == looks.look(style).width


@pytest.mark.parametrize(
    ("template", "count", "style"),
    [
        ("parking-lot", 3, "screen"),
        ("wan", 1, "paper"),
        ("parking-lot", 3, "paper"),
        ("two-hops", 3, "slide"),
        ("two-hops", 10, "screen"),
    ],
)
def test_a_comparison_can_be_read(compared, template, count, style):
    figure = draw.styled(compared(template, count), looks.look(style))
    assert legible.problems(figure) == []
    titles = [axis.get_title(loc="left") for axis, _ in figure.place.values()]
    assert [title for title in titles if title] == NAMES[:count]


def test_transfers_can_be_read_in_one_column(run):
    figure = draw.styled(plots.slowdowns({"wan": run("wan").transfers}), looks.look("paper"))
    assert legible.problems(figure) == []


def test_what_cannot_be_read_is_refused_with_the_smallest_size(compared):
    figure = compared("two-hops", 1)
    with pytest.raises(InputError, match="type at least --size 7x") as refused:
        draw.styled(figure, looks.SCREEN, "7x2")
    enough = refused.value.advice.removeprefix("type at least --size ")
    height = float(enough.removeprefix("7x"))
    smaller = Drawing(figure.sheet, looks.SCREEN, (7.0, height - 0.5))
    assert legible.problems(smaller) != []


def test_text_that_is_cut_or_on_other_text_is_found(run):
    figure = plots.rates(run("two-hops"))
    text = figure.texts[0]
    text.set_x(-0.1)
    assert legible.problems(figure) == [f'"{text.get_text()}" is cut']
    text.set_position(figure.texts[1].get_position())
    text.set_va("bottom")
    assert legible.problems(figure) == [
        f'"{text.get_text()}" and "{figure.texts[1].get_text()}" overlap'
    ]
