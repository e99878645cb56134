"""Advance the fluid model on one network until no rate drifts, and record the result."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from validation.topologies.cases import STEP_S, TopologyCase
from waterfill import _core
from waterfill.network import protocols
from waterfill.theory import params

Reals: TypeAlias = "NDArray[np.float64]"
# A run ends at the first of these times at which it is settled, else at the last.
ENDS_S = (30.0, 60.0, 120.0, 240.0, 480.0, 960.0)
# Settled: from one fifth of the time to the next no flow's mean rate changes by more, nor D of the
# price that it follows: a price may rise while the flow's own demand still limits it. And no flow
# exceeds its demand by more, as it does while it sends what was written at the start.
MAX_DRIFT = 0.002
# A run whose rates swing is not continued beyond that end, unless the swings shrink to half from
# one end to the next: it has no rest to come to.
MAX_SWING = 0.02
SWINGING_END_S = 240.0
# VCP's rates are sawteeth that never rest: it runs to that end.
SAWTEETH = ("vcp",)
SAWTEETH_END_S = 480.0


@dataclass(frozen=True)
class Record:
    """Result of a run, with one list entry per flow. `rates_bps` are means over the last fifth.

    `before_bps` are those over the fifth before, `swings` the standard deviation over the mean of
    the samples in the last fifth. `signals` are per flow too: what a reason needs as evidence.
    """

    network: str
    law: str
    links: int
    demands: int
    kept: float
    ended_s: float
    took_s: float
    names: list[str]
    shares_bps: list[float]
    demands_bps: list[float]
    rates_bps: list[float]
    before_bps: list[float]
    swings: list[float]
    signals: dict[str, list[float]]

    @property
    def errors(self) -> Reals:
        """Signed relative distances of each flow from its max-min share."""
        return np.asarray(np.array(self.rates_bps) / np.array(self.shares_bps) - 1)

    @property
    def drifts(self) -> Reals:
        """Relative change of each flow's rate from one fifth of the run to the next."""
        return drift(np.array(self.before_bps), np.array(self.rates_bps))


def drift(before: Reals, after: Reals) -> Reals:
    """Return the relative change of each flow's rate, which is 1 for a flow that
    stops or starts.
    """
    larger = np.maximum(np.maximum(before, after), 1e-9)
    return np.asarray(np.abs(after - before) / larger)


def is_settled(before: Reals, after: Reals, demands: Reals) -> bool:
    """Return True if no rate drifts and no flow exceeds its demand."""
    return bool(np.max(drift(before, after)) <= MAX_DRIFT) and not exceeds(after, demands)


def price_drift(law: str, flows: dict[str, Reals]) -> float:
    """Return the largest relative change of MaxNet's demand D(price) for any flow, or 0 for other
    laws.
    """
    price = flows.get(f"{law}_price")
    if price is None:
        return 0.0
    change = np.abs(fifth(price, 1).mean(axis=0) - fifth(price, 2).mean(axis=0))
    return float(np.max(change)) / params.number(law_params(law), "t")


def law_params(law: str) -> params.Values:
    """Return the default parameters of a law."""
    return protocols.with_defaults([law], {}, protocols.load())[law]


def exceeds(rates: Reals, demands: Reals) -> bool:
    """Return True if any flow's rate exceeds its demand. This happens while a flow sends older
    data.
    """
    return bool(np.any(rates > demands * (1 + MAX_DRIFT)))


def run(case: TopologyCase) -> Record:
    """Run a case until the rates settle, or until the last of `ENDS_S`."""
    started_s = time.perf_counter()
    fluid = _core.Fluid(case.network, STEP_S)
    demands = np.array([flow.limit_bps for flow in case.network.flows])
    swing = np.inf
    for end_s in ENDS_S:
        fluid.advance(end_s)
        flows = series(fluid, "flows", len(case.network.flows))
        after, before = fifth(flows["rate_bps"], 1), fifth(flows["rate_bps"], 2)
        mean = after.mean(axis=0)
        swings = after.std(axis=0) / np.maximum(mean, 1e-9)
        steady = price_drift(case.law, flows) <= MAX_DRIFT
        if steady and is_settled(before.mean(axis=0), mean, demands):
            break
        earlier, swing = swing, float(np.max(swings))
        if case.law in SAWTEETH:
            restless = end_s >= SAWTEETH_END_S
        else:
            swinging = swing > max(MAX_SWING, earlier / 2)
            restless = swinging and end_s >= SWINGING_END_S and not exceeds(mean, demands)
        if restless:
            break
    return Record(
        network=case.name, law=case.law, links=len(case.network.links), demands=case.demands,
        kept=case.kept, ended_s=end_s, took_s=time.perf_counter() - started_s,
        names=[flow.name for flow in case.network.flows], shares_bps=case.shares_bps,
        demands_bps=demands.tolist(), rates_bps=mean.tolist(),
        before_bps=before.mean(axis=0).tolist(), swings=swings.tolist(),
        signals=signals(case, flows, series(fluid, "links", len(case.network.links))),
    )  # fmt: skip


def fifth(samples: Reals, which: int) -> Reals:
    """Return the samples (rows) of the `which`-th fifth of a run, counted from the end."""
    length = len(samples) // 5
    return samples[len(samples) - which * length : len(samples) - (which - 1) * length]


def series(fluid: Any, which: str, entries: int) -> dict[str, Reals]:
    """Return the floating-point columns of a time series, with rows per sample and columns per flow
    or link.
    """
    found = {}
    for name, (kind, data) in fluid.series(which).items():
        if kind == "f64" and name != "time_s":
            values = np.frombuffer(data, dtype="<f8")
            # Flows have no rows before they start.
            found[name] = values[len(values) % entries :].reshape(-1, entries)
    return found


def signals(
    case: TopologyCase, flows: dict[str, Reals], links: dict[str, Reals]
) -> dict[str, list[float]]:
    """Return each flow's mean signals that reasons use, over the last fifth, or half for VCP."""
    found = {
        "rtt_s": fifth(flows["rtt_s"], 1).mean(axis=0),
        "window_bits": 8 * fifth(flows["window_bytes"], 1).mean(axis=0),
        "base_rtt_s": np.array([flow.base_rtt_s for flow in case.network.flows]),
    }
    price = flows.get(f"{case.law}_price")
    if price is not None:
        found["price"] = fifth(price, 1).mean(axis=0)
    load = links.get(f"{case.law}_load_factor")
    if load is not None:
        half = len(load) // 2
        over = load[half:] >= 1.0
        paths = [list(flow.forward) for flow in case.network.flows]
        found["overload"] = np.array([over[:, path].any(axis=1).mean() for path in paths])
        found["half_bps"] = flows["rate_bps"][half:].mean(axis=0)
    return {name: np.nan_to_num(values, nan=-1.0).tolist() for name, values in found.items()}
