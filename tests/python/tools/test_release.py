"""A release: one version and day in all places, and the repository's address from one variable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rtoml
from mkdocs.config.defaults import MkDocsConfig

from known import ROOT
from tools import release, site_pages

FILES = ("pyproject.toml", "Cargo.toml", "CITATION.cff", "CHANGELOG.md")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree in which version 9.9.9 is ready for its tag."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9.9.9"\n')
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "9.9.9"\n')
    (tmp_path / "CITATION.cff").write_text("version: 9.9.9\ndate-released: 2027-01-02\n")
    (tmp_path / "CHANGELOG.md").write_text("## 9.9.9 (2 January 2027)\n\n- new\n")
    return tmp_path


def test_a_consistent_release_has_no_problem(tree: Path):
    assert release.problems("v9.9.9", tree) == []


@pytest.mark.parametrize("path", FILES)
def test_each_place_that_differs_is_named(tree: Path, path: str):
    text = (tree / path).read_text()
    (tree / path).write_text(text.replace("9.9.9", "9.9.8"))
    (found,) = release.problems("v9.9.9", tree)
    assert found.startswith(path)


def test_changes_left_under_unreleased_are_named(tree: Path):
    path = tree / "CHANGELOG.md"
    path.write_text("## Unreleased\n\n- later\n\n" + path.read_text())
    assert release.problems("v9.9.9", tree) == [
        "CHANGELOG.md has changes under Unreleased; move them to 9.9.9"
    ]


def test_another_day_is_named(tree: Path):
    (tree / "CITATION.cff").write_text("version: 9.9.9\ndate-released: 2027-01-03\n")
    (found,) = release.problems("v9.9.9", tree)
    assert found.endswith("set date-released: 2027-01-02")


def test_the_last_release_has_the_day_of_the_changelog():
    version = re.search(r'^version = "(\S+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    found = release.problems(f"v{version[1]}")
    assert [one for one in found if "Unreleased" not in one] == []


def test_the_address_is_written_once():
    project, record = ((ROOT / name).read_text() for name in ("pyproject.toml", "CITATION.cff"))
    for owner in ("one", "two"):
        project, record = release.with_address(project, record, f"https://github.com/{owner}/w")
    urls = rtoml.loads(project)["project"]["urls"]
    assert urls["Documentation"] == "https://two.github.io/w/"
    assert urls["Repository"] == "https://github.com/two/w"
    assert re.findall(r"^repository-code: (.*)$", record, re.M) == ["https://github.com/two/w"]


@pytest.mark.parametrize(
    ("given", "repository", "site"),
    [
        ("", None, None),
        ("https://github.com/One/w.git", "https://github.com/One/w", "https://one.github.io/w/"),
        ("https://forge.example/one/w/", "https://forge.example/one/w", None),
    ],
)
def test_the_site_states_the_address(
    given: str, repository: str | None, site: str | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(release.VARIABLE, given)
    config = site_pages.on_config(MkDocsConfig())
    assert (config.repo_url, config.site_url) == (repository, site)


def test_an_address_of_another_form_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(release.VARIABLE, "git@github.com:one/w")
    with pytest.raises(ValueError, match=r"set https://HOST/OWNER/NAME"):
        release.repository()
