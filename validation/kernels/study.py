"""Boot Debian's kernels under QEMU, and run the daemon on each and on the running kernel.

A kernel that this host cannot boot is skipped with a reason. Facts are kept in out/kernels;
docs/reference/kernels.md is written from the newest of each kernel, once all have been tried.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from validation.kernels import debian, guest, image
from validation.kernels.debian import Missing
from validation.kernels.judge import Check, judge, judge_oldest
from validation.kernels.page import KernelRun, page
from validation.study import DAEMON, ROOT, Option, Options, Report, Study
from waterfill.runs.files import write_text

KEPT = ROOT / "out/kernels"
PAGE = ROOT / "docs/reference/kernels.md"
OLDEST = "5.10"
ALL = (OLDEST, "6.1", "6.12", "newest", "running")


def boot(series: str, binaries: Path) -> dict[str, str]:
    """Boot the newest kernel of a series in a guest and return the facts that the guest printed."""
    kernel = debian.kernel(debian.SERIES[series])
    with tempfile.TemporaryDirectory() as folder:
        archive = image.build(kernel, binaries, Path(folder))
        output = guest.run(kernel.image, archive)
    found = guest.facts(output)
    if "probe" not in found:
        raise OSError(f"the guest with {kernel.version} printed no facts: {output[-2000:]}")
    return found


def here(binaries: Path) -> dict[str, str]:
    """Check the running kernel in separate network and mount namespaces, and return the facts."""
    if os.geteuid() != 0:
        raise Missing("needs root")
    if shutil.which("busybox") is None:  # serves and fetches the files of the connections
        raise Missing("needs busybox")
    # Programs of the host, but its own /run, so that names of network namespaces are private.
    script = 'mount -t tmpfs none /run && exec sh "$0"'
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "TAG": f"k{os.getpid() % 1000}",
        "OFFLOADS": f"{sys.executable} {image.HERE / 'offloads.py'}",
    }
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-ec", script, image.HERE / "checks.sh"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    # The kernel's log is shared with everything that runs on this host.
    found = {**guest.facts(done.stdout), "exit": str(done.returncode), "warnings": ""}
    if "probe" not in found:
        raise Missing(f"cannot run the checks here: {done.stdout.strip()[-200:]}")
    return found


def lines(run: KernelRun, seconds: float) -> list[str]:
    """Return a kernel's result as lines: a heading with counts, then a line for each check that
    does not work.
    """
    bad = sum(check.verdict == "fails" for check in run.checks)
    head = f"{run.title}: {len(run.checks)} checks, {bad} failed, {seconds:.0f} s"
    other = [check for check in run.checks if check.verdict != "works"]
    return [head, *(f"  {check.name}: {check.verdict}: {check.seen}" for check in other)]


def judged(series: str, facts: dict[str, str]) -> KernelRun:
    """Judge the facts of a kernel."""
    checks: list[Check] = judge_oldest(facts) if series == OLDEST else judge(facts)
    return KernelRun(series, facts, checks)


def write_page() -> None:
    """Write docs/reference/kernels.md from the stored facts, if the facts of all kernels are
    stored.
    """
    files = [KEPT / f"{series}.json" for series in ALL]
    if not all(file.exists() for file in files):
        return
    every = [judged(file.stem, json.loads(file.read_text())) for file in files]
    oldest = next(run for run in every if run.series == OLDEST)
    PAGE.write_text(page([run for run in every if run is not oldest], oldest))
    print(f"wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)


def work(options: Options) -> Report:
    """Check the chosen kernels and update docs/reference/kernels.md."""
    binaries: Path = options.binaries.resolve()
    said: list[str] = []
    failed: list[str] = []
    for series in options.kernels:
        start = time.monotonic()
        try:
            facts = here(binaries) if series == "running" else boot(series, binaries)
        except Missing as why:
            said.append(f"{series}: skipped: {why}")
            continue
        KEPT.mkdir(parents=True, exist_ok=True)
        write_text(KEPT / f"{series}.json", json.dumps(facts, indent=1))
        run = judged(series, facts)
        said += lines(run, time.monotonic() - start)
        failed += [f"{run.title}: {c.name}: {c.seen}" for c in run.checks if c.verdict == "fails"]
        print(said[-1], file=sys.stderr, flush=True)
    write_page()
    return Report("\n".join(said), failed=failed)


STUDY: Study[None, None] = Study(
    shows="the daemon runs on Debian's kernels 6.1, 6.12 and its newest, and on the running one",
    minutes=8,
    needs=(DAEMON,),
    options=(
        Option("kernels", ALL, "default: all", ALL),
        Option("--binaries", ROOT / ".venv/bin", "directory of the programs", type=Path),
    ),
    quick={"kernels": ("running",)},
    work=work,
)
