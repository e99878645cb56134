"""Tests of the links, anchors and paths in pages and comments."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^(?P<mark>```+|~~~+).*?^(?P=mark)\s*?$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?:(?!\1).)+?\1")
_LINK = re.compile(r"\]\((?P<link>[^()\s]+(?:\([^()\s]*\))?)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?)\s*$", re.MULTILINE)
# A page or a file of docs/ in prose or in a comment, anywhere in the tree.
_PAGE = re.compile(r"\bdocs/[\w./-]*\w\.(?:md|toml|json|png)\b")
# A path in code quotes: a whole path below one of these folders, without a placeholder.
_TREE = re.compile(
    r"`(?P<path>(?:crates|python|papers|validation|tests|tools|bench|examples|docs)/[\w./-]*\w/?)`"
)


def _tracked() -> list[Path]:
    """Return every file that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


FILES = _tracked()
PAGES = [path for path in FILES if path.suffix == ".md"]
TEXTS = {".c", ".h", ".md", ".py", ".pyi", ".rs", ".sh", ".toml", ".yaml", ".yml", ""}
# The change log names files as they were when a version was released.
CHANGELOG = ROOT / "CHANGELOG.md"


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(text: str) -> str:
    """Markdown without its fenced blocks and code spans."""
    return _CODE.sub("", _FENCE.sub("", text))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub derives them."""
    found: dict[str, int] = {}
    names = []
    for match in _HEADING.finditer(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match["text"])
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        names.append(f"{slug}-{count}" if count else slug)
    return frozenset(names)


def broken(page: Path) -> list[str]:
    """The links of a page whose file or anchor does not exist."""
    wrong = []
    for match in _LINK.finditer(prose(page.read_text(encoding="utf-8"))):
        link = match["link"]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    return wrong


def exists(path: str) -> bool:
    """True if a path is one of the tree or, as in `tests/router.rs`, of one of its crates."""
    return (ROOT / path).exists() or any((ROOT / "crates").glob(f"*/{path}"))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_and_anchors_of_a_page_resolve(page: Path):
    assert broken(page) == []


@pytest.mark.parametrize("page", [p for p in PAGES if p != CHANGELOG], ids=_name)
def test_paths_in_code_quotes_exist(page: Path):
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    named = [match["path"] for match in _TREE.finditer(text)]
    assert [path for path in named if not exists(path)] == []


def test_pages_named_in_comments_and_prose_exist():
    wrong = {}
    for path in FILES:
        if path.suffix not in TEXTS or path in (CHANGELOG, Path(__file__)):
            continue
        named = _PAGE.findall(path.read_text(encoding="utf-8", errors="ignore"))
        missing = [name for name in named if not (ROOT / name).exists()]
        if missing:
            wrong[_name(path)] = missing
    assert wrong == {}


def test_a_broken_link_and_a_broken_anchor_are_found(tmp_path: Path):
    (tmp_path / "other.md").write_text("# One `two` & three\n\n```\n# not one\n```\n## One\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#one-two--three) [c](#here) [d](https://example.org/x)\n"
        "`[e](gone.md)`\n\n```\n[f](gone.md)\n```\n\n# Here\n"
        "[g](gone.md) [h](other.md#not-one) [i](#there)\n"
    )
    assert broken(page) == ["gone.md", "other.md#not-one", "#there"]
