"""Tests of the wheel, installed outside the checkout: commands, errors for missing parts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack the build of `make build`, without compiling again."""
    maturin = Path(sys.prefix) / "bin" / "maturin"
    if not maturin.exists() or shutil.which("cargo") is None:
        pytest.skip("needs maturin beside this Python, and cargo")
    out = tmp_path_factory.mktemp("wheel")
    # The variables of tools/build.sh: with others, cargo would compile everything again.
    environment = {k: v for k, v in os.environ.items() if k != "CONDA_PREFIX"} | {
        "VIRTUAL_ENV": sys.prefix,
        "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
        "PYO3_PYTHON": f"{sys.prefix}/bin/python",
    }
    command = [maturin, "build", "--release", "--locked", "--quiet", "--out", out]
    subprocess.run([*map(str, command)], cwd=ROOT, env=environment, check=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and this Python's other packages; its bin/waterfill."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    packages = Path(
        sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)})
    )
    zipfile.ZipFile(wheel).extractall(packages)
    # Packages only: .pth files in that folder, one of which leads to the checkout, are not read.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    program = folder / "bin" / "waterfill"
    program.write_text(
        f"#!{folder}/bin/python\nimport sys\nfrom waterfill.cli import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    return program


def waterfill(program: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WATERFILL"))}
    environment |= {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": "/usr/bin:/bin"}
    command = [str(program), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_what_is_imported_is_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import waterfill; print(waterfill.__file__)"
    command = [installed.parent / "python", "-I", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith(str(installed.parents[1])), done.stderr


def test_a_first_scenario_runs_and_is_compared(installed: Path, tmp_path: Path) -> None:
    assert waterfill(installed, tmp_path, "new", "dumbbell", "-o", "S.toml").returncode == 0
    done = waterfill(installed, tmp_path, "run", "S.toml", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "figure.svg").exists()
    done = waterfill(installed, tmp_path, "report", "out")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Rates of the flows" in page  # templates, style and script are inside
    assert "plotly" in page
    done = waterfill(
        installed,
        tmp_path,
        "compare",
        "S.toml",
        "--protocols",
        "maxnet,cubic",
        "--json",
    )
    assert list(json.loads(done.stdout)["runs"]) == ["maxnet", "cubic"], done.stderr


def test_the_papers_are_inside(installed: Path, tmp_path: Path) -> None:
    checkout = sorted(
        str(file.relative_to(ROOT / "papers")) for file in (ROOT / "papers").rglob("*.toml")
    )
    package = next(installed.parents[1].glob("lib/python*/site-packages/waterfill"))
    inside = package / "papers" / "experiments"
    assert sorted(str(file.relative_to(inside)) for file in inside.rglob("*.toml")) == checkout
    assert {file.name for file in (package / "examples").iterdir()} >= {
        file.name for file in (ROOT / "examples").glob("*.toml")
    }
    listed = waterfill(installed, tmp_path, "reproduce", "--list")
    assert "maxnet-2007/two-hop/" in listed.stdout
    done = waterfill(installed, tmp_path, "reproduce", "maxnet-2007/two-hop", "--short", "--json")
    assert done.returncode in {0, 1}, done.stderr
    assert json.loads(done.stdout)["claims"]


def test_the_suites_are_inside(installed: Path, tmp_path: Path) -> None:
    package = next(installed.parents[1].glob("lib/python*/site-packages/waterfill"))
    folders = (package / "evaluation" / "suites", ROOT / "suites")
    inside, checkout = (
        sorted(str(file.relative_to(folder)) for file in folder.rglob("*.toml"))
        for folder in folders
    )
    assert inside == checkout
    listed = waterfill(installed, tmp_path, "evaluate", "--list", "--json")
    assert json.loads(listed.stdout)["suite"] == "rfc9743", listed.stderr


def test_the_testbed_names_what_the_wheel_lacks(installed: Path, tmp_path: Path) -> None:
    waterfill(installed, tmp_path, "new", "dumbbell", "-o", "S.toml")
    done = waterfill(installed, tmp_path, "run", "S.toml", "--on", "linux", "--protocol", "cubic")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "needs" in done.stderr
