"""Files that appear whole."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from waterfill.runs import files, interrupt
from waterfill.runs.files import WriteError


def test_a_new_file_is_never_half_there(tmp_path, monkeypatch):
    path = tmp_path / "s.toml"
    files.write_new(path, "text\n")
    with pytest.raises(WriteError, match="exists already"):
        files.write_new(path, "other\n")
    assert path.read_text() == "text\n"

    def full(self, text, encoding):
        self.write_bytes(b"ha")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(WriteError, match="cannot be written: no space left on device"):
        files.write_new(tmp_path / "t.toml", "half\n")
    assert os.listdir(tmp_path) == ["s.toml"]


def test_without_links_a_new_file_is_renamed(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    files.write_new(tmp_path / "s.toml", "text\n")
    assert (tmp_path / "s.toml").read_text() == "text\n"


def test_a_signal_while_files_are_moved_waits_until_they_are(tmp_path):
    seen = []
    with interrupt.undisturbed():
        assert interrupt.afterwards(lambda: seen.append("end"))
        assert seen == []
    assert seen == ["end"]
    assert not interrupt.afterwards(lambda: seen.append("now"))
