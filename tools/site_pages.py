"""MkDocs hooks of `make site`, which add navigation, a front page and repository files to docs/.

MkDocs calls the functions `on_…` (mkdocs.yml, `hooks`).

- The front page is the README; docs/README.md, the list of all pages, also gives the navigation.
- A link to a file outside of docs/ leads to a copy of that file: a page of the site for Markdown,
  a page with its text for every other file, a list for a folder. So each link works in the
  repository, on a forge and in the site.
"""

from __future__ import annotations

import itertools
import posixpath
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools import release, site_playground, site_widgets
from waterfill.errors import RunError

ROOT = Path(__file__).resolve().parent.parent
INDEX = "docs/README.md"
# The front page of validation: its links are the records below it in the navigation.
EVIDENCE = "docs/validation/README.md"
# Pages of docs/ that MkDocs would name otherwise, and the front page.
_NAMES = {"README.md": "index.md", INDEX: "pages.md"}
# What the section on the project lists, beside the list of all pages.
PROJECT = {
    "Architecture": "ARCHITECTURE.md",
    "Contributing": "CONTRIBUTING.md",
    "Changelog": "CHANGELOG.md",
}
# Where copies of files outside of docs/ are.
_COPIES = "repository"
_LANGUAGES = {
    ".c": "c",
    ".cc": "cpp",
    ".h": "c",
    ".py": "python",
    ".rs": "rust",
    ".service": "ini",
    ".sh": "bash",
    ".toml": "toml",
}
# Those of docs/ that MkDocs copies as they are: editors read them by address.
_PLAIN = {".json", ".png", ".svg", ".css"}

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>```+|~~~+).*?^(?P=indent)(?P=mark)[ ]*$", re.M | re.S)
_CODE = re.compile(r"(?P<ticks>`+)(?:(?!(?P=ticks)).)+?(?P=ticks)")
_LINK = re.compile(r"(?<=\]\()(?P<link>[^()\s]+(?:\([^()\s]*\))?)(?=\))")
_TEXT_LINK = re.compile(r"\[([^\]]+)\]\(([^()\s]+)\)")
_MARK = re.compile(r" *(?:[-*+]|\d{1,9}[.)]) +(?=\S)")
_SECTION = re.compile(r"^## +(?P<title>.+?)\s*$")
_GROUP = re.compile(r"^(?P<title>[A-Z][^:\[\]]*?)(?:, [^:]*)?:$")
_ITEM = re.compile(r"^- (?P<rest>\[.*)$")
_TITLE = re.compile(r"(?:^|, )\[(?P<title>[^\]]+)\]\((?P<link>[^()\s]+)\)")

# A search for a term finds the pages that explain it, not each line of code that has it.
_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n"
# Browsers let no page from a disk start the worker that searches.
_WITHOUT_SEARCH = (
    '<script>if (location.protocol === "file:") document.querySelectorAll('
    '".md-search, label[for=__search]").forEach(part => part.remove())</script>'
)


