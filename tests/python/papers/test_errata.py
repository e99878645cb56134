"""The errata pages: complete entries, and nothing named there that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from known import ROOT
from waterfill.network import protocols
from waterfill.papers.claims import loading
from waterfill.scenario.loading import load

PAGES = sorted((ROOT / "docs" / "validation").glob("errata*.md"))
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
EXPERIMENTS = {experiment.path: experiment for experiment in loading.experiments()}
CLAIMS = {f"{path}/{claim.id}" for path, e in EXPERIMENTS.items() for claim in e.claims}
CODE = re.findall(r"`([^`\n]+)`", TEXT)
ENTRIES = dict(re.findall(r"^##+ (\w+)\. (.*?)$(?=\n)", TEXT, re.MULTILINE))


def bodies() -> dict[str, str]:
    parts = re.split(r"^##+ (\w+)\. .*$", TEXT, flags=re.MULTILINE)[1:]
    return {
        name: re.split(r"^#", body, flags=re.MULTILINE)[0]
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_entries_are_numbered_without_gaps_and_as_the_table_says():
    for first, last in re.findall(r"\| (\w\d+) to (\w\d+) \|", TEXT):
        letter = first[0]
        names = [name for name in ENTRIES if name.startswith(letter)]
        assert names == [f"{letter}{number}" for number in range(1, len(names) + 1)]
        assert (names[0], names[-1]) == (first, last)


@pytest.mark.parametrize("name", list(ENTRIES))
def test_an_entry_says_what_is_printed_right_measured_and_why_it_matters(name):
    labels = re.findall(r"^- \*\*(\w+)\*\*: ", bodies()[name], re.MULTILINE)
    assert labels[0] == "Printed"
    assert set(labels[1:-2]) <= {"Right", "Reading"}
    assert len(labels) in (4, 5)
    assert labels[-2:] == ["Measured", "Matters"]


def test_every_claim_that_is_named_exists():
    papers = {path.split("/")[0] for path in EXPERIMENTS}
    named = [code for code in CODE if code.split("/")[0] in papers and "/" in code]
    wrong = [code for code in named if code not in CLAIMS and code not in EXPERIMENTS]
    assert wrong == []
    assert len(named) > 80


def test_every_file_that_is_named_exists():
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", TEXT)]
    files = [PAGES[0].parent / link for link in links if "://" not in link]
    files += [ROOT / code for code in CODE if code.startswith(("crates/", "tests/", "python/"))]
    words = [word for code in CODE if code.startswith("waterfill ") for word in code.split()]
    files += [ROOT / word for word in words if word.endswith(".toml")]
    assert [str(path) for path in files if not path.exists()] == []
    assert len(files) > 5


def test_commands_name_experiments_and_parameters_that_exist():
    commands = [code.split() for code in CODE if code.startswith("waterfill ")]
    reproduced = [command[2] for command in commands if command[1] == "reproduce"]
    assert set(reproduced) <= set(EXPERIMENTS)
    parameters = {
        f"{protocol.name}.{parameter.name}"
        for protocol in protocols.load().values()
        for parameter in protocol.params
    }
    named = [name for code in CODE for name in re.findall(r"params\.(\w+\.\w+)=", code)]
    assert named
    assert set(named) <= parameters


def test_the_other_experiments_of_a_paper_are_reached_from_its_readme():
    """Entries that lean on a README's table name an experiment that has one."""
    for path, experiment in EXPERIMENTS.items():
        if f"README of `{path}`" in TEXT:
            assert "|" in Path(experiment.folder / "README.md").read_text(encoding="utf-8")


def test_a_run_that_an_entry_asks_for_is_a_scenario():
    for code in CODE:
        match = re.match(r"waterfill run (\S+) --set '(.+)'$", code)
        if match:
            assert load(ROOT / match[1], [match[2]]).flow


def test_every_claim_of_the_statements_that_had_none_exists():
    text = (ROOT / "docs" / "validation" / "verdicts.md").read_text(encoding="utf-8")
    table = text.split("## Statements that had no claim")[1]
    short = {claim.split("/", 1)[1] for claim in CLAIMS}
    named = re.findall(r"`([\w.-]+/[\w.-]+)`", table)
    assert [name for name in named if name not in short] == []
    assert len(named) > 30
