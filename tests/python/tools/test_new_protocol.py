"""`make new-protocol`: its file compiles and has one test that fails; bad names write nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from known import ROOT
from tools import new_protocol
from tools.new_protocol import LAWS, MODULES, REGISTRY


@pytest.fixture
def tree(tmp_path):
    """A copy of the laws."""
    shutil.copytree(ROOT / LAWS, tmp_path / LAWS)
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
def test_it_compiles_and_one_test_fails():
    # In a folder of its own below target/, so that a second run compiles the laws only.
    work = ROOT / "target/new-protocol"
    tree = work / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for folder in ("crates", "bench", "fuzz"):
        shutil.copytree(ROOT / folder, tree / folder)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, tree)
    new_protocol.create("foo", tree)
    settings = {
        "CARGO_TARGET_DIR": str(work),
        "CARGO_PROFILE_TEST_OPT_LEVEL": "0",
        "CARGO_TERM_COLOR": "never",
        "RUSTFLAGS": "-D warnings",
    }
    ran = subprocess.run(
        ["cargo", "test", "--locked", "--package", "waterfill-laws", "--lib", "foo"],
        cwd=tree,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert "test protocols::foo::tests::eq1_rate_step ... FAILED" in ran.stdout
    assert "test protocols::foo::tests::a_router_lowers_the_header_to_its_rate ... ok" in ran.stdout
    assert "1 passed; 1 failed" in ran.stdout
    assert "write the paper's equations and symbols into the module doc" in ran.stdout
