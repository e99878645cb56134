"""The fast proofs, the tree of the C against its compilation; a false statement is not proved."""

import pytest

from validation import study as harness
from validation.proofs import contracts, differential, equilibrium, kernels, ranges, source, study
from validation.proofs.c_source import clang

needs_clang = pytest.mark.skipif(clang() is None, reason="needs clang, for the tree of the headers")


def unproved(domain):
    return [one for one in domain.obligations if one.proved not in ("intervals", "query")]


@pytest.mark.parametrize("size", [(1, 3), (2, 3), (3, 2)])
def test_max_min_is_the_only_equilibrium(size):
    answer, networks = equilibrium.prove(*size)
    assert answer == "proved"
    assert networks == len(list(equilibrium.networks(*size)))


def test_networks_that_differ_by_names_alone_are_one():
    assert len(list(equilibrium.networks(2, 2))) == 3  # crossing twice; one and both; one each


def test_without_the_largest_price_another_equilibrium_is_found(monkeypatch):
    """A source notified of one link alone would not be max-min: the prover has to say so."""
    whole = equilibrium.equilibrium

    def first_link(network, capacities, rates, name):
        return whole(tuple(frozenset({min(route)}) for route in network), capacities, rates, name)

    monkeypatch.setattr(equilibrium, "equilibrium", first_link)
    assert equilibrium.prove(2, 2)[0] != "proved"


def test_the_real_source_law_keeps_below_what_the_price_allows():
    assert source._real()


@needs_clang
@pytest.mark.parametrize("name", ["fixed_towards", "fixed_exp", "fixed_power"])
def test_a_shared_function_is_as_its_contract_says(name):
    (proof,) = [proof for found, _, proof in contracts.theorems() if found == name]
    assert not unproved(proof())


@needs_clang
@pytest.mark.parametrize(
    ("law", "function"),
    [
        ("rcp", "law_ack"),
        ("vcp", "law_limit"),
        ("maxnet", "law_limit"),
        ("aecp", "law_reduce"),
        ("xcp", "law_mark"),
        ("pxcp", "law_ack"),
        ("ixcp", "law_receive"),
        ("cohabit", "cohabit_decide"),
    ],
)
def test_a_law_stays_in_its_ranges(law, function):
    assert not unproved(kernels.prove(law, function))


@needs_clang
def test_a_law_starts_in_its_ranges():
    assert not unproved(kernels.prove("rcp", "law_link_set", zeroed=True))


BRANCHES = """
FIXED_INLINE __u64 law_branch(__u64 a, __u64 b)
{
	__u64 share = b > a ? (b - a) / 2 : 0;
	__u64 large = b < a ? 1ull << 63 : 0;

	return share + large%s;
}
"""


@needs_clang
@pytest.mark.parametrize(("last", "fits"), [("", True), (" + large", False)])
def test_a_branch_that_is_not_taken_proves_nothing(tmp_path, last, fits):
    """A fact that holds where b > a must not hide a sum that leaves its type where b < a."""
    header = tmp_path / "branch.h"
    header.write_text('#include "fixed.h"' + BRANCHES % last)
    run = kernels.ProofRun(ranges.ProofLaw(str(header), {}), "law_branch")
    assert (not unproved(run.run())) == fits


@needs_clang
def test_a_contradiction_is_not_a_proof(monkeypatch):
    """Ranges and relations that no state has would prove anything."""
    monkeypatch.setitem(ranges.RCP.relations, "law_link", lambda f: [f["rate"].term < 0])
    assert "contradiction" in [
        one.proved for one in kernels.prove("rcp", "law_interval").obligations
    ]


@needs_clang
def test_a_range_that_a_source_leaves_is_not_proved(monkeypatch):
    monkeypatch.setitem(ranges.RCP.structures, "law_source", {"rate": (0, 10**14)})
    assert unproved(kernels.prove("rcp", "law_ack"))


@needs_clang
def test_the_tree_computes_what_the_compiler_does():
    done, differences = differential.compare("maxnet.h", 2)
    assert not differences
    assert done > 50


@needs_clang
def test_a_run_prints_a_line_a_theorem_and_proves_again_what_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness.cache, "root", lambda: tmp_path)
    monkeypatch.setattr(study.equilibrium, "prove", lambda *_: ("unknown", 0))
    command = ["1 links, 2 flows"]
    assert harness.execute(study.STUDY, "proofs", command) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 theorems, 1 not proved"
    monkeypatch.undo()
    monkeypatch.setattr(harness.cache, "root", lambda: tmp_path)
    assert harness.execute(study.STUDY, "proofs", command) == 0
    assert "proved, 1 networks" in capsys.readouterr().out
    assert harness.execute(study.STUDY, "proofs", ["no such theorem"]) == 2
