"""Install, upgrade, run and remove the Debian package in fresh root file systems.

Two chroots (Debian 12 and 13), and a QEMU
guest that systemd has booted (Debian 12). What this host lacks is skipped with a reason. Exit code
0: every check that could be tried passed; 1: one failed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from validation.kernels import guest
from validation.kernels.debian import Missing
from validation.kernels.judge import Check
from validation.package import booted, judge, roots
from validation.study import ROOT_USER, Option, Options, Report, Study
from waterfill.errors import InputError

GUEST = "guest"
ALL = (*roots.SUITES, GUEST)


def contents(package: Path) -> list[Check]:
    """Return the verdicts on a package's list of files and on lintian's result."""
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
    """Return the verdicts on installation in a fresh root file system of a Debian suite."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        roots.unpack(root, suite, (), {"old.deb": old, "new.deb": new})
        facts = guest.facts(roots.inside(root, Path(__file__).parent / "install.sh"))
    return judge.install(facts, judge.version(old), judge.version(new))


def systemd(old: Path, new: Path) -> list[Check]:
    """Return the verdicts on the package in a booted guest, with promtool's verdict
    on its metrics.
    """
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


def work(options: Options) -> Report:
    """Run the checks on a new package and on the upgrade from an older one."""
    if len(options.packages) != 2:
        raise InputError("command line", "packages", "needs two, OLD.deb and NEW.deb")
    old, new = map(Path, options.packages)
    for path in (old, new):
        if not path.is_file():
            raise InputError(str(path), "", "no such package; make package WHAT=deb builds one")
    lines, failed = [], []
    for where in ("contents", *options.only):
        start = time.monotonic()
        try:
            if where == "contents":
                checks = contents(new)
            else:
                checks = systemd(old, new) if where == GUEST else chroot(where, old, new)
        except Missing as why:
            lines.append(f"{where}: skipped: {why}")
            continue
        bad = [check for check in checks if check.verdict != "works"]
        failed += [f"{where}: {check.name}: {check.seen}" for check in bad]
        seconds = time.monotonic() - start
        lines.append(f"{where}: {len(checks)} checks, {len(bad)} failed, {seconds:.0f} s")
        print(lines[-1], file=sys.stderr, flush=True)
    return Report("\n".join(lines), failed=failed)


STUDY: Study[None, None] = Study(
    shows="the Debian package installs, upgrades, runs under systemd and leaves nothing behind",
    minutes=5,
    needs=(ROOT_USER,),
    options=(
        Option("packages", (), "OLD.deb and NEW.deb"),
        Option("--only", ALL, "roots to try", ALL),
    ),
    work=work,
)
