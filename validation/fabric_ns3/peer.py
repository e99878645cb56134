"""The program of ns3-datacenter: its files, its runs and what it reports."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from validation.fabric_ns3.cases import ETA, RATE_AI_BPS, FabricCase
from validation.study import Need
from waterfill.errors import RunError

VARIABLE = "NS3_DATACENTER"
# Without these, a queue pair compares its first telemetry with what its memory last held.
CLEARED = {"MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}

# Buffers are so large that no link is paused. ECN acts on neither law, but every rate needs a
# level. The other keys have the values of the authors' examples, or act on other laws.
SETTINGS = """\
ENABLE_QCN 1
PACKET_PAYLOAD_SIZE {payload}
TOPOLOGY_FILE topology.txt
FLOW_FILE flows.txt
FCT_OUTPUT_FILE times.txt
PFC_OUTPUT_FILE pauses.txt
SIMULATOR_STOP_TIME {end_s}
RATE_AI {rate_ai:.0f}Mb/s
RATE_HAI 100Mb/s
MIN_RATE 100Mb/s
ERROR_RATE_PER_LINK 0.0
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
GLOBAL_T 1
FAST_REACT 1
U_TARGET {eta}
MI_THRESH {max_stage}
INT_MULTI 1
MULTI_RATE 0
SAMPLE_FEEDBACK 0
RATE_BOUND 1
ACK_HIGH_PRIO 0
ENABLE_TRACE 0
KMAX_MAP 3 25000000000 400 100000000000 1600 400000000000 6400
KMIN_MAP 3 25000000000 100 100000000000 400 400000000000 1600
PMAX_MAP 3 25000000000 0.2 100000000000 0.2 400000000000 0.2
BUFFER_SIZE 1000
"""

Numbers = npt.NDArray[np.float64]


def program() -> Path:
    """Return the path of the program that the user has built."""
    return Path(os.environ.get(VARIABLE, ""))


def _lacks() -> str | None:
    if program().is_file():
        return None
    return (f"ns3-datacenter's powertcp-evaluation-burst: {VARIABLE}=PATH "
            "(docs/validation/fabric-ns3.md)")  # fmt: skip


NS3_DATACENTER = Need("ns3-datacenter", _lacks)


def write_files(case: FabricCase, folder: Path) -> None:
    """Write the topology, the flows and the settings of a case.

    The program prints the queues of its first switch every 1.5 times the smallest base RTT. Two
    hosts without flows, a nanosecond away, make that 66 ns in an incast, so that no packet is
    missed.
    """
    probes = 2 if case.kind == "incast" else 0
    switches = sorted({end for wire in case.wires for end in wire[:2] if end >= case.hosts})

    def node(number: int) -> int:
        return number + probes if number >= case.hosts else number

    wires = [(w.a, node(w.b), w.rate_bps, w.delay_ns) for w in case.wires if w.a < case.hosts]
    wires += [(case.hosts + i, node(switches[0]), 400e9, 1) for i in range(probes)]
    wires += [(node(w.a), node(w.b), w.rate_bps, w.delay_ns) for w in case.wires
              if w.a >= case.hosts]  # fmt: skip
    nodes = case.hosts + probes + len(switches)
    head = f"{nodes} {len(switches)} {len(switches)} {len(wires)}\n"
    head += " ".join(str(node(switch)) for switch in switches) + "\n"
    links = "".join(f"{a} {b} {rate:.1f} {delay}ns 0\n" for a, b, rate, delay in wires)
    (folder / "topology.txt").write_text(head + links)
    flows = "".join(
        f"{f.source} {f.sink} 3 {number + 1} {f.packets * case.payload_bytes} {f.start_s:.9f}\n"
        for number, f in enumerate(case.flows)
    )
    (folder / "flows.txt").write_text(f"{len(case.flows)}\n{flows}")
    settings = SETTINGS.format(
        payload=case.payload_bytes, end_s=case.end_s, rate_ai=RATE_AI_BPS / 1e6, eta=ETA,
        max_stage=case.max_stage,
    )  # fmt: skip
    (folder / "settings.txt").write_text(settings)


def run(case: FabricCase, *, cleared: bool = True) -> tuple[Numbers, int]:
    """Return the completion times (s) and the longest queue (bytes) of an incast's last link.

    A time ends with the last acknowledgement at the sender. Unfinished flows have NaN. With
    `cleared` the program's memory begins as zeros.
    """
    with tempfile.TemporaryDirectory(prefix="fabric-ns3-") as name:
        folder = Path(name)
        write_files(case, folder)
        power = "true" if case.law == "powertcp" else "false"
        command = [str(program().resolve()), "--conf=settings.txt", "--algorithm=3",
                   f"--wien={power}", "--delayWien=false", "--windowCheck=1"]  # fmt: skip
        environment = os.environ | (CLEARED if cleared else {})
        longest = 0
        wanted = f"ToR 0 Port {case.hosts - 1} "
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                if case.kind == "incast" and line.startswith(wanted):
                    longest = max(longest, int(line.split()[9]))
        if running.returncode != 0:
            raise RunError(f"ns3-datacenter: {case.name}: exit {running.returncode}")
        return _times(case, (folder / "times.txt").read_text()), longest


def _times(case: FabricCase, text: str) -> Numbers:
    """Return the completion times in the order of the flows; a flow's port is its number."""
    found = np.full(len(case.flows), np.nan)
    for line in text.splitlines():
        words = line.split()
        found[int(words[3]) - 1] = int(words[6]) * 1e-9
    return found
