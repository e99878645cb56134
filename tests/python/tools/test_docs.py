"""The protocols' pages: made from the files as they are, and complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from known import ROOT
from tools import docs
from waterfill.network import protocols
from waterfill.network.protocols import ParamInfo, ProtocolInfo
from waterfill.testbed import kernel

KNOWN = kernel.supported(protocols.load())

RUST = """//! Toy: one rate for all. It is small
//! and has a second line.
//!
//! More on it.
//!
//! # Law
//! - `eq1` x = [C] / N, with [`Router`], [`rate`](crate::units::Rate) and [the text](Source::x)
//!
//! ## A case
//! ```text
//! # not a heading, [`Router`]
//! ```
//! # Symbols
//! | paper | here | unit |
//! |---|---|---|
//! | x | `x[i]` | bit/s |
//! # Header
//! # Router
//! # Source
//! # Parameters
//! [`Params`].
//! # Readings and deviations
//! See [the paper](https://example.org/a_b).
//! # Validation
//! Tests below.
//! # References
//! A book.

use x;
//! not part of it
"""
TOY = ProtocolInfo(
    name="toy",
    kind="explicit",
    backends=("sim",),
    header_bytes=3,
    echo_bytes=2,
    params=(
        ParamInfo("x_max", "rate", 1e15, doc="Largest rate of [`Source`].", source="toy-1999 §1"),
        ParamInfo("t", "time", 0.4, doc="a | b"),
        ParamInfo("order", "choice", "one", ("one", "two"), source="here"),
        ParamInfo("average", "flag", True),
        ParamInfo("gain", "ratio", 0.5),
    ),
)
OTHER_READINGS = [
    ROOT / "docs/validation/law-readings.md",
    ROOT / "docs/validation/tcp-readings.md",
]


def page(rust: str = RUST, protocol: ProtocolInfo = TOY) -> str:
    return str(docs.page(protocol, rust, docs.LAWS / f"{protocol.name}.rs"))


def test_pages_are_current():
    assert docs.differences(docs.all_pages(KNOWN)) == [], "run `make docs`"


@pytest.mark.parametrize("name", KNOWN)
def test_every_protocol_has_the_fixed_headings_in_their_order(name):
    rust = (ROOT / docs.source_of(name)).read_text()
    docs.check_headings(docs.sections(docs.module_doc(rust)))


@pytest.mark.parametrize("name", KNOWN)
def test_every_protocol_lists_at_most_five_readings_and_links_the_others(name):
    rust = (ROOT / docs.source_of(name)).read_text()
    readings = docs.sections(docs.module_doc(rust))["Readings and deviations"]
    assert sum(line.startswith("- ") for line in readings) <= 5
    for other in OTHER_READINGS:
        linked = f"[Other readings](../../validation/{other.name}#{name})" in "\n".join(readings)
        assert linked == (f"\n## {name}\n" in other.read_text())


@pytest.mark.parametrize("name", KNOWN)
def test_every_page_ends_in_validation_and_lists_every_parameter(name):
    text = (docs.ROOT / docs.PAGES / f"{name}.md").read_text()
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings[-2:] == ["References", "Validation"]
    assert text.count("\n# ") == 1
    for param in KNOWN[name].params:
        assert f"| `{param.name}` |" in text


def test_the_index_names_every_page():
    text = (docs.ROOT / docs.PAGES / "README.md").read_text()
    for name in KNOWN:
        assert f"]({name}.md)" in text


def test_the_first_sentence_is_the_title():
    text = page()
    assert (
        "\n# Toy: one rate for all\n\nIt is small and has a second line.\n\nMore on it.\n" in text
    )


def test_headings_go_one_step_down_but_not_in_code():
    text = page()
    assert "\n## Law\n" in text
    assert "\n### A case\n" in text
    assert "\n# not a heading, [`Router`]\n" in text


def test_links_to_items_become_code_and_others_stay():
    text = page()
    assert "- `eq1` x = `C` / N, with `Router`, `rate` and the text\n" in text
    assert "| x | `x[i]` | bit/s |" in text
    assert "[the paper](https://example.org/a_b)" in text


def test_parameters_and_wire():
    text = page()
    assert "On the wire: 3 B in data, 2 B in acknowledgements." in text
    assert "| `x_max` | bit/s | 1 Pbit/s | Largest rate of `Source`. | toy-1999 §1 |" in text
    assert "| `t` | s | 400 ms | a \\| b | – |" in text
    assert "| `order` | `one` or `two` | `one` |  | here |" in text
    assert "| `average` | 1 | true |" in text
    assert "| `gain` | 1 | 0.5 |" in text


def test_validation_comes_last():
    text = page()
    assert text.index("## References") < text.index("## Validation")
    assert text.endswith("## Validation\n\nTests below.\n")
    assert "not part of it" not in text


def test_a_heading_of_its_own_stays_where_it_is():
    text = page(RUST.replace("//! # Source\n", "//! # Receiver\n//! Copies.\n//! # Source\n"))
    assert text.index("## Router") < text.index("## Receiver") < text.index("## Source")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("//! # Router\n", "", "toy.rs: no heading .*Router.*; needs"),
        ("//! # Law\n", "//! # Law\n//! # Law\n", "toy.rs: the heading Law occurs twice"),
        ("//! # Router\n//! # Source\n", "//! # Source\n//! # Router\n", "in the order Law"),
        (RUST[: RUST.index("//! # Law")], "", "no line above the first heading"),
    ],
)
def test_a_file_that_does_not_do_is_named(old, new, message):
    with pytest.raises(docs.PageError, match=message):
        page(RUST.replace(old, new))


@pytest.mark.parametrize("path", ["toy.rs", "toy/mod.rs", "tcp/toy.rs"])
def test_a_protocol_is_a_file_or_a_folder(tmp_path: Path, path):
    file = tmp_path / docs.LAWS / path
    file.parent.mkdir(parents=True)
    file.write_text(RUST)
    (file.parent / "kernel.rs").write_text("//! A part.\n")
    made = docs.pages({"toy": TOY}, tmp_path)
    assert list(made) == [docs.PAGES / "toy.md", docs.PAGES / "README.md"]
    assert f"[{path}](../../../{docs.LAWS / path})" in made[docs.PAGES / "toy.md"]


def test_a_protocol_without_a_file_is_named(tmp_path: Path):
    with pytest.raises(docs.PageError, match=r"must have one file .*, got none"):
        docs.pages({"toy": TOY}, tmp_path)


def test_pages_that_changed_or_are_left_over_are_found(tmp_path: Path):
    file = tmp_path / docs.LAWS / "toy.rs"
    file.parent.mkdir(parents=True)
    file.write_text(RUST)
    made = docs.pages({"toy": TOY}, tmp_path)
    assert docs.differences(made, tmp_path) == list(made)
    (tmp_path / docs.PAGES).mkdir(parents=True)
    for path, text in made.items():
        (tmp_path / path).write_text(text)
    assert docs.differences(made, tmp_path) == []
    (tmp_path / docs.PAGES / "toy.md").write_text("old")
    (tmp_path / docs.PAGES / "gone.md").write_text("")
    names = [path.name for path in docs.differences(made, tmp_path)]
    assert names == ["toy.md", "gone.md"]


# End-to-end laws of fabrics, which are no TCPs.
FABRIC = {"dcqcn", "swift", "theta_powertcp"}


def test_the_readmes_counts_of_protocols_are_the_registrys():
    explicit = [name for name, info in KNOWN.items() if info.kind == "explicit"]
    tcps = set(KNOWN) - set(explicit) - {"window", "scone", *FABRIC}
    text = (docs.ROOT / "README.md").read_text(encoding="utf-8")
    count = {16: "sixteen", 17: "seventeen", 18: "eighteen"}[len(explicit)]
    assert len(tcps) == 16, "change README.md's sixteen"
    assert text.count("sixteen TCPs") == 2
    assert f"Waterfill runs {count} such protocols" in text
    assert f"next to {count} explicit laws" in text
    assert "sixteen TCPs, DCQCN, Swift and θ-PowerTCP" in text
    assert f"16 TCPs and your own | {count} |" in text
