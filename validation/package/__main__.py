"""Install, upgrade, run and remove the Debian package in fresh Debian roots: `make deb-test`.

`python -m validation.package OLD.deb NEW.deb`, as root. Two chroots (Debian 12 and 13), and a QEMU
guest that systemd has booted (Debian 12). What this host lacks is skipped with a reason. Exit code
0: every check that could be tried passed; 1: one failed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from validation.kernels import guest
from validation.kernels.debian import Missing
from validation.kernels.judge import Check
from validation.package import booted, judge, roots

GUEST = "guest"
ALL = (*roots.SUITES, GUEST)


def contents(package: Path) -> list[Check]:
    """Return the verdicts on a package's files, and lintian's."""
    listed = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True)
    lacks = judge.missing(judge.listing(listed.stdout))
    checks = [Check("the package is complete", "fails" if lacks else "works", " ".join(lacks))]
    if shutil.which("lintian"):
        said = subprocess.run(
            ["lintian", "--fail-on=error,warning", package], capture_output=True, text=True
        )
        lines = "; ".join(said.stdout.splitlines())
        checks.append(Check("lintian", "fails" if said.returncode else "works", lines))
    return checks


def chroot(suite: str, old: Path, new: Path) -> list[Check]:
    """Return the verdicts on installation in a fresh root of a suite."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        roots.unpack(root, suite, (), {"old.deb": old, "new.deb": new})
        facts = guest.facts(roots.inside(root, Path(__file__).parent / "install.sh"))
    return judge.install(facts, judge.version(old), judge.version(new))


def systemd(old: Path, new: Path) -> list[Check]:
    """Return the verdicts on the guest, with promtool's on the metrics that it served."""
    with tempfile.TemporaryDirectory() as folder:
        output = booted.run(roots.SUITES[0], "6.1", {"old.deb": old, "new.deb": new}, Path(folder))
    facts = guest.facts(output)
    print(f"  systemd-analyze security: {facts.get('security', 'not run')}")
    checks = list(judge.units(facts))
    if any(check.verdict != "works" for check in checks):
        print(output)
    if shutil.which("promtool"):
        served = judge.metrics(facts)
        said = subprocess.run(["promtool", "check", "metrics"], input=served, capture_output=True)
        text = (said.stdout + said.stderr).decode().strip().replace("\n", "; ")
        right = said.returncode == 0 and b"waterfill_link_packets_total" in served
        checks.append(Check("promtool accepts the metrics", "works" if right else "fails", text))
    return checks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="validation.package", description=__doc__)
    parser.add_argument("old", type=Path, help="a package of a lower version")
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", choices=ALL, action="append")
    options = parser.parse_args(arguments)
    for path in (options.old, options.new):
        if not path.is_file():
            parser.error(f"{path}: expected a package, found none (make deb)")
    failed = 0
    for where in ("contents", *(options.only or ALL)):
        start = time.monotonic()
        try:
            if where == "contents":
                checks = contents(options.new)
            elif where == GUEST:
                checks = systemd(options.old, options.new)
            else:
                checks = chroot(where, options.old, options.new)
        except Missing as why:
            print(f"{where}: skipped: {why}", flush=True)
            continue
        bad = [check for check in checks if check.verdict != "works"]
        failed += len(bad)
        seconds = time.monotonic() - start
        print(f"{where}: {len(checks)} checks, {len(bad)} failed, {seconds:.0f} s", flush=True)
        for check in bad:
            print(f"  {check.name}: {check.seen}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
