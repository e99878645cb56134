"""Tests of the study of BBRv3: its test cases on one path, and its table."""

from __future__ import annotations

import pytest

from validation.bbr3.cases import CASES, Verdict, judge
from validation.bbr3.paths import UP, Path, plain
from validation.bbr3.study import Bbr3Case, cases, failed, table
from validation.study import Options

PATH = Path(rtt_s=0.04, rate_bps=10e6)
# Half of a round is 33 packets, of which a tenth are lost.
NOT_HERE = {2: "a round has too few packets for six losses"}


def test_the_draft_has_22_test_cases():
    assert list(CASES) == list(range(1, 23))
    for number, judged in CASES.items():
        assert (judged.__doc__ or "").startswith(f"A.{number}: ")


# A.14 has an RTT of 0.6 ms with the draft's constants, as it asks.
@pytest.mark.filterwarnings("ignore:bbr3. params.bbr3.:waterfill.network.protocols.Misfit")
@pytest.mark.parametrize("number", CASES)
def test_a_test_case_of_the_draft_passes(number):
    verdict = judge(number, PATH)
    if number in NOT_HERE:
        assert verdict == Verdict(None, NOT_HERE[number])
    else:
        assert verdict.passes, verdict.seen


def test_a_limited_startup_ends_by_losses():
    verdict = judge(2, Path(rtt_s=0.04, rate_bps=100e6))
    assert verdict.passes, verdict.seen


def test_an_event_changes_nothing_before_it():
    line = plain(PATH)
    up = line.first(UP)
    assert up is not None
    assert line.state[up.first] == UP
    assert line.state[up.first - 1] != UP
    assert line.s[up.first] == up.from_s


def test_the_table_has_a_sign_for_each_rtt():
    options = Options(rtts=("1", "40"), rates=("10",))
    paths = cases(options)
    assert len(paths) == 2 * 22
    found = {case: Verdict(None if case.number == 2 else case.rtt_ms > 1, "x") for case in paths}
    lines = table(found).splitlines()
    assert lines[0] == "21 pass, 21 fail, 2 do not apply."
    assert [line.split("|")[-2].strip() for line in lines if line.startswith("| A.")] == [
        "––" if number == 2 else "✗✓" for number in CASES
    ]
    assert len(failed(found)) == 20  # not the one with a reason on record
    assert failed({Bbr3Case(1, 1.0, 10.0): Verdict(False, "no Drain")}) == [
        "A.1, 1 ms, 10 Mbit/s: ✗ no Drain"
    ]
