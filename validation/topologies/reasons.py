"""Reasons why flows are off their max-min shares, with evidence for each exception.

The first of these that holds, for a flow that is off by more than `WITHIN`:

- `rtt` (MaxNet): the window is right and the RTT is longer than the law knows. The rate is the
  demand D of the price, times base RTT over RTT.
- `fixed point` (XCP, iXCP, P-XCP): the rate is that of `waterfill.theory.equilibrium`, which is not
  max-min. It takes from the run by how much flows that their demand limits overstate their rate.
- `residues` (XCP, P-XCP): the same, within what the residue step makes of the fixed point, or for
  all flows of the same bottleneck together. A router that has spent the losses of an interval
  before its end takes nothing from the packets that come last. The fixed point has the mean over
  flows, not their order.
- `overload` (VCP): the rate is what additive increase regains between two overloads, on whichever
  of the path's links. It is the same constant for all flows over the share of overloaded intervals.
- `not settled`: the rate still drifts, or flows still send what was written at the start, or, where
  nothing else holds, another flow of the network drifts.
- `swings`: the rate swings without end.
- `start`: with other times of start the same flow rests elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from validation.topologies import cases, running
from validation.topologies.cases import TopologyCase
from validation.topologies.running import Reals, Record
from waterfill import _core
from waterfill.theory import equilibrium, params
from waterfill.theory.equilibrium import FixedPoint

WITHIN = 0.02
MAXNETS = ("maxnet", "maxnet2006")
UNEXPLAINED = "unexplained"
REASONS = (
    *("rtt", "fixed point", "residues", "overload", "not settled", "swings", "start"),
    UNEXPLAINED,
)
# A flow's rate is explained by a prediction if it is as near, or, for fixed points, if no more
# than this part of its error is left.
NEAR = 0.02
PART = 1 / 3
NEAR_RTT = 0.005
# Beyond the error of counting overloads.
NEAR_OVERLOAD = 0.1
# Means over a number of sawteeth drift by less, unless they are not settled.
SAW_DRIFT = 0.1
# A settled rate drifts by less than a fifth of this.
MOVED = 0.01
# In which flows start one after the other, in the scenario's order and in reverse.
STARTS_S = 4.0


@dataclass(frozen=True)
class Reason:
    """Reason why one flow is off its max-min share.

    `evidence` is what the reason's name says: a distance, drift or change.
    """

    flow: str
    error: float
    reason: str
    evidence: float


def explain(record: Record) -> list[Reason]:
    """Return a reason for each flow that is off its max-min share."""
    off = np.flatnonzero(np.abs(record.errors) > WITHIN).tolist()
    if not off:
        return []
    case = cases.build(record.network, record.law, record.ended_s)
    found = classify(record, off, models(record, case))
    left = any(reason.reason == UNEXPLAINED for reason in found)
    if not left or record.law in running.SAWTEETH:
        return found
    moves, drift = moved(record, case), float(record.drifts.max())
    return [second(reason, float(moves[i]), drift) for i, reason in zip(off, found, strict=True)]


def second(reason: Reason, move: float, drift: float) -> Reason:
    """Return a reason for an unexplained exception, based on its sensitivity to starts or on drift.

    `move` is how far its rate moves with other starts, `drift` the network's largest drift.
    """
    if reason.reason == UNEXPLAINED and move > MOVED:
        return replace(reason, reason="start", evidence=move)
    if reason.reason == UNEXPLAINED and drift > running.MAX_DRIFT:
        return replace(reason, reason="not settled", evidence=drift)
    return reason


def classify(record: Record, off: Sequence[int], predicted: dict[str, Reals]) -> list[Reason]:
    """Return a reason for each flow in `off`. `predicted` holds distances to models, by reason."""
    near = {"rtt": NEAR_RTT, "overload": NEAR_OVERLOAD}
    rates, demands = np.array(record.rates_bps), np.array(record.demands_bps)
    draining = running.exceeds(rates, demands)
    rests = record.law not in running.SAWTEETH
    most_drift = running.MAX_DRIFT if rests else SAW_DRIFT
    found = []
    for i in off:
        reason, evidence = UNEXPLAINED, float(record.drifts[i])
        for name, distances in predicted.items():
            most = near.get(name, max(NEAR, PART * abs(record.errors[i])))
            if distances[i] <= most:
                reason, evidence = name, float(distances[i])
                break
        else:
            if rests and record.swings[i] > running.MAX_SWING:
                reason, evidence = "swings", record.swings[i]
            elif record.drifts[i] > most_drift or (rests and draining):
                reason = "not settled"
        found.append(Reason(record.names[i], float(record.errors[i]), reason, evidence))
    return found


def models(record: Record, case: TopologyCase) -> dict[str, Reals]:
    """Return each flow's relative distance from the models of its law, by reason."""
    rates = np.array(record.rates_bps)
    if record.law in MAXNETS:
        # Only if some flow's RTT exceeds what it knows by as much as the flow is off.
        excess = np.array(record.signals["rtt_s"]) / np.array(record.signals["base_rtt_s"]) - 1
        most = float(np.max(excess[rates > 0], initial=0.0))
        distance = np.abs(rates / by_rtt(record) - 1)
        return {"rtt": np.where(np.abs(record.errors) <= most, distance, math.inf)}
    if record.law in equilibrium.PROTOCOLS:
        point, without = fixed_points(record, case)
        fixed = np.array(point.rates_bps)
        distance = np.abs(rates / fixed - 1)
        effect = np.abs(np.array(without.rates_bps) / fixed - 1)
        beyond = np.minimum(np.maximum(distance - effect, 0.0), together(rates, point))
        return {"fixed point": distance, "residues": np.where(effect > 0, beyond, math.inf)}
    if record.law == "vcp":
        rates = np.array(record.signals["half_bps"])
        distance = np.abs(rates / by_overload(record) - 1)
        return {"overload": np.maximum(distance - counting_error(record), 0.0)}
    return {}


