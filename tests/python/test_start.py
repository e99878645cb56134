"""What starting Waterfill must not load: modules that take longer than the command itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Arrays, plots and tables of results, which a run that prints text does not need.
ARRAYS = {"matplotlib", "networkx", "numpy", "pandas", "polars", "pyarrow", "scipy"}
# What only a run needs: models, rich tables.
MODELS = {"pydantic", "rich", "tomli_w"}

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


def loaded(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `code`."""
    report = "import json, sys\nprint('\\n' + json.dumps([*sys.modules]))"
    command = [sys.executable, "-c", f"{code}\n{report}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    modules: list[str] = json.loads(done.stdout.splitlines()[-1])
    assert "waterfill" in modules
    return {module.partition(".")[0] for module in modules}


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
