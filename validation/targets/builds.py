"""Targets on which the engines run: what each needs, how it is built, and how it is run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from validation.study import ROOT
from waterfill.errors import RunError

CRATE = "waterfill-wasm"
PROFILE = "targets"
# The compilers that tools/daemon.sh looks for.
CLANGS = ("clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang")
# Libraries choose functions by features of the CPU. glibc's names are those up to 2.32 and since.
MASKED = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-FMA4_Usable,-AVX2,-FMA,-FMA4",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3",
}


@dataclass(frozen=True)
class Target:
    """A target. Without a `triple` it is this host, and Python resolves the scenarios once more.

    `runner` runs a build that the host cannot run itself. `hosts` are the CPUs on which the target
    runs, by the name that Python gives them, or none for all. `profile` is one of Cargo's.
    """

    name: str
    triple: str = ""
    runner: tuple[str, ...] = ()
    install: str = ""
    hosts: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    profile: str = PROFILE

    def lacks(self) -> str | None:
        """Return what this host lacks to build and run the target, and how to install it; None if
        nothing is missing.
        """
        if self.hosts and (platform.machine() not in self.hosts or sys.platform != "linux"):
            return f"Linux on {' or '.join(self.hosts)}, got {sys.platform} on {platform.machine()}"
        if self.environment and platform.libc_ver()[0] != "glibc":
            return "glibc, whose functions can be masked"
        if self.runner == _CHROMIUM and chromium() is None:
            return f"chromium: {self.install}"
        if self.runner and shutil.which(self.runner[0]) is None:
            return f"{self.runner[0]}: {self.install}"
        if not self.triple:
            return None
        if not _has_library(self.triple):
            return f"Rust for {self.triple}: rustup target add {self.triple}"
        return None if _clang() else "clang 15 or newer: apt-get install clang-19"

    def build(self) -> None:
        """Build the target, if it is not this host; raise RunError with the last error if that
        fails.
        """
        if not self.triple:
            return
        name = self.triple.replace("-", "_")
        more = {
            f"CC_{name}": _clang() or "",
            # The laws' C needs no library, and the compiler's own headers are enough.
            f"CFLAGS_{name}": "-ffreestanding -nostdlibinc",
            # Rust brings a linker and, for musl, the C library.
            f"CARGO_TARGET_{name.upper()}_LINKER": "rust-lld",
        }
        if "musl" in self.triple:
            more[f"CARGO_TARGET_{name.upper()}_RUSTFLAGS"] = "-Clink-self-contained=yes"
        if "wasm" in self.triple:
            command = ["cargo", "rustc", "--lib", "--crate-type", "cdylib"]
        else:
            command = ["cargo", "build", "--example", "hashes"]
        command += ["--locked", "--quiet", "--package", CRATE, "--profile", self.profile]
        command += ["--target", self.triple]
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, **more}, capture_output=True, text=True
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            raise RunError(f"{self.name}: cannot be built: {' '.join(lines[:3])}")

    @property
    def command(self) -> list[str]:
        """Command that reads files of requests (on this host: of sources) and prints a line for
        each.
        """
        if not self.triple:
            return [sys.executable, "-W", "ignore", "-m", "validation.targets.native"]
        if "wasm" in self.triple:
            return [*self.runner, str(self.module)]
        return [*self.runner, str(self._folder / "examples" / "hashes")]

    @property
    def module(self) -> Path:
        """The module of WebAssembly that `build` writes."""
        return self._folder / "waterfill_wasm.wasm"

    @property
    def _folder(self) -> Path:
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        return target / self.triple / self.profile

    def outcomes(self, files: Sequence[Path]) -> list[str]:
        """Run files and return the hash of each result, or the sentence with which it is refused.

        Raises RunError if the program ends without a line for each file.
        """
        done = subprocess.run(
            [*self.command, *map(str, files)], cwd=ROOT, capture_output=True, text=True,
            env={**os.environ, **self.environment},
        )  # fmt: skip
        lines = [line.partition("\t")[2] for line in done.stdout.splitlines()]
        if done.returncode or len(lines) != len(files):
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RunError(f"{self.name}: {len(lines)} of {len(files)} runs ended: {last}")
        return lines


_NODE = ("node", str(ROOT / "crates" / CRATE / "examples" / "hashes.mjs"))
_CHROMIUM = (sys.executable, "-m", "validation.targets.chromium")
_X86 = ("x86_64",)
TARGETS = {
    target.name: target
    for target in (
        Target("native"),
        Target("masked", hosts=_X86, environment=MASKED),
        Target("wasm32", "wasm32-unknown-unknown", _NODE, "apt-get install nodejs"),
        Target("chromium", "wasm32-unknown-unknown", _CHROMIUM, "apt-get install chromium"),
        Target("x86_64-musl", "x86_64-unknown-linux-musl", hosts=_X86),
        Target("i686-musl", "i686-unknown-linux-musl", hosts=_X86),
        Target("aarch64-musl", "aarch64-unknown-linux-musl", ("qemu-aarch64",),
               "apt-get install qemu-user", hosts=_X86),
    )
}  # fmt: skip


def chromium() -> str | None:
    """Return the path of an installed Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


@cache
def _clang() -> str | None:
    names = [os.environ["CLANG"]] if os.environ.get("CLANG") else CLANGS
    return next((name for name in names if shutil.which(name)), None)


def _has_library(triple: str) -> bool:
    """Return True if Rust's standard library for a target is installed."""
    command = ["rustc", "--print", "target-libdir", "--target", triple]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return Path(done.stdout.strip()).is_dir()
