"""Resolve scenarios, run them in Python's core, and print the hash of each result.

    python -m validation.targets.native FILE…     with files that `write` has written

Each line is a file and its outcome, as from `crates/waterfill-wasm/examples/hashes.rs`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from validation.targets.cases import Source
from waterfill import _core
from waterfill.errors import InputError
from waterfill.network import protocols, resolve


def write(source: Source, events: int | None, file: Path) -> None:
    """Write a source, with the number of events after which its run ends, for `main`."""
    document = {"path": source.path, "on": source.on, "text": source.text, "events": events}
    file.write_text(json.dumps(document), encoding="utf-8")


def outcome(source: Source, events: int | None) -> str:
    """Run a source on this host; return the hash of its results or why it is refused."""
    scenario = source.scenario
    try:
        network = resolve.to_core(scenario, protocols.load(), source.on)
    except InputError as error:
        return f"refused: {error}"
    run: _core.Simulation | _core.Fluid
    try:
        if source.on == "sim":
            run = _core.Simulation(network)
        else:
            run = _core.Fluid(network, scenario.step)
        if events is None:
            run.advance(scenario.duration)
        else:
            run.advance(scenario.duration, events)
        return run.digest()
    except ValueError as error:
        return f"refused: {error}"


def main(files: Sequence[str]) -> int:
    """Print a line for each file."""
    for file in files:
        document = json.loads(Path(file).read_text(encoding="utf-8"))
        events = document.pop("events")
        print(f"{file}\t{outcome(Source(**document), events)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
