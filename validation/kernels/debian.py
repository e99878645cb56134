"""Download Debian's kernel packages with APT into a cache folder outside the checkout.

APT runs with lists and sources of its own below that folder, so that the host's configuration is
read but never changed. Signatures are checked with Debian's archive keyring.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Modules that the daemon, the guests' network and their disks use. A kernel has some built in.
MODULES = (
    "veth", "sch_ingress", "cls_bpf", "sch_tbf", "sch_htb", "sch_netem", "tun", "inet_diag",
    "tcp_diag", "virtio_pci", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_ring",
    "virtio", "virtio_blk", "ext4", "jbd2", "mbcache", "crc16", "crc32c_generic", "libcrc32c",
)  # fmt: skip


class Missing(Exception):
    """Error for a requirement that the host lacks. The message names it in one sentence."""


@dataclass(frozen=True)
class Series:
    """A kernel series, with the Debian suites that have it and the pattern of its package names."""

    name: str
    suites: tuple[str, ...]
    pattern: str


SERIES = {
    one.name: one
    for one in (
        Series("5.10", ("bullseye",), r"linux-image-5\.10\.0-\d+-amd64"),
        Series("6.1", ("bookworm",), r"linux-image-6\.1\.0-\d+-amd64"),
        Series("6.12", ("bookworm",), r"linux-image-6\.12\.\d+\+deb12-amd64"),
        Series(
            "newest",
            ("trixie-backports", "sid", "experimental"),
            # Three numbers, or busybox's depmod refuses the version.
            r"linux-image-\d+\.\d+\.\d+(\+\w+)?-amd64",
        ),
    )
}


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel: `boot/vmlinuz-VERSION` and `lib/modules/VERSION` below `root`."""

    version: str
    root: Path

    @property
    def image(self) -> Path:
        """Path of the kernel's image."""
        return self.root / "boot" / f"vmlinuz-{self.version}"

    @property
    def modules(self) -> Path:
        """Path of the folder with the kernel's modules."""
        return self.root / "lib" / "modules" / self.version


def cache_folder() -> Path:
    """Return the cache folder for packages and unpacked kernels."""
    return Path(platformdirs.user_cache_dir("waterfill")) / "kernels"


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name.removesuffix("-amd64"))]


def newest(names: Iterable[str], pattern: str) -> str | None:
    """Return the newest name that matches a pattern, comparing the numbers in the names, or None if
    no name matches.
    """
    return max((n for n in names if re.fullmatch(pattern, n)), key=_numbers, default=None)


def mirror(targets: str) -> str | None:
    """Return the address of Debian's main archive from lines of `apt-get indextargets`, or None.

    A line is an address, a space and a suite. Archives of security updates are left out.
    """
    for line in targets.splitlines():
        address, _, suite = line.partition(" ")
        if suite and not re.search(r"-(security|updates|backports)$", suite):
            return address.rstrip("/")
    return None


def find_mirror() -> str:
    """Return the address of the Debian archive that this host's APT uses."""
    form = "$(REPO_URI) $(RELEASE)"
    command = ["apt-get", "indextargets", "--format", form, "Origin: Debian"]
    try:
        lines = subprocess.run([*command, "Created-By: Packages"], capture_output=True, text=True)
    except FileNotFoundError:
        raise Missing("needs apt-get, to fetch Debian's packages") from None
    found = mirror(lines.stdout)
    if found is None:
        raise Missing("needs a Debian archive among APT's sources, and its lists (apt-get update)")
    return found


def sources(archive: str, suite: str) -> str:
    """Return the APT source lines of a Debian suite, and of a release's security updates."""
    signed = f"[signed-by={KEYRING}]"
    line = f"deb {signed} {archive} {suite} main\n"
    if suite in SERIES["newest"].suites:  # these have no security archive
        return line
    security = f"{archive.removesuffix('/debian')}/debian-security"
    return line + f"deb {signed} {security} {suite}-security main\n"


