"""Waterfill: explicit congestion control, from the equation to the kernel.

    import waterfill
    result = waterfill.run("papers/maxnet-2007/two-hop/scenario.toml")
    result.summary["flows"][0]["rate_bps"]
    result.flows  # a pyarrow table; its to_pandas() needs pandas, polars.from_arrow() polars

`load(path)` reads a scenario, or the directory of an earlier run as its `Result`; `run(scenario)`
runs it, `compare(scenario, protocols)` under several protocols, `sweep(path)` at many points;
`evaluate(law)` judges a law by a suite of criteria;
`maxmin(scenario)` computes the fair rates without a run; `plot(result)` draws it. `Scenario` builds
one in Python, `protocols()` describes the laws, `theory` analyses their equations. `InputError` is
what they raise when the input is wrong: one line that names the file, the key, the problem and what
to write.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, which takes 50 ms to import: Ctrl-C would be a traceback
if TYPE_CHECKING:
    from typing import Any

    from waterfill import theory as theory
    from waterfill.analysis.compare import compare as compare
    from waterfill.analysis.maxmin import maxmin as maxmin
    from waterfill.analysis.notebook import notebook_html as notebook_html
    from waterfill.analysis.plots import plot as plot
    from waterfill.builder import Scenario as Scenario
    from waterfill.errors import InputError as InputError
    from waterfill.evaluation.api import evaluate as evaluate
    from waterfill.runs.backends import run as run
    from waterfill.runs.laws import LawParam as LawParam
    from waterfill.runs.laws import PythonLaw as PythonLaw
    from waterfill.runs.result import Result as Result
    from waterfill.runs.stored import load as load
    from waterfill.sweeps.api import sweep as sweep
    from waterfill.testbed.listing import protocols as protocols

    __version__: str

# Loaded when first asked for, so that `waterfill --help` does not wait for Arrow.
_HOMES = {
    "InputError": "errors",
    "LawParam": "runs.laws",
    "PythonLaw": "runs.laws",
    "Result": "runs.result",
    "Scenario": "builder",
    "compare": "analysis.compare",
    "evaluate": "evaluation.api",
    "load": "runs.stored",
    "maxmin": "analysis.maxmin",
    "notebook_html": "analysis.notebook",
    "plot": "analysis.plots",
    "protocols": "testbed.listing",
    "run": "runs.backends",
    "sweep": "sweeps.api",
}

# Former names, read for one release.
_RENAMED = {"Law": "PythonLaw"}

__all__ = [
    *("InputError", "LawParam", "PythonLaw", "Result", "Scenario", "__version__"),
    *("compare", "evaluate", "load", "maxmin", "plot", "protocols", "run", "sweep", "theory"),
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from waterfill._core import version

        return version()
    if name in _RENAMED:
        import warnings

        message = f"waterfill.{name} is now waterfill.{_RENAMED[name]}; type the new name"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        name = _RENAMED[name]
    from importlib import import_module

    if name == "theory":
        return import_module("waterfill.theory")
    if name in _HOMES:
        return getattr(import_module(f"waterfill.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'waterfill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
