"""The pages keep to CONTRIBUTING.md: short paragraphs, one-line list items, standard terms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
# Made from docs in the code, as the protocols' pages are.
MADE = ("claims.md", "python.md", "python-modules.md")
PAGES = [
    README,
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "protocols" and page.name not in MADE
    ),
]
MAX_COLUMNS = 130
MAX_WORDS = 2500
MAX_LINES = 5
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
# Words that newcomers stumbled over, each with a standard term in CONTRIBUTING.md's sense.
_WORDS = re.compile(r"\b(?:round trips?|twins?|the machine|strays?|mend(?:s|ed)?)\b", re.IGNORECASE)


def paragraphs(text: str) -> Iterator[list[str]]:
    """The paragraphs and list items of a page, each as its lines; no tables, code or headings."""
    for block in re.split(r"\n\s*\n", _FENCE.sub("", text)):
        lines: list[str] = []
        for line in block.splitlines():
            if line.lstrip().startswith(("|", "#", "![")) or line.startswith("    "):
                continue
            if _ITEM.match(line) and lines:
                yield lines
                lines = []
            lines.append(line)
        if lines:
            yield lines


def faults(text: str) -> list[str]:
    """Breaches of the style in a page, one sentence each."""
    found = []
    for lines in paragraphs(text):
        if len(lines) > MAX_LINES:
            found.append(f"{len(lines)} lines: {lines[0]}")
        found += [f"{len(line)} columns: {line}" for line in lines if len(line) > MAX_COLUMNS]
    plain = re.sub(r"`[^`\n]*`|\"[^\"\n]*\"", "", _FENCE.sub("", text))
    found += [f"use a standard term for {match[0]}" for match in _WORDS.finditer(plain)]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_paragraphs_are_short_and_terms_are_standard(page: Path):
    assert faults(page.read_text(encoding="utf-8")) == []


def test_a_list_item_of_the_readme_is_one_line():
    items = [p for p in paragraphs(README.read_text(encoding="utf-8")) if _ITEM.match(p[0])]
    assert items
    assert [item for item in items if len(item) > 1] == []


def test_a_section_of_the_changelog_has_ten_short_lines():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for section in re.split(r"^###? ", text, flags=re.MULTILINE)[1:]:
        items = [line for line in section.splitlines()[1:] if line]
        assert len(items) <= 10, section
        assert [line for line in items if len(line) > 400] == []


def test_faults_are_found():
    assert faults("one\n" * 5 + '\n- `round trip`\n- "round trip"\n') == []
    assert faults("one\n" * 6) == ["6 lines: one"]
    assert faults("x" * 131)[0].startswith("131 columns")
    assert faults("a Round trip") == ["use a standard term for Round trip"]


@pytest.mark.parametrize("page", ["README.md", "docs/validation/README.md"])
def test_counts_of_verdicts_are_those_of_the_generated_page(page: str):
    claims = " ".join(
        (ROOT / "docs" / "validation" / "claims.md").read_text(encoding="utf-8").split()
    )
    sentences = re.search(r"of \d+ sentences, .*? cannot be checked", claims)
    total = re.search(r"\| all \| (\d+) \| \d+ \| \d+ \| (\d+) \|", claims)
    assert sentences is not None
    assert total is not None
    counts = f"{sentences[0]}; {total[1]} of {total[2]} claims"
    assert counts in (ROOT / page).read_text(encoding="utf-8")


def words(text: str) -> int:
    """Number of words of a page outside of code and tables."""
    return sum(len(re.findall(r"\w[\w’'-]*", line)) for lines in paragraphs(text) for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_read_in_one_sitting(page: Path):
    count = words(page.read_text(encoding="utf-8"))
    assert count <= MAX_WORDS, f"{count} words: split the page"
