"""Run a Python fuzz target with libFuzzer's options, as fuzz/src/bin/fuzz.rs does for Rust.

    FUZZ_TARGET=NAME python -m validation.fuzz_python [-runs=N] [-max_total_time=S] CORPUS
    FUZZ_TARGET=NAME python -m validation.fuzz_python FILE      executes this input only
    FUZZ_TARGET=list python -m validation.fuzz_python

`validation.fuzzing` runs it. With atheris (requirements-tools.lock) coverage of the package guides
inputs. Without it, or with FUZZ_PLAIN=1, they are drawn at random. Each execution has a time
limit, the process a limit of memory. One input and one traceback are kept for each defect, and the
run goes on.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from validation.fuzz_python.outcome import Finding, OutOfTime, within
from validation.fuzz_python.targets import TARGETS, Target
from validation.fuzzing import OUT, unescape

CORPUS = Path(__file__).parent / "corpus"
_MEMORY_BYTES = 4 << 30


class FuzzRun:
    """Executions of one target, with the number of times that each defect was found."""

    def __init__(self, name: str, folder: Path) -> None:
        """Load the target and execute it once. `folder` is for the files of its executions."""
        self.name, self.target, self.folder = name, TARGETS[name], folder
        self.executions = 0
        self.found: dict[str, int] = {}
        self._check = self.target.load()
        # The first execution makes what all of them use, and imports what they need.
        with suppress(Exception):
            self._check(b"", self.folder)

    def one(self, data: bytes) -> None:
        """Execute the target on one input and record its findings."""
        self.executions += 1
        try:
            with within(self.target.seconds), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._check(data, self.folder)
        except OutOfTime as error:
            self._keep("out of time", data, error)
        except Finding as error:
            self._keep(error.name, data, error)
        except Exception as error:  # of the target itself, outside what it reads
            self._keep(f"target: {type(error).__name__}", data, error)

    def _keep(self, name: str, data: bytes, error: BaseException) -> None:
        count = self.found[name] = self.found.get(name, 0) + 1
        if count > 1:
            return
        where = OUT / "found"
        where.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(name.encode()).hexdigest()[:10]
        (where / f"{self.name}-{digest}.bin").write_bytes(data)
        text = "".join(traceback.format_exception(error))
        (where / f"{self.name}-{digest}.txt").write_text(f"{name}\n\n{text}", errors="replace")
        print(f"found: {self.name}: {name} ({digest})", file=sys.stderr, flush=True)


def corpus(name: str) -> list[bytes]:
    """Return the committed inputs of a target."""
    path = CORPUS / f"{name}.txt"
    return [unescape(line) for line in path.read_text().splitlines()] if path.exists() else []


def drawn(seed: int, target: Target, known: Sequence[bytes]) -> bytes:
    """Return the input for a seed: random bytes, or a known input with some bytes changed."""
    chance = random.Random(seed)
    if not known or chance.random() < 0.5:
        return chance.randbytes(chance.randint(1, target.max_bytes // 4))
    data = bytearray(chance.choice(known))
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(data))
        data[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
    return bytes(data[: target.max_bytes])


def replay(name: str, count: float, seed: int = 1, seconds: float = 1e9) -> FuzzRun:
    """Execute the committed inputs and then up to `count` random inputs, until `seconds` have
    passed.
    """
    known, end_s = corpus(name), time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="waterfill-fuzz-") as folder:
        run = FuzzRun(name, Path(folder))
        for data in known:
            run.one(data)
        while run.executions < len(known) + count and time.monotonic() < end_s:
            run.one(drawn(seed + run.executions - len(known), run.target, known))
    return run


def main(arguments: Sequence[str]) -> int:
    """Run the target named by `FUZZ_TARGET` and return the exit code."""
    name = os.environ.get("FUZZ_TARGET", "")
    if name == "list":
        for known, target in TARGETS.items():
            print(known, target.max_bytes, target.share, target.checks, sep="\t")
        return 0
    if name not in TARGETS:
        print(f"fuzz: FUZZ_TARGET must be one of {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="waterfill-fuzz-cache-")
    options = dict(word.lstrip("-").split("=", 1) for word in arguments if word.startswith("-"))
    file = next((Path(word) for word in arguments if Path(word).is_file()), None)
    atheris = None if file is not None or os.environ.get("FUZZ_PLAIN") else _guided()
    if file is not None:
        run = FuzzRun(name, Path(tempfile.mkdtemp(prefix="waterfill-fuzz-")))
        run.one(file.read_bytes())
        return 1 if run.found else 0
    if atheris is not None:
        with atheris.instrument_imports(include=["waterfill"]):
            run = FuzzRun(name, Path(tempfile.mkdtemp(prefix="waterfill-fuzz-")))
        atheris.Setup([sys.argv[0], *arguments], run.one)
        atheris.Fuzz()  # ends the process
    count, seconds = float(options.get("runs", "inf")), float(options.get("max_total_time", 60))
    run = replay(name, count, time.time_ns(), seconds)
    print(f"stat::number_of_executed_units: {run.executions}", file=sys.stderr)
    return 1 if run.found else 0


def _guided() -> Any:
    try:
        import atheris
    except ImportError:
        print("atheris is not installed (requirements-tools.lock): inputs are drawn at random")
        return None
    return atheris


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
