"""The Rust core: laws, simulator and fluid model. Plain data and columns cross, in SI units."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, final, type_check_only

from waterfill.contract.network import Network, ParamValue
from waterfill.contract.summary import CoreSummary, ProtocolEntry

__all__ = ["Fluid", "Simulation", "protocols", "targets", "version"]

@type_check_only
class Progress(TypedDict):
    """How far a run is: simulated time, events handled, packets forwarded by links."""

    now_s: float
    events: int
    packet_hops: int

def version() -> str:
    """The core's version, the same as the package's."""

def protocols() -> list[ProtocolEntry]:
    """Describes every protocol: name, kind, backends, header_bytes, params, signals …"""

def targets(params: Mapping[str, Mapping[str, ParamValue]]) -> dict[str, float]:
    """Returns each protocol's target utilization under parameters such as `{"maxnet": {"mu": 1}}`.

    Raises ValueError when a parameter is unknown or out of range.
    """

@final
class Simulation:
    """One run of the packet-level simulator."""

    def __new__(cls, network: Network, law: object = None) -> Simulation:
        """Builds the network; flows of `own` run a law, a `waterfill.Law`.

        Raises ValueError with one sentence when it cannot run, and what the law raises.
        """

    def set_threads(self, threads: int | None = None) -> int:
        """Divides a run that has not begun among up to `threads` threads; returns how many it uses.

        None takes what is predicted to be the fastest on this host. The results do not depend on
        it. A run that records packets stays on one thread.
        """

    def start_capture(
        self, file: Path, snaplen: int, limit_bytes: int, links: Sequence[int]
    ) -> None:
        """Records the packets of these link directions (all if empty) in a pcapng file.

        Raises ValueError with one sentence when the file cannot be written.
        """

    def finish_capture(self) -> tuple[int, int, float | None] | None:
        """Ends the capture: packets, bytes, and the time at which its limit was reached.

        Raises ValueError with one sentence when the file could not be written.
        """

    def advance(self, until_s: float) -> None:
        """Runs up to that simulated time, the GIL released; may be called in slices."""

    def progress(self) -> Progress:
        """How far the run is."""

    def summary(self) -> CoreSummary:
        """Returns the summary so far, without what Python adds to it (see `runs.result`)."""

    def series(
        self, which: Literal["flows", "links", "traffic"]
    ) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """The samples so far: column → (type, little-endian buffer); NaN stands for null."""

    def arrivals(self) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """The flows that traffic sources have started so far, a row each, as in `series`.

        traffic (index), index (within the source), start_s, size_bytes, completed_s.
        """

@final
class Fluid:
    """One run of the fluid model; everything but its building as in `Simulation`."""

    def __new__(cls, network: Network, step_s: float | None = None) -> Fluid:
        """Builds the network; without `step_s` the step fits it.

        Raises ValueError with one sentence when it cannot run.
        """

    def advance(self, until_s: float) -> None:
        """Steps up to that simulated time, the GIL released; may be called in slices."""

    def progress(self) -> Progress:
        """How far the run is; `packet_hops` as if the fluid were packets."""

    def summary(self) -> CoreSummary:
        """Returns the summary so far, without what Python adds to it (see `runs.result`)."""

    def series(
        self, which: Literal["flows", "links", "traffic"]
    ) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """The samples so far: column → (type, little-endian buffer); NaN stands for null."""
