"""Tests of the Debian package's tests: required files, and the verdicts on installations."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from validation.package import judge
from validation.package.study import STUDY
from validation.study import execute

HERE = Path(judge.__file__).parent
ROOT = HERE.parents[1]


def whole() -> list[str]:
    return [f".{path}" for path in judge.FILES] + [f".{folder}x" for folder in judge.FOLDERS]


def test_a_package_is_complete_with_every_file_and_one_in_each_folder():
    assert judge.missing(whole()) == []
    merged = [path.replace("./lib/", "./usr/lib/") for path in whole()]
    assert judge.missing(merged) == []
    for n, path in enumerate((*judge.FILES, *judge.FOLDERS)):
        assert judge.missing([p for i, p in enumerate(whole()) if i != n]) == [path]
    assert judge.missing([*whole()[:-1], f".{judge.FOLDERS[-1]}"]) == [judge.FOLDERS[-1]]


def test_paths_are_read_from_the_listing_of_a_package():
    line = "-rwxr-xr-x root/root   5158800 2026-11-22 16:00 ./usr/sbin/waterfilld\n"
    link = "lrwxrwxrwx root/root 0 2026-11-22 16:00 ./usr/lib/x.lua -> ../share/x.lua\n"
    assert judge.listing(line + link) == ["./usr/sbin/waterfilld", "./usr/lib/x.lua"]
    assert judge.version(Path("out/waterfilld_0.1.0_amd64.deb")) == "0.1.0"


def installed() -> dict[str, str]:
    steps = ("install", "runs", "check", "probe", "upgrade", "runs-new", "remove", "purge")
    facts = dict.fromkeys(steps, "0 ")
    facts |= {"old-version": "0.0.9", "new-version": "0.1.0", "dependencies": "0", "edited": "1"}
    kept = "/etc/waterfill /etc/waterfill/waterfilld.toml /var/lib/dpkg/info/waterfilld.list"
    return facts | {"after-remove": kept, "after-purge": ""}


def failed(**changed: str) -> list[str]:
    facts = installed() | {key.replace("_", "-"): value for key, value in changed.items()}
    return [c.name for c in judge.install(facts, "0.0.9", "0.1.0") if c.verdict != "works"]


def test_an_installation_that_leaves_nothing_fails_no_check():
    assert failed() == []


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"install": "100 E: unmet dependencies"}, "install, with its dependencies"),
        ({"check": "2 waterfilld: expected"}, "`waterfilld check` of the installed file"),
        ({"edited": "0"}, "an edited configuration is kept"),
        ({"new_version": "0.0.9"}, "the higher version"),
        ({"after_remove": "/usr/sbin/waterfilld"}, "only the configuration stays"),
        ({"after_purge": "/etc/waterfill"}, "nothing is left"),
    ],
)
def test_each_fault_of_an_installation_fails_its_check(changed, name):
    assert failed(**changed) == [name]


def test_a_guest_that_printed_nothing_fails_every_check():
    assert {check.verdict for check in judge.units({})} == {"fails"}


def test_the_metrics_come_from_the_guest_as_they_are():
    text = b'waterfill_loaded{role="host"} 1\n# EOF\n'
    assert judge.metrics({"metrics": base64.b64encode(text).decode()}) == text
    assert judge.metrics({}) == b""


@pytest.mark.parametrize("script", ["install.sh", "units.sh"])
def test_the_scripts_are_valid(script):
    subprocess.run(["sh", "-n", HERE / script], check=True)


@pytest.mark.parametrize("script", ["debian/build.sh", "oci/build.sh"])
def test_the_builds_are_valid(script):
    subprocess.run(["bash", "-n", ROOT / "packaging" / script], check=True)


def test_the_maintainer_script_unloads_on_removal_only():
    text = (ROOT / "packaging/debian/waterfilld.prerm").read_text()
    # Debhelper's part stops the unit, so the unloading comes after it.
    assert (
        text.index("#DEBHELPER#")
        < text.index('[ "$1" = remove ]')
        < text.index("waterfilld unload --config")
        < text.index("waterfilld unload ||")
    )


def test_debhelper_restarts_on_upgrade_and_stops_on_removal():
    # With --no-start it would leave out both, and removal would leave the daemon running.
    rules = (ROOT / "packaging/debian/rules").read_text()
    assert "\tdh_installsystemd --no-enable\n" in rules


def test_a_package_that_is_not_there_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    packages = [str(tmp_path / "a.deb"), str(tmp_path / "b.deb")]
    assert execute(STUDY, "package", packages) == 2
    assert "a.deb: no such package; make package WHAT=deb builds one" in capsys.readouterr().err
    assert execute(STUDY, "package", packages[:1]) == 2
