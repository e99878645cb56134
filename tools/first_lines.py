"""Check the first line of every docstring and doc comment against the style of the project.

    .venv/bin/python -m tools.first_lines [--draw N --seed S] [PATH …]

A first line is an imperative or a noun phrase of at most 25 words, in the field's words. `--draw`
prints N lines at random instead, for review by eye.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_WORDS = 25
FOLDERS = ("python/waterfill", "validation", "tools", "crates")

_CLAUSE = re.compile(
    r"(?:What|Whether|Which|That|Whose|Those|How|Where|When|Who|Whatever|All that|As many)\b"
)
# A verb whose object is a relative clause: the reader has to guess the noun.
_OBJECT = re.compile(
    r"(?:Returns?|Yields?|Lists?|Prints?|Reads?|Writes?|Checks?|Says?|Tells?|Names?|Draws?|Keeps?) "
    r"(?:what|whose|those|all that)\b"
)
_WORDS = {
    r"round[- ]trips?": "RTT",
    r"twins?": "fixed-point version",
    r"the machine": "host, VM or CPU",
    r"a processor|processors?": "CPU",
    r"told|heard|hears?|tells?": "notified, received, reports",
    r"obeys?|obeyed": "applies",
    r"mends?|mended": "fix",
    r"strikes?": "count_drops",
    r"lies(?! (?:with)?in| between| wholly| below| above| after| at| outside)|lied": "misreports",
    r"strays?": "reordered",
    r"comes? to rest|at rest|rests": "converges, equilibrium",
    r"crowds?": "burst of flows",
    r"utilisation": "utilization",
    r"beside": "compared with, next to",
    r"of ours": "our own",
    r"likewise|mostly": "(leave out)",
    r"the letter": "literal reading",
    r"what is asked of": "the demand on",
    r"is that of|are those of": "(name it)",
}
_WORD = re.compile(r"\b(?:" + "|".join(f"(?:{word})" for word in _WORDS) + r")\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`")
_RUST_ITEM = re.compile(r"^\s*(?P<mark>//[/!]) ?(?P<text>.*)$")


@dataclass(frozen=True)
class FirstLine:
    """The first line of one docstring or doc comment."""

    path: str
    line: int
    text: str

    def findings(self) -> list[str]:
        """Return the style complaints about this line."""
        plain = _CODE.sub("x", self.text)
        sentence = re.split(r"(?<=[\w)\]…%])\.(?: |$)", plain, maxsplit=1)[0]
        found = []
        if _CLAUSE.match(plain):
            found.append("begins with a relative clause: name the thing")
        if match := _OBJECT.match(plain):
            found.append(f'"{match[0]}" has a clause as its object: name the thing')
        if len(sentence.split()) > MAX_WORDS:
            found.append(f"{len(sentence.split())} words, at most {MAX_WORDS}")
        for match in _WORD.finditer(sentence):
            better = next(b for w, b in _WORDS.items() if re.fullmatch(w, match[0], re.I))
            found.append(f'"{match[0]}": write {better}')
        return found


def python_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and first line of every docstring of a Python file."""
    body = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(body):
        inside = getattr(node, "body", None)
        for child in inside if isinstance(inside, list) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                text = child.value.value
                if isinstance(text, str) and text.strip():
                    yield child.lineno, _paragraph(text.strip())


def rust_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line number and first line of every doc comment of a Rust file."""
    before = ""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        match = _RUST_ITEM.match(line)
        mark = match["mark"] if match else ""
        if match and mark != before and match["text"]:
            rest = []
            for later in lines[number - 1 :]:
                following = _RUST_ITEM.match(later)
                if not following or following["mark"] != mark:
                    break
                rest.append(following["text"])
            yield number, _paragraph("\n".join(rest).strip())
        before = mark


def _paragraph(text: str) -> str:
    """Return a text's first paragraph as one line, without a title's mark."""
    first = re.split(r"\n\s*\n", text, maxsplit=1)[0]
    return " ".join(first.split()).lstrip("# ")


def first_lines(paths: list[Path]) -> Iterator[FirstLine]:
    """Yield the first lines of the given files, in order."""
    for path in paths:
        read = python_lines if path.suffix in (".py", ".pyi") else rust_lines
        for number, text in read(path):
            yield FirstLine(str(path.relative_to(ROOT)), number, text)


def tracked(folders: list[str]) -> list[Path]:
    """Return the Python and Rust files in the given folders, except files that git ignores."""
    patterns = [f"{folder}/*.{suffix}" for folder in folders for suffix in ("py", "pyi", "rs")]
    listed = subprocess.run(
        [
            "git",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            *patterns,
            *folders,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    names = {name for name in listed.split("\0") if name.endswith((".py", ".pyi", ".rs"))}
    return [path for name in sorted(names) if (path := ROOT / name).is_file()]


def main(arguments: list[str]) -> int:
    """Print every complaint, or a random draw of lines, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", default=list(FOLDERS))
    parser.add_argument("--draw", type=int, metavar="N", help="print N lines drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    lines = list(first_lines(tracked(chosen.paths)))
    if chosen.draw is not None:
        for line in random.Random(chosen.seed).sample(lines, min(chosen.draw, len(lines))):
            print(f"{line.path}:{line.line}: {line.text}")
        return 0
    count = 0
    for line in lines:
        for finding in line.findings():
            print(f"{line.path}:{line.line}: {finding}: {line.text}")
            count += 1
    if count:
        print(f"first lines: {count} findings in {len(lines)}", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
