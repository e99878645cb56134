"""The claims' file format, the verdicts, and the claims that the repository makes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import synthetic
from waterfill.errors import InputError
from waterfill.network import shares
from waterfill.papers import reproduce
from waterfill.papers.claims import loading
from waterfill.papers.claims import verdict as verdicts
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import VERDICTS, Claim
from waterfill.papers.claims.verdict import Judged, judge
from waterfill.papers.output import document, write
from waterfill.runs import cache
from waterfill.runs.result import Result
from waterfill.scenario.loading import load

FILE = """
title = "An experiment"
[[figure]]
name = "rates"
plot = "rates"
args = { average_s = 0.2 }
[[claim]]
id = "mean"
source = "§1"
statement = "The mean rate is 10 Mbit/s"
measure = "rate_over"
args = { flow = "f", start_s = 0.0, stop_s = 1 }
unit = "Mbit/s"
paper_value = 10
tolerance = "5 %"
expect = "reproduced"
"""


@pytest.fixture
def run() -> Result:
    links = {"l": {"utilization": [0.5] * 10, "queue_max_bytes": [1e4] * 10}}
    return synthetic.result({"f": [10.4e6] * 10}, links)


def experiment(folder: Path, text: str = FILE) -> Experiment:
    home = folder / "paper" / "experiment"
    home.mkdir(parents=True, exist_ok=True)
    (home / "claims.toml").write_text(text, encoding="utf-8")
    return loading.load(home / "claims.toml")


def claim(**changed: Any) -> Claim:
    keys = {"id": "x", "source": "§1", "statement": "s", "expect": "reproduced", "unit": "s"}
    return Claim.model_validate(keys | {"paper_value": 10.0} | changed)


@pytest.mark.parametrize(
    ("changed", "measured", "verdict"),
    [
        ({}, 10.0, "reproduced"),
        ({}, 10.1, "differs"),
        ({"tolerance": "5 %"}, 10.5, "reproduced"),
        ({"tolerance": "5 %"}, 10.51, "differs"),
        ({"tolerance": 0.2}, 9.8, "reproduced"),
        ({"tolerance": 0.2}, 9.7, "differs"),
        ({"relation": "<"}, 9.99, "reproduced"),
        ({"relation": "<"}, 10.0, "differs"),
        ({"relation": "<", "tolerance": 1.0}, 10.9, "reproduced"),
        ({"relation": ">"}, 10.01, "reproduced"),
        ({"relation": ">"}, 10.0, "differs"),
        ({"relation": "<"}, float("inf"), "differs"),
        ({}, float("inf"), "differs"),
        ({}, None, "cannot be checked"),
        ({"paper_value": None}, 3.0, "cannot be checked"),
    ],
)
def test_verdicts(changed, measured, verdict):
    assert verdicts.verdict(claim(**changed), measured) == verdict


def test_expect_does_not_affect_the_verdict():
    for expect in VERDICTS:
        assert verdicts.verdict(claim(expect=expect, why="w"), 10.0) == "reproduced"


def test_document_of_a_claim(tmp_path, run):
    judged = judge(experiment(tmp_path), [{"run": run}])
    claims = [
        {
            "id": "mean",
            "paper": "paper",
            "experiment": "experiment",
            "source": "§1",
            "statement": "The mean rate is 10 Mbit/s",
            "relation": "=",
            "paper_value": 10,
            "tolerance": 0.5,
            "unit": "Mbit/s",
            "over_seeds": None,
            "expect": "reproduced",
            "why": None,
            "measured": pytest.approx(10.4),
            "values": [pytest.approx(10.4)],
            "verdict": "reproduced",
            "short": None,
        }
    ]
    counts = {"reproduced": 1, "differs": 0, "cannot be checked": 0}
    found = document(judged)
    assert found == {
        "claims": claims,
        "counts": counts,
        "sentences": counts,
        "sensitive": 1,
        "beyond": 0,
    }
    assert list(found["claims"][0]) == list(claims[0])
    assert [Judged.read(claim) for claim in found["claims"]] == judged


def test_both_keys_reach_the_statement_and_exclude_each_other(tmp_path):
    for key in ("sentence", "beyond", "insensitive"):
        found = experiment(tmp_path, FILE.replace("expect =", f'{key} = "x"\nexpect =', 1))
        assert verdicts.state(found, found.claims[0])[key] == "x"
    both = FILE.replace("expect =", 'sentence = "x"\nbeyond = "y"\nexpect =', 1)
    with pytest.raises(InputError, match="no sentence of the paper"):
        experiment(tmp_path, both)


def test_never_is_null_and_differs(tmp_path, run):
    text = FILE.replace('"rate_over"', '"rise_time"').replace('"Mbit/s"', '"s"')
    text = text.replace("start_s = 0.0, stop_s = 1", "at_s = 0.0, target_bps = 1e9")
    (judged,) = judge(experiment(tmp_path, text), [{"run": run}])
    assert (judged.measured, judged.verdict) == (None, "differs")


def test_a_claim_without_a_measure_cannot_be_checked(tmp_path, run):
    text = re.sub(r"(measure|args|unit|tolerance) = (?!.*average).*\n", "", FILE)
    text = text.replace('"reproduced"', '"cannot be checked"\nwhy = "not in the text"')
    (judged,) = judge(experiment(tmp_path, text), [{"run": run}])
    assert judged.verdict == "cannot be checked"


def test_write_leaves_data_figures_and_claims(tmp_path, run):
    found = experiment(tmp_path)
    figures, refused = write(found, [{"run": run}], judge(found, [{"run": run}]), tmp_path / "out")
    assert refused == []
    assert [path.name for path in figures] == ["rates.png", "rates.svg"]
    assert json.loads((tmp_path / "out" / "claims.json").read_text())["counts"]["reproduced"] == 1
    first = {path: path.read_bytes() for path in figures}
    assert b"<dc:date>" not in first[figures[1]]
    write(found, [{"run": run}], judge(found, [{"run": run}]), tmp_path / "out")
    assert {path: path.read_bytes() for path in figures} == first


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('unit = "Mbit/s"', 'unit = "MB"', "claim.mean.unit: must be bit/s or Mbit/s"),
        ('"rate_over"', '"rate_ovr"', 'claim.mean.measure: unknown measure, did you mean "rate_ov'),
        ('flow = "f", ', "", "claim.mean.args.flow: missing"),
        ('flow = "f"', 'flow = "f", x = 1', "claim.mean.args.x: unknown argument"),
        ("start_s = 0.0", 'start_s = "soon"', "claim.mean.args.start_s: "),
        ('expect = "reproduced"', 'expect = "yes"', "claim.mean.expect: "),
        ('expect = "reproduced"', "", "claim.mean.expect: missing"),
        (
            'expect = "reproduced"',
            'expect = "differs"',
            'claim.mean.why: missing; write why "differs"',
        ),
        ('expect = "reproduced"', 'expect = "reproduced"\nwhat = 1', "claim.mean.what: unknown"),
        ('tolerance = "5 %"', 'tolerance = "5"', "claim.mean.tolerance: must be a number or a"),
        ('tolerance = "5 %"', "tolerance = -1", "claim.mean.tolerance: must be a number or a"),
        ('tolerance = "5 %"', 'tolerance = "x %"', "claim.mean.tolerance: must be a number or a"),
        (
            'paper_value = 10\ntolerance = "5 %"',
            'tolerance = "-5 %"',
            'claim.mean.tolerance: must be a number or a share such as "5 %" of at least zero, got',
        ),
        (
            '"rate_over"\nargs = { flow = "f", start_s = 0.0, stop_s = 1 }\nunit = "Mbit/s"',
            '"queueing_delay"\nargs = { link = "l", percentile = 950 }\nunit = "s"',
            "claim.mean.args.percentile: must be from 0 to 100, got 950",
        ),
        ("paper_value = 10", "paper_value = nan", "claim.mean.paper_value: "),
        (
            'unit = "M',
            'in_force = { x = "a.mu" }\nunit = "M',
            "claim.mean.in_force.x: is no arg",
        ),
        ('unit = "M', 'in_force = { stop_s = "mu" }\nunit = "M', "claim.mean.in_force.stop_s: "),
        ('id = "mean"', 'id = "a claim"', "must have only letters, digits"),
        ('plot = "rates"', 'plot = "pie"', "figure.rates.plot: unknown plot"),
        ("average_s = 0.2", "average = 0.2", "figure.rates.args.average: unknown argument"),
        ('title = "An experiment"', "title = 3", "title: "),
        ('title = "An experiment"', "title = ", "not TOML in UTF-8"),
        ('title = "An experiment"', "title = 1\ntitle = 2", "title has a value already"),
        ("[[claim]]", "[[claims]]", "unknown key"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, old, new, message):
    with pytest.raises(InputError) as caught:
        experiment(tmp_path, FILE.replace(old, new))
    text = str(caught.value)
    assert message in text
    assert "claims.toml" in text
    assert "\n" not in text


def test_an_id_used_twice(tmp_path):
    twice = FILE + FILE[FILE.index("[[claim]]") :]
    with pytest.raises(InputError, match=r"claim\.mean: must be unique"):
        experiment(tmp_path, twice)


def test_an_argument_in_force_is_the_run_s_parameter(tmp_path):
    # The last sample is after 0.9 s and 0.81 s, μ and μ² of the run, but not after 1 s.
    links = {"l": {"utilization": [0.5] * 10, "queue_max_bytes": [1e4] * 10}}
    run = synthetic.result({"f": [10e6] * 9 + [100e6]}, links)
    for product, mbps in ((None, 19.0), ("maxnet.mu", 10.0), ("maxnet.mu * maxnet.mu", 10.0)):
        line = f'in_force = {{ stop_s = "{product}" }}\n' if product else ""
        found = experiment(tmp_path, FILE.replace('unit = "M', f'{line}unit = "M'))
        assert judge(found, [{"run": run}])[0].measured == pytest.approx(mbps)
    unknown = FILE.replace('unit = "M', 'in_force = { stop_s = "maxnt.mu" }\nunit = "M')
    with pytest.raises(InputError, match=r'mean\.args: unknown name "maxnt"'):
        judge(experiment(tmp_path, unknown), [{"run": run}])


def test_a_flow_that_the_run_lacks(tmp_path, run):
    found = experiment(tmp_path, FILE.replace('flow = "f"', 'flow = "g"'))
    with pytest.raises(InputError, match=r'mean\.args: unknown name "g"'):
        judge(found, [{"run": run}])


def test_arguments_that_do_not_fit_each_other(tmp_path, run):
    measured = '"queue_share"\nargs = { link = "l", rtt_s = 0.0, windows_s = [[0.0, 1.0]] }'
    text = FILE.replace('"rate_over"\nargs = { flow = "f", start_s = 0.0, stop_s = 1 }', measured)
    found = experiment(tmp_path, text.replace('"Mbit/s"', '"%"'))
    run = synthetic.result({"f": [1e6] * 10}, {"l": {"queue_bytes": [1e4] * 10}})
    with pytest.raises(InputError, match=r"claim\.mean\.args: queue_share cannot use these: "):
        judge(found, [{"run": run}])


def test_select(tmp_path):
    known = [experiment(tmp_path)]
    assert loading.select(["paper"], known) == known
    assert loading.select(["paper/experiment/"], known) == known
    with pytest.raises(InputError, match='unknown experiment, did you mean "paper/experiment"'):
        loading.select(["paper/experimnt"], known)


@pytest.mark.parametrize("figure", ["figure-9", "figure-9-rates"])
def test_selecting_a_figure_names_its_experiment(figure):
    with pytest.raises(InputError, match=r"type waterfill reproduce maxnet-2007/cross-traffic$"):
        loading.select([f"maxnet-2007/{figure}"], loading.experiments())
    with pytest.raises(InputError, match="unknown experiment"):
        loading.select(["maxnet-2007/figure-"], loading.experiments())


def test_the_repositorys_claims_are_sound():
    """Validity of every claims.toml, of its scenario, and of the names of flows and links in it."""
    known = loading.experiments()
    assert {"maxnet-2007/two-hop", "maxnet-2007/cross-traffic"} <= {e.path for e in known}
    for found in known:
        assert (found.folder / "README.md").is_file()
        found.scenarios(short=True)
        scenarios = found.scenarios()
        for one in found.claims:
            scenario = scenarios[one.run or next(iter(scenarios))]
            names = {flow.name for flow in scenario.flow}
            wanted = {one.args["flow"].partition("[")[0]} if "flow" in one.args else set()
            assert wanted | set(one.args.get("shares_bps", {})) <= names


def test_two_hop_shares_are_max_min():
    """Numbers in claims.toml, which progressive filling gives for their scenarios."""
    (found,) = loading.select(["maxnet-2007/two-hop"], loading.experiments())
    intervals = shares.document(load(found.folder / "scenario.toml"))["intervals"]
    rates = {
        (number, flow["name"]): flow["rate_bps"]
        for number, interval in enumerate(intervals, 1)
        for flow in interval["flows"]
    }
    claimed = {}
    for one in found.claims:
        if one.id.startswith("share-"):
            _, number, flow = one.id.split("-", 2)
            interval = intervals[int(number) - 1]
            assert one.args["stop_s"] == interval["to_s"]
            claimed[int(number), flow] = one.paper_value * 1e6
    assert claimed == pytest.approx(rates)


# --- several runs -------------------------------------------------------------------------------

GRID = """
title = "Several runs"
[grid]
protocol = ["maxnet", "xcp"]
"link.l.rate" = ["10 Mbit/s", "20 Mbit/s"]
[[run]]
name = "slow"
set = ["link.l.rate=5 Mbit/s"]
[[run]]
name = "long"
set = ["duration=9 s"]
short = false
[short]
set = ["duration=1 s"]
grid = { protocol = ["xcp"] }
[[claim]]
id = "mean"
run = "xcp 20 Mbit/s"
source = "§1"
statement = "s"
measure = "rate_over"
args = { flow = "f", start_s = 1.0, stop_s = 2.0 }
short_args = { start_s = 0.5, stop_s = 1.0 }
unit = "Mbit/s"
paper_value = 20
tolerance = "10 %"
expect = "reproduced"
"""

SCENARIO = """
duration = "2 s"
protocol = "maxnet"
link = [{ name = "l", from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms" }]
flow = [{ name = "f", from = "a", to = "b" }]
"""


def several(tmp_path: Path, text: str = GRID) -> Experiment:
    found = experiment(tmp_path, text)
    (found.folder / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    return found


def test_a_grid_names_its_runs_by_their_values(tmp_path):
    found = several(tmp_path)
    scenarios = found.scenarios()
    assert list(scenarios) == [
        *("maxnet 10 Mbit/s", "maxnet 20 Mbit/s", "xcp 10 Mbit/s", "xcp 20 Mbit/s", "slow"),
        "long",
    ]
    assert (scenarios["xcp 20 Mbit/s"].protocol, scenarios["xcp 20 Mbit/s"].link[0].rate) == (
        *("xcp", 20e6),
    )
    assert (scenarios["slow"].protocol, scenarios["slow"].link[0].rate) == ("maxnet", 5e6)
    short = found.scenarios(short=True, sets=["seed=7"])
    assert list(short) == ["xcp 10 Mbit/s", "xcp 20 Mbit/s", "slow"]
    assert {(one.duration, one.seed) for one in short.values()} == {(1.0, 7)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('run = "xcp 20 Mbit/s"\n', "", "run: missing; write the name of a run"),
        ("xcp 20 Mbit/s", "xcp 20 Mbits", "unknown run"),
        ('"slow"', '"xcp 10 Mbit/s"', "run.xcp 10 Mbit/s: must be unique"),
        ("short_args = { start_s", "short_args = { begin_s", "short_args.begin_s: unknown"),
    ],
)
def test_what_is_wrong_with_several_runs(tmp_path, old, new, message):
    with pytest.raises(InputError, match=re.escape(message)):
        several(tmp_path, GRID.replace(old, new))


def test_equal_runs_are_run_once(tmp_path):
    found = several(tmp_path)
    again = replace(found, name=f"{found.name} again")
    ran = set()
    done = reproduce.reproduce(
        [found, again], None, cached=False, short=True, progress=lambda name, _: ran.add(name)
    )
    first, second = done.claims[found.path], done.claims[again.path]
    assert [claim.measured for claim in first] == [claim.measured for claim in second]
    assert (len(done.claims), len(ran)) == (2, 3)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("", "", ["duration=1 s", "start_s=0.5", "stop_s=1.0"]),
        ("start_s = 0.5, ", "", ["duration=1 s", "stop_s=1.0"]),
        ("short_args = { start_s = 0.5, stop_s = 1.0 }\n", "", ["duration=1 s"]),
        # Only the grid is shortened, not the run that the claim reads.
        (
            'set = ["duration=1 s"]\ngrid = { protocol = ["xcp"] }',
            'grid = { protocol = ["xcp"] }',
            ["start_s=0.5", "stop_s=1.0"],
        ),
    ],
)
def test_a_short_claim_lists_only_what_changed(tmp_path, old, new, changed):
    found = several(tmp_path, GRID.replace(old, new))
    done = reproduce.reproduce([found], None, short=True)
    (claim,) = done.claims[found.path]
    assert claim.short == changed


def test_a_run_that_has_no_shorter_version_is_not_labelled_short(tmp_path):
    text = GRID.replace('[short]\nset = ["duration=1 s"]\ngrid = { protocol = ["xcp"] }\n', "")
    text = text.replace("short_args = { start_s = 0.5, stop_s = 1.0 }\n", "")
    found = several(tmp_path, text)
    done = [reproduce.reproduce([found], None, short=short) for short in (False, True)]
    assert done[0].claims == done[1].claims
    assert done[1].claims[found.path][0].short is None


def test_runs_are_kept_and_not_run_again(tmp_path, monkeypatch):
    found = several(tmp_path)

    def judge(folder: str, **options: Any) -> tuple[list[Any], list[str]]:
        ran: list[str] = []
        done = reproduce.reproduce(
            [found],
            lambda _: tmp_path / folder,
            progress=lambda name, _: ran.append(name),
            **options,
        )
        return done.claims[found.path], sorted(set(ran))

    first, ran = judge("first")
    assert [claim.verdict for claim in first] == ["reproduced"]
    assert len(ran) == 6
    second, ran = judge("second")
    assert (second, ran) == (first, [])
    written = [
        (tmp_path / name / "xcp 20 Mbit-s" / "flows.parquet").read_bytes()
        for name in ("first", "second")
    ]
    assert written[0] == written[1]
    _, ran = judge("fresh", cached=False)
    assert len(ran) == 6
    short, ran = judge("short", short=True)
    assert (short[0].verdict, len(ran)) == ("reproduced", 3)
    monkeypatch.setattr(cache, "version", lambda: "another")
    assert len(judge("other")[1]) == 6


def test_a_grid_value_without_text_names_its_run_by_quotes(tmp_path):
    grid = '[grid]\n"flow.f.protocol" = ["", "xcp"]\n'
    path = tmp_path / "paper" / "experiment" / "claims.toml"
    path.parent.mkdir(parents=True)
    claim = 'id = "c"\nsource = "s"\nstatement = "t"\nexpect = "cannot be checked"\nwhy = "w"\n'
    path.write_text(f'title = "t"\n{grid}[[claim]]\n{claim}')
    assert [run.name for run in loading.load(path).runs] == ['""', "xcp"]
