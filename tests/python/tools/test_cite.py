"""Citations: one title and one version in all places."""

from __future__ import annotations

import re

from known import ROOT


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_record_and_the_page_have_one_title():
    record = re.search(r'^title: "(.+)"$', text("CITATION.cff"), re.MULTILINE)
    page = re.search(r"^  title   = \{(.+)\},$", text("docs/howto/cite.md"), re.MULTILINE)
    assert record is not None
    assert page is not None
    assert record[1] == page[1]


def test_the_record_has_the_version_of_the_package():
    record = re.search(r"^version: (\S+)$", text("CITATION.cff"), re.MULTILINE)
    package = re.search(r'^version = "(\S+)"$', text("pyproject.toml"), re.MULTILINE)
    assert record is not None
    assert package is not None
    assert record[1] == package[1]
