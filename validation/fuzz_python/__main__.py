"""Run targets: `python -m validation.fuzz_python TARGET … [--seconds 60 | --executions N]`.

With atheris (requirements-tools.lock) inputs are guided by coverage of the package; without it, or
with `--plain`, they are drawn at random. Each execution has a time limit, the process a limit of
memory. What is found is kept in out/fuzz-python/found, one input and one traceback for each
defect, and the run goes on; the exit code is then 1. Executions are added up in
out/fuzz-python/TARGET.json; inputs with new coverage are kept in out/fuzz-python/corpus/TARGET.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from validation.fuzz_python.outcome import Finding, OutOfTime, within
from validation.fuzz_python.targets import TARGETS, Target

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out/fuzz-python"
CORPUS = Path(__file__).parent / "corpus"
_MEMORY_BYTES = 4 << 30
_SAVE_S = 3.0


@dataclass
class FuzzRun:
    """One target's executions: what was found, and how coverage grew."""

    name: str
    target: Target
    folder: Path
    executions: int = 0
    found: dict[str, int] = field(default_factory=dict)
    slowest_s: float = 0.0
    started: float = field(default_factory=time.monotonic)
    saved: float = 0.0

    def __post_init__(self) -> None:
        self._check = self.target.load()
        # The first execution makes what all of them use, and imports what they need.
        with suppress(Exception):
            self._check(b"", self.folder)
        self.started = time.monotonic()

    def one(self, data: bytes) -> None:
        """Execute one input; keep what it finds."""
        self.executions += 1
        before = time.monotonic()
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
        now = time.monotonic()
        self.slowest_s = max(self.slowest_s, now - before)

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

    def summary(self) -> dict[str, Any]:
        """Return the numbers of this run."""
        took = time.monotonic() - self.started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {
            "executions": self.executions, "seconds": round(took, 1),
            "per_second": round(self.executions / max(took, 1e-9)),
            "slowest_s": round(self.slowest_s, 3), "peak_bytes": peak, "found": self.found,
        }  # fmt: skip


def corpus(name: str) -> list[bytes]:
    """Return the committed inputs of a target, one line of hexadecimal digits each."""
    path = CORPUS / f"{name}.txt"
    return [bytes.fromhex(line) for line in path.read_text().split()] if path.exists() else []


