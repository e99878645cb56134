"""Set-up installs system packages only when asked, or where nobody could be asked."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys

import pytest

from known import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, for apt-get")

# In place of the real ones, in a directory of programs that comes first.
PROGRAMS = {
    "id": "echo ${FAKE_UID:-0}",
    "apt-get": 'echo "$@" >>{log}; touch {log}.installed',
    "cc": "cat >/dev/null; [ -e {log}.installed ]",
    "rustc": 'case $1 in --version) echo "rustc 99.0.0 (x)";; *) echo /;; esac',
    "cargo": "true",
}
RUN = "install -q -y --no-install-recommends"


class Tree:
    """The script in a tree of its own, with a .venv that lacks nothing."""

    def __init__(self, folder):
        self.folder, self.log = folder, folder / "log"
        for name in ("bin", "tools", ".venv/bin"):
            (folder / name).mkdir(parents=True)
        for name in ("tools/setup.sh", "tools/daemon.sh", "Cargo.toml"):
            shutil.copy(ROOT / name, folder / name)
        for name, text in PROGRAMS.items():
            self.program(f"bin/{name}", text.replace("{log}", str(self.log)))
        self.program(".venv/bin/python", "true")
        self.program(".venv/bin/uv", "true")

    def program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.folder / name).chmod(0o755)

    def run(self, kind: str, terminal: bool = False, **more: str) -> subprocess.CompletedProcess:
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        environment = {k: v for k, v in os.environ.items() if k != "CI"} | {"PATH": path, **more}
        near, far = pty.openpty()
        try:
            return subprocess.run(
                [self.folder / "tools/setup.sh", kind], env=environment, text=True,
                stdin=far if terminal else subprocess.DEVNULL, capture_output=True, timeout=60,
            )  # fmt: skip
        finally:
            os.close(near)
            os.close(far)

    @property
    def installed(self) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.removeprefix(RUN).strip() for line in lines if line.startswith(RUN)]


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("terminal", "more"),
    [(True, {}), (False, {"FAKE_UID": "1000"}), (True, {"CI": "true", "FAKE_UID": "1000"})],
    ids=["on a terminal", "as a user", "as a user with CI=true"],
)
def test_a_missing_compiler_ends_with_the_command_that_installs_it(tree, terminal, more):
    done = tree.run("run", terminal, **more)
    assert (done.returncode, tree.installed) == (2, [])
    wanted = "missing: gcc libc6-dev; type: make deps (or, as root: apt-get install gcc libc6-dev)"
    assert wanted in done.stderr


@pytest.mark.parametrize(("terminal", "more"), [(False, {}), (True, {"CI": "true"})])
def test_root_without_a_terminal_installs_a_missing_compiler(tree, terminal, more):
    done = tree.run("run", terminal, **more)
    assert (done.returncode, tree.installed) == (0, ["gcc libc6-dev"]), done.stderr
    assert (tree.folder / ".venv/.run").exists()


def test_deps_names_and_installs_all_packages_on_a_terminal(tree):
    missing = tree.run("missing").stdout.split()
    assert {"gcc", "libc6-dev"} <= set(missing)
    done = tree.run("deps", terminal=True)
    assert (done.returncode, tree.installed) == (0, [" ".join(missing)])
    assert f"missing: {' '.join(missing)}" in done.stderr
    tree.log.unlink()
    assert tree.run("deps", FAKE_UID="1000").returncode in (0, 2)
    assert tree.installed == []


def test_a_package_that_only_tests_need_does_not_stop_set_up(tree):
    tree.log.with_name("log.installed").touch()
    tree.program("bin/bash", 'exec /bin/bash "$@"')
    # A PATH without any program of the tests; what the script itself uses is linked.
    for name in ("sh", "env", "dirname", "sed", "cut", "sort", "head", "uname", "mktemp", "rm",
                 "touch", "cat", "python3"):  # fmt: skip
        if not (tree.folder / "bin" / name).exists():
            (tree.folder / "bin" / name).symlink_to(shutil.which(name))
    environment = {"PATH": f"{tree.folder}/bin"}
    done = tree.run("dev", terminal=True, **environment)
    assert (done.returncode, tree.installed) == (0, []), done.stderr
    assert "iperf3" in tree.run("missing", **environment).stdout.split()
