"""The Rust core: laws, simulator and fluid model. Values are plain data in SI units."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, final, type_check_only

from waterfill.contract.network import Network, ParamValue

__all__ = [
    "Fluid", "Simulation", "asin", "cbrt", "cos", "ln", "ln_1p", "log10", "pow", "protocols", "sin",
    "targets", "version",
]  # fmt: skip

@type_check_only
class Progress(TypedDict):
    """Progress of a run: simulated time, events handled, and packets forwarded by links."""

    now_s: float
    events: int
    packet_hops: int

@type_check_only
class Estimate(TypedDict):
    """Estimated cost of a run, with the keys of the scenario that contribute most to it.

    `events` counts other work too, such as routers' timers, in units of an event; `cpu_s` is
    seconds of one CPU.
    """

    bytes: float
    bytes_key: str
    events: float
    events_key: str
    cpu_s: float

def version() -> str:
    """Return the version of the core, which is also the version of the package."""

def protocols() -> list[dict[str, Any]]:
    """Return a description of each protocol: its kind, backends, parameters and signals."""

def targets(params: Mapping[str, Mapping[str, ParamValue]]) -> dict[str, float]:
    """Return each protocol's target utilization under parameters such as `{"maxnet": {"mu": 1}}`.

    Raise ValueError when a parameter is unknown or out of range.
    """

# Functions for values that enter a scenario: those of `math` depend on the host's C library.

def asin(x: float) -> float:
    """Arc sine, in radians."""

def cbrt(x: float) -> float:
    """Cube root."""

def cos(x: float) -> float:
    """Cosine of an angle in radians."""

def ln(x: float) -> float:
    """Natural logarithm; NaN of a negative number."""

def ln_1p(x: float) -> float:
    """ln(1 + x) without loss near 0."""

def log10(x: float) -> float:
    """Logarithm to base 10."""

def pow(x: float, y: float) -> float:
    """x^y."""

def sin(x: float) -> float:
    """Sine of an angle in radians."""

@final
class Simulation:
    """One run of the packet-level simulator."""

    def __new__(
        cls,
        network: Network,
        laws: Mapping[str, object] | None = None,
        check: Callable[[], object] | None = None,
    ) -> Simulation:
        """Build the network. `laws` are laws in Python, `runs.laws.BoundLaw`, by their names.

        `check` is called some twenty times a second while the run is built and advances; what it
        or a signal's handler raises is raised here or by `advance`, and the run stays stopped.

        Raise ValueError with one sentence when the network cannot run, and any error of a law.
        """

    def set_threads(self, threads: int | None = None) -> int:
        """Divide the run among up to `threads` threads before it begins; return the number used.

        None takes what is predicted to be the fastest on this host. The results do not depend on
        it. A run that records packets stays on one thread.
        """

    def run_in_turns(self, clock: Callable[[], float]) -> tuple[list[float], float, int] | None:
        """Simulate the whole run with the threads' parts in turn on one thread.

        Return the seconds of each part by `clock`, the sum over windows of the seconds of the
        slowest part, and the number of windows; None if the run is not divided.
        """

    def start_capture(
        self, file: Path, snaplen: int, limit_bytes: int, links: Sequence[int]
    ) -> None:
        """Record the packets of these link directions in a pcapng file, or of all if none is given.

        Raise ValueError with one sentence when the file cannot be written.
        """

    def finish_capture(self) -> tuple[int, int, float | None] | None:
        """End the capture; return its packets and bytes, and the time (s) at which it was full.

        Return None without a capture. The time is None below its limit of bytes.

        Raise ValueError with one sentence when the file could not be written.
        """

    def attach_endpoints(
        self, flow: int, library: Path, options: Sequence[tuple[str, str]], seed: int
    ) -> str:
        """Put the endpoints of a shared library in the place of a flow's hosts; return their name
        with the options.

        Raise ValueError with one sentence when the library cannot be loaded, refuses an option, or
        the run has begun.
        """

    def start_qlog(self, flows: Sequence[tuple[int, Path, str]], limit_bytes: int) -> None:
        """Log flows as qlog, each given by index, file and title, until the files together have
        `limit_bytes`.

        Raise ValueError with one sentence when a file cannot be written.
        """

    def finish_qlog(self) -> tuple[int, int, float | None] | None:
        """End the logs; return their events and bytes, and the time (s) at which they were full.

        Return None without logs. The time is None below their limit of bytes.

        Raise ValueError with one sentence when a file could not be written.
        """

    def log_steps(self, limit: int, law: str | None = None) -> None:
        """Log up to `limit` further steps of one law or of all laws, on one thread."""

    def steps(self) -> dict[str, Any] | None:
        """Return the log of steps for `waterfill.runs.steps.to_table`, or None if there is none."""

    def advance(self, until_s: float, events: int = ...) -> bool:
        """Run up to a simulated time without holding the GIL; return True if more work is due.

        One thread also stops after `events` events. Calls in slices change no result.
        """

    def estimate(self) -> Estimate:
        """Return the estimated cost of the whole run, computed when the network was built."""

    def progress(self) -> Progress:
        """Return the progress of the run."""

    def summary(self) -> dict[str, Any]:
        """Return the summary so far, with the keys of `contract.summary.CoreSummary`."""

    def series(
        self, which: Literal["flows", "links", "traffic"]
    ) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """Return the samples so far: column → (type, little-endian buffer). NaN means null."""

    def arrivals(self) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """Return the flows that traffic sources have started so far, in the format of `series`.

        traffic (index), index (within the source), start_s, size_bytes, completed_s.
        """

    def messages(self) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """Return the messages that applications have written so far, in the format of `series`.

        flow (index in the summary), index (within the flow), written_s, size_bytes, completed_s.
        """

    def digest(self) -> str:
        """Return a hash of all series, the arrivals and the summary, equal on every target."""

@final
class Fluid:
    """One run of the fluid model. Its methods work like those of `Simulation`."""

    def __new__(
        cls,
        network: Network,
        step_s: float | None = None,
        check: Callable[[], object] | None = None,
    ) -> Fluid:
        """Build the network. Without `step_s`, the core chooses the time step.

        Raise ValueError with one sentence when the network cannot run.
        """

    def log_steps(self, limit: int, law: str | None = None) -> None:
        """Log up to `limit` further steps of one law or of all laws."""

    def steps(self) -> dict[str, Any] | None:
        """Return the log of steps for `waterfill.runs.steps.to_table`, or None if there is none."""

    def advance(self, until_s: float, events: int = ...) -> bool:
        """Advance to a simulated time without holding the GIL; return True if more work is due.

        Stops after `events` events too, but never within a step. Calls in slices change no result.
        """

    def estimate(self) -> Estimate:
        """Return the estimated cost of the whole run, computed when the network was built."""

    def progress(self) -> Progress:
        """Return the progress of the run. `packet_hops` counts the fluid in packets."""

    def summary(self) -> dict[str, Any]:
        """Return the summary so far, with the keys of `contract.summary.CoreSummary`."""

    def series(
        self, which: Literal["flows", "links", "traffic"]
    ) -> dict[str, tuple[Literal["f64", "u32", "u64"], bytes]]:
        """Return the samples so far: column → (type, little-endian buffer). NaN means null."""

    def digest(self) -> str:
        """Return a hash of all series and the summary, equal on every target."""