def drawn(seed: int, target: Target, known: Sequence[bytes]) -> bytes:
    """Return the input of a seed: random bytes, or a known input with some of them changed."""
    chance = random.Random(seed)
    if not known or chance.random() < 0.5:
        return chance.randbytes(chance.randint(1, target.max_bytes // 4))
    data = bytearray(chance.choice(known))
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(data))
        data[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
    return bytes(data[: target.max_bytes])


def replay(name: str, count: int, seed: int = 1) -> FuzzRun:
    """Execute the committed inputs of a target and `count` drawn ones; return the run."""
    known = corpus(name)
    with tempfile.TemporaryDirectory(prefix="waterfill-fuzz-") as folder:
        run = FuzzRun(name, TARGETS[name], Path(folder))
        for data in known:
            run.one(data)
        for i in range(count):
            run.one(drawn(seed + i, run.target, known))
    return run


def main() -> int:
    """Run the targets that the command line names, one after the other."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.fuzz_python",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET",
                        help=f"one of {', '.join(TARGETS)}; default: all")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=60.0, help="wall time of each target")
    parser.add_argument("--executions", type=int, default=0, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0, help="of plain runs; default: the time")
    parser.add_argument("--plain", action="store_true", help="without atheris, at random")
    parser.add_argument("--input", type=Path, help="execute this file only, with its traceback")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="waterfill-fuzz-cache-")
    if given.input is not None:
        return _again(given.targets[0], given.input)
    names = given.targets or list(TARGETS)
    if len(names) > 1:
        # Each in a process of its own: libFuzzer ends its process.
        rest = [f"--seconds={given.seconds}", f"--executions={given.executions}"]
        rest += ["--plain"] * given.plain
        codes = [_child([name, *rest]) for name in names]
        return max(codes)
    known = None if given.plain else _guided()
    if known is None:
        return _plain(names[0], given.seconds, given.executions, given.seed or time.time_ns())
    return _fuzz(known, names[0], given.seconds, given.executions)


def _child(arguments: Sequence[str]) -> int:
    import subprocess

    return subprocess.run([sys.executable, "-m", "validation.fuzz_python", *arguments]).returncode


def _guided() -> Any:
    try:
        import atheris
    except ImportError:
        print("atheris is not installed (requirements-tools.lock): inputs are drawn at random")
        return None
    return atheris


def _again(name: str, path: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="waterfill-fuzz-") as folder:
        target = TARGETS[name]
        with within(target.seconds):
            target.load()(path.read_bytes(), Path(folder))
    print("nothing found")
    return 0


def _plain(name: str, seconds: float, executions: int, seed: int) -> int:
    known = corpus(name)
    with tempfile.TemporaryDirectory(prefix="waterfill-fuzz-") as folder:
        run = FuzzRun(name, TARGETS[name], Path(folder))
        for data in known:
            run.one(data)
        while time.monotonic() - run.started < seconds or run.executions < executions:
            if executions and run.executions >= executions:
                break
            run.one(drawn(seed + run.executions, run.target, known))
            _save(run, "plain")
    return _end(run, "plain")


def _fuzz(atheris: Any, name: str, seconds: float, executions: int) -> int:
    """Run a target by libFuzzer through atheris."""
    target = TARGETS[name]
    kept = OUT / "corpus" / name
    kept.mkdir(parents=True, exist_ok=True)
    (OUT / "found").mkdir(exist_ok=True)
    for data in corpus(name):
        (kept / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    with atheris.instrument_imports(include=["waterfill"]):
        run = FuzzRun(name, target, Path(tempfile.mkdtemp(prefix="waterfill-fuzz-")))

    def one(data: bytes) -> None:
        run.one(data)
        _save(run, "guided")

    options = [
        sys.argv[0], str(kept), f"-max_len={target.max_bytes}", f"-max_total_time={int(seconds)}",
        f"-timeout={int(4 * target.seconds)}",
        f"-artifact_prefix={OUT / 'found'}/{name}-", "-rss_limit_mb=4096", "-len_control=0",
    ]  # fmt: skip
    if executions:
        options.append(f"-runs={executions}")
    pid = os.fork()
    if pid == 0:
        # libFuzzer ends this process with _exit; the parent writes what was found.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        log = os.open(OUT / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 2)
        atheris.Setup(options, one)
        atheris.Fuzz()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    last = json.loads((OUT / f"{name}.last.json").read_text())
    grown = _growth(name)
    last["executions"] = grown.get("libfuzzer_executions", last["executions"])
    print(json.dumps({name: {**last, **grown, "in_all": _add_up(name, last)}}))
    return 1 if status or last["found"] else 0


_PROGRESS = re.compile(r"^#(\d+)\t\w+\s+cov: (\d+) ft: (\d+)", re.MULTILINE)


def _growth(name: str) -> dict[str, Any]:
    """Return the edges and features of the last run after 10, 50 and 100 % of its executions."""
    text = (OUT / f"{name}.log").read_text(errors="replace")
    last = text[text.rfind("INFO: Running with entropic") :]
    rows = [tuple(map(int, row)) for row in _PROGRESS.findall(last)]
    if not rows:
        return {}
    total = rows[-1][0]
    shares = {}
    for percent in (10, 50, 100):
        reached = [row for row in rows if row[0] <= total * percent / 100] or rows[:1]
        shares[f"at_{percent}"] = {"edges": reached[-1][1], "features": reached[-1][2]}
    return {"libfuzzer_executions": total, **shares}


def _save(run: FuzzRun, how: str, *, now: bool = False) -> None:
    """Write the numbers of a run from time to time: a fuzzer may end at any moment."""
    if not now and time.monotonic() - run.saved < _SAVE_S:
        return
    run.saved = time.monotonic()
    OUT.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"how": how, **run.summary()})
    (OUT / f"{run.name}.last.json").write_text(text)


def _end(run: FuzzRun, how: str) -> int:
    _save(run, how, now=True)
    print(json.dumps({run.name: {**run.summary(), "in_all": _add_up(run.name, run.summary())}}))
    return 1 if run.found else 0


def _add_up(name: str, run: Mapping[str, Any]) -> dict[str, Any]:
    """Add a run to the sums of its target; return them, with the executions that are asked for."""
    path = OUT / f"{name}.json"
    before = json.loads(path.read_text()) if path.exists() else {"executions": 0, "seconds": 0.0}
    sums = {key: round(before[key] + run[key], 1) for key in ("executions", "seconds")}
    sums["asked_for"] = TARGETS[name].share
    path.write_text(json.dumps(sums))
    return sums


if __name__ == "__main__":
    sys.exit(main())
