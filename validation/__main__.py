"""List the studies or run one: `python -m validation [NAME [OPTIONS]]`.

`--list` prints a line for each, for other programs. The name `tonight` stands for one that this
host can run in two hours; which one depends on the date.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from validation.study import Study, execute
from waterfill.errors import nearest

# Each study's name, and its module in this package.
STUDIES: Mapping[str, str] = {
    "abc": "abc_traces",
    "all-reduce": "all_reduce",
    "bbr-shares": "bbr_shares",
    "bbr3": "bbr3.study",
    "certificate-mutants": "certificates.kernel.mutants",
    "certificate-mutants-rust": "certificates.mutants",
    "certificates": "certificates.study",
    "claim-mutants": "claim_mutants.study",
    "cohabit": "cohabit",
    "coverage": "coverage",
    "decoders": "commands:DECODERS",
    "dilation": "dilation",
    "equilibria": "equilibria",
    "evaluate": "evaluate.study",
    "fabric": "fabric.study",
    "fabric-ns3": "fabric_ns3.study",
    "faults": "faults",
    "fct": "fct.study",
    "fct-ns3": "fct.ns3",
    "fluid-vs-sim": "fluid_vs_sim",
    "kernel-certificates": "certificates.kernel.study",
    "kernels": "kernels.study",
    "kills": "kills",
    "link-events": "link_events",
    "linux-bbr-shares": "bbr_shares:ON_LINUX",
    "linux-cohabit": "testbed.cohabit",
    "linux-connections": "testbed.connections",
    "linux-csig": "price_bits.kernel",
    "linux-delay-line": "testbed.delay_line",
    "linux-events": "testbed.events",
    "linux-faults": "testbed.faults",
    "linux-fct": "testbed.fct",
    "linux-laws": "testbed.laws",
    "linux-link-events": "link_events:ON_LINUX",
    "linux-maxnet": "testbed.maxnet",
    "linux-maxnet-special": "testbed.maxnet:SPECIAL",
    "linux-path-steps": "path_steps:ON_LINUX",
    "linux-requests": "testbed.requests",
    "linux-scone": "testbed.scone",
    "linux-tcp": "testbed.tcp_table",
    "linux-tcp-cells": "testbed.tcp_cells",
    "linux-trace": "trace_link",
    "mutants": "mutants",
    "ns3": "ns3",
    "package": "package.study",
    "path-steps": "path_steps",
    "peers": "ns2_peers",
    "peers-phases": "ns2_peers:PHASES",
    "planted": "evaluate.planted",
    "price-bits": "price_bits.study",
    "proofs": "proofs.study",
    "quinn": "quinn.study",
    "readings": "readings.study",
    "recovery-peers": "recovery.study",
    "response": "commands:RESPONSE",
    "scone": "commands:SCONE",
    "seeds": "seeds",
    "soak": "soak.study",
    "sperc": "sperc",
    "stability": "stability_vs_fluid",
    "studio": "commands:STUDIO",
    "sweep-hosts": "sweep.hosts",
    "sweep-kills": "sweep.kills",
    "sweep-scale": "sweep.scale",
    "sweep-slurm": "sweep.slurm",
    "targets": "targets.study",
    "thread-bytes": "thread_bytes",
    "thread-scaling": "thread_scaling",
    "topologies": "topologies.study",
    "wind-up": "wind_up",
}
TONIGHT = "tonight"
_HOW = "Run one: make validate STUDY=NAME [OPTIONS=…]; OPTIONS=--help lists its options."
_TONIGHT_MINUTES = 120.0


def load(name: str) -> Study[Any, Any]:
    """Return a study by its name."""
    module, _, attribute = STUDIES[name].partition(":")
    study: Study[Any, Any] = getattr(import_module(f"validation.{module}"), attribute or "STUDY")
    return study


def table() -> str:
    """Return a table of all studies as text."""
    from rich.console import Console
    from rich.table import Table

    rows = Table("study", "cost", "needs", "shows", box=None, pad_edge=False)
    for name in STUDIES:
        study = load(name)
        rows.add_row(name, study.cost, study.needed, study.shows)
    console = Console(width=None if sys.stdout.isatty() else 120)
    with console.capture() as text:
        console.print(rows)
    return (
        text.get()
        + "\nRun one: make validate STUDY=NAME [OPTIONS=…]; OPTIONS=--help lists its options."
    )


def lines() -> str:
    """Return the name, cost, needs and purpose of each study, as tab-separated lines."""
    found = ((name, load(name)) for name in STUDIES)
    return "\n".join(f"{name}\t{s.cost}\t{s.needed}\t{s.shows}" for name, s in found)


def tonight(day: datetime.date) -> str:
    """Return the study to run on a day, among those that this host can finish in two hours."""
    studies = [(name, load(name)) for name in STUDIES]
    short = [(name, study) for name, study in studies if study.minutes <= _TONIGHT_MINUTES]
    able = [name for name, study in short if not any(need.lacks() for need in study.needs)]
    return able[day.toordinal() % len(able)]


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    name, *rest = arguments or ["--table"]
    if name in ("--table", "-h", "--help"):
        print(table())
        return 0
    if name == "--list":
        print(lines())
        return 0
    if name == TONIGHT:
        name = tonight(datetime.datetime.now(datetime.timezone.utc).date())
        print(f"tonight: {name}", file=sys.stderr)
    if name not in STUDIES:
        print(f"validation: unknown study {name!r}{nearest(name, STUDIES)}", file=sys.stderr)
        return 2
    return execute(load(name), name, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
