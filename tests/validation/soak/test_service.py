"""The daemon's configuration in a soak, checked by the daemon itself where it is installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from validation.soak.service import Settings, configuration
from waterfill.testbed import daemon


@pytest.fixture
def settings(tmp_path):
    return Settings("waterfilld", "bpf_x", tmp_path, Path("/sys/fs/bpf/x"), 300e6)


def test_the_file_has_both_hosts_and_both_devices(settings):
    text = configuration(settings, [5, 6], 0.85)
    assert "netns_cookies = [5, 6]" in text
    assert text.count("[[router]]") == 2
    assert text.count("target = 0.85") == 2
    assert 'rate = "300000000bit"' in text


@pytest.mark.skipif(daemon.binary() is None, reason="waterfilld is not installed")
@pytest.mark.parametrize(("target", "code"), [(0.9, 0), (2.0, 2)])
def test_the_daemon_takes_the_file_and_refuses_the_wrong_one(settings, target, code):
    settings.config.write_text(configuration(settings, [5, 6], target))
    done = subprocess.run([daemon.binary(), "check", settings.config], check=False)
    assert done.returncode == code
