"""Endpoints in shared libraries, which take the place of flows' hosts in a simulated run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from waterfill import _core
from waterfill.contract.network import Network
from waterfill.errors import InputError, nearest, shown
from waterfill.runs.steps import flow_names


@dataclass(frozen=True)
class Endpoints:
    """Libraries of flows by the flow's or group's name. Their code runs in this process."""

    libraries: Mapping[str, Path]

    def attach(self, simulation: _core.Simulation, network: Network) -> None:
        """Load the libraries into a run that has not begun; raise InputError for an unknown flow or
        a library that cannot be used.
        """
        every = flow_names(network)
        for name, library in self.libraries.items():
            flows = [i for i, flow in enumerate(every) if name in (flow, flow.partition("[")[0])]
            if not flows:
                why = f"unknown flow {shown(name)}{nearest(name, every)}"
                raise InputError("command line", "endpoint", why)
            for flow in flows:
                try:
                    simulation.attach_endpoints(flow, library, network.seed)
                except ValueError as error:
                    raise InputError("command line", "endpoint", str(error)) from None


def parse(options: list[str]) -> Endpoints | None:
    """Return the endpoints of options FLOW=LIBRARY, None without options; raise InputError for one
    that has another form.
    """
    libraries: dict[str, Path] = {}
    for option in options:
        flow, equals, library = option.partition("=")
        if not (flow and equals and library):
            why = f"must be FLOW=LIBRARY, got {shown(option)}"
            raise InputError("command line", "endpoint", why, "for example --endpoint f=./mine.so")
        if flow in libraries:
            raise InputError("command line", "endpoint", f"flow {shown(flow)} is named twice")
        libraries[flow] = Path(library)
    return Endpoints(libraries) if libraries else None
