"""Study of wrong laws: its tables, the runs that a mutant changes, and its complaints."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from validation.claim_mutants import judge_patched, patched, study, variants
from validation.claim_mutants.variants import Change, Mutant
from validation.study import ROOT
from waterfill.errors import InputError
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.verdict import Judged
from waterfill.runs import cache

KNOWN = {experiment.path: experiment for experiment in loading.experiments()}


def changed(mutant: Mutant) -> dict[str, list[str]]:
    """The overrides that a mutant adds, by run."""
    experiment = KNOWN[mutant.experiment]
    return {
        run.name: run.set[len(before.set) :]
        for run, before in zip(mutant.applied(experiment).runs, experiment.runs, strict=True)
    }


def test_the_table_has_every_experiment():
    assert set(variants.table().experiment) == set(KNOWN)


@pytest.mark.parametrize("path", KNOWN)
def test_every_mutant_changes_a_run_and_every_exception_names_one(path: str):
    listed = variants.mutants(path)
    assert len({mutant.name for mutant in listed}) == len(listed)
    for mutant in listed:
        mutant.applied(KNOWN[path]).scenarios()
    exercised = variants.table().experiment[path]
    every = [f"{law} {name}" for law in exercised.laws for name in variants.table().law[law]]
    for pattern in exercised.irrelevant:
        law = Change()
        names = [
            name for name in every if variants.reason(Mutant(path, name, "", law), {pattern: "w"})
        ]
        assert names, pattern
    record = variants._unnoticed().get(path, {})
    assert set(record) <= {"none", "equivalent"}
    assert len(variants.unnoticed().get(path, {})) == sum(map(len, record.values()))
    assert set(variants.unnoticed().get(path, {})) <= {mutant.name for mutant in listed}


def test_factors_are_of_the_value_in_force_and_of_the_law_s_runs_alone():
    rtts = changed(Mutant("aecp-2010/rtts", "m", "vcp", Change(scale={"gamma": 0.5})))
    assert rtts == {"sack": [], "vcp": ["params.vcp.gamma=0.5"], "xcp": [], "aecp": []}
    tuned = changed(
        Mutant("aecp-2010/convergence-and-stability", "m", "aecp", Change(scale={"alpha": 2.0}))
    )
    assert tuned["web, alpha 4"] == ["params.aecp.alpha=8.0"]
    hop = Change(scale={"t": 2.0, "x_max": 0.125}, set={"order": "rate-first"}, flip=["compensate"])
    assert changed(Mutant("maxnet-2007/two-hop", "m", "maxnet", hop))["run"] == [
        "params.maxnet.t=0.8 s",
        "params.maxnet.x_max=125000000000000.0 bit/s",
        "params.maxnet.order=rate-first",
        "params.maxnet.compensate=true",
    ]
    queue = Change(set={"threshold": 0.5})
    sets = changed(Mutant("xcp-tcp-2008/figure-3", "m", variants.QUEUE, queue))
    assert sets["20 ms"] == ["link.bottleneck.queue_params.threshold=0.5"]


def test_a_mutant_without_an_effect_is_refused():
    with pytest.raises(InputError, match="m changes no run"):
        Mutant("aecp-2010/rtts", "m", "rcp", Change(scale={"alpha": 2.0})).applied(
            KNOWN["aecp-2010/rtts"]
        )
    late = Change(patch="late")
    for law, change in (("rcp", late), (variants.QUEUE, late), ("vcp", Change())):
        with pytest.raises(InputError, match="m changes no run"):
            Mutant("aecp-2010/rtts", "m", law, change).applied(KNOWN["aecp-2010/rtts"])


def test_a_fault_of_the_patch_leaves_the_runs_as_they_are():
    rtts = KNOWN["aecp-2010/rtts"]
    late = Mutant("aecp-2010/rtts", "m", "vcp", Change(patch="late")).applied(rtts)
    assert (late.path, late.runs) == ("aecp-2010/rtts [m]", rtts.runs)


def test_a_short_version_has_the_mutant():
    margin = KNOWN["aecp-2010/delay-margin"]
    mutant = Mutant(margin.path, "m", "aecp", Change(scale={"alpha": 0.5}))
    short = mutant.applied(margin, short=True)
    assert short.runs == margin.runs
    assert all(run.set[-1] == "params.aecp.alpha=1.0" for run in short.short_runs)


def test_the_patch_fits_the_laws():
    command = ["git", "apply", "--check", str(patched.PATCH)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def judged(name: str, verdict: str) -> Judged:
    return Judged.read({"id": name, "paper": "p", "experiment": "e", "verdict": verdict})


def test_a_claim_notices_only_what_takes_its_verdict_away():
    base = {"a": "reproduced", "b": "differs", "c": "reproduced"}
    wrong = {"a": "cannot be checked", "b": "reproduced", "c": "reproduced"}
    assert study._noticed(base, wrong) == ("a",)


def test_a_fault_takes_the_full_version_if_the_short_one_notices_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    path = "aecp-2010/rtts"
    late = Mutant(path, "m", "vcp", Change(patch="late"))
    brief = SimpleNamespace(claims={path: [judged("a", "reproduced"), judged("b", "reproduced")]})
    monkeypatch.setattr(study, "reproduce", lambda *_, short: brief if short else None)
    right = {"a": "reproduced", "b": "differs", "c": "reproduced"}
    for wrong_a, taken in (("differs", {"a": "reproduced"}), ("reproduced", right)):
        wrong = {"a": wrong_a, "b": "differs", "c": "differs"}
        monkeypatch.setattr(patched, "verdicts", lambda *_, short, wrong=wrong: wrong)
        assert study._with_fault(KNOWN[path], late, right) == (taken, wrong)


def test_runs_without_the_faulty_law_are_shared_between_faults(monkeypatch: pytest.MonkeyPatch):
    scenarios = KNOWN["aecp-2010/rtts"].scenarios()
    plain, kept = cache.entry, {}
    for fault in ("vcp late", "xcp late"):
        monkeypatch.setattr(cache, "entry", plain)
        judge_patched.keep_apart(fault)
        kept[fault] = {name: cache.entry(one, "sim") for name, one in scenarios.items()}
    same = {name for name in scenarios if kept["vcp late"][name] == kept["xcp late"][name]}
    assert same == {"sack", "aecp"}


def test_records_that_the_runs_contradict_are_complaints(monkeypatch: pytest.MonkeyPatch):
    path = "tcp-maxnet-2006/one-flow"
    claims = {claim.id: claim for claim in KNOWN[path].claims}
    assert claims["drops"].insensitive is not None
    assert claims["xi-exact"].insensitive is None
    one, two = (Mutant(path, name, "maxnet2006", Change()) for name in ("one", "two"))
    base = [judged(name, "reproduced") for name in ("drops", "xi-exact")]
    monkeypatch.setattr(study, "unnoticed", lambda: {path: {"two": "why"}})
    found = {path: study.Outcome(base, [study.Row(one, ()), study.Row(two, ("drops",))])}
    assert study.complaints(found) == [
        f"{path}: no claim notices one, no explanation",
        f"{path}: drops notices two, on record none",
        f"{path}/drops notices a mutant, on record none",
        f"{path}/xi-exact notices no mutant",
    ]
    assert study.counts(found.values()) == {
        "mutants": 2,
        "noticed": 1,
        "equivalent": 0,
        "reproduced": 2,
        "sensitive": 1,
    }


def test_the_experiment_itself_is_unchanged():
    experiment = KNOWN["maxnet-2007/two-hop"]
    before: tuple[Experiment, ...] = (experiment,)
    variants.mutants(experiment.path)[0].applied(experiment)
    assert before == (experiment,)
    assert all("params" not in text for run in experiment.runs for text in run.set)
