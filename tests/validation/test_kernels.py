"""Kernels under QEMU: names of packages, files of a guest, its facts, verdicts and the page."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from validation.kernels import debian, guest, image
from validation.kernels.judge import ENDS, LAWS, OPTIONS, command, judge, judge_oldest
from validation.kernels.page import KernelRun, page
from validation.kernels.study import ALL, OLDEST, STUDY
from validation.study import execute

HERE = Path(image.__file__).parent


def test_the_newest_package_is_that_of_the_highest_numbers():
    names = [
        "linux-image-6.1.0-9-amd64", "linux-image-6.1.0-56-amd64", "linux-image-6.1.0-56-rt-amd64",
        "linux-image-6.12.9+deb12-amd64", "linux-image-6.12.117+deb12-amd64",
        "linux-image-6.12.118+deb12-amd64-unsigned",
    ]  # fmt: skip
    found = {name: debian.newest(names, one.pattern) for name, one in debian.SERIES.items()}
    assert found == {"5.10": None, "6.1": names[1], "6.12": names[4], "newest": names[4]}
    # The 64 of the architecture is no part of a version.
    names = ["linux-image-7.3.4-amd64", "linux-image-7.3.4+deb13-amd64"]
    assert debian.newest(names, debian.SERIES["newest"].pattern) == names[1]


def test_a_split_kernel_is_fetched_with_all_its_parts():
    names = [
        "linux-image-7.3-amd64", "linux-base-7.3-amd64", "linux-binary-7.3-amd64",
        "linux-modules-7.3-amd64", "linux-modules-7.3-cloud-amd64", "linux-image-7.2-amd64",
    ]  # fmt: skip
    assert debian.parts(names[0], names) == names[:4]
    assert debian.parts(names[5], names) == names[5:]


def test_the_archive_is_the_one_that_apt_uses():
    lines = (
        "http://a.example/debian-security/ bookworm-security\nhttp://a.example/debian/ bookworm\n"
    )
    assert debian.mirror(lines) == "http://a.example/debian"
    assert debian.mirror("http://a.example/debian/ bookworm-updates\n") is None
    text = debian.sources("http://a.example/debian", "bullseye")
    assert " http://a.example/debian bullseye main\n" in text
    assert " http://a.example/debian-security bullseye-security main\n" in text
    assert text.count(f"[signed-by={debian.KEYRING}]") == 2
    unstable = debian.sources("http://a.example/debian", "sid")
    assert unstable == f"deb [signed-by={debian.KEYRING}] http://a.example/debian sid main\n"


def test_of_a_kernel_only_its_image_and_the_used_modules_are_unpacked():
    listing = (
        "./boot/vmlinuz-6.12.1\n./boot/config-6.12.1\n./lib/modules/6.12.1/modules.builtin\n"
        "./lib/modules/6.12.1/kernel/net/sched/sch_tbf.ko.xz\n"
        "./lib/modules/6.12.1/kernel/net/sched/sch_sfq.ko.xz\n./usr/lib/modules/7.3/vmlinuz\n"
    )
    lines = listing.splitlines()
    assert debian.wanted(listing, debian.MODULES) == [lines[0], lines[2], lines[3], lines[5]]


def test_the_libraries_of_a_program_are_read_from_ldd():
    listing = (
        "\tlinux-vdso.so.1 (0x00007ffc)\n"
        "\tlibelf.so.1 => /lib/x86_64-linux-gnu/libelf.so.1 (0x00007f1a)\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f2b)\n"
    )
    wanted = ["/lib/x86_64-linux-gnu/libelf.so.1", "/lib64/ld-linux-x86-64.so.2"]
    assert image.libraries(listing) == wanted
    assert image.libraries("\tnot a dynamic executable\n") == []


@pytest.mark.parametrize("script", ["checks.sh", "init.sh"])
def test_the_guests_scripts_are_valid(script):
    subprocess.run(["sh", "-n", HERE / script], check=True)


def test_facts_are_found_behind_the_kernels_own_output():
    output = "[    3.2] late message@@ router 0 loaded\nnoise\n@@ left \n@@ router 1 again\n"
    assert guest.facts(output) == {"router": "1 again", "left": ""}


def test_a_refusal_is_exit_2_and_a_sentence():
    assert command("c", "0 loaded").verdict == "works"
    assert command("c", "2 waterfilld: needs tcx").verdict == "refused"
    assert command("c", "2 waterfilld: needs tcx").seen == "needs tcx"
    for fact in ("1 waterfilld: the kernel refused", "2 Segmentation fault", "139 ", None):
        assert command("c", fact).verdict == "fails", fact


def probe(**present: bool) -> str:
    features = [{"name": name, "present": here} for name, here in present.items()]
    return json.dumps({"kernel": "6.1.0-test", "features": features})


def connections(*, ran: int, without: int) -> str:
    """Return the fact of many connections: the ends that ran the law, those without an init()."""
    return json.dumps({"counters": {"started": ran, "control_without_init": without}})


def good() -> dict[str, str]:
    """Return the facts of a kernel on which everything works."""
    status = {
        "flows": [{"remote": "10.0.2.1:5201", "mode": "priced"}],
        "links": [{"device": "rb", "marked": 7}],
    }
    facts = dict.fromkeys(("router", "host", "router-again", "host-again", "flow"), "0 ")
    facts |= dict.fromkeys(("scone-left", "csig-left"), "")
    facts |= dict.fromkeys(("status", "status-again"), json.dumps(status))
    facts["connections"] = connections(ran=2044, without=0)
    facts |= {"unload-left": "", "warnings": "", "exit": "0", "probe": probe(tcx=False, tbf=True)}
    facts["probe-without-modules"] = f"0 {facts['probe']}"
    for end in ENDS:
        facts |= {f"{end}-left": "", f"{end}-unload-left": "", f"{end}-start": "0 "}
    facts |= {f"law-{role}-{law}": "0 " for role in ("router", "host") for law in LAWS}
    return facts | dict.fromkeys(OPTIONS, "0 ")


def failed(**changed: str | None) -> list[str]:
    """Return the checks that fail when some facts are others; None: the fact is missing."""
    facts: dict[str, str | None] = {**good()}
    facts |= {key.replace("_", "-"): value for key, value in changed.items()}
    known = {key: value for key, value in facts.items() if value is not None}
    return [check.name for check in judge(known) if check.verdict == "fails"]


def test_a_kernel_on_which_everything_works_fails_no_check():
    assert failed() == []
    assert len(judge(good())) > 40
    assert failed(cohabit_paper="2 waterfilld: --cohabit needs tcx") == []
    # What a killed process leaves may stay until `unload`.
    assert failed(host_kill_left="law") == []


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"router": "1 waterfilld: the kernel refused"}, "`router`"),
        ({"status": '{"flows": [], "links": []}'}, "a flow of 5 Mbit/s and 40 ms is priced"),
        ({"status_again": "{"}, "the flow stays priced"),
        ({"flow": "1 error"}, "the flow ends without an error"),
        (
            {"connections": connections(ran=7, without=0)},
            "the law's `init()` runs for each connection",
        ),
        ({"unload_left": "clsact"}, "`unload`"),
        ({"host_term_left": "law"}, "`host --no-pin`, SIGTERM"),
        ({"host_kill_unload_left": "law"}, "`host --no-pin`, `kill -9`, then `unload`"),
        ({"router_kill_start": "1 in use"}, "`router --no-pin`, `kill -9`, then a start"),
        ({"law_host_vcp": "1 waterfilld: the kernel refused"}, "`host --law vcp`"),
        ({"law_router_jetmax": None}, "`router --law jetmax`"),
        ({"cohabit_improved": "1 waterfilld: the kernel refused"}, "`router --cohabit improved`"),
        ({"scone": "1 waterfilld: the kernel refused"}, "`router --scone`"),
        ({"csig_left": "filter"}, "`csig`, then `csig --off`"),
        ({"warnings": "WARNING: CPU: 0"}, "no warning of the kernel"),
        ({"exit": None}, "the guest ends"),
        (
            {"probe_without_modules": f"0 {probe(tcx=False, tbf=False)}"},
            "`probe` where modules are loaded and /lib/modules is absent",
        ),
    ],
)  # fmt: skip
def test_each_fault_fails_its_check(changed, name):
    assert failed(**changed) == [name]


def test_the_oldest_kernel_has_to_be_refused():
    said = "2 waterfilld: router needs features"
    assert [c.verdict for c in judge_oldest({"router": said, "host": said})] == ["refused"] * 2
    assert judge_oldest({"router": "0 loaded", "host": said})[0].verdict == "fails"
    assert judge_oldest({"router": "1 waterfilld: refused", "host": said})[0].verdict == "fails"


def test_the_page_has_a_column_for_each_kernel_and_every_refusal():
    bad = good() | {"cohabit-paper": "2 waterfilld: needs tcx", "law-host-rcp": "1 waterfilld: no"}
    bad["connections"] = connections(ran=2044, without=3)
    old = {
        "probe": probe(tcx=False),
        "router": "2 waterfilld: too old",
        "host": "2 waterfilld: old",
    }
    runs = [KernelRun("6.1", bad, judge(bad)), KernelRun("running", good(), judge(good()))]
    text = page(runs, KernelRun(OLDEST, old, judge_oldest(old)))
    assert "| feature | 6.1.0-test | 6.1.0-test | 6.1.0-test (running) |" in text
    assert "| tbf | no | yes | yes |" in text
    assert "**fails**: `host --law rcp`: no | yes |" in text
    assert '- 6.1.0-test, `router --cohabit paper`: "needs tcx"' in text
    assert "| the law's `init()` runs for each connection | skips 3 of 2044 | yes |" in text
    assert "> too old\n" in text
    assert max(map(len, (line for line in text.splitlines() if "|" not in line))) <= 125


def test_a_kernel_that_is_not_known_is_refused(capsys):
    assert execute(STUDY, "kernels", ["4.19"]) == 2
    assert "unknown '4.19'" in capsys.readouterr().err
    assert set(ALL) >= {OLDEST, "running"}
