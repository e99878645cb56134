"""Packet captures of simulated runs as pcapng files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from waterfill import _core
from waterfill.contract.network import Network
from waterfill.errors import InputError, RunError, nearest, shown

FILE_NAME = "packets.pcapng"
# All headers of a packet: IPv4 without options, and TCP's longest.
MIN_SNAPLEN = 80
MAX_SNAPLEN = 65_535
DEFAULT_LIMIT_BYTES = 256_000_000


@dataclass(frozen=True)
class Recorded:
    """Totals of a packet capture. `full_at_s` is the time at which the capture reached its size
    limit, or None.
    """

    packets: int
    size_bytes: int
    full_at_s: float | None


@dataclass
class Capture:
    """Options of a packet capture and, after the run, its totals.

    file: where it is written. snaplen: bytes kept of each packet. limit_bytes: the file grows no
    longer than this. links: names of links, both directions of each; empty for all. failed: why
    the file could not be written; the run is not affected.
    """

    file: Path
    snaplen: int = MIN_SNAPLEN
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    links: Sequence[str] = ()
    recorded: Recorded | None = None
    failed: str | None = None

    def start(self, simulation: _core.Simulation, network: Network) -> None:
        """Start recording; raise InputError for an unknown link, and RunError if the file cannot be
        written.
        """
        chosen = [
            i
            for i, link in enumerate(network.links)
            if link.name.removesuffix(":rev") in self.links
        ]
        names = {link.name.removesuffix(":rev"): None for link in network.links}
        for name in self.links:
            if name not in names:
                why = f"unknown link {shown(name)}{nearest(name, names)}"
                raise InputError("command line", "pcap-link", why)
        for flow in network.flows:
            if flow.application is not None:
                why = "short packets at the end of messages leave gaps in sequence numbers"
                raise InputError("command line", "pcap", f"flow.{flow.name}.application: {why}")
        try:
            simulation.start_capture(self.file, self.snaplen, self.limit_bytes, chosen)
        except ValueError as error:
            raise RunError(str(error)) from None

    def finish(self, simulation: _core.Simulation) -> None:
        """End recording and set `recorded`, or `failed` if the file could not be written."""
        try:
            report = simulation.finish_capture()
        except ValueError as error:
            self.failed = str(error)
            return
        if report is not None:
            self.recorded = Recorded(*report)
