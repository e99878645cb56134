"""Fixtures shared by the tests of several commands."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest

import browser
from waterfill.cli import commands

# The same cases on every run; `--hypothesis-profile=default` looks further.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile("fixed")

# A shell without job control starts background jobs with SIGINT ignored, and nohup ignores SIGHUP.
# Programs that the tests start would inherit both, and neither signal would end them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Hide the runs of earlier tests and of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A headless Chromium, one for the tests of a file."""
    if browser.installed() is None:
        pytest.skip("no Chromium is installed")
    with browser.launched(tmp_path_factory.mktemp("browser")) as found:
        yield found


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        def refuse(name: str) -> None:
            raise AssertionError(f"{name} in JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def waterfill(monkeypatch, capsys, tmp_path):
    """Runs a command in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["waterfill", *arguments])
        with pytest.raises(SystemExit) as stop:
            commands.main()
        captured = capsys.readouterr()
        return Ran(int(stop.value.code or 0), captured.out, captured.err)

    return run
