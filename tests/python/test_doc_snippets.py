"""Snippets of the pages work: commands run or parse, Python runs, TOML is valid.

tests/support/snippets.py says what is done with each snippet and why not more; the tutorial's
output is compared by test_doc_commands.py.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import snippets
from known import ROOT
from snippets import Snippet
from waterfill.cli import commands
from waterfill.network import protocols, resolve
from waterfill.runs import law_files
from waterfill.scenario.loading import from_toml
from waterfill.sweeps import cluster

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = snippets.pages()
SNIPPETS = [snippet for page in PAGES for snippet in snippets.of(page)]
RUN = [one for one in SNIPPETS if snippets.treatment(one)[0] == snippets.RUN]
APP = get_command(commands.app)

# What a page's S.toml stands for where the page does not write one: names that examples use.
SCENARIO = """
duration = "2 s"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "10 ms"
[[link]]
name = "link1"
from = "b"
to = "c"
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "f"
path = ["l", "link1"]
count = 2
"""
# Files of others that the pages import, as small as they can be.
FILES = {
    "S.toml": SCENARIO,
    "out/bench/fat-tree.toml": SCENARIO,  # bench/networks.py writes one of 1,024 flows
    "polska.txt": """?SNDlib native format; type: network; version: 1.0
NODES (
  A ( 0.0 0.0 )
  B ( 1.0 0.0 )
)
LINKS (
  L1 ( A B ) 0.00 0.00 0.00 0.00 ( 155.00 1.0 )
)
DEMANDS (
  D1 ( A B ) 1 30.00 UNLIMITED
)
""",
    "topology.txt": "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",
    "flow.txt": "1\n0 1 3 100 200000 2\n",
    "flows.csv": "source,sink,start,size\nA,B,0 s,1 MB\n",
    "Abilene.graphml": """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d">A</data></node><node id="1"><data key="d">B</data></node>
    <edge source="0" target="1" />
  </graph>
</graphml>
""",
}
# Names that a page's Python takes from what its text says before.
GIVEN = {
    "docs/reference/traffic.md": 'import waterfill\nresult = waterfill.run("examples/web.toml")\n'
}


def _id(snippet: Snippet) -> str:
    return f"{snippet.page.relative_to(ROOT)}:{snippet.line}"


# test_doc_commands.py runs it and compares what it prints.
TUTORIAL = ROOT / "docs" / "tutorial" / "first-experiment.md"


def of_page(kind: str) -> list[Any]:
    """The pages with snippets of a kind to run, each with them; a command in one page only."""
    found: dict[Path, list[Snippet]] = {}
    seen: set[str] = set()
    for one in RUN:
        if re.match(r"waterfill (?:theory|protocols)\b", one.text):
            if one.text in seen:
                continue
            seen.add(one.text)
        if one.kind == kind and one.page != TUTORIAL:
            found.setdefault(one.page, []).append(one)
    return [pytest.param(ones, id=str(page.relative_to(ROOT))) for page, ones in found.items()]


def slower(text: str) -> str:
    """A scenario with a hundredth of its rates, a tenth of those below 1 Gbit/s, to take less."""
    text = re.sub(r"([\d.]+) Gbit/s", lambda match: f"{10 * float(match[1]):g} Mbit/s", text)
    return re.sub(r"\b(\d\d+) Mbit/s", lambda match: f"{int(match[1]) / 10:g} Mbit/s", text)


def prepare(folder: Path) -> None:
    """Fill a folder with the commands' input files: links of the examples are slow."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "examples").mkdir()
    for path in (ROOT / "examples").iterdir():
        if path.is_file():
            (folder / "examples" / path.name).write_text(slower(path.read_text()))


def leaf(words: list[str]) -> tuple[TyperCommand | TyperGroup, list[str]]:
    """The command that words name, and the words after its name."""
    command: Any = APP
    while isinstance(command, TyperGroup) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    return command, words


def test_every_snippet_is_run_parsed_or_has_a_reason():
    unknown = []
    for one in SNIPPETS:
        try:
            what, why = snippets.treatment(one)
        except KeyError as error:
            unknown.append(error.args[0])
        else:
            assert (what == snippets.RUN) != bool(why)
    assert unknown == [], "say in tests/support/snippets.py why they are not run"


def test_every_reason_is_needed():
    ours = [one.text for one in SNIPPETS if one.kind == "waterfill"]
    for pattern, why in snippets.PARSED:
        assert any(re.search(pattern, text) for text in ours), why
    others = {one.text.split()[0] for one in SNIPPETS if one.kind == "shell"}
    for why, programs in snippets.OTHERS.items():
        assert programs & others, why


