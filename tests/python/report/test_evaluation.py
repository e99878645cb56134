"""The page of an evaluation: abstract, verdicts, charts of limits, commands of cells."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.evaluation import abstract, output, text
from waterfill.evaluation.verdict import EvaluationDocument
from waterfill.report import evaluation_charts, write


def document(folder: Path) -> EvaluationDocument:
    return EvaluationDocument.read(json.loads((folder / output.DOCUMENT).read_text()))


@pytest.fixture(scope="module")
def page(made_evaluation) -> str:
    return write.write(made_evaluation)[0].read_text(encoding="utf-8")


def rows(page: str, key: str) -> list[list[str]]:
    (body,) = re.findall(rf'id="data-{key}">.*?<tbody>(.*?)</tbody>', page, re.S)
    lines = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html.unescape(line), re.S) for line in lines]


def test_verdicts_have_numbers_limits_rivals_and_sources(page, made_evaluation):
    harm, queue = rows(page, "verdicts")
    assert queue[:3] == ["2.10 Queue", "± mixed", "1 of 2"]
    assert queue[3] == "largest queue 150 kB"
    assert queue[4] == "< 20 kB"
    assert queue[5].startswith("window ")
    assert queue[6:] == ["buffer 100 packets", "ours, because it is a test"]
    assert harm[0] == "2.9 Harm"
    assert [row[0] for row in rows(page, "left-out")] == ["2.11 Real time"]
    assert ["beta 0.7 → 0.56", "none"] in rows(page, "sensitivity")
    assert [row[-1][:5] for row in rows(page, "calibration")] == ["✓ yes"] * 6
    window, pacing = (float(rows(page, "limiting")[1][place]) for place in (3, 4))
    assert window > 90
    assert pacing == 0


def test_a_numeric_axis_has_a_chart_with_limit_and_crosses(page, made_evaluation):
    (text,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    (chart,) = json.loads(text).values()
    assert chart["x_label"] == "buffer (packets)"
    assert chart["y_label"] == "largest queue (kB)"
    limit, law, window, failed = chart["lines"]
    assert (limit["kind"], set(limit["y"])) == ("share", {20})
    assert [law["name"], window["name"]] == ["cubic", "window"]
    assert failed["kind"] == "failed"
    assert law["x"] == sorted(law["x"])
    known = zip(law["y"], failed["y"], strict=True)
    assert all((cross is None) == (value < 20) for value, cross in known)
    assert any(cross is not None for cross in failed["y"])


def test_a_wide_axis_is_logarithmic_on_the_page(made_evaluation, tmp_path):
    text = (made_evaluation / output.DOCUMENT).read_text()
    (tmp_path / output.DOCUMENT).write_text(text.replace('"5 packets"', '"4 packets"'))
    page = write.write(tmp_path)[0].read_text()
    assert '"log_x":true' in page.replace(" ", "")


def test_the_command_of_a_cell_repeats_its_value(page, made_evaluation, waterfill, monkeypatch):
    monkeypatch.chdir(made_evaluation.parent)
    (row,) = (row for row in rows(page, "cells1") if row[0] == "buffer 5 packets")
    assert row[1] == "✓ meets"
    _, *words = shlex.split(row[-1])
    ran = waterfill(*words, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["seed"] == 1


def test_the_abstract_says_what_is_not_met_and_where(made_evaluation):
    found = document(made_evaluation)
    use, left, recoveries = abstract.paragraphs(found)
    assert use.startswith("Use: cubic meets 1 of 2 criteria. It is not recommended")
    assert "Queue (§2.10), buffer: meets up to 10 packets, fails from 15 packets" in use
    assert left.startswith("1 criterion of 3 could not be evaluated")
    assert recoveries.startswith("Flows of cubic find losses by rack, those of window by rfc6675:")


@pytest.mark.parametrize(("verdict", "words"), [
    ("meets", "meets all 1 criterion"), ("fails", "do not support"), ("mixed", "do not support"),
])  # fmt: skip
def test_the_abstract_speaks_of_safety_for_the_criteria_on_others(made_evaluation, verdict, words):
    found = document(made_evaluation)
    found["suite"] = "rfc9743"
    found.criteria[0]["section"] = "5.2.1"
    found.criteria[0]["verdict"] = verdict
    found.criteria[1]["section"] = "5.20"
    safety, use, *_ = abstract.paragraphs(found)
    assert safety.startswith("Safety: cubic ")
    assert words in safety
    assert "Queue" not in safety
    assert "Queue" in use


def test_a_limit_on_the_law_s_own_use_is_no_harm_to_others(made_evaluation):
    found = document(made_evaluation)
    found["suite"] = "rfc9743"
    first, missed = found.criteria[:2]
    first["section"], missed["section"] = "5.1.1", "5.2"
    assert "Queue" in abstract.paragraphs(found)[0]
    for cell in missed.cells:
        cell.limits[0].about = "law"
    safety, use, *_ = abstract.paragraphs(found)
    assert safety.startswith("Safety: cubic meets all 1 criterion")
    assert "Queue (§5.2)" in use


def test_another_law_that_misses_a_limit_too_is_marked(made_evaluation):
    _, limit = document(made_evaluation).criteria[1].deciding
    assert limit.verdict == "not met"
    limit.others.update(window=limit.limit + 1)
    assert text.others(limit).endswith(" (misses it too)")
    limit.others.update(window=limit.limit - 1)
    assert not text.others(limit).endswith(" (misses it too)")


def test_damaged_verdicts_are_refused_in_a_sentence(made_evaluation, tmp_path):
    text = (made_evaluation / output.DOCUMENT).read_text()
    (tmp_path / output.DOCUMENT).write_text(text.replace('"verdict": "mixed"', '"verdict": "good"'))
    with pytest.raises(InputError, match=r"criteria\[1\].verdict.*must be one of meets.*good"):
        write.write(tmp_path)


def test_a_value_that_was_never_reached_has_a_cross_at_the_top(made_evaluation):
    found = document(made_evaluation).criteria[1]
    cell = next(cell for cell in found.cells if cell.name == "100 packets")
    cell.limits[0]["value"] = cell.limits[0]["interval"] = None
    (chart,) = evaluation_charts.charts(found, "cubic", "c")
    every = [float(y) for line in chart.lines[:3] for y in line.y if y == y]
    assert chart.lines[-1].y[-1] == pytest.approx(1.1 * max(every))
    assert "never reached" in chart.note


@pytest.mark.parametrize(("key", "value", "words"), [
    ("link.l.buffer", "1 bdp", "buffer 1 bdp"),
    ("link.l.reorder.delay", "5 ms", "reordering delay 5 ms"),
    ("flow.long.rtt", "40 ms", "RTT of long 40 ms"),
    ("flow.law.count", 1, "1 flow"),
    ("flow.law.count", 8, "8 flows"),
    ("traffic.near.load, traffic.far.load", "0.4", "load 0.4"),
    ("rival", "cubic", "next to cubic"),
    ("duration", "9 s", "duration 9 s"),
])  # fmt: skip
def test_a_value_has_the_name_of_its_axis(key, value, words):
    assert text.setting(key, value) == words


def test_two_cells_are_two_points_without_a_line(made_evaluation):
    found = document(made_evaluation).criteria[1]
    assert evaluation_charts.charts(found, "cubic", "c")[0].lines[1].role == "marked"
    found["cells"] = found.cells[:2]
    (chart,) = evaluation_charts.charts(found, "cubic", "c")
    assert [line.role for line in chart.lines] == ["share", "points", "points", "failed"]


def test_cells_that_fail_are_apart_although_their_values_have_commas(made_evaluation):
    found = document(made_evaluation).criteria[1]
    for one, rival in zip(found.cells, ("cubic", "sack", "bbr"), strict=False):
        one["verdict"], one["added"], one["values"] = "fails", False, {"rival": rival, "rtt": "1 s"}
    first, second, *_ = text.failing(found).split("; ")
    assert (first, second) == ("next to cubic, rtt 1 s", "next to sack, rtt 1 s")
