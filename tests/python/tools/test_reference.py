"""The pages of keys and commands: complete, and said in words that a reader can use."""

from __future__ import annotations

import re
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from tools import paper_figures, reference
from waterfill.cli import commands
from waterfill.papers.claims import loading
from waterfill.scenario.schema import json_schema

SCHEMA = json_schema()
KEYS = reference.keys_page(SCHEMA)
COMMANDS = reference.commands_page(get_command(commands.app))


MODELS = ["Link", "LinkEvent", "LinkFault", "Flow", "FlowFault", "Traffic"]


@pytest.mark.parametrize("model", MODELS)
def test_every_key_has_a_row_in_its_section(model):
    title = reference._TABLES[model][0]
    section = KEYS.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert rows == list(SCHEMA["$defs"][model]["properties"])


def test_no_value_is_left_to_guess():
    assert "any value" not in KEYS
    rows = [line for line in KEYS.splitlines() if line.startswith("| `")]
    assert all(cell.strip() for row in rows for cell in row.strip("|").split(" | "))


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1, "exclusiveMaximum": 10}, "integer ≥ 1 and < 10"),
        ({"type": "number"}, "number"),
        ({"enum": ["a", "b"]}, "`a`, `b`"),
        ({"type": "array", "items": {"type": "string"}}, "list of text"),
        ({"anyOf": [{"type": "boolean"}, {"type": "object"}]}, "`true` or `false` or table"),
        ({"type": "string", "pattern": r"^[0-9]+\s*(s|ms|ps)\s*$"}, "time"),
        ({"type": "array", "items": {"$ref": "#/$defs/Flow"}}, "entries `[[flow]]`"),
    ],
)
def test_values_in_words(schema, words):
    assert reference.expected(schema) == words


def test_every_claim_has_a_row_with_its_verdict():
    known = loading.experiments()
    page = reference.claims_page(known)
    claims = [claim for experiment in known for claim in experiment.claims]
    assert f" | {len(claims)} |\n\n" in page
    for experiment in known:
        section = page.split(f"\n## {experiment.title}\n")[1].split("\n## ")[0]
        row = r"^\| `([\w.-]+)` \|.*\| (\w[\w ]+)(?:[:;].*)? \|$"
        rows = re.findall(row, section, re.MULTILINE)
        assert rows == [(claim.id, claim.expect) for claim in experiment.claims]


def test_every_drawing_of_a_paper_figure_has_a_row_with_its_verdicts():
    known = loading.experiments()
    page = paper_figures.figures_page(known)
    for experiment in known:
        for figure in experiment.figures:
            if figure.name.startswith("figure-"):
                assert f"`{figure.name}`" in page, f"{experiment.path}/{figure.name}"
    # ixcp-2007's Fig. 3 is named by its claims only, Fig. 30 would not be.
    claims = [c for e in known if e.paper == "ixcp-2007" for c in e.claims if "Fig. 3" in c.source]
    held = sum(claim.expect == "reproduced" for claim in claims)
    assert re.search(rf"^\| Fig\. 3 \| queues and drops .* \| {held} \| \d+ \| \d+ \|$", page, re.M)


def test_every_command_has_its_options_and_examples():
    app = get_command(commands.app)
    for name in (name for name, command in app.commands.items() if not command.hidden):
        assert re.search(rf"^## waterfill {name}\b", COMMANDS, re.MULTILINE), name
    assert "`waterfill run S.toml [OPTIONS]`" in COMMANDS
    assert "| `-o DIR`, `--output DIR` | Output directory. | – |" in COMMANDS
    assert "\n$ waterfill theory stability maxnet" in COMMANDS


def test_arguments_options_and_defaults():
    app = typer.Typer(rich_markup_mode=None)

    @app.command(epilog="\b\nExamples:\n  w go a | b")
    def go(
        names: Annotated[list[str], typer.Argument(metavar="[NAME]…", help="One | two.")],
        other: Annotated[str | None, typer.Argument()] = None,
        count: Annotated[int, typer.Option(help="How many.")] = 3,
        secret: Annotated[bool, typer.Option("--secret", hidden=True)] = False,
    ) -> None:
        """Go on."""

    @app.command()
    def stop() -> None:
        """Stop."""

    assert reference.commands_page(get_command(app)).partition("\n## ")[2] == (
        "waterfill go\n\nGo on.\n\n`waterfill go NAME… [OTHER] [OPTIONS]`\n\n"
        "| option | meaning | default |\n| --- | --- | --- |\n"
        "| `[NAME]…` | One \\| two. | required |\n| `OTHER` |  | – |\n"
        "| `--count COUNT` | How many. | `3` |\n\n"
        "```console\n$ w go a | b\n```\n\n"
        "## waterfill stop\n\nStop.\n\n`waterfill stop [OPTIONS]`\n"
    )
