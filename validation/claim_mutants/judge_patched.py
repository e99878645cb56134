"""Print the verdicts of an experiment's claims with another build of the core, as JSON.

python -m validation.claim_mutants.judge_patched LIBRARY PAPER/EXPERIMENT [--short]

Runs are kept in the cache. A run that does not use the faulty law is the same with every fault, so
that it runs once.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
from pathlib import Path

_CORE = "waterfill._core"


def keep_apart(fault: str) -> None:
    """Give cached runs that use the faulty law keys of their own. `fault` begins with its name."""
    from validation.claim_mutants.variants import uses
    from waterfill.runs import cache
    from waterfill.scenario.document import Scenario

    law, entry = fault.split()[0], cache.entry

    def entry_with(scenario: Scenario, backend: str, context: str = "") -> Path:
        return entry(scenario, backend, context + fault * uses(law, scenario))

    cache.entry = entry_with


def main(library: str, path: str, *options: str) -> None:
    """Judge the experiment with the core of this library."""
    loader = importlib.machinery.ExtensionFileLoader(_CORE, library)
    spec = importlib.util.spec_from_file_location(_CORE, library, loader=loader)
    assert spec is not None
    # Before the first import of the package, which would load its own core.
    sys.modules[_CORE] = importlib.util.module_from_spec(spec)
    loader.exec_module(sys.modules[_CORE])
    from waterfill.papers.claims import loading
    from waterfill.papers.reproduce import reproduce

    keep_apart(os.environ["WATERFILL_WRONG"])
    chosen = loading.select([path], loading.experiments())
    found = reproduce(chosen, None, short="--short" in options)
    print(json.dumps({claim.id: claim.verdict for claim in found.claims[path]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
