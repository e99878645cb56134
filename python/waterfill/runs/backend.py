"""Interface of a backend, which checks and runs scenarios, and the options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from waterfill.network.protocols import ProtocolInfo
from waterfill.runs.laws import PythonLaw
from waterfill.runs.progress import Report
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario

if TYPE_CHECKING:
    from waterfill.runs.capture import Capture
    from waterfill.runs.endpoints import Endpoints
    from waterfill.runs.qlog import Qlog
    from waterfill.runs.steps import StepLog


@dataclass(frozen=True)
class RunOptions:
    """Options of a run in addition to its scenario.

    capture: records the packets. threads: the largest number of threads, None for what is
    predicted to be the fastest; results do not depend on it. laws: laws in Python by name.
    steps: logs the steps of laws. qlog: logs flows.
    endpoints: programs that take the place of flows' hosts.
    """

    capture: Capture | None = None
    threads: int | None = 1
    laws: Mapping[str, PythonLaw] = field(default_factory=dict)
    steps: StepLog | None = None
    qlog: Qlog | None = None
    endpoints: Endpoints | None = None

    def used(self) -> list[str]:
        """Return the names of the options in use that not every backend supports."""
        asked = {
            "laws": bool(self.laws),
            "capture": self.capture is not None,
            "steps": self.steps is not None,
            "qlog": self.qlog is not None,
            "endpoints": self.endpoints is not None,
            "threads": self.threads is not None and self.threads != 1,
        }
        return [name for name, is_used in asked.items() if is_used]


PLAIN = RunOptions()
"""The options that every backend supports."""


@runtime_checkable
class Backend(Protocol):
    """Interface of a backend that runs scenarios. `waterfill.runs.backends` lists all backends."""

    measures_host: ClassVar[bool] = False
    """True if a run measures this host, so that two runs must not overlap."""

    supports: ClassVar[frozenset[str]] = frozenset()
    """Names of the `RunOptions` that this backend supports."""

    def known(self) -> dict[str, ProtocolInfo]:
        """Return all protocols by name. The `backends` of each are those available on this host."""
        ...

    def prepare(self, scenario: Scenario, options: RunOptions = PLAIN) -> None:
        """Check that `run` can run a scenario, without running it; raise InputError if it
        cannot.
        """
        ...

    def run(
        self, scenario: Scenario, options: RunOptions = PLAIN, progress: Report | None = None
    ) -> Result:
        """Run a checked scenario with options that this backend supports, and return the result.

        `progress` is called with a `Tick` about ten times a second of wall time. Ctrl-C ends the
        run early: the result holds what there is, and its summary `interrupted_at_s`.

        Raises InputError when the backend cannot run the scenario.
        """
        ...
