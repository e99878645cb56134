"""Turn the facts that install.sh and units.sh printed into verdicts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path

from validation.kernels.judge import Check, Facts, exit_of

# What the package has to hold, beside documentation.
FILES = (
    "/usr/sbin/waterfilld",
    "/etc/waterfill/waterfilld.toml",
    "/lib/systemd/system/waterfilld.service",
    "/usr/share/man/man8/waterfilld.8.gz",
    "/usr/share/man/man8/waterfilld-run.8.gz",
    "/usr/share/bash-completion/completions/waterfilld",
    "/usr/share/zsh/vendor-completions/_waterfilld",
    "/usr/share/fish/vendor_completions.d/waterfilld.fish",
    "/usr/share/waterfill/systemd/waterfilld-containers.conf",
    "/usr/share/waterfill/waterfilld.schema.json",
    "/usr/share/waterfill/wireshark/waterfill.lua",
    "/usr/lib/x86_64-linux-gnu/wireshark/plugins/waterfill.lua",
    "/usr/share/doc/waterfilld/docs/README.md",
)
FOLDERS = (
    "/usr/share/waterfill/grafana/",
    "/usr/share/waterfill/kubernetes/",
    "/usr/share/waterfill/prometheus/",
)
# dpkg keeps a list of a removed package's configuration until it is purged.
KEPT = ("/etc/waterfill", "/var/lib/dpkg/info/waterfilld.", "/var/lib/systemd/")


def missing(listing: Iterable[str]) -> list[str]:
    """Return the required files that are missing from a package's list of paths."""
    have = {path.removeprefix(".").removeprefix("/usr/usr") for path in listing}
    lacks = [path for path in FILES if path not in have and f"/usr{path}" not in have]
    return lacks + [f for f in FOLDERS if not any(p.startswith(f) and p != f for p in have)]


def _same(name: str, seen: str | None, wanted: str) -> Check:
    right = seen == wanted
    return Check(name, "works" if right else "fails", "" if right else f"{seen}, not {wanted}")


def _runs(name: str, fact: str | None) -> Check:
    """Judge a command that must succeed. Any exit code but 0 is a failure."""
    code, line = exit_of(fact)
    return Check(name, "works" if code == 0 else "fails", "" if code == 0 else line)


def install(facts: Facts, old: str, new: str) -> list[Check]:
    """Return the verdicts on installing and removing the package in a chroot."""
    kept = [p for p in facts.get("after-remove", "?").split() if not p.startswith(KEPT)]
    left = facts.get("after-purge", "not run")
    return [
        _runs("install, with its dependencies", facts.get("install")),
        _same("the lower version", facts.get("old-version"), old),
        _same("no library is missing", facts.get("dependencies"), "0"),
        _runs("`waterfilld --version`", facts.get("runs")),
        _runs("`waterfilld check` of the installed file", facts.get("check")),
        _runs("`waterfilld probe`", facts.get("probe")),
        _runs("upgrade", facts.get("upgrade")),
        _same("the higher version", facts.get("new-version"), new),
        _same("an edited configuration is kept", facts.get("edited"), "1"),
        _runs("`waterfilld --version` after it", facts.get("runs-new")),
        _runs("remove", facts.get("remove")),
        Check("only the configuration stays", "fails" if kept else "works", " ".join(kept)),
        _runs("purge", facts.get("purge")),
        Check("nothing is left", "fails" if left else "works", left),
    ]


def _active(facts: Facts, key: str, wanted: str) -> Check:
    return _same(f"the unit after {key}", facts.get(f"active-{key}"), wanted)


def units(facts: Facts) -> Iterator[Check]:
    """Yield the verdicts on the package in a guest that systemd booted."""
    yield _same("systemd's own state", facts.get("system"), "running")
    yield _same("the unit is not enabled by installation", facts.get("enabled"), "disabled")
    yield _runs("`systemctl enable --now waterfilld`", facts.get("start"))
    yield _active(facts, "start", "active")
    yield _same("the unit's type", facts.get("type"), "notify")
    yield _same("the law is registered", facts.get("law-start"), "yes")
    yield _same("a flow is priced", facts.get("priced"), "yes")
    yield _runs("`systemctl reload waterfilld`", facts.get("reload"))
    yield _same("the reloaded target is in force", facts.get("target"), "0.5")
    refused = exit_of(facts.get("reload-bad"))[0]
    yield Check("a bad file is refused", "fails" if refused in (0, 255) else "works")
    yield _active(facts, "reload-bad", "active")
    yield _same("the target stays", facts.get("target-bad"), "0.5")
    yield _runs("upgrade under a flow", facts.get("upgrade"))
    yield _active(facts, "upgrade", "active")
    yield _same("the flow stays priced", facts.get("priced-upgrade"), "yes")
    yield _runs("the flow ends without an error", facts.get("flow"))
    yield _runs("`systemctl stop waterfilld`", facts.get("stop"))
    yield _active(facts, "stop", "inactive")
    yield _runs("`waterfilld unload`", facts.get("unload"))
    yield _same("the law after `unload`", facts.get("law-unload"), "no")
    yield _same("the law with pins elsewhere", facts.get("law-elsewhere"), "yes")
    yield _runs("remove, while it runs", facts.get("remove"))
    yield _same("pins after removal", facts.get("pins-remove"), "")
    yield _same("the law after removal", facts.get("law-remove"), "no")
    yield _same("filters after removal", facts.get("filters-remove"), "")
    yield _runs("purge", facts.get("purge"))
    yield _same("the journal's errors", facts.get("journal"), "")
    warning = facts.get("warnings", "not read")
    yield Check("no warning of the kernel", "fails" if warning else "works", warning)


def metrics(facts: Facts) -> bytes:
    """Return the metrics page that the guest's daemon served."""
    return base64.b64decode(facts.get("metrics", ""))


def listing(archive: str) -> list[str]:
    """Return the paths in the output of `dpkg-deb --contents`, without the targets of links."""
    lines = filter(None, archive.splitlines())
    return [line.split(maxsplit=5)[5].partition(" -> ")[0] for line in lines]


def version(package: Path) -> str:
    """Return the version in a package's file name."""
    return package.name.split("_")[1]
