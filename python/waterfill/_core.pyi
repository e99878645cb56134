"""The Rust core: laws, simulator and fluid model. Plain data and columns cross, in SI units."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, final, type_check_only

from waterfill.contract.network import Network, ParamValue

__all__ = ["Fluid", "Simulation", "protocols", "targets", "version"]

@type_check_only
class Progress(TypedDict):
    """Progress of a run: simulated time, events handled, packets forwarded by links."""

    now_s: float
    events: int
    packet_hops: int

@type_check_only
class Estimate(TypedDict):
    """Expected needs of a run, and the scenario's keys that cause the largest parts.

    `events` counts other work too, such as routers' timers, in units of an event; `cpu_s` is
    seconds of one CPU.
    """

    bytes: float
    bytes_key: str
    events: float
    events_key: str
    cpu_s: float

def version() -> str:
    """The core's version, the same as the package's."""

def protocols() -> list[dict[str, Any]]:
    """Describes every protocol: name, kind, backends, header_bytes, params, signals …"""

def targets(params: Mapping[str, Mapping[str, ParamValue]]) -> dict[str, float]:
    """Returns each protocol's target utilization under parameters such as `{"maxnet": {"mu": 1}}`.

    Raises ValueError when a parameter is unknown or out of range.
    """

@final
class Simulation:
    """One run of the packet-level simulator."""

    def __new__(
        cls, network: Network, law: object = None, check: Callable[[], object] | None = None
    ) -> Simulation:
        """Builds the network; flows of `own` run a law, a `waterfill.PythonLaw`.

        `check` is called some twenty times a second while the run is built and advances; what it
        or a signal's handler raises is raised here or by `advance`, and the run stays stopped.

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

    def log_steps(self, limit: int, law: str | None = None) -> None:
        """Logs up to `limit` steps of laws from now on, of one law or of all; on one thread."""

    def steps(self) -> dict[str, Any] | None:
        """The log of steps, None without one; `waterfill.runs.steps.to_table` reads it."""

    def advance(self, until_s: float, events: int = ...) -> bool:
        """Runs up to that simulated time, the GIL released; may be called in slices.

        On one thread also only up to `events` events. Returns whether more is due up to that time.
        Slices change no result.
        """

    def estimate(self) -> Estimate:
        """Estimate for the whole run, made when it was built."""

    def progress(self) -> Progress:
        """Progress of the run."""

    def summary(self) -> dict[str, Any]:
        """Returns the summary so far, a `contract.summary.CoreSummary` once read."""

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

    def __new__(
        cls,
        network: Network,
        step_s: float | None = None,
        check: Callable[[], object] | None = None,
    ) -> Fluid:
        """Builds the network; without `step_s` the step fits it.

        Raises ValueError with one sentence when it cannot run.
        """

    def log_steps(self, limit: int, law: str | None = None) -> None:
        """Logs up to `limit` steps of laws from now on, of one law or of all."""

    def steps(self) -> dict[str, Any] | None:
        """The log of steps, None without one; `waterfill.runs.steps.to_table` reads it."""

    def advance(self, until_s: float, events: int = ...) -> bool:
        """Steps up to that simulated time, the GIL released; may be called in slices.

        Also only up to `events` events, a step undivided. Returns whether more is due up to that
        time.
        """

    def estimate(self) -> Estimate:
        """Estimate for the whole run, made when it was built."""

    def progress(self) -> Progress:
        """Progress of the run; `packet_hops` as if the fluid were packets."""

    def summary(self) -> dict[str, Any]:
        """Returns the summary so far, a `contract.summary.CoreSummary` once read."""

    def series(
        self, which: Literal["flows", "links", "traffic"]
    ) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """The samples so far: column → (type, little-endian buffer); NaN stands for null."""
