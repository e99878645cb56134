"""Print the verdicts of an experiment's claims with another build of the core, as JSON.

python -m validation.claim_mutants.judge_patched LIBRARY PAPER/EXPERIMENT [--short]
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import sys

_CORE = "waterfill._core"


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

    chosen = loading.select([path], loading.experiments())
    found = reproduce(chosen, None, short="--short" in options)
    print(json.dumps({claim.id: claim.verdict for claim in found.claims[path]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
