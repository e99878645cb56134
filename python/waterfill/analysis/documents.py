"""JSON documents of comparisons: `compare --json`, and the figures of each run in it."""

from __future__ import annotations

from collections.abc import Sequence

from waterfill.analysis.collectives import CollectiveResult
from waterfill.analysis.hosts import HostFigures
from waterfill.analysis.transfers import Overall
from waterfill.contract.record import Record
from waterfill.contract.summary import Spread, Summary


class ShareRatio(Record):
    """Smallest and largest ratio of rate to max-min share among a run's flows."""

    worst: float | None
    worst_flow: str | None
    most: float | None


class Settling(Record):
    """The longest settling time, its flow, and the number of flows that never settled."""

    worst: float | None
    worst_flow: str | None
    never: int


class StartUp(Record):
    """Median and longest start-up time, and the number of flows that never started up."""

    median: float | None
    worst: float | None
    worst_flow: str | None
    never: int


class FlowFigures(Record):
    """Comparison figures of one flow."""

    name: str
    share_ratio: float | None
    settling_s: float | None
    start_up_s: float | None


class Figures(Record):
    """Comparison figures of one run, in SI units. None means that there are no samples; infinity
    means never.

    `utilization` and `queue_bytes` are those of the bottleneck in the summary's window, `drops`
    those of all links in the window, `jain_index` that of the rates in the window, and
    `jain_index_of_shares` that of rate ÷ max-min share. `share_ratio` is of the window,
    `settling_s` and `start_up_s` are of the whole run. `transfers` covers all flows with a size; it
    is None if no flow has one. `hosts` are of all flows together. Results of 0.2.0 and before lack
    `hosts` and `collectives`.
    """

    bottleneck: str
    average_s: float
    utilization: float | None
    queue_bytes: Spread
    drops: int
    jain_index: float | None
    jain_index_of_shares: float | None
    share_ratio: ShareRatio
    settling_s: Settling
    start_up_s: StartUp
    transfers: Overall | None
    flows: list[FlowFigures]
    hosts: HostFigures | None = None
    collectives: Sequence[CollectiveResult] = ()


class ComparedRun(Summary):
    """A run's summary with its comparison figures."""

    compare: Figures


class Estimate(Record):
    """A quantity over seeds: its value for each seed, their mean, and its confidence interval.

    A value is None where a run has none (a flow that never settled); the mean and the interval are
    then None too.
    """

    values_: list[float | None]
    mean: float | None
    interval: list[float] | None


class Difference(Record):
    """Difference of two protocols in one quantity: mean of first − second, corrected p-value."""

    quantity: str
    first: str
    second: str
    difference: float
    p: float
    significant: bool


class OverSeeds(Record):
    """Results of a comparison over several seeds.

    `over_seeds` is {protocol: {quantity: estimate}}. `differences_over_seeds` has all pairs of
    protocols; it is empty where all seeds of each protocol have the same figures.
    """

    seeds: list[int]
    over_seeds: dict[str, dict[str, Estimate]]
    differences_over_seeds: list[Difference]


class BackendDifference(Record):
    """One figure of a protocol on two backends.

    `difference` is second − first, relative to the first if `relative` is set; None where a value
    is missing.
    """

    protocol: str
    what: str
    unit: str
    relative: bool
    backends: list[str]
    values_: list[float | None]
    difference: float | None


class ComparisonDocument(Record):
    """The document of `compare --json`. A key for several seeds or backends is None if it does not
    apply.
    """

    runs: dict[str, ComparedRun]
    seeds: list[int] | None = None
    over_seeds: dict[str, dict[str, Estimate]] | None = None
    differences_over_seeds: list[Difference] | None = None
    differences: list[BackendDifference] | None = None

    def of_seeds(self) -> OverSeeds | None:
        """Return the results over several seeds, or None for a single seed."""
        return None if self.over_seeds is None else OverSeeds.read(self)
