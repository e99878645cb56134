"""The Rust core: laws and simulator. Everything that crosses is JSON or a column, in SI units."""

from typing import Literal, TypedDict, final, type_check_only

__all__ = ["Fluid", "Simulation", "protocols_json", "targets_json", "version"]

@type_check_only
class Progress(TypedDict):
    """How far a run is: simulated time, events handled, packets forwarded by links."""

    now_s: float
    events: int
    packet_hops: int

def version() -> str:
    """The core's version, the same as the package's."""

def protocols_json() -> str:
    """The protocols as a JSON list: name, kind, backends, header_bytes, params, signals …"""

def targets_json(params_json: str) -> str:
    """Each protocol's target utilisation as a JSON object, under `{"maxnet": {"alpha": 0.5}}`.

    Raises ValueError when a parameter is unknown or out of range.
    """

@final
class Simulation:
    """One run of the packet-level simulator."""

    def __new__(cls, network_json: str) -> Simulation:
        """Builds the network.

        Raises ValueError with one sentence when it cannot run.
        """

    def advance(self, until_s: float) -> None:
        """Runs up to that simulated time, the GIL released; may be called in slices."""

    def progress(self) -> Progress:
        """How far the run is."""

    def summary_json(self) -> str:
        """The summary so far, without what Python adds to it (see `waterfill.results`)."""

    def series(
        self, which: Literal["flows", "links", "traffic"]
    ) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """The samples so far: column → (type, little-endian buffer); NaN stands for null."""

@final
class Fluid:
    """One run of the fluid model; everything but its building as in `Simulation`."""

    def __new__(cls, network_json: str, step_s: float | None = None) -> Fluid:
        """Builds the network; without `step_s` the step fits it.

        Raises ValueError with one sentence when it cannot run.
        """

    def advance(self, until_s: float) -> None:
        """Steps up to that simulated time, the GIL released; may be called in slices."""

    def progress(self) -> Progress:
        """How far the run is; `packet_hops` as if the fluid were packets."""

    def summary_json(self) -> str:
        """The summary so far, without what Python adds to it (see `waterfill.results`)."""

    def series(
        self, which: Literal["flows", "links", "traffic"]
    ) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """The samples so far: column → (type, little-endian buffer); NaN stands for null."""
