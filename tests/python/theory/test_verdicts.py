"""Verdict sentences for documents that the commands' tests do not produce."""

from __future__ import annotations

import math

import pytest

from waterfill.theory import verdicts

LINKS = [{"name": name, "standing_queue": {"stable": name == "b"}} for name in "abcde"]
MAXNET = {"protocol": "maxnet", "alpha": 0.66, "max_rtt_s": 1.0}
PROOF = {"alpha_max_lemma1": 0.7, "alpha_max": 0.8575, "by_algorithm_3": True}
STABILITY = {
    "MaxNet is stable for every RTT up to 1 s: α = 0.66 < α_max = 0.7.": MAXNET
    | {"stable": True, "eq13": PROOF, "implemented": PROOF | {"by_algorithm_3": False}},
    "MaxNet is not shown to be stable for every RTT up to 1 s: α = 0.66, α_max = 0.858.": MAXNET
    | {"stable": False, "eq13": PROOF, "implemented": PROOF},
    "XCP is not stable: α = 2 is not between 0.248 and 1.46, its bounds at β = 0.226.": {
        "protocol": "xcp", "alpha": 2.0, "beta": 0.226, "alpha_min": 0.248, "alpha_max": 1.46,
        "stable": False,
    },
    "XCP is not stable at a, c, d, 1 more of s.": {
        "protocol": "xcp", "links": LINKS, "scenario": "s"
    },
    "VCP is stable for small disturbances only: κ = 1 > 0.5.": {
        "protocol": "vcp", "kappa": 1.0, "kappa_global": 0.5, "alpha_max": 1.57, "stable": False,
    },
    "VCP is not stable: κ = 2 ≥ 1.57.": {
        "protocol": "vcp", "kappa": 2.0, "kappa_global": 0.5, "alpha_max": 1.57, "stable": False,
    },
    "JetMax is not stable: τ = 2 ≥ 2.": {
        "protocol": "jetmax", "tau": 2.0, "alpha_max": 2.0, "stable": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("sentence", STABILITY)
def test_a_verdict_states_the_numbers_of_its_document(sentence: str) -> None:
    assert verdicts.stability(STABILITY[sentence]) == sentence


def test_a_step_that_does_not_settle_has_no_time() -> None:
    found = {"two_thirds_s": 0.1, "settled_s": math.inf}
    document = {"protocol": "maxnet", "rtt_s": 0.08, "implemented": found}
    assert verdicts.convergence(document) == (
        "MaxNet does not settle after a step at an RTT of 80 ms."
    )


def test_tuned_parameters_are_stated() -> None:
    document = {
        "params": {"alpha": 0.857, "t": 0.4, "eta": 0.06},
        "stable": True,
        "certificate": {"max_rtt_s": 0.5},
    }
    assert verdicts.tuning(document) == (
        "With α = 0.857, T = 400 ms, η = 0.06, MaxNet is stable for every RTT up to 500 ms."
    )
