"""Fixtures shared by the tests of several commands."""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest

import browser
from waterfill.analysis import draw
from waterfill.cli import commands

# The same cases on every run; `--hypothesis-profile=default` looks further.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile("fixed")

# Files that take longest, 20 s to a minute each on two cores.
LONGEST = (
    "test_targets.py",
    "test_in_browser.py",
    "test_new_protocol.py",
    "test_site_in_browser.py",
    "test_claim_mutants.py",
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# nohup ignores SIGHUP, a shell without job control SIGINT. Programs that the tests start would
# inherit this, and the signals would not end them. A handler is not inherited.
for number in SIGNALS:
    if signal.getsignal(number) is signal.SIG_IGN:
        is_interrupt = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else lambda *_: None)


def pytest_collection_modifyitems(items):
    """Start the longest files first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(autouse=True)
def own_signals():
    """Restore the signal handlers after a test that ran a command in this process."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


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


@pytest.fixture
def undrawn(monkeypatch):
    """Write empty files instead of figures, each of which takes one to two seconds of CPU."""

    def save(figure, stem, formats=()):
        names = [f"{stem.name}.{kind}" for kind in formats or figure.look.formats]
        for name in names:
            stem.with_name(name).touch()
        return [stem.with_name(name) for name in names]

    monkeypatch.setattr(
        draw, "_readable", lambda sheet, look: SimpleNamespace(sheet=sheet, look=look)
    )
    monkeypatch.setattr(draw, "save", save)


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
