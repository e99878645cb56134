"""Studies that each run one command of another program in this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from validation.study import ROOT, ROOT_USER, Options, Report, Study, tool

CARGO = ("cargo", "test", "--locked", "--quiet", "--package", "waterfill-linux", "--features",
         "daemon", "--test")  # fmt: skip
NEEDS = (ROOT_USER, tool("cargo", "rustup installs it"))


def ran(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Callable[[Options], Report]:
    """Return a study's work function that runs a command and reports its output and exit code."""

    def work(options: Options) -> Report:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        failed = [f"{command[0]}: exit code {done.returncode}"] if done.returncode else []
        return Report(done.stdout, failed=failed)

    return work


DECODERS: Study[None, None] = Study(
    shows="a law's decoders in Rust, in C and in the kernel agree on a million frames",
    minutes=5,
    needs=NEEDS,
    work=ran([*CARGO, "decoders", "--", "--nocapture"], {"DECODER_FRAMES": "4000000"}),
)
SCONE: Study[None, None] = Study(
    shows="the SCONE element handles a million packets by test-run, at what cost to other UDP",
    minutes=3,
    needs=NEEDS,
    work=ran(
        [*CARGO, "scone", "--", "--nocapture", "--include-ignored", "every_kind_of_packet",
         "other_udp"],
        {"SCONE_PACKETS": "1000000"},
    ),
)  # fmt: skip
STUDIO: Study[None, None] = Study(
    shows="the studio's tours work by keyboard, and its sliders answer soon",
    minutes=5,
    work=ran(
        [sys.executable, "-m", "pytest", "-q", "tests/python/studio/test_browser.py"],
        {"STUDIO_CHECK": "1"},
    ),
)
RESPONSE: Study[None, None] = Study(
    shows="Reno's and CUBIC's windows under loss agree with theory, 140 cases",
    minutes=10,
    work=ran([sys.executable, "-m", "waterfill", "response"]),
)
