"""The papers' experiments with patched laws: a build with wrong-law.patch, in processes of its own.

The patch adds faults that no parameter has. The environment variable `WATERFILL_WRONG` chooses one
for a process: a law's name and `late`, or `capacity` and a factor. Without it, the results are
those of the unpatched laws.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from validation import tree
from validation.study import ROOT
from waterfill.errors import RunError
from waterfill.papers.claims.schema import Verdict

PATCH = Path(__file__).with_name("wrong-law.patch")
FOLDER = ROOT / "out" / "claim-mutants"
# Compiles in a third of the time of a release. The results are the same on all profiles.
_PROFILE = "targets"


@cache
def core() -> Path:
    """Build the patched core, if its sources have changed, and return the path of the library.

    Raises RunError if the patch does not apply or does not compile.
    """
    target, stamp = FOLDER / "target", FOLDER / "stamp"
    suffix = "dylib" if sys.platform == "darwin" else "so"
    library = target / _PROFILE / f"libwaterfill_python.{suffix}"
    digest = hashlib.sha256(PATCH.read_bytes())
    for name in tree.sources():
        digest.update(b"\0" + name.encode() + b"\0" + (ROOT / name).read_bytes())
    if library.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return library
    copy = FOLDER / "tree"
    tree.copy(copy)
    folder = f"--directory={copy.relative_to(ROOT)}"
    _run(["git", "apply", folder, str(PATCH)], ROOT, "does not apply; write it again")
    cargo = ["cargo", "build", "--locked", "--quiet", "--profile", _PROFILE]
    _run([*cargo, "--package", "waterfill-python"], copy, "does not compile",
         CARGO_TARGET_DIR=str(target), PYO3_PYTHON=sys.executable)  # fmt: skip
    stamp.write_text(digest.hexdigest())
    return library


def verdicts(path: str, law: str, fault: str, *, short: bool) -> dict[str, Verdict]:
    """Return the verdict of each claim of an experiment while `law` has a fault of the patch.

    Raises RunError if a run fails.
    """
    library = core()
    module = "validation.claim_mutants.judge_patched"
    command = [sys.executable, "-W", "ignore", "-m", module, str(library), path]
    wrong = {"WATERFILL_WRONG": f"{law} {fault}", "XDG_CACHE_HOME": str(FOLDER / "cache")}
    found: dict[str, Verdict] = json.loads(
        _run(command + ["--short"] * short, ROOT, f"{path} fails with {law} {fault}", **wrong)
    )
    return found


def _run(command: list[str], folder: Path, problem: str, **environment: str) -> str:
    """Return a command's output. Raises RunError with the problem and the last line otherwise."""
    inherited = {name: text for name, text in os.environ.items() if name != "MAKEFLAGS"}
    done = subprocess.run(
        command, cwd=folder, env=inherited | environment, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunError(f"{PATCH.name}: {problem}: {last}")
    return done.stdout
