"""Tests of the page of all reproduced experiments: its claims, and no links to other files."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from waterfill.cli import claim_tables
from waterfill.errors import InputError
from waterfill.papers import output
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import Figure
from waterfill.papers.claims.verdict import Judged, state
from waterfill.report import page, reproduction, write
from waterfill.report.reproduction import Entry


@pytest.fixture(scope="module")
def known() -> list[Experiment]:
    """The papers' experiments, read once."""
    return loading.experiments()


def entries(root: Path) -> list[Entry]:
    return reproduction.collect(root / "out", loading.experiments(root / "papers"))


def rendered(root: Path) -> str:
    return page.render("reproduction.html.j2", reproduction.content(entries(root)))


def test_the_page_counts_and_explains(root):
    found = rendered(root)
    assert "; 3 claims, 2 reproduced, 1 differs, 0 cannot be checked (67 %" in found
    assert '<a href="#paper-one">paper/one</a>' in found
    assert '<h3 id="paper-one">One &amp; only</h3>' in found
    why = re.findall(r'<div class="why">(.*?)</div>', found)
    # A reproduced claim is explained only if a doubt is recorded.
    assert why == ["seed 4 differs", "half &lt;b&gt;"]


def test_the_page_needs_no_other_file(root):
    found = rendered(root)
    assert "What was *found*" in found
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', found) == []
    assert found.count("data:image/svg+xml;base64,") == 1


def test_short_verdicts_are_counted_apart_and_labelled(root):
    (entry,) = entries(root)
    first, *others = entry.claims
    short = [Judged.read({**first, "short": ["duration=15 s"]}), *others]
    content = reproduction.content([replace(entry, claims=short)])
    assert content["subtitle"] == (
        "1 experiment: of 2 sentences, 1 reproduced (50 %), 1 differs, 0 cannot be checked; "
        "1 of the 1 would notice a wrong law; 0 claims beyond the papers; 2 claims, "
        "1 reproduced, 1 differs, 0 cannot be checked "
        "(50 % of the checkable); of short versions 1 claim, 1 reproduced, 0 differ, "
        "0 cannot be checked (100 % of the checkable)."
    )
    found = page.render("reproduction.html.j2", content)
    assert "1 verdict is of a short version: shorter runs" in found
    assert 'reproduced <span class="short">short</span>' in found
    assert "Short version: duration=15 s." in found
    printed = io.StringIO()
    for part in claim_tables.claims("paper/one", short):
        Console(file=printed, width=80).print(part)
    assert re.search(r"reproduced\s+(?:.*\n.*)?\(short\)", printed.getvalue())
    text = reproduction.markdown(root / "out", [replace(entry, claims=short)])
    assert "| reproduced (short) |" in text
    assert f"    waterfill reproduce {entry.experiment.path} --short\n" in text


def test_the_markdown_page_links_to_the_figures_beside_it(root):
    out = root / "out"
    for path in reproduction.write(out, entries(root)):
        assert path.is_file()
    text = (out / "report.md").read_text(encoding="utf-8")
    (link,) = re.findall(r"!\[rates\]\(<(.+)>\)", text)
    assert (out / link).is_file()
    assert "- barely: seed 4 differs" in text
    assert "- holds" not in text


def test_nothing_reproduced_is_one_line(root):
    with pytest.raises(InputError, match="no folder PAPER/EXPERIMENT"):
        reproduction.collect(root / "papers", loading.experiments(root / "papers"))


@pytest.mark.parametrize(
    ("experiment", "claim", "figure"),
    [
        ("maxnet-2007/two-hop", "rise-red-blue", "figure-7-rates"),
        ("maxnet-2007/two-hop", "peak-queue-0s", "figure-8-queues"),
        ("maxnet-2007/two-hop", "equilibrium-queue-link1", "figure-8-queues"),
        ("maxnet-2007/two-hop", "no-ping-pong", "figure-7-rates"),
    ],
)
def test_a_claim_stands_beside_its_figure(known, experiment, claim, figure):
    (whole,) = [one for one in known if one.path == experiment]
    (mine,) = [one for one in whole.claims if one.id == claim]
    found = reproduction.figure_of(mine.source, mine, whole.figures)
    assert found is not None
    assert found.name == figure


