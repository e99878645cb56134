"""Modules that starting Waterfill must not load: they take longer than the command itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from waterfill.cli import commands, running

# Arrays, plots and tables of results, which a run that prints text does not need.
ARRAYS = {"matplotlib", "networkx", "numpy", "pandas", "polars", "pyarrow", "scipy"}
# What only a run needs: models, rich tables.
MODELS = {"pydantic", "rich", "tomli_w"}

# What only some scenarios have or some commands do.
LATER = (
    "contract.elements",
    "network.queues",
    "analysis.plots",
    "papers.reproduce",
    "theory.loops",
)
# What a small run may load of the package itself; more is a start that grows.
OWN_MODULES = 68

SCENARIO = """
duration = "100 ms"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "named"
path = ["l"]
[[flow]]
name = "shortest"
from = "a"
to = "b"
"""


def modules(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code`."""
    report = "import json, sys\nprint('\\n' + json.dumps([*sys.modules]))"
    command = [sys.executable, "-c", f"{code}\n{report}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    assert "waterfill" in found
    return set(found)


def loaded(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `code`."""
    return {module.partition(".")[0] for module in modules(code)}


def command(*words: str) -> str:
    """Code that runs the command line with these words."""
    return (
        f"import sys, waterfill.cli as cli\nsys.argv = {['waterfill', *words]!r}\n"
        "try: cli.main()\nexcept SystemExit as end: assert not end.code, end.code"
    )


def test_import_loads_nothing_heavy():
    assert not loaded("import waterfill") & (ARRAYS | MODELS | {"typer"})


def test_help_loads_nothing_heavy():
    assert not loaded(command("--help")) & (ARRAYS | MODELS)
    # The command-line library reads a command's options with pydantic.
    assert not loaded(command("run", "--help")) & (ARRAYS | {"rich", "tomli_w"})


def own(code: str) -> set[str]:
    """The package's own modules that a fresh interpreter has loaded after `code`."""
    return {module for module in modules(code) if module.partition(".")[0] == "waterfill"}


def test_import_loads_one_module():
    assert own("import waterfill") == {"waterfill"}


def test_a_run_loads_only_what_it_uses(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    for code in (command("run", str(path)), f"import waterfill\nwaterfill.run({str(path)!r})"):
        used = own(code)
        assert used.isdisjoint({f"waterfill.{name}" for name in LATER})
        assert len(used) <= OWN_MODULES, sorted(used)


def test_only_the_command_that_is_asked_for_is_built():
    one = commands.narrowed(["run", "S.toml"])
    assert [entry.callback for entry in one.registered_commands] == [running.run]
    assert one.registered_groups == []
    for words in ([], ["--help"], ["nothing"], ["theory", "maxnet"]):
        assert commands.narrowed(words) is commands.app


@pytest.mark.parametrize("more", [[], ["--json"], ["--on", "fluid"]])
def test_a_run_loads_no_arrays(tmp_path, more):
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    assert not loaded(command("run", str(path), *more)) & ARRAYS


def test_a_run_in_python_loads_no_arrays_until_its_series_are_read(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    ran = f"import waterfill\nresult = waterfill.run({str(path)!r})"
    assert not loaded(ran) & (ARRAYS | {"rich", "typer"})
    assert "pyarrow" in loaded(f"{ran}\nresult.flows")
