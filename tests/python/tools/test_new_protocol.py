"""`make new-protocol`: its files compile and one test fails; bad names write nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from known import ROOT
from tools import new_protocol
from tools.new_protocol import DAEMON, KERNEL, LAWS, MODULES, REGISTRY


@pytest.fixture
def tree(tmp_path):
    """A copy of the laws and of the daemon's table of them."""
    for folder in (LAWS, KERNEL, DAEMON.parent):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_one_file_and_two_lines(tree):
    before = contents(tree)
    file, *lists = new_protocol.create("foo", tree)
    assert (file.name, lists) == ("foo.rs", [MODULES, REGISTRY])
    added = {
        path.name: set(text.splitlines()) - set(before.get(path, b"").splitlines())
        for path, text in contents(tree).items()
        if before.get(path) != text and path.name != "foo.rs"
    }
    assert added == {"mod.rs": {b"pub mod foo;"}, "registry.rs": {b"    Foo: foo::Foo;"}}
    text = (tree / file).read_text()
    assert "@" not in text
    modules = re.findall("pub mod (.*);", (tree / MODULES).read_text())
    assert modules == sorted(modules)


def test_the_kernel_form_is_three_files_and_a_line_or_an_entry_in_four(tree):
    before = contents(tree)
    new_protocol.create("foo", tree, kernel=True)
    after = contents(tree)
    assert sorted(path.name for path in after.keys() - before.keys()) == [
        "fixed_point.rs",
        "foo.c",
        "foo.h",
        "foo.rs",
    ]
    added = {
        path.name: [line for line in text.splitlines() if line not in before[path].splitlines()]
        for path, text in after.items()
        if path in before and before[path] != text
    }
    assert added.pop("laws.rs")[0] == b'        name: "foo",'
    assert added == {
        "mod.rs": [b"pub mod foo;"],
        "registry.rs": [b"    Foo: foo::Foo, in kernel;"],
        "law.h": [b"\tWATERFILL_FOO = 9,"],
        "capture.rs": [
            b"            AnyHeader::Foo(header) => header.value(),",
            b"            AnyEcho::Foo(echo) => echo.value(),",
        ],
    }
    (fixed_point,) = (
        text for path, text in after.items() if path.parts[-2:] == ("foo", "fixed_point.rs")
    )
    assert b"use super::{Foo, Header, Params};" in fixed_point, "in rustfmt's order"
    assert not any(b"@" in after[path] for path in after.keys() - before.keys())


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "NAME must be a lower-case letter"),
        ("Foo", "got 'Foo'"),
        ("9p", "got '9p'"),
        ("foo_bar", "got 'foo_bar'"),
        ("../foo", "got '../foo'"),
        ("fn", "keyword of Rust"),
        ("gen", "keyword of Rust"),
        ("rcp", "taken by crates/waterfill-laws/src/protocols/rcp"),
        ("cubic", "taken by crates/waterfill-laws/src/protocols/tcp/cubic"),
        ("csig", "taken by crates/waterfill-laws/kernel/csig.h"),
        ("rate", "use Rate for something else"),
        ("none", "use None for something else"),
    ],
)
def test_a_bad_name_is_one_sentence_and_writes_nothing(tree, monkeypatch, capsys, name, why):
    before = contents(tree)
    monkeypatch.setattr(new_protocol, "ROOT", tree)
    assert new_protocol.main([name]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert why in printed.err
    assert printed.err.count("\n") == 1
    assert contents(tree) == before


@pytest.mark.slow
def test_they_compile_and_one_test_of_each_fails():
    # Dependencies are those of the checkout's own tests, compiled once.
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    tree = target / "new-protocol"
    shutil.rmtree(tree, ignore_errors=True)
    for folder in ("crates", "bench", "fuzz"):
        shutil.copytree(ROOT / folder, tree / folder)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, tree)
    new_protocol.create("foo", tree)
    new_protocol.create("bar", tree, kernel=True)
    settings = {"CARGO_TARGET_DIR": str(target), "CARGO_TERM_COLOR": "never"}
    ran = subprocess.run(
        [
            "cargo",
            "--config",
            "profile.dev.package.waterfill-laws.opt-level=0",
            "test",
            "--locked",
            "--package",
            "waterfill-laws",
            "--lib",
            "--",
            "protocols::foo",
            "protocols::bar",
            "every_law_of_the_kernel",
        ],
        cwd=tree,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert "warning:" not in ran.stdout
    for name in ("foo", "bar"):
        of = f"test protocols::{name}::tests"
        assert f"{of}::eq1_rate_step ... FAILED" in ran.stdout
        assert f"{of}::a_router_lowers_the_header_to_its_rate ... ok" in ran.stdout
    # Both arithmetics of the kernel form agree, and captures have its values.
    for test in ("routers_agree", "sources_agree", "the_last_value_is_echoed"):
        assert f"test protocols::bar::fixed_point::tests::{test} ... ok" in ran.stdout
    assert "test capture::tests::every_law_of_the_kernel_has_values ... ok" in ran.stdout
    assert "6 passed; 2 failed" in ran.stdout
    assert "write the paper's equations and symbols into the module doc" in ran.stdout
