"""Every document that `--json` prints has the schema version."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command

from known import ROOT
from waterfill.cli.commands import app
from waterfill.contract.summary import SCHEMA_VERSION

SCENARIO = """
duration = "1 s"
protocol = "maxnet"
link = [{name = "l", from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms"}]
flow = [{name = "f", path = ["l"]}]
"""
# Arguments of each command that has --json.
CASES = {
    "run": "s.toml",
    "compare": "s.toml --protocols maxnet,rcp",
    "sweep": "s.toml --grid seed=1 --workers 1",
    "check": "s.toml",
    "maxmin": "s.toml",
    "protocols": "",
    "response": "--quick --losses 20",
    "evaluate": f"--list --suite {ROOT}/tests/python/evaluate/small",
    "reproduce": "--list",
    "theory stability": "maxnet",
    "theory margin": "aecp",
    "theory equilibrium": "s.toml",
    "theory convergence": "aecp",
    "theory encoding": "maxnet",
}


def with_json() -> set[str]:
    """The commands that have the option --json, as a user types them."""
    found = set()

    def walk(command, words):
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, [*words, name])
        if any("--json" in param.opts for param in command.params):
            found.add(" ".join(words))

    walk(get_command(app), [])
    return found


def test_every_command_with_json_is_in_the_table():
    assert with_json() == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_document_has_the_schema_version(waterfill, name):
    Path("s.toml").write_text(SCENARIO)
    ran = waterfill(*name.split(), *CASES[name].split(), "--json")
    assert ran.code == 0, ran.err
    documents = ran.document if isinstance(ran.document, list) else [ran.document]
    assert documents
    for document in documents:
        assert next(iter(document.items())) == ("schema_version", SCHEMA_VERSION)
        assert type(document["schema_version"]) is int


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("run", "summary.json"),
        ("compare", "compare.json"),
        ("sweep", "sweep.json"),
        ("theory encoding", "theory.json"),
    ],
)
def test_the_file_has_the_schema_version(waterfill, name, file):
    Path("s.toml").write_text(SCENARIO)
    assert waterfill(*name.split(), *CASES[name].split(), "-o", "out").code == 0
    assert f'"schema_version": {SCHEMA_VERSION},' in Path("out", file).read_text()
