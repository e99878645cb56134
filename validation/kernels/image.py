"""Build a guest's initramfs from programs, their libraries, kernel modules and scripts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from validation.kernels.debian import Kernel, Missing

HERE = Path(__file__).parent
# What checks.sh runs; busybox serves the rest.
PROGRAMS = ("ip", "tc", "iperf3", "nsenter", "unshare", "timeout")


def libraries(listing: str) -> list[str]:
    """Return the library paths in the output of `ldd`. A static program has none."""
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listing, flags=re.MULTILINE)


def find(program: str) -> Path:
    """Return the path of a program. Raises `Missing` if the host lacks it."""
    found = shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        raise Missing(f"needs {program}")
    return Path(found)


def add_program(root: Path, program: Path, name: str | None = None) -> None:
    """Copy a program to bin/, and its libraries to the same paths as on the host."""
    target = root / "bin" / (name or program.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, target)
    target.chmod(0o755)
    listing = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    for library in libraries(listing):
        copy = root / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists():
            shutil.copy(library, copy)


def add_modules(root: Path, kernel: Kernel) -> None:
    """Copy the kernel's modules and write their index, from which the kernel loads
    them on demand.
    """
    shutil.copytree(kernel.modules, root / "lib" / "modules" / kernel.version)
    subprocess.run(["busybox", "depmod", "-b", root, kernel.version], check=True)


def initramfs(root: Path, archive: Path) -> None:
    """Pack a folder as an initramfs, with all files owned by root."""
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    with archive.open("wb") as file:
        packed = subprocess.Popen(
            ["cpio", "--quiet", "-o", "-H", "newc", "--owner=0:0"],
            cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        squeezed = subprocess.Popen(["gzip", "-1"], stdin=packed.stdout, stdout=file)
        assert packed.stdin is not None
        packed.stdin.write("\n".join([".", *names]).encode() + b"\n")
        packed.stdin.close()
        if packed.wait() != 0 or squeezed.wait() != 0:
            raise OSError(f"cannot pack {archive}")


def build(kernel: Kernel, binaries: Path, folder: Path) -> Path:
    """Build the initramfs of a guest that runs checks.sh with the daemon in `binaries`."""
    root = folder / "root"
    for path in ("bin", "sbin", "bb", "dev", "proc", "sys", "tmp", "run", "etc"):
        (root / path).mkdir(parents=True, exist_ok=True)
    add_program(root, binaries / "waterfilld")
    for name in PROGRAMS:
        add_program(root, find(name))
    add_program(root, find("dash"), "sh")
    busybox = find("busybox")
    if libraries(subprocess.run(["ldd", busybox], capture_output=True, text=True).stdout):
        raise Missing("needs a busybox without libraries (Debian: busybox-static)")
    add_program(root, busybox)
    (root / "sbin" / "modprobe").symlink_to("/bin/busybox")
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    add_modules(root, kernel)
    for script, target in (("init.sh", "init"), ("checks.sh", "checks.sh")):
        shutil.copy(HERE / script, root / target)
        (root / target).chmod(0o755)
    archive = folder / "initramfs.gz"
    initramfs(root, archive)
    return archive