class Apt:
    """APT with separate sources and package lists."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder
        self.suite = suite
        for below in ("lists/partial", "archives/partial", "empty"):
            (folder / below).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()

    def _run(self, tool: str, *words: str, cwd: Path | None = None) -> str:
        options = {
            "Dir::Etc::SourceList": self.folder / "sources.list",
            "Dir::Etc::SourceParts": self.folder / "empty",
            "Dir::State::Lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder,
            "APT::Sandbox::User": "root",  # the cache may be in a folder that only root reads
            "APT::Architecture": "amd64",
            "Acquire::Languages": "none",
        }
        command = [tool, *(f"-o{key}={value}" for key, value in options.items()), "-q", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
            raise Missing(f"{tool} {words[0]} for {self.suite}: {lines[-1]}")
        return done.stdout

    def update(self) -> None:
        """Fetch the package lists."""
        text = sources(find_mirror(), self.suite)
        (self.folder / "sources.list").write_text(text)
        self._run("apt-get", "update")

    def names(self, prefix: str) -> list[str]:
        """Return the names of all packages that begin with a prefix."""
        return self._run("apt-cache", "pkgnames", prefix).split()

    def download(self, name: str, folder: Path) -> None:
        """Download a package into a folder."""
        self._run("apt-get", "download", name, cwd=folder)


def wanted(listing: str, modules: Iterable[str]) -> list[str]:
    """Return the archive paths to unpack: the kernel image and the required modules."""
    names = "|".join(name.replace("_", "[-_]") for name in modules)
    used = rf".*/({names})\.ko(\.xz)?|.*/modules\.(builtin|order)|.*/vmlinuz(-.+)?"
    return [path for path in listing.splitlines() if re.fullmatch(used, path)]


def parts(name: str, names: Iterable[str]) -> list[str]:
    """Return the packages that make up a kernel, given its name and all names of a suite.

    Newer kernels are split into up to four packages; older ones are a single package.
    """
    version = name.removeprefix("linux-image-")
    others = {f"linux-{part}-{version}" for part in ("base", "binary", "modules")}
    return [name, *sorted(others & set(names))]


def unpack(packages: Iterable[Path], into: Path) -> Kernel:
    """Unpack a kernel's image and the required modules, as uncompressed files."""
    into.mkdir(parents=True, exist_ok=True)
    for package in packages:
        data = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True
        ).stdout
        listing = subprocess.run(["tar", "-t"], input=data, stdout=subprocess.PIPE, check=True)
        paths = wanted(listing.stdout.decode(), MODULES)
        if paths:
            place = "--transform=s,^\\./usr/lib/,./lib/,"
            subprocess.run(["tar", "-x", "-C", into, place, *paths], input=data, check=True)
    for module in into.rglob("*.ko.xz"):
        subprocess.run(["xz", "-d", "-f", module], check=True)
    for beside in into.glob("lib/modules/*/vmlinuz"):  # where split packages keep the image
        (into / "boot").mkdir(exist_ok=True)
        beside.rename(into / "boot" / f"vmlinuz-{beside.parent.name}")
    (image,) = (into / "boot").glob("vmlinuz-*")
    return Kernel(image.name.removeprefix("vmlinuz-"), into)


def offered(series: Series, folder: Path) -> tuple[str, Apt]:
    """Return the newest package of a series and the APT of its suite. Raises `Missing` if no suite
    has one.
    """
    found: list[tuple[str, Apt]] = []
    reasons: list[str] = []
    for suite in series.suites:
        apt = Apt(folder / "apt" / suite, suite)
        try:
            apt.update()
            name = newest(apt.names("linux-image-"), series.pattern)
        except Missing as why:
            reasons.append(str(why))
            continue
        if name is not None:
            found.append((name, apt))
    if not found:
        reason = "; ".join(reasons) or f"not in {', '.join(series.suites)}"
        raise Missing(f"no kernel {series.name}: {reason}")
    return max(found, key=lambda one: _numbers(one[0]))


def kernel(series: Series, folder: Path | None = None) -> Kernel:
    """Return the newest kernel of a series, downloading and unpacking it if necessary.

    Without network the newest one of the cache is taken. Raises `Missing` if there is none.
    """
    for tool in ("apt-get", "dpkg-deb", "tar", "xz"):
        if shutil.which(tool) is None:
            raise Missing(f"needs {tool}, to unpack Debian's kernels")
    folder = folder or cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    cached = {path.parts[-3]: path for path in folder.glob("*/boot/vmlinuz-*")}
    try:
        name, apt = offered(series, folder)
    except Missing:
        kept = newest(cached, series.pattern)
        if kept is None:
            raise
        name, apt = kept, None
    root = folder / name
    if name in cached or apt is None:
        return Kernel(cached[name].name.removeprefix("vmlinuz-"), root)
    unfinished = folder / f"{name}.part"
    shutil.rmtree(unfinished, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for part in parts(name, apt.names("linux-")):
            apt.download(part, Path(place))
        found = unpack(sorted(Path(place).glob("*.deb")), unfinished)
    unfinished.rename(root)
    return Kernel(found.version, root)