@pytest.mark.parametrize("ones", of_page("waterfill"))
def test_commands_of_a_page_run(ones, waterfill, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    prepare(tmp_path)
    file = tmp_path / "S.toml"
    for one in ones:
        words, to = snippets.words(one)
        writes = "-o" in words and words[words.index("-o") + 1] == "S.toml"
        if writes:
            file.unlink(missing_ok=True)
        elif one.page.name == "commands.md":  # where each example stands for itself
            file.write_text(SCENARIO)
        if words[0] == "plot":  # of a run that a reader has made before
            shutil.rmtree(tmp_path / words[1], ignore_errors=True)
            assert waterfill("run", "S.toml", "-o", words[1]).code == 0
        if words[0] == "compare" and "--protocols" not in words:
            words += ["--protocols", "maxnet,rcp"]  # all of them take ten seconds to draw
        ran = waterfill(*words)
        assert ran.code == 0, f"{one}\n{ran.err}"
        if writes:
            file.write_text(slower(file.read_text()))
        if to is not None:
            from_toml(ran.out)


@pytest.mark.parametrize(
    "one", [one for one in SNIPPETS if one.kind == "waterfill" and one not in RUN], ids=_id
)
def test_commands_that_are_not_run_parse(one):
    command, words = leaf(snippets.words(one)[0])
    assert not isinstance(command, TyperGroup), f"no command: {one}"
    command.make_context(str(command.name), list(words))
    named = re.search(r" reproduce (\w[\w-]*(?:/\w[\w-]*)?)(?: |$)", one.text)
    assert named is None or (ROOT / "papers" / named[1]).is_dir()


@pytest.mark.parametrize("ones", of_page("python"))
def test_python_of_a_page_runs(ones, tmp_path):
    page = ones[0].page
    prepare(tmp_path)
    blocks = [textwrap.dedent(one.text) for one in ones]
    (tmp_path / "page.py").write_text(
        "\n".join([GIVEN.get(str(page.relative_to(ROOT)), ""), *blocks]), encoding="utf-8"
    )
    ran = subprocess.run(
        [sys.executable, "page.py"],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{page.relative_to(ROOT)}\n{ran.stderr}"


@pytest.mark.parametrize("one", [one for one in RUN if one.kind == "toml"], ids=_id)
def test_toml_is_valid(one, tmp_path):
    text = textwrap.dedent(one.text)
    document = tomllib.loads(text)
    if {"host", "router", "csig", "metrics"} & set(document):
        schema = json.loads((ROOT / "docs" / "waterfilld.schema.json").read_text())
        jsonschema.validate(document, schema)
    elif "project" in document:  # of a package that registers laws
        assert list(document["project"]["entry-points"]) == [law_files.GROUP]
    elif document.get("kind") in ("slurm", "kubernetes"):
        (tmp_path / "cluster.toml").write_text(text)
        where = cluster.place(str(tmp_path / "cluster.toml"), None)
        assert where.workers == document["workers"]
    else:
        network = resolve.to_core(from_toml(completed(text, document)), protocols.load())
        assert network.links


def completed(text: str, document: dict[str, Any]) -> str:
    """A part of a scenario as a whole one: with a duration, a link and a flow."""
    if "duration" not in document:
        text = f'duration = "60 s"\nprotocol = "maxnet"\n{text}'
    if not {"link", "fabric"} & set(document):
        text += '\n[[link]]\nname = "l"\nfrom = "a"\nto = "b"\nrate = "1 Gbit/s"\n'
    if not {"flow", "traffic", "collective"} & set(document):
        first = document["link"][0]["name"]
        text += f'\n[[flow]]\nname = "f"\npath = ["{first}"]\n'
    return text


@pytest.mark.parametrize("one", [one for one in SNIPPETS if one.kind in ("json", "ini")], ids=_id)
def test_json_and_units_of_systemd_parse(one):
    if one.kind == "json":
        assert json.loads(one.text)
    else:
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.read_string(one.text)
        assert "Service" in unit.sections()


# --- the tool itself ----------------------------------------------------------------------------


def found(tmp_path: Path, text: str) -> Iterator[tuple[str, str]]:
    (tmp_path / "page.md").write_text(text)
    return ((one.kind, one.text) for one in snippets.of(tmp_path / "page.md"))


def test_snippets_of_every_form_are_found(tmp_path):
    text = """Text `waterfill no`

```console
$ waterfill run S.toml   # a comment
# .venv/bin/waterfilld host --once && ls -l
output
```

    waterfill theory stability a|b [--rtt 1s]      words on it

1. List

   ```sh
   ip link show  # a comment
   ```

```
hostA#  waterfill go \\
        --on
# not a prompt
```

```toml
x = 1
```
"""
    assert list(found(tmp_path, text)) == [
        ("waterfill", "waterfill run S.toml"),
        ("waterfilld", "waterfilld host --once"),
        ("shell", "ls -l"),
        ("waterfill", "waterfill theory stability a --rtt 1s"),
        ("waterfill", "waterfill theory stability b --rtt 1s"),
        ("shell", "ip link show"),
        ("waterfill", "waterfill go --on"),
        ("toml", "x = 1\n"),
    ]


def test_a_wrong_command_does_not_parse(tmp_path):
    command, words = leaf(["run", "S.toml", "--sett", "a"])
    with pytest.raises(Exception, match="--sett"):
        command.make_context("run", words)
    with pytest.raises(KeyError, match="frobnicate"):
        snippets.treatment(Snippet(ROOT / "README.md", 1, "shell", "frobnicate --all"))
