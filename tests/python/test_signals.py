"""The tests and the programs that they start do not depend on how the test run was started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# What `nohup`, a shell without job control, and supervisors may leave ignored.
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, got no Linux")


def ignored(status: str) -> set[int]:
    """Return the numbers of the ignored signals in the text of /proc/PID/status."""
    line = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    mask = int(line.split()[1], 16)
    return {number for number in IGNORED if mask >> (number - 1) & 1}


def ignore() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def run(*command: str) -> str:
    """Run a command whose parent ignores all these signals; return its output."""
    done = subprocess.run(
        command, cwd=ROOT, text=True, preexec_fn=ignore, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
    )  # fmt: skip
    return done.stdout


def test_a_program_that_a_test_starts_ignores_no_signal():
    status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout
    assert ignored(status) == set()


def test_a_detached_pytest_starts_programs_that_ignore_no_signal():
    assert ignored(run("cat", "/proc/self/status")) == set(IGNORED)
    one = f"{__file__}::{test_a_program_that_a_test_starts_ignores_no_signal.__name__}"
    said = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", one)
    assert "1 passed" in said, said


def test_a_detached_make_test_starts_programs_that_ignore_no_signal():
    code = (
        "import subprocess; from tools.run_tests import heed_signals; heed_signals();"
        "subprocess.run(['cat', '/proc/self/status'])"
    )
    assert ignored(run(sys.executable, "-c", code)) == set()


def test_a_hangup_does_not_end_a_detached_make_test():
    code = (
        "import os, signal; from tools.run_tests import heed_signals; heed_signals();"
        "os.kill(os.getpid(), signal.SIGHUP); print(os.getsid(0) == os.getpid())"
    )
    assert run(sys.executable, "-c", code) == "True\n"


# The two tests below run in this order in one process.
def test_a_test_may_install_a_handler():
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda n, _: os._exit(n))


def test_a_handler_does_not_outlive_its_test():
    for number in (signal.SIGHUP, signal.SIGTERM):
        assert getattr(signal.getsignal(number), "__module__", None) != __name__
