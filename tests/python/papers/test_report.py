"""The page of all reproduced experiments: what it says of each claim, and that it stands alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import synthetic
from waterfill.errors import InputError
from waterfill.papers import output, report
from waterfill.papers.claims import loading
from waterfill.papers.claims.verdict import judge

CLAIM = """
[[claim]]
id = "{id}"
source = "§1"
statement = "{id} < 11 & more"
measure = "rate_over"
args = {{ flow = "f", start_s = 0.0, stop_s = 1.0 }}
unit = "Mbit/s"
paper_value = {value}
tolerance = "5 %"
expect = "{expect}"
"""

FIGURE = '[[figure]]\nname = "rates"\nplot = "rates"\nargs = { title = "Rates" }\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder in which an experiment of three claims has been reproduced."""
    home = tmp_path / "papers" / "paper" / "one"
    home.mkdir(parents=True)
    text = 'title = "One & only"\n' + FIGURE
    text += CLAIM.format(id="holds", value=10.0, expect="reproduced")
    text += CLAIM.format(id="barely", value=10.3, expect="reproduced") + 'why = "seed 4 differs"\n'
    text += CLAIM.format(id="fails", value=20.0, expect="differs") + 'why = "half <b>"\n'
    (home / "claims.toml").write_text(text, encoding="utf-8")
    (home / "README.md").write_text("# What was *found*\n", encoding="utf-8")
    (home / "scenario.toml").write_text('name = "S"\n', encoding="utf-8")
    experiment = loading.load(home / "claims.toml")
    links = {"l": {"utilization": [0.5] * 10, "queue_max_bytes": [1e4] * 10}}
    run = synthetic.result({"f": [10.0e6] * 10}, links)
    out = tmp_path / "out"
    sample = [{"run": run}]
    output.write(experiment, sample, judge(experiment, sample), out / "paper" / "one")
    return tmp_path


def entries(root: Path) -> list[report.Entry]:
    return report.collect(root / "out", loading.experiments(root / "papers"))


def test_the_page_counts_and_explains(root):
    page = report.page(entries(root))
    assert "3 claims of 1 experiment: 2 reproduced, 1 differs, 0 cannot be checked (67%" in page
    assert "<a href='#paper-one'>paper/one</a>" in page
    assert "<h3 id='paper-one'>One &amp; only</h3>" in page
    why = re.findall(r"<div class='why'>(.*?)</div>", page)
    # A reproduced claim is explained only if a doubt is recorded.
    assert why == ["seed 4 differs", "half &lt;b&gt;"]


def test_the_page_needs_no_other_file(root):
    page = report.page(entries(root))
    assert "What was *found*" in page
    assert re.findall(r"(?:src|href)='(?!data:|#)[^']*'", page) == []
    assert page.count("data:image/svg+xml;base64,") == 1


def test_the_markdown_page_links_to_the_figures_beside_it(root):
    out = root / "out"
    for path in report.write(out, entries(root)):
        assert path.is_file()
    text = (out / "report.md").read_text(encoding="utf-8")
    (link,) = re.findall(r"!\[rates\]\(<(.+)>\)", text)
    assert (out / link).is_file()
    assert "- barely: seed 4 differs" in text
    assert "- holds" not in text


def test_a_claims_file_of_another_program_is_refused(root):
    file = root / "out" / "paper" / "one" / "claims.json"
    file.write_text('{"claims": [{"id": "holds"}]}', encoding="utf-8")
    with pytest.raises(InputError, match=r"expected the claims\.json of a reproduction"):
        entries(root)


def test_nothing_reproduced_is_one_line(root):
    with pytest.raises(InputError, match="expected folders PAPER/EXPERIMENT"):
        report.collect(root / "papers", loading.experiments(root / "papers"))