def test_letters_of_figures_count():
    figures = [
        Figure(name=name, plot="sweep")
        for name in ("figure-5a-utilization", "figure-5b-rates", "figure-6-queue")
    ]
    for source, name in (
        ("§4.2, Fig. 5 (b)", "figure-5b-rates"),
        ("Fig. 6", "figure-6-queue"),
        ("§4.2, Fig. 5", "figure-5a-utilization"),
    ):
        found = reproduction.figure_of(source, None, figures)
        assert found is not None
        assert found.name == name
    assert reproduction.figure_of("Fig. 5", None, []) is None


# --- claims that someone else wrote -------------------------------------------------------------

EXPERIMENT = "maxnet-2007/headers"


@pytest.fixture
def reproduced(tmp_path, known, monkeypatch) -> Path:
    """A folder with the claims of one of our own experiments."""
    monkeypatch.setattr(loading, "experiments", lambda: known)
    (experiment,) = [one for one in known if one.path == EXPERIMENT]
    claims = [
        Judged(**state(experiment, c), measured=None, values_=[None], verdict=c.expect)
        for c in experiment.claims
    ]
    folder = tmp_path / "out" / EXPERIMENT
    folder.mkdir(parents=True)
    text = json.dumps(output.document(claims))
    (folder / "claims.json").write_text(text, encoding="utf-8")
    return tmp_path / "out"


HOSTILE = {
    "null": lambda d: None,
    "a list": lambda d: [],
    "no claims": lambda d: {},
    "claims of text": lambda d: {"claims": "all"},
    "a claim of null": lambda d: {"claims": [None]},
    "a claim that is a list": lambda d: {"claims": [[]]},
    "a value of text": lambda d: _with(d, paper_value="1"),
    "a value of a list": lambda d: _with(d, measured=[1]),
    "not a number": lambda d: _with(d, measured=float("nan")),
    "a tolerance of text": lambda d: _with(d, paper_value=1.0, tolerance="5 %"),
    "an unknown verdict": lambda d: _with(d, verdict="<b>"),
    "a verdict of a list": lambda d: _with(d, verdict=[]),
    "an unknown relation": lambda d: _with(d, relation="~"),
    "seeds of text": lambda d: _with(d, over_seeds="many"),
    "seeds in disorder": lambda d: _with(d, over_seeds={"runs": 2, "least": 2.0, "most": 1.0}),
    "a short of text": lambda d: _with(d, short="duration"),
    "a short of numbers": lambda d: _with(d, short=[1]),
    "a statement of null": lambda d: _with(d, statement=None),
    "half a character": lambda d: _with(d, statement="\ud800"),
    "an unknown key": lambda d: _with(d, other=1),
    "an id twice": lambda d: {"claims": d["claims"] + d["claims"][:1]},
    "another paper": lambda d: _with(d, paper="other"),
    "a folder above": lambda d: _with(d, experiment="../../etc"),
}


def _with(document, **values):
    document["claims"][0] |= values
    return document


@pytest.mark.parametrize("edit", HOSTILE.values(), ids=HOSTILE)
def test_claims_of_other_shapes_are_one_sentence(reproduced, edit):
    file = reproduced / EXPERIMENT / "claims.json"
    document = edit(json.loads(file.read_text(encoding="utf-8")))
    file.write_text(json.dumps(document), encoding="utf-8")
    for folder in (reproduced, file.parent):
        with pytest.raises(InputError, match=r"claims\.json") as found:
            write.write(folder)
        assert "\n" not in str(found.value)


def test_no_text_of_a_claim_is_html(reproduced):
    file = reproduced / EXPERIMENT / "claims.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    bad = "\"'></td><script>hacked()</script><img src=x onerror=hacked()>|\n# x"
    for key in ("id", "source", "statement", "why", "unit"):
        document["claims"][0][key] = bad
    document["claims"][0] |= {"paper_value": 1.0, "tolerance": 0.1, "short": [bad]}
    document["claims"][0] |= {"verdict": "differs"}
    file.write_text(json.dumps(document), encoding="utf-8")
    html, markdown = (path.read_text(encoding="utf-8") for path in write.write(reproduced))
    assert "<script>hacked" not in html + markdown
    assert "<img src=x" not in html + markdown
    assert "&lt;script&gt;hacked" in html
    assert html.count("<script") == 3
    assert "\n# x" not in markdown


def test_one_experiments_folder_has_a_page(reproduced):
    paths = write.write(reproduced / EXPERIMENT)
    assert [path.name for path in paths] == ["report.html", "report.md"]
    assert f"waterfill reproduce {EXPERIMENT}" in paths[0].read_text(encoding="utf-8")
