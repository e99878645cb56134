"""Tests of commands in the docs: all exist, and those of the tutorial print the shown output."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from known import ROOT
from validation import __main__ as program

BIN = ROOT / ".venv" / "bin"
TUTORIAL = ROOT / "docs" / "tutorial" / "first-experiment.md"
_NOT_OURS = {".venv", "target", "node_modules", "out"}
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if not _NOT_OURS & set(path.relative_to(ROOT).parts) and path.name != "CHANGELOG.md"
]
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_INDENTED = re.compile(r"^    (\S.*)$", re.MULTILINE)
# A prompt, as in "$ ", "# " or "hostA#   ".
_PROMPT = re.compile(r"^(?:\w*[#$] +)")
_SAVED = re.compile(r"[Ss]ave this as `(?P<name>[\w.]+)`")


def commands(text: str) -> Iterator[list[str]]:
    """The words of each of our commands in a page: in blocks, and in code spans."""
    lines = [line for block in _BLOCK.finditer(text) for line in block["text"].splitlines()]
    lines += _INDENTED.findall(text) + _SPAN.findall(text)
    for line in lines:
        plain = _PROMPT.sub("", line).partition(" #")[0].partition("     ")[0]
        for part in re.split(r" && | & |; ", plain):
            if not re.match(r"(\.venv/bin/|[\w/]*sbin/)?waterfilld? [a-z]", part):
                continue
            words = shlex.split(part.replace("…", "").replace("[", " ").replace("]", " "))
            yield [Path(words[0]).name, *words[1:]]


@cache
def cli_help(words: tuple[str, ...]) -> str | None:
    """Output of a command's `--help`, None where there is no such command or program."""
    program = BIN / words[0]
    if not program.exists():
        pytest.skip(f"{words[0]} is not built here")
    ran = subprocess.run(
        [program, *words[1:], "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": "200", "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
    )
    return ran.stdout if ran.returncode == 0 else None


def unknown(words: list[str]) -> list[str]:
    """The subcommand or options of a command that its help does not have."""
    head = 3 if words[1] == "theory" and len(words) > 2 and words[2].isalpha() else 2
    text = cli_help(tuple(words[:head]))
    if text is None:
        return [" ".join(words[:head])]
    options = [word.partition("=")[0] for word in words[head:] if word.startswith("--")]
    return [option for option in options if not re.search(rf"{option}\b", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_their_options_exist(page: Path):
    wrong = {}
    for words in commands(page.read_text(encoding="utf-8")):
        missing = unknown(words)
        if missing:
            wrong[" ".join(words)] = missing
    assert wrong == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_and_modules_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    code = "\n".join([*_SPAN.findall(text), *(block["text"] for block in _BLOCK.finditer(text))])
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"^(?:\$ )?make ([a-z0-9-]+)", code, re.MULTILINE))
    assert named <= targets
    for module in re.findall(r"python -m ((?:waterfill|validation)[\w.]*)", text):
        path = (
            ROOT / ("python" if module.startswith("waterfill") else "") / module.replace(".", "/")
        )
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


_STUDY = re.compile(r"(?:make validate STUDY=|python -m validation )([\w-]+)([^`\n]*)")


def wrong_studies(text: str) -> list[str]:
    """The studies and options of studies that a page names and that do not exist."""
    found = []
    for name, rest in _STUDY.findall(text):
        if name not in (*program.STUDIES, "NAME", "tonight"):
            found.append(name)
        elif name in program.STUDIES:
            known = {option.name for option in program.load(name).options}
            known |= {"--quick", "--kept", "--busy", "--json", "--help"}
            words = re.findall(r"--[a-z0-9-]+", rest)
            found += [f"{name} {word}" for word in words if word not in known]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_studies_and_their_options_exist(page: Path):
    assert wrong_studies(page.read_text(encoding="utf-8")) == []


def test_a_study_that_does_not_exist_is_found():
    text = "make validate STUDY=fault\nmake validate STUDY=faults OPTIONS='--quick --short xcp'\n"
    assert wrong_studies(text) == ["fault", "faults --short"]


def test_a_command_that_does_not_exist_is_found():
    assert unknown(["waterfill", "run", "S.toml", "--set", "a=1"]) == []
    assert unknown(["waterfill", "run", "S.toml", "--sett"]) == ["--sett"]
    assert unknown(["waterfill", "walk"]) == ["waterfill walk"]


def test_commands_are_found_in_blocks_and_in_code():
    page = "`waterfill run S.toml`\n```\nx# .venv/bin/waterfill a --b  # c\n```\n    waterfill d\n"
    assert sorted(commands(page)) == [
        ["waterfill", "a", "--b"],
        ["waterfill", "d"],
        ["waterfill", "run", "S.toml"],
    ]
    assert len(list(commands((ROOT / "README.md").read_text(encoding="utf-8")))) >= 8


def test_the_tutorial_runs_and_prints_what_it_shows(waterfill, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = TUTORIAL.read_text(encoding="utf-8")
    printed, before, ran = "", 0, []
    for block in _BLOCK.finditer(text):
        saved = _SAVED.search(text, before, block.start())
        before = block.end()
        if block["kind"] == "text":
            for line in block["text"].splitlines():
                assert line.split() in [row.split() for row in printed.splitlines()], line
        elif block["kind"] == "console":
            for words in commands(block[0]):
                result = waterfill(*words[1:])
                assert result.code == 0, result.err
                printed = result.out
                ran.append(words[1])
        else:
            assert saved, f"the {block['kind']} block needs a name to be saved as"
            (tmp_path / saved["name"]).write_text(block["text"], encoding="utf-8")
            if block["kind"] == "python":
                runpy.run_path(str(tmp_path / saved["name"]))
    assert ran == ["run", "run", "maxmin", "compare"]
    for figure in ("out/dumbbell/figure.png", "out/mine/compare.png", "rates.png"):
        assert (tmp_path / figure).stat().st_size > 1000
