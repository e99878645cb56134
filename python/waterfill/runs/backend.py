"""What every backend does: say what it runs, check a scenario, run it."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from waterfill.network.protocols import ProtocolInfo
from waterfill.runs.progress import Report
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario


@runtime_checkable
class Backend(Protocol):
    """Where scenarios run. `waterfill.runs.backends` lists all of them."""

    measures_host: ClassVar[bool] = False
    """Whether a run is a measurement of this host: such runs go one at a time."""

    def known(self) -> dict[str, ProtocolInfo]:
        """Return every protocol by name, its `backends` as this host has them."""
        ...

    def prepare(self, scenario: Scenario) -> None:
        """Check that `run` can run a scenario, without running it; raise InputError if not."""
        ...

    def run(self, scenario: Scenario, progress: Report | None = None) -> Result:
        """Run a checked scenario and return its result.

        `progress` is called with a `Tick` about ten times a second of wall time. Ctrl-C ends the
        run early: the result holds what there is, and its summary `interrupted_at_s`.

        Raises InputError when the backend cannot run the scenario.
        """
        ...
