"""Endpoints in shared libraries, which take the place of flows' hosts in a simulated run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from waterfill import _core
from waterfill.contract.network import Network
from waterfill.errors import InputError, nearest, shown
from waterfill.runs.steps import flow_names


@dataclass(frozen=True)
class Library:
    """A shared library of endpoints, and the options that its endpoints get."""

    file: Path
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self._with_options(str(self.file))

    @property
    def name(self) -> str:
        """Name in tables: the file's name without its directory, and the options."""
        return self._with_options(self.file.name)

    def _with_options(self, text: str) -> str:
        typed = ",".join(f"{key}={value}" for key, value in self.options)
        return f"{text}:{typed}" if typed else text

    def identity(self) -> str:
        """Return a hash of the library's code and options; raise InputError if it is unreadable."""
        try:
            content = self.file.read_bytes()
        except OSError as error:
            why = f"{self.file}: cannot be read: {error.strerror}"
            raise InputError("command line", "endpoint", why) from None
        return hashlib.sha256(content + repr(self.options).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Endpoints:
    """Libraries of flows by the flow's or group's name. Their code runs in this process."""

    libraries: Mapping[str, Library]

    def attach(self, simulation: _core.Simulation, network: Network) -> None:
        """Load the libraries into a run that has not begun; raise InputError for an unknown flow, a
        library that cannot be used or an option that it refuses.
        """
        every = flow_names(network)
        for name, library in self.libraries.items():
            flows = [i for i, flow in enumerate(every) if name in (flow, flow.partition("[")[0])]
            if not flows:
                why = f"unknown flow {shown(name)}{nearest(name, every)}"
                raise InputError("command line", "endpoint", why)
            for flow in flows:
                try:
                    simulation.attach_endpoints(
                        flow, library.file, list(library.options), network.seed
                    )
                except ValueError as error:
                    raise InputError("command line", "endpoint", str(error)) from None

    def identity(self) -> str:
        """Return a hash of the flows' names and of the code and options of their libraries."""
        return repr(sorted((name, one.identity()) for name, one in self.libraries.items()))


def parse_library(text: str) -> Library:
    """Return the library of LIBRARY or LIBRARY:key=value,…; raise InputError for another form."""
    file, _, options = text.rpartition(":")
    if not file or "=" not in options:
        return Library(Path(text))
    pairs = []
    for option in options.split(","):
        key, equals, value = option.partition("=")
        if not (key and equals and value):
            why = f"an option must be key=value, got {shown(option)}"
            raise InputError("command line", "endpoint", why)
        pairs.append((key, value))
    return Library(Path(file), tuple(pairs))


def parse(options: list[str]) -> Endpoints | None:
    """Return the endpoints of options FLOW=LIBRARY, None without options; raise InputError for one
    that has another form.
    """
    libraries: dict[str, Library] = {}
    for option in options:
        flow, equals, library = option.partition("=")
        if not (flow and equals and library):
            why = f"must be FLOW=LIBRARY, got {shown(option)}"
            raise InputError("command line", "endpoint", why, "for example --endpoint f=./mine.so")
        if flow in libraries:
            raise InputError("command line", "endpoint", f"flow {shown(flow)} is named twice")
        libraries[flow] = parse_library(library)
    return Endpoints(libraries) if libraries else None
