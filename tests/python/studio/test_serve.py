"""Tests of refusals of `waterfill studio`, in one sentence."""

from __future__ import annotations

import socket

import pytest

from waterfill.studio import serve


def test_without_marimo_it_says_what_to_install(waterfill, monkeypatch):
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    ran = waterfill("studio", "--no-browser")
    assert ran.code == 2
    assert ran.err == "studio: needs marimo: pip install waterfill[studio]\n"


def test_a_port_in_use_is_one_sentence(waterfill):
    pytest.importorskip("marimo", reason="the studio needs marimo")
    with socket.socket() as taken:
        taken.bind((serve.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = waterfill("studio", "--no-browser", "--port", str(port))
    assert ran.code == 2
    assert ran.err == f"command line: port: {port} cannot be used: address already in use\n"


def test_without_a_port_a_free_one_is_taken():
    with serve.bind(None) as first:
        first.listen()
        with serve.bind(None) as second:
            assert second.getsockname()[1] != first.getsockname()[1]
            assert second.getsockname()[0] == "127.0.0.1"


def test_a_port_outside_the_range_is_refused(waterfill):
    ran = waterfill("studio", "--port", "70000")
    assert ran.code == 2
    assert "--port: must be" in ran.err
