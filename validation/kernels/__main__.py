"""Boot Debian's kernels under QEMU, run the daemon on them and on the running one: `make kernels`.

`python -m validation.kernels [5.10|6.1|6.12|running ...]`, as root. What this host lacks is skipped
with a reason. Exit code 0: every check of every kernel that could be tried passed; 1: one failed.
Facts are kept in out/kernels; docs/reference/kernels.md is written from the newest of each kernel,
once every kernel has been tried.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from validation.kernels import debian, guest, image
from validation.kernels.debian import Missing
from validation.kernels.judge import Check, judge, judge_oldest
from validation.kernels.page import Run, page

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "out/kernels"
PAGE = ROOT / "docs/reference/kernels.md"
OLDEST = "5.10"
ALL = (OLDEST, "6.1", "6.12", "running")


def boot(series: str, binaries: Path) -> dict[str, str]:
    """Return the facts of a guest with the newest kernel of a series."""
    kernel = debian.kernel(debian.SERIES[series])
    with tempfile.TemporaryDirectory() as folder:
        archive = image.build(kernel, binaries, Path(folder))
        output = guest.run(kernel.image, archive)
    found = guest.facts(output)
    if "probe" not in found:
        raise OSError(f"the guest with {kernel.version} printed no facts: {output[-2000:]}")
    return found


def here(binaries: Path) -> dict[str, str]:
    """Return the facts of the running kernel, in network and mount namespaces of their own."""
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


def report(run: Run, seconds: float) -> None:
    """Print a kernel's verdicts: one line each for what does not simply work."""
    bad = sum(check.verdict == "fails" for check in run.checks)
    print(f"{run.title}: {len(run.checks)} checks, {bad} failed, {seconds:.0f} s", flush=True)
    for check in run.checks:
        if check.verdict != "works":
            print(f"  {check.name}: {check.verdict}: {check.seen}", flush=True)


def judged(series: str, facts: dict[str, str]) -> Run:
    """Return a kernel's facts with their verdicts."""
    checks: list[Check] = judge_oldest(facts) if series == OLDEST else judge(facts)
    return Run(series, facts, checks)


def write_page() -> None:
    """Write the page from the kept facts, if no kernel's are missing."""
    files = [KEPT / f"{series}.json" for series in ALL]
    if not all(file.exists() for file in files):
        return
    every = [judged(file.stem, json.loads(file.read_text())) for file in files]
    oldest = next(run for run in every if run.series == OLDEST)
    PAGE.write_text(page([run for run in every if run is not oldest], oldest))
    print(f"wrote {PAGE.relative_to(ROOT)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks and write the page. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="validation.kernels", description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=f"default: {' '.join(ALL)}")
    parser.add_argument("--binaries", type=Path, default=ROOT / ".venv/bin", help="their folder")
    options = parser.parse_args(arguments)
    wrong = set(options.kernels) - set(ALL)
    if wrong:
        parser.error(f"KERNEL {min(wrong)}: expected one of {', '.join(ALL)}")
    binaries: Path = options.binaries.resolve()
    if not (binaries / "waterfilld").exists():
        print(f"kernels: skipped: {binaries} has no waterfilld (tools/daemon.sh says why)")
        return 0
    runs: list[Run] = []
    for series in options.kernels or ALL:
        start = time.monotonic()
        try:
            facts = here(binaries) if series == "running" else boot(series, binaries)
        except Missing as why:
            print(f"{series}: skipped: {why}", flush=True)
            continue
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{series}.json").write_text(json.dumps(facts, indent=1))
        runs.append(judged(series, facts))
        report(runs[-1], time.monotonic() - start)
    write_page()
    return 1 if any(check.verdict == "fails" for run in runs for check in run.checks) else 0


if __name__ == "__main__":
    sys.exit(main())
