"""Debian guests with the package, booted by systemd from a disk image."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from validation.kernels import debian, guest, image
from validation.kernels.debian import Kernel
from validation.package.roots import BOOTED, unpack

HERE = Path(__file__).parent
# Modules in the order of loading: those that a kernel has built in are not there.
_DISK = (
    "virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
    "virtio_blk", "crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4",
)  # fmt: skip
_INIT = f"""\
#!/bin/sh
# Mounts the disk and hands over to its init.
/bin/busybox --install -s /bb
export PATH=/bb
mount -t devtmpfs dev /dev
mount -t proc proc /proc
for module in {" ".join(_DISK)}; do modprobe $module 2>/dev/null; done
until mount -t ext4 /dev/vda /disk; do sleep 0.2; done
umount /proc
exec switch_root /disk /sbin/init
"""
_UNIT = """\
[Unit]
Description=Checks of the package

[Service]
Type=simple
ExecStart=/bin/sh /units.sh
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
"""
# A guest without KVM is slow: no unit is to fail because of that.
_WORDS = "root=/dev/vda rw systemd.default_timeout_start_sec=600 systemd.show_status=0"


def _initramfs(kernel: Kernel, folder: Path) -> Path:
    root = folder / "initramfs"
    for path in ("bin", "sbin", "bb", "dev", "proc", "disk"):
        (root / path).mkdir(parents=True)
    image.add_program(root, image.find("busybox"))
    (root / "bin/sh").symlink_to("/bin/busybox")
    (root / "sbin/modprobe").symlink_to("/bin/busybox")
    image.add_modules(root, kernel)
    (root / "init").write_text(_INIT)
    (root / "init").chmod(0o755)
    archive = folder / "initramfs.gz"
    image.initramfs(root, archive)
    return archive


def run(suite: str, series: str, debs: Mapping[str, Path], folder: Path) -> str:
    """Boot a guest of a Debian suite with a kernel of a series, run units.sh, and return the
    output.
    """
    kernel = debian.kernel(debian.SERIES[series])
    root = folder / "root"
    unpack(root, suite, BOOTED, debs)
    shutil.copytree(kernel.modules, root / "usr/lib/modules" / kernel.version)
    # Not busybox's: kmod, which systemd's system has, reads the index in its binary form.
    subprocess.run(["chroot", root, "depmod", kernel.version], check=True)
    shutil.copy(HERE / "units.sh", root / "units.sh")
    units = root / "etc/systemd/system"
    (units / "checks.service").write_text(_UNIT)
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "checks.service").symlink_to("/etc/systemd/system/checks.service")
    (units / "serial-getty@ttyS0.service").symlink_to("/dev/null")
    disk = folder / "disk.ext4"
    size = sum(f.lstat().st_size for f in root.rglob("*") if f.is_file() and not f.is_symlink())
    make = [
        "mkfs.ext4",
        "-q",
        "-F",
        "-d",
        str(root),
        str(disk),
        f"{size * 3 // 2 // 1_000_000 + 200}M",
    ]
    subprocess.run(make, check=True)
    shutil.rmtree(root)
    return guest.run(kernel.image, _initramfs(kernel, folder), _WORDS, disk=disk)
