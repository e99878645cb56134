"""Fresh Debian root file systems, built by mmdebstrap, cached as archives and unpacked for each
test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from validation.kernels.debian import Missing, cache_folder, find_mirror

SUITES = ("bookworm", "trixie")
# For the guest: an init system, what makes its network, and a client of the metrics.
BOOTED = ("systemd-sysv", "dbus", "udev", "kmod", "iproute2", "iperf3", "curl", "libelf1")


def archive(suite: str, packages: Sequence[str] = ()) -> Path:
    """Return the archive of a Debian root file system, building it if it is not in the cache.

    Raises `Missing` where mmdebstrap or its archive is not in reach.
    """
    if os.geteuid() != 0:
        raise Missing("needs root")
    if shutil.which("mmdebstrap") is None:
        raise Missing("needs mmdebstrap")
    folder = cache_folder().parent / "roots"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{suite}{'-booted' if packages else ''}.tar"
    if kept.exists():
        return kept
    unfinished = kept.with_suffix(".part.tar")
    command = ["mmdebstrap", "--quiet", "--variant=minbase"]
    # It refuses an empty list.
    command += [f"--include={','.join(packages)}"] if packages else []
    done = subprocess.run(
        [*command, suite, unfinished, find_mirror()], stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        raise Missing(f"mmdebstrap {suite}: {lines[-1]}")
    unfinished.rename(kept)
    return kept


def unpack(root: Path, suite: str, packages: Sequence[str], debs: Mapping[str, Path]) -> None:
    """Unpack a Debian root file system into a folder, and copy packages into /packages/NAME."""
    root.mkdir()
    subprocess.run(["tar", "-x", "-C", root, "-f", archive(suite, packages)], check=True)
    (root / "packages").mkdir()
    for name, path in debs.items():
        shutil.copy(path, root / "packages" / name)
    if Path("/etc/resolv.conf").exists():
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")


def inside(root: Path, script: Path) -> str:
    """Run a script in a chroot with separate process and mount namespaces, and return
    its output.
    """
    shutil.copy(script, root / "script.sh")
    mounts = 'mount -t proc proc "$0/proc" && mount -t sysfs -o ro sys "$0/sys"'
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec"]
    done = subprocess.run(
        [*words, f'{mounts} && exec chroot "$0" sh /script.sh', root],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "TERM": "dumb"},
    )  # fmt: skip
    return done.stdout
