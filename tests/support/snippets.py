"""The code in the pages: commands for readers, and their treatment in tests.

A snippet is one command of a block, or a whole block of Python, TOML and so on. `treatment` says
whether a test runs it, parses it, or why neither. Printed as a table:

    PYTHONPATH=tests/support:python .venv/bin/python -m snippets [--all]
"""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from known import ROOT

FENCE = re.compile(
    r"^(?P<indent> *)(?P<mark>```+)(?P<kind>[\w-]*)\n(?P<text>.*?)^(?P=indent)(?P=mark)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_INDENTED = re.compile(r"(?:^ {4}\S.*\n)+", re.MULTILINE)
# A prompt, as in "$ " or "hostA#   "; "# ", that of root, only where nothing is a comment.
_PROMPT = re.compile(r"^\s*(?:\w+[#$]|\$) +")
_ROOT_PROMPTS = re.compile(r"^ *# +", re.MULTILINE)
_OURS = re.compile(r"^(?:\S*/)?(?P<program>waterfilld?) (?P<rest>.*)$")
_NOT_OURS = {".venv", "target", "node_modules", "out"}

RUN, PARSE, NONE = "run", "parsed", "not tried"

# Why a command of `waterfill` is parsed and not run: the first pattern that its text matches.
PARSED = (
    (r" --endpoint ", "needs a compiled library; tests/python/runs runs it"),
    (r" --on \S*linux", "needs root; tests/python/testbed runs it"),
    (
        r" sweep (?:S|pair|web|incast|all-reduce).toml| sweep examples",
        "starts a pool of workers; tests/python/sweeps runs it",
    ),
    (r" reproduce --all| reproduce \w[\w-]*$", "takes minutes; make test reproduces the papers"),
    (r" evaluate (?!--list)", "takes longer than a test may; tests/python/evaluate runs it"),
    (r" reproduce --claims", "needs a reader's files; tests/python/cli runs it"),
    (r" reproduce \w[\w-]*/", "tests/python/papers runs every experiment"),
    (r" (?:report|studio)\b", "has tests with a browser"),
    (r" run papers/| run bench/", "takes longer than a test may"),
    (r" compare (?:net|pair|xcp).toml -", "takes longer than a test may; tests of compare run it"),
    (r" response", "takes longer than a test may; tests/python/analysis runs it"),
    (r" --seeds 10\b", "takes longer than a test may; tests/python/analysis runs it"),
)
# Why a command of another program is not tried.
OTHERS = {
    "a build or a check of its own; a test checks that the target exists": {"make"},
    "builds or tests the Rust crates": {"cargo", "rustup", "cd"},
    "compiles an example; tests/python/runs does so": {"cc"},
    "installs software or changes a host's services": (
        {"apt", "cp", "editor", "pip", "podman", "python3", "rm", "systemctl", "waterfill/bin/pip"}
        | {"source"}
    ),
    "needs root, network namespaces or other hosts": (
        {
            "ip",
            "sysctl",
            "nsenter",
            "for",
            "iperf3",
            "tc",
            "unshare",
            "sh",
            "docker",
            "dask",
            "sleep",
        }
        | {
            "ping",
            "echo",
            "ss",
            "bpftool",
            "export",
            "wait",
            "kill",
            "cat",
            "tail",
            "ulimit",
            "until",
        }
    ),
}
_PYTHON_NOT_RUN = {"bpf_maxnet": "needs MaxNet in the kernel and a second host"}


@dataclass(frozen=True)
class Snippet:
    """One command, or one block, of a page; `kind` is a program's name or a block's language."""

    page: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        first = self.text.strip().splitlines()[0] if self.text.strip() else ""
        return f"{self.page.relative_to(ROOT)}:{self.line}: {first[:70]}"


def pages() -> list[Path]:
    """Return the pages whose snippets are tried: all but the change log and other projects'."""
    return [
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not _NOT_OURS & set(path.relative_to(ROOT).parts) and path.name != "CHANGELOG.md"
    ]


def of(page: Path) -> list[Snippet]:
    """Return a page's snippets in order."""
    text = page.read_text(encoding="utf-8")
    found: list[Snippet] = []
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        found += _of_block(page, line, block["kind"], block["text"])
    hidden = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for block in _INDENTED.finditer(hidden):
        line = hidden.count("\n", 0, block.start()) + 1
        found += _commands(page, line, block[0], every=False)
    return sorted(found, key=lambda snippet: snippet.line)


def _of_block(page: Path, line: int, kind: str, text: str) -> Iterator[Snippet]:
    if kind in ("", "text"):
        yield from _commands(page, line, text, every=False)
    elif kind in ("console", "sh"):
        if kind == "console":
            text = _ROOT_PROMPTS.sub("$ ", text)
        yield from _commands(page, line, text, every=kind == "sh")
    else:
        yield Snippet(page, line, kind, text)


def _commands(page: Path, line: int, text: str, *, every: bool) -> Iterator[Snippet]:
    """Yield the commands of a block; without `every`, those after a prompt, and ours."""
    # A line that ends in a backslash goes on, as does what a newline inside quotes follows.
    joined = re.sub(r" *\\\n *", " ", text)
    for number, row in enumerate(joined.splitlines()):
        prompted = _PROMPT.match(row)
        plain = _PROMPT.sub("", row).strip()
        # A comment follows two spaces; in tables of commands, five spaces do without the mark.
        plain = re.split(r"\s+#\s|\s{5,}(?![\"'])", plain)[0].strip()
        for part in re.split(r" && | & |; ", plain):
            ours = _OURS.match(part)
            if ours:
                for command in _alternatives(f"{ours['program']} {ours['rest']}"):
                    yield Snippet(page, line + number, ours["program"], command)
            elif part and (prompted or every) and not part.startswith("#"):
                yield Snippet(page, line + number, "shell", part)


def _alternatives(command: str) -> list[str]:
    """Return the commands that `a|b` and `[--option]` stand for; the option is given."""
    plain = re.sub(r"(?<!\S)\[(.+?)\](?!\S)", r"\1", command).replace("…", "")
    plain = re.sub(r"(?<=--protocol )P$", "maxnet", plain)
    for word in plain.split():
        if re.fullmatch(r"[a-z]\w*(?:\|[a-z]\w*)+", word):
            return [plain.replace(word, one, 1) for one in word.split("|")]
    return [plain]


def words(snippet: Snippet) -> tuple[list[str], str | None]:
    """Return the words of a command after its program, and the file of a `> FILE`."""
    command, _, rest = snippet.text.partition(" > ")
    return shlex.split(command.partition(" | ")[0])[1:], rest.strip() or None


def treatment(snippet: Snippet) -> tuple[str, str]:
    """Return a test's treatment of a snippet, and its limits; KeyError for an unknown program."""
    match snippet.kind:
        case "waterfill":
            why = next((why for pattern, why in PARSED if re.search(pattern, snippet.text)), None)
            return (PARSE, why) if why else (RUN, "")
        case "waterfilld":
            return PARSE, "needs root and a device; tests of waterfill-linux run it"
        case "python":
            why = next((w for sign, w in _PYTHON_NOT_RUN.items() if sign in snippet.text), None)
            return (PARSE, why) if why else (RUN, "")
        case "toml" | "json":
            return RUN, ""
        case "py":
            return NONE, "a signature of the Python API, made from the code"
        case "pycon":
            return NONE, "an example in a docstring; tests/python/test_builder.py runs it"
        case "bibtex":
            return NONE, "a record to copy; tests/python/tools/test_cite.py compares it"
        case "rust":
            return NONE, "a fragment of `params!`; waterfill-laws has such lines"
        case "ini":
            return PARSE, "a systemd unit"
        case "yaml":
            return NONE, "a workflow, which only a CI service runs"
        case "shell":
            first = snippet.text.split()[0]
            for why, programs in OTHERS.items():
                if first in programs or re.match(r"\w+=", first):
                    return NONE, why
    raise KeyError(str(snippet))


def main(arguments: list[str]) -> int:
    """Print how many snippets of each kind are run, parsed or not tried, and why."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for page in pages():
        for snippet in of(page):
            what, why = treatment(snippet)
            counts[snippet.kind, what, why] += 1
            if "--all" in arguments:
                print(f"{what:10}{snippet}")
    for (kind, what, why), number in sorted(counts.items()):
        print(f"{number:5}  {kind:11} {what:10} {why}")
    total = Counter({what: 0 for what in (RUN, PARSE, NONE)})
    for (_, what, _), number in counts.items():
        total[what] += number
    print(", ".join(f"{number} {what}" for what, number in total.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