class LinkError(Exception):
    """Error for a page that links to a file outside the repository. The message names the page
    and the link.
    """


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply a function to the parts of a Markdown text that are not code."""
    out: list[str] = []

    def prose(part: str) -> None:
        end = 0
        for span in _CODE.finditer(part):
            out.extend((change(part[end : span.start()]), span[0]))
            end = span.end()
        out.append(change(part[end:]))

    end = 0
    for fence in _FENCE.finditer(text):
        prose(text[end : fence.start()])
        out.append(fence[0])
        end = fence.end()
    prose(text[end:])
    return "".join(out)


def reindent(text: str) -> str:
    """Return a Markdown text with the contents of list items indented by four columns per level.

    CommonMark, as forges read it, takes as many columns as the item's mark is wide; MkDocs'
    Markdown expects four, and a blank line above the first item.
    """
    out: list[str] = []
    levels: list[int] = []  # the column at which the text of each open item begins
    fence, shift = "", 0
    for line in text.splitlines():
        plain = line.lstrip(" ")
        indent = len(line) - len(plain)
        if fence:
            out.append(" " * max(indent + shift, 0) + plain)
            fence = "" if plain.rstrip() == fence else fence
            continue
        if not plain:
            out.append("")
            continue
        above = out[-1].lstrip() if out else ""
        item = _MARK.match(line)
        first = above and not _MARK.match(above) and (not levels or indent >= levels[-1])
        if item and first and not re.match(r"[-*+]|1[.)]", plain):
            item = None  # a number other than 1 at the start of a line does not end a paragraph
        mark = re.match(r"```+|~~~+", plain)
        if item or not above or mark:
            while levels and indent < levels[-1]:
                levels.pop()
        elif levels and indent < levels[-1]:
            indent = levels[-1]  # the paragraph goes on, however little it is indented
        shift = 4 * len(levels) - (levels[-1] if levels else 0)
        if item:
            block = itertools.takewhile(str.strip, reversed(out))
            if above and not any(_MARK.match(one) for one in block):
                out.append("")
            levels.append(len(item[0]))
        fence = mark[0] if mark else ""
        out.append(" " * (indent + shift) + plain)
    return "\n".join(out) + "\n"


def links(text: str) -> Iterator[str]:
    """Yield the links of a Markdown text, except links inside code."""
    plain = _CODE.sub("", _FENCE.sub("", text))
    for match in _LINK.finditer(plain):
        yield match["link"]


def target(link: str, page: str) -> str | None:
    """Return the repository path that a link points to, or None for an external address or an
    anchor.

    Both paths are relative to the repository's root. Raises LinkError if there is no such file.
    """
    path = link.partition("#")[0]
    if not path or re.match(r"[a-z]+:", path):
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    if found.startswith("..") or not (ROOT / found).exists():
        raise LinkError(f"{page}: no file for the link {link}")
    return found


def page_of(path: str) -> str:
    """Return the site's source path for a file or folder of the repository."""
    if path in _NAMES:
        return _NAMES[path]
    suffix = PurePosixPath(path).suffix
    if path.startswith("docs/") and (suffix in _PLAIN or suffix == ".md"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        path = posixpath.join(path, "README.md")
    return f"{_COPIES}/{path}" if path.endswith(".md") else f"{_COPIES}/{path}.md"


def relink(text: str, page: str) -> str:
    """Return a repository page's Markdown with its links rewritten for the site."""
    here = posixpath.dirname(page_of(page))

    def change(part: str) -> str:
        def turn(match: re.Match[str]) -> str:
            found = target(match["link"], page)
            if found is None:
                return match["link"]
            anchor = match["link"].partition("#")[2]
            there = posixpath.relpath(page_of(found), here or ".")
            return f"{there}#{anchor}" if anchor else there

        return _LINK.sub(turn, part)

    return outside_code(text, change)


@cache
def tracked() -> tuple[str, ...]:
    """Return the paths of all repository files, except files that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return tuple(sorted(name for name in listed.split("\0") if (ROOT / name).is_file()))


def markdown_of(path: str) -> str:
    """Return a file or folder as Markdown: a page's text, a file's code in a block, or a list of
    files.
    """
    if (ROOT / path).is_dir():
        if (ROOT / path / "README.md").exists():
            return (ROOT / path / "README.md").read_text(encoding="utf-8")
        return _listing(path)
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
    title = f"# {PurePosixPath(path).name}\n\n`{path}`"
    return f"{_NOT_SEARCHED}{title}\n\n``````{language}\n{text}``````\n"


def _listing(folder: str) -> str:
    inside = [
        PurePosixPath(name).relative_to(folder)
        for name in tracked()
        if name.startswith(f"{folder}/")
    ]
    readmes = [name for name in inside if name.name == "README.md"]
    if readmes:
        items = [f"- [{name.parent}]({name})" for name in readmes]
    else:
        items = [f"- `{name}`" for name in inside]
    return "\n".join([f"# {folder}", "", *items, ""])


def copies() -> dict[str, str]:
    """Return the Markdown of all files outside docs/ that site pages link to, by path.

    The READMEs of all experiments are among them. Raises LinkError.
    """
    start = [
        "README.md",
        "papers",
        *(p for p in tracked() if p.startswith("docs/") and p.endswith(".md")),
    ]
    found: dict[str, str] = {}
    seen = set(start)
    while start:
        path = start.pop()
        text = markdown_of(path)
        if page_of(path).startswith(f"{_COPIES}/"):
            found[path] = text
        if not path.endswith(".md") and not (ROOT / path).is_dir():
            continue
        page = posixpath.join(path, "README.md") if (ROOT / path).is_dir() else path
        for link in links(text):
            there = target(link, page)
            if (
                there is not None
                and there not in seen
                and PurePosixPath(there).suffix not in _PLAIN
            ):
                seen.add(there)
                start.append(there)
    return found


@dataclass
class Section:
    """A heading of the navigation, with its pages as (title, path) and its groups of pages."""

    title: str
    pages: list[tuple[str, str]] = field(default_factory=list)
    groups: list[Section] = field(default_factory=list)


def sections(text: str) -> list[Section]:
    """Return the navigation that docs/README.md describes.

    Its `## ` headings are the sections, a line that ends in a colon begins a group, and each item
    `- [title](page): …` is a page.
    """
    found: list[Section] = []
    current: Section | None = None
    for line in text.splitlines():
        if match := _SECTION.match(line):
            current = Section(match["title"])
            found.append(current)
        elif not found or current is None:
            continue
        elif match := _GROUP.match(line):
            current = Section(match["title"])
            found[-1].groups.append(current)
        elif match := _ITEM.match(line):
            for title in _TITLE.finditer(match["rest"].partition(": ")[0]):
                path = target(title["link"], INDEX)
                if path is not None and PurePosixPath(path).suffix not in _PLAIN:
                    current.pages.append((_heading(title["title"]), path))
    return found


def _heading(text: str) -> str:
    """Return a link's text as a title, capitalized unless it names code or a file."""
    if "`" in text or "." in text:
        return text.replace("`", "")
    return text[0].upper() + text[1:]


def nav(
    found: list[Section], behind: Mapping[str, Mapping[str, str]], experiments: Mapping[str, str]
) -> list[Any]:
    """Return the site's navigation, with the given sections and the papers' experiments.

    `behind` has, for a front page, the title and path of each page that the front page opens.
    """

    def entries(section: Section) -> list[Any]:
        out: list[Any] = []
        for title, path in section.pages:
            pages = behind.get(path)
            if pages is None:
                out.append({title: page_of(path)})
            else:
                out.append({title: [page_of(path), *({n: page_of(p)} for n, p in pages.items())]})
        return out + [{group.title: entries(group)} for group in section.groups]

    out: list[Any] = [{"Waterfill": "index.md"}]
    out += [
        {section.title: entries(section)} for section in found if section.pages or section.groups
    ]
    papers: list[Any] = [page_of("papers")]
    papers += [{name: page_of(path)} for name, path in experiments.items()]
    project: list[Any] = [{title: page_of(path)} for title, path in PROJECT.items()]
    return [*out, {"Papers": papers}, {"Project": [{"All pages": "pages.md"}, *project]}]


def records() -> dict[str, str]:
    """Return {title: path} of the records linked from the front page of validation."""
    found: dict[str, str] = {}
    for title, link in _TEXT_LINK.findall(markdown_of(EVIDENCE)):
        path = target(link, EVIDENCE)
        if path is not None and path not in found.values():
            found[_heading(title)] = path
    return found


def navigation() -> list[Any]:
    """Return the site's navigation for the present state of the repository."""
    files = tracked()
    pages = "docs/reference/protocols/"
    protocols = {
        PurePosixPath(name).stem: name
        for name in files
        if name.startswith(pages) and not name.endswith("README.md")
    }
    experiments = {
        str(PurePosixPath(name).parent.relative_to("papers")): name
        for name in files
        if name.startswith("papers/") and name.endswith("README.md")
    }
    found = sections((ROOT / INDEX).read_text(encoding="utf-8"))
    behind = {f"{pages}README.md": protocols, EVIDENCE: records()}
    return nav(found, behind, experiments)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation in the MkDocs configuration, and the addresses if they are known."""
    config.nav = navigation()
    try:
        address = release.repository()
    except ValueError as error:
        raise PluginError(str(error)) from None
    if address is not None:
        config.repo_url = address
        config.site_url = release.site_of(address)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the front page and the copied repository files to the site."""
    readme = files.get_file_from_path("README.md")
    if readme is not None:
        files.remove(readme)
    try:
        made = copies()
        made["README.md"] = markdown_of("README.md")
        made[INDEX] = markdown_of(INDEX)
        for path, text in made.items():
            page = posixpath.join(path, "README.md") if (ROOT / path).is_dir() else path
            content = relink(text, page) if page.endswith(".md") else text
            files.append(File.generated(config, page_of(path), content=content))
        for path, text in site_widgets.files().items():
            files.append(File.generated(config, path, content=text))
    except (LinkError, RunError) as error:
        raise PluginError(str(error)) from None
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links and lists of a page of docs/. Links of copied files are
    rewritten earlier.
    """
    if page.file.generated_by is None:
        markdown = relink(markdown, f"docs/{page.file.src_uri}")
    if site_playground.COMMENT in markdown:
        page.meta["hide"] = ["navigation", "toc"]  # three columns of charts need the width
    return reindent(markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Label the theme's search dialog for screen readers, hide it on pages opened from disk, and
    insert widgets.
    """
    dialog = 'data-md-component="search" role="dialog"'
    named = output.replace(dialog, f'{dialog} aria-label="Search"', 1)
    bundle = re.search(r'<script src="[^"]*bundle[^"]*"></script>', named)
    if bundle is None:
        raise PluginError(f"{page.file.src_uri}: the page lacks the theme's script")
    whole = named[: bundle.start()] + _WITHOUT_SEARCH + named[bundle.start() :]
    try:
        return site_widgets.insert(site_playground.insert(whole), page.url)
    except site_widgets.WidgetError as error:
        raise PluginError(f"{page.file.src_uri}: {error}") from None
