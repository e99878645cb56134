"""Tests of RunOptions: which backend, and which other option, excludes one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import waterfill
from waterfill.runs import backends
from waterfill.runs.backend import RunOptions
from waterfill.runs.capture import Capture
from waterfill.runs.endpoints import Endpoints
from waterfill.runs.qlog import Qlog
from waterfill.runs.steps import StepLog

OPTIONS: dict[str, Any] = {
    "laws": {"mine": waterfill.PythonLaw(source=object)},  # type: ignore[type-var]
    "capture": Capture(Path("packets.pcapng")),
    "steps": StepLog(Path("steps.parquet"), 10),
    "qlog": Qlog(Path()),
    "endpoints": Endpoints({"f": Path("lib.so")}),
    "threads": 2,
}


def test_options_that_every_backend_supports_are_not_used():
    for options in (RunOptions(), RunOptions(threads=None), RunOptions(laws={})):
        assert options.used() == []


@pytest.mark.parametrize("on", backends.BACKENDS)
@pytest.mark.parametrize("name", OPTIONS)
def test_what_a_backend_does_not_support_is_refused(name, on):
    options = RunOptions(**{name: OPTIONS[name]})
    assert options.used() == [name]
    if name in backends.backend(on).supports:
        backends.refuse(options, on)
        return
    with pytest.raises(waterfill.InputError, match=rf"{on} cannot .*; use --on sim( or fluid)?$"):
        backends.refuse(options, on)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("capture", "laws"), "pcap: a run cannot record packets and run a law in Python"),
        (("steps", "laws"), "log-steps: a run cannot log the steps of laws and run a law in"),
        (("threads", "capture"), "threads: a run cannot use several threads and record packets"),
        (("threads", "steps"), "threads: a run cannot use several threads and log the steps of"),
        (("threads", "qlog"), "threads: a run cannot use several threads and log flows as qlog"),
        (("threads", "endpoints"), "threads: a run cannot use several threads and run endpoints"),
        (("endpoints", "capture"), "endpoint: a run cannot run endpoints and record packets"),
        (("threads", "laws"), "threads: a run cannot use several threads and run a law in Python"),
    ],
)
def test_options_that_exclude_each_other_are_refused(names, said):
    with pytest.raises(waterfill.InputError, match=said):
        backends.refuse(RunOptions(**{name: OPTIONS[name] for name in names}), "sim")