def by_rtt(record: Record) -> Reals:
    """Return the rates that MaxNet predicts: the smaller of the demand and D(price) × base RTT /
    RTT.
    """
    values = running.law_params(record.law)
    t, x_max = params.number(values, "t"), params.number(values, "x_max")
    signal = {name: np.array(values) for name, values in record.signals.items()}
    rate = x_max * np.exp(-signal["price"] / t) * signal["base_rtt_s"] / signal["rtt_s"]
    return np.asarray(np.minimum(rate, np.array(record.demands_bps)))


def fixed_points(record: Record, case: TopologyCase) -> tuple[FixedPoint, FixedPoint]:
    """Return a law's fixed points with and without the draft's residue step."""
    gains = equilibrium.Gains.of(running.law_params(record.law))
    signal = {name: np.array(values) for name, values in record.signals.items()}
    stated = signal["window_bits"] / np.maximum(signal["rtt_s"] * np.array(record.rates_bps), 1.0)
    most = np.maximum(stated, equilibrium.IDLE_STATES).tolist()
    with_step, without = (
        equilibrium.of_network(case.network, gains, record.law, residue, most)
        for residue in (True, False)
    )
    return with_step, without


def together(rates: Reals, point: FixedPoint) -> Reals:
    """Return the relative distance of each bottleneck's total rate from the fixed point, by flow.

    The order of packets in an interval moves rate from one of them to another. It is infinite for
    a flow that is alone, or that its demand limits.
    """
    fixed = np.array(point.rates_bps)
    distances = np.full(len(rates), math.inf)
    for link in {at for at in point.bottleneck if at is not None}:
        mine = [i for i, at in enumerate(point.bottleneck) if at == link]
        if len(mine) > 1:
            distances[mine] = abs(float(rates[mine].sum() / fixed[mine].sum()) - 1)
    return distances


def overload_constant_bps(record: Record) -> float:
    """Return the median of rate × fraction of overloaded intervals, over the flows below their
    demand.

    If additive increase filled all of the time, it would be α·s/t_d² · t_rho/(1 − β): a window of
    w packets grows by α·(rtt/t_d)² per RTT and shrinks to β·w.
    """
    rates, shares = np.array(record.signals["half_bps"]), np.array(record.signals["overload"])
    free = (rates < 0.98 * np.array(record.demands_bps)) & (shares > 0)
    return float(np.median(rates[free] * shares[free])) if free.any() else math.nan


def counting_error(record: Record) -> Reals:
    """Return the relative error of counting overloads: one over the count in the last half of the
    run.
    """
    intervals = record.ended_s / 2 / cases.SAMPLE_S
    return np.asarray(1 / np.maximum(np.array(record.signals["overload"]) * intervals, 1.0))


def by_overload(record: Record) -> Reals:
    """Return VCP's predicted rates: the smaller of the demand and the overload constant over the
    fraction of overloaded intervals.
    """
    shares = np.maximum(np.array(record.signals["overload"]), 1e-9)
    rates = overload_constant_bps(record) / shares
    return np.asarray(np.fmin(rates, np.array(record.demands_bps)))


def moved(record: Record, case: TopologyCase) -> Reals:
    """Return the largest relative change of each flow's rate when flows start in two
    other orders.
    """
    rates = np.maximum(np.array(record.rates_bps), 1.0)
    number = len(rates)
    changes = np.zeros(number)
    for order in (range(number), range(number - 1, -1, -1)):
        flows = tuple(
            flow._replace(start_s=STARTS_S * place / number)
            for flow, place in zip(case.network.flows, order, strict=True)
        )
        fluid = _core.Fluid(replace(case.network, flows=flows), cases.STEP_S)
        fluid.advance(case.network.duration_s)
        samples = running.series(fluid, "flows", number)["rate_bps"]
        changes = np.maximum(changes, np.abs(running.fifth(samples, 1).mean(axis=0) / rates - 1))
    return changes
