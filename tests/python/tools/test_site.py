"""The documentation site: complete navigation, links that lead somewhere in it, too."""

from __future__ import annotations

import re
from collections import Counter

import markdown
import pytest
from markdown_it import MarkdownIt

from known import ROOT
from tools import site_pages

PAGES = [path for path in site_pages.tracked() if path.startswith("docs/") and path.endswith(".md")]


def listed(entries: list) -> list[str]:
    """Return all pages that a part of the navigation names."""
    found = []
    for entry in entries:
        if isinstance(entry, str):
            found.append(entry)
        else:
            for inner in entry.values():
                found += [inner] if isinstance(inner, str) else listed(inner)
    return found


@pytest.fixture(scope="module")
def navigation() -> list:
    return site_pages.navigation()


def test_the_navigation_has_every_page_once(navigation):
    there = listed(navigation)
    assert sorted(there) == sorted(set(there))
    missing = [path for path in PAGES if site_pages.page_of(path) not in there]
    assert missing == [], "list them in docs/README.md"


def test_every_page_of_the_navigation_exists(navigation):
    copies = {site_pages.page_of(path) for path in site_pages.copies()}
    own = {site_pages.page_of(path) for path in [*PAGES, "README.md"]}
    assert set(listed(navigation)) <= copies | own


def test_the_sections_are_those_of_the_list_of_pages(navigation):
    titles = [next(iter(entry)) for entry in navigation]
    assert titles == [
        "Waterfill",
        "Start here",
        "Tutorial",
        "How-to",
        "Reference",
        "Explanation",
        "Validation",
        "Papers",
        "Project",
    ]


def test_every_experiment_has_a_page(navigation):
    there = listed(navigation)
    experiments = [p for p in (ROOT / "papers").glob("*/*/scenario.toml")]
    for scenario in experiments:
        readme = scenario.parent.relative_to(ROOT) / "README.md"
        assert site_pages.page_of(str(readme)) in there


def test_items_groups_and_several_pages_of_one_item_are_read():
    text = """# Pages
- [before](scenario.toml): not in a section
## One
- [A b](reference/links.md): [c](reference/queues.md)
- [`d`](reference/fluid.md), [e](reference/traffic.md): two
Group, of two:
- [f](../bench/README.md)
- [file](scenario.schema.json): not a page
## Two
"""
    one, two = site_pages.sections(text)
    assert one.pages == [
        ("A b", "docs/reference/links.md"),
        ("d", "docs/reference/fluid.md"),
        ("E", "docs/reference/traffic.md"),
    ]
    assert [(group.title, group.pages) for group in one.groups] == [
        ("Group", [("F", "bench/README.md")])
    ]
    assert two.pages == []


@pytest.mark.parametrize(
    ("page", "link", "there"),
    [
        ("docs/howto/sweep.md", "../explanation/threads.md#when", "../explanation/threads.md#when"),
        ("docs/howto/sweep.md", "../../README.md", "../index.md"),
        ("docs/howto/sweep.md", "../README.md", "../pages.md"),
        ("docs/howto/sweep.md", "../scenario.schema.json", "../scenario.schema.json"),
        ("docs/howto/sweep.md", "../../Cargo.toml", "../repository/Cargo.toml.md"),
        ("docs/howto/sweep.md", "../../papers", "../repository/papers/README.md"),
        ("docs/reference/protocols/xcp.md", "../../../Makefile", "../../repository/Makefile.md"),
        ("README.md", "docs/howto/sweep.md", "howto/sweep.md"),
        ("bench/README.md", "../docs/images/fct.png", "../../images/fct.png"),
        ("bench/README.md", "ns3/README.md", "ns3/README.md"),
        ("README.md", "https://example.org/a", "https://example.org/a"),
        ("README.md", "#install", "#install"),
    ],
)
def test_links_lead_to_pages_of_the_site(page, link, there):
    assert site_pages.relink(f"a [b]({link}) c", page) == f"a [b]({there}) c"


def test_links_in_code_stay():
    text = "`[a](b.md)` [c](README.md)\n\n```\n[a](b.md)\n```\n"
    assert site_pages.relink(text, "README.md") == text.replace("README.md", "index.md")


def test_a_link_to_nothing_names_its_page():
    with pytest.raises(site_pages.LinkError, match=r"^README.md: no file for the link gone.md$"):
        site_pages.relink("[a](gone.md)", "README.md")


def test_a_file_becomes_a_page_with_its_text():
    text = site_pages.markdown_of("crates/waterfill-laws/src/protocols/window.rs")
    head, _, text = text.partition("\n---\n")
    assert head == "---\nsearch:\n  exclude: true"
    assert text.startswith("# window.rs\n\n`crates/waterfill-laws/src/protocols/window.rs`\n")
    assert "\n``````rust\n//! " in text
    assert site_pages.markdown_of("papers").count("\n- [") == len(
        list((ROOT / "papers").glob("*/*/README.md"))
    )


def elements(html: str) -> Counter[str]:
    return Counter(re.findall(r"<(ul|ol|li|table|tr|td|pre|h[1-6]|em|strong|a|code)\b", html))


@pytest.mark.parametrize("page", [*PAGES, *(p for p in site_pages.copies() if p.endswith(".md"))])
def test_the_site_shows_the_structure_that_a_forge_shows(page):
    text = site_pages.markdown_of(page)
    ours = markdown.markdown(
        site_pages.reindent(text), extensions=["tables", "pymdownx.superfences"]
    )
    theirs = MarkdownIt("commonmark").enable("table").render(text)
    assert elements(ours) == elements(theirs)


def test_lists_in_lists_and_code_in_them_are_indented_by_four():
    text = """Text
- a
  - b
    goes on
lazily

  ```
    - not an item
  ```

  f
- c

1. d
   more
2. e
   1994. is no item
"""
    assert (
        site_pages.reindent(text)
        == """Text

- a
    - b
        goes on
        lazily

    ```
      - not an item
    ```

    f

- c

1. d
    more
2. e
    1994. is no item
"""
    )
