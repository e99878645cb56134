"""Virtual machines under QEMU's own emulation (TCG), which needs no KVM.

virtme-ng 1.42 boots Debian's 6.1 without KVM too, in 24 s against 9 s. But its root is the host's,
which lacks the kernel's modules, and over 9p the daemon starts in 10 to 20 s instead of 1 to 2 s.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from validation.kernels.debian import Missing

# A guest ends within five minutes on an idle host; the rest allows for a loaded one.
TIMEOUT_S = 1800
QEMU = "qemu-system-x86_64"


def command(kernel: Path, initrd: Path, words: str = "", *, disk: Path | None = None) -> list[str]:
    """Return QEMU's command line. `words` is added to the kernel's command line."""
    line = f"console=ttyS0 quiet panic=-1 mitigations=off no_timer_check {words}".strip()
    drive = ["-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"] if disk else []
    return [
        QEMU, "-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "1024",
        "-nographic", "-no-reboot", "-nic", "none", *drive,
        "-kernel", str(kernel), "-initrd", str(initrd), "-append", line,
    ]  # fmt: skip


def run(kernel: Path, initrd: Path, words: str = "", *, disk: Path | None = None) -> str:
    """Boot a guest, wait until it shuts down, and return its console output.

    A guest that hangs is ended after `TIMEOUT_S`; what it printed until then is returned.
    """
    if shutil.which(QEMU) is None:
        raise Missing(f"needs {QEMU} (Debian: qemu-system-x86)")
    try:
        done = subprocess.run(
            command(kernel, initrd, words, disk=disk), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S,
        )  # fmt: skip
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    return output.decode(errors="replace").replace("\r", "")


def facts(output: str) -> dict[str, str]:
    """Return the facts in a guest's output lines `@@ KEY VALUE`. The last line of a key wins."""
    found = {}
    for line in output.splitlines():
        # A kernel message without an end of line may stand before ours.
        _, mark, rest = line.partition("@@ ")
        if mark:
            key, _, value = rest.partition(" ")
            found[key] = value.strip()
    return found
