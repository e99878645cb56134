"""Generate the reference pages from the code: protocols, scenario keys, commands and claims.

docs/reference/protocols/<name>.md, one page per protocol, is made here from the Rust module docs;
tools/reference.py and tools/python_reference.py make the others. The dissector's table of laws is
made here too.

A page is the module doc of a protocol's file, its headings one level down, with the parameters and
the wire sizes that the core reports. It ends in *Validation*, so that the reader last sees how far
the law has been checked. Run by `make docs`. With `--check` it writes nothing and exits with 1 if a
page is not current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tools import assessments, paper_figures, python_reference, reference
from waterfill.cli import tables
from waterfill.contract.summary import KernelEntry
from waterfill.network import protocols
from waterfill.network.protocols import ParamInfo, ProtocolInfo
from waterfill.scenario.units import RATE, TIME, VOLUME
from waterfill.testbed import kernel

ROOT = Path(__file__).resolve().parent.parent
LAWS = Path("crates/waterfill-laws/src/protocols")
PAGES = Path("docs/reference/protocols")
DISSECTOR = Path("packaging/wireshark/waterfill.lua")
_LUA_FROM = "-- Made from the laws by tools/docs.py (make docs):\n"
_LUA_TO = "-- end of what is made\n"

# The headings of every protocol file, in this order; it may have others in between.
HEADINGS = (
    "Law",
    "Symbols",
    "Header",
    "Router",
    "Source",
    "Parameters",
    "Readings and deviations",
    "Validation",
    "References",
)
LAST = "Validation"

# Code spans first, so that nothing inside them is taken for a link; rustdoc's forms of a link to
# an item after that: [`Router`], [`text`](crate::path), [text](crate::path), [Router].
_INLINE = re.compile(
    r"\[(?P<code>`[^`\n]+`)\](?:\((?P<url>[^()\s]*)\)|\[[^\]\n]*\])?"
    r"|(?P<span>`[^`]*`)"
    r"|\[(?P<text>[^\[\]`]+)\]\((?:[a-z]+@)?[\w:!]+(?:\(\))?\)"
    r"|\[(?P<bare>[A-Za-z_]\w*(?:::\w+)*)\](?![(\[:])"
)


class PageError(Exception):
    """Error for a protocol's file from which no page can be made. The message names the file."""


def source_of(name: str, root: Path = ROOT) -> Path:
    """Return the path of a protocol's source file, relative to the root: `NAME.rs` or
    `NAME/mod.rs`.

    Raises PageError unless there is exactly one.
    """
    laws = root / LAWS
    found = sorted([*laws.rglob(f"{name}.rs"), *laws.rglob(f"{name}/mod.rs")])
    if len(found) != 1:
        number = "none" if not found else ", ".join(str(f.relative_to(laws)) for f in found)
        raise PageError(f"{name}: must have one file {name}.rs or {name}/mod.rs, got {number}")
    return found[0].relative_to(root)


def module_doc(rust: str) -> list[str]:
    """Return the lines of a Rust file's module doc, without the `//!` marks."""
    lines: list[str] = []
    for line in rust.splitlines():
        if line.startswith("//!"):
            lines.append(line[3:].removeprefix(" ").rstrip())
        elif lines and line.strip():
            break  # the first item
    return lines


def sections(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return the lines below each first-level heading, by heading text. The text above the first
    heading has the key "".

    Raises PageError when a heading occurs twice.
    """
    found: dict[str, list[str]] = {"": []}
    current = found[""]
    fenced = False
    for line in lines:
        fenced ^= line.startswith("```")
        if line.startswith("# ") and not fenced:
            title = line[2:].strip()
            if title in found:
                raise PageError(f"the heading {title} occurs twice")
            current = found[title] = []
        else:
            current.append(line)
    return found


def check_headings(found: Iterable[str]) -> None:
    """Raise PageError unless every heading of `HEADINGS` is present, in that order."""
    mine = [title for title in found if title in HEADINGS]
    missing = [title for title in HEADINGS if title not in mine]
    if missing:
        raise PageError(f"no heading {', '.join(missing)}; needs {', '.join(HEADINGS)}")
    if mine != list(HEADINGS):
        raise PageError(f"headings must be in the order {', '.join(HEADINGS)}, got {mine}")


def page(protocol: ProtocolInfo, rust: str, source: Path) -> str:
    """Return a protocol's page as Markdown. `source` is the protocol's file, relative to the root.

    Raises PageError when the module doc lacks a title or a heading.
    """
    try:
        parts = sections(module_doc(rust))
        check_headings(parts)
        title, lead = _title(parts.pop(""))
    except PageError as error:
        raise PageError(f"{source}: {error}") from None
    # The fixed order ends in References.
    parts[LAST] = parts.pop(LAST)
    out = [_made_from(source), f"# {title}", *([lead] if lead else []), _facts(protocol, source)]
    for heading, lines in parts.items():
        out.append(f"## {heading}")
        body = _body(lines)
        if body:
            out.append(body)
        if heading == "Header":
            out.append(_wire(protocol))
        if heading == "Parameters":
            out.append(_parameters(protocol))
    return "\n\n".join(out) + "\n"


def index(pages: Mapping[str, tuple[ProtocolInfo, str]]) -> str:
    """Return the index of all pages, from {name: (protocol, page title)}."""
    rows = [
        f"| [`{name}`]({name}.md) | {_cell(title)} | {protocol.kind} "
        f"| {', '.join(protocol.backends)} | {protocol.header_bytes} "
        f"| {'yes' if protocol.paced else 'no'} | `{protocol.recovery}` "
        f"| {f'`{protocol.window_validation}`' if protocol.window_validation else '–'} |"
        for name, (protocol, title) in pages.items()
    ]
    out = [
        _made_from(LAWS),
        "# Protocols",
        "One page per protocol: the law with its numbered equations, the paper's symbols, the "
        "header on the wire, and every parameter with its source. Then how ambiguities of the "
        "paper were read, and how the law has been validated.",
        "\n".join(
            [
                "| name | protocol | kind | runs on | header (B) | paced | recovery "
                "| unused window |",
                "|---|---|---|---|---:|---|---|---|",
                *rows,
            ]
        ),
        "On linux, a TCP runs where the host's kernel has it. "
        "Paced is said of the default parameters on sim; a flow's key `pacing` changes it. "
        "Recovery is the default [method of loss recovery](../recovery.md) on sim; a flow's key "
        "`recovery` changes it. Unused window is the default rule for a congestion window that "
        "the application [does not use](../applications.md#windows-that-are-not-used); a flow's "
        "key `window_validation` changes it.",
        "`waterfill protocols` prints the same lists, `waterfill compare S.toml` runs one scenario "
        "under several of them. The pages are made by `make docs` from the files in "
        f"[{LAWS}](../../../{LAWS}).",
    ]
    return "\n\n".join(out) + "\n"


def pages(known: Mapping[str, ProtocolInfo], root: Path = ROOT) -> dict[Path, str]:
    """Return all protocol pages and their index, by path relative to the root.

    Raises PageError for the first protocol whose file lacks something.
    """
    made: dict[Path, str] = {}
    titles: dict[str, tuple[ProtocolInfo, str]] = {}
    assessed = assessments.records(root)
    for name, protocol in known.items():
        source = source_of(name, root)
        rust = (root / source).read_text(encoding="utf-8")
        made[PAGES / f"{name}.md"] = page(protocol, rust, source)
        if name in assessed:
            made[PAGES / f"{name}.md"] += f"\n{assessments.section(assessed[name])}"
        titles[name] = (protocol, _title(sections(module_doc(rust))[""])[0])
    made[PAGES / "README.md"] = index(titles)
    return made


def dissector(known: Mapping[str, ProtocolInfo], lua: str) -> str:
    """Return the dissector's Lua text with the laws' current numbers, sizes and
    defaults filled in.
    """
    laws = {law.kernel["number"]: (law.name, law.kernel) for law in known.values() if law.kernel}

    def table(name: str, cell: Callable[[str, KernelEntry], object]) -> str:
        cells = (f"[{number}] = {cell(*laws[number])}" for number in sorted(laws))
        return f"local {name} = {{ {', '.join(cells)} }}"

    made = [
        table("LAWS", lambda name, _: f'"{name}"'),
        table("FORWARD_BYTES", lambda _, kernel: kernel["forward_bytes"]),
        table("ECHO_BYTES", lambda _, kernel: kernel["echo_bytes"]),
    ]
    for name in ("x_max", "t"):
        made.append(f'local DEFAULT_{name.upper()} = "{_number(known["maxnet"].param(name))}"')
    before, rest = lua.split(_LUA_FROM, 1)
    _, after = rest.split(_LUA_TO, 1)
    return before + _LUA_FROM + "\n".join(made) + "\n" + _LUA_TO + after


def _number(param: ParamInfo) -> str:
    return f"{param.default:.15g}".replace("e+", "e")


def all_pages(known: Mapping[str, ProtocolInfo]) -> dict[Path, str]:
    """Return every generated file, by path relative to the root."""
    lua = (ROOT / DISSECTOR).read_text(encoding="utf-8")
    made = {**pages(known), **reference.pages(), **paper_figures.pages()}
    made |= python_reference.pages()
    text = (ROOT / assessments.PAGE).read_text(encoding="utf-8")
    made[assessments.PAGE] = assessments.page(assessments.records(), text)
    return {**made, DISSECTOR: dissector(known, lua)}


def differences(made: Mapping[Path, str], root: Path = ROOT) -> list[Path]:
    """Return the paths of pages that are missing, out of date or left over from a
    removed protocol.
    """
    changed = [path for path, text in made.items() if _text(root / path) != text]
    there = sorted((root / PAGES).glob("*.md"))
    return changed + [p.relative_to(root) for p in there if p.relative_to(root) not in made]


def main(arguments: list[str]) -> int:
    """Write the outdated pages, or only list them with `--check`. Return the exit code."""
    try:
        made = all_pages(kernel.supported(protocols.load()))
    except PageError as error:
        print(error, file=sys.stderr)
        return 1
    changed = differences(made)
    if "--check" in arguments:
        for path in changed:
            print(f"{path}: not current: run `make docs`", file=sys.stderr)
        return 1 if changed else 0
    (ROOT / PAGES).mkdir(parents=True, exist_ok=True)
    for path in changed:
        if path in made:
            (ROOT / path).write_text(made[path], encoding="utf-8")
        else:
            (ROOT / path).unlink()
        print(path)
    return 0


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _made_from(source: Path) -> str:
    return f"<!-- Made from {source} by tools/docs.py (make docs). Change it there. -->"


def _title(lines: list[str]) -> tuple[str, str]:
    """Return the first sentence of the lines above the first heading, and the rest."""
    text = "\n".join(lines).strip()
    if not text:
        raise PageError("no line above the first heading describes the protocol")
    paragraph, _, rest = text.partition("\n\n")
    title, stop, more = " ".join(paragraph.split()).partition(". ")
    lead = f"{more}\n\n{rest}" if stop else rest
    return plain_links(title.removesuffix(".")), plain_links(lead).strip()


def _body(lines: list[str]) -> str:
    """Return a section's lines with each heading one level lower and item links as code. Code
    blocks stay unchanged.
    """
    out: list[str] = []
    prose: list[str] = []
    fenced = False
    for line in lines:
        if line.startswith("```"):
            if not fenced:
                out.append(plain_links("\n".join(prose)))
                prose.clear()
            fenced = not fenced
            out.append(line)
        elif fenced:
            out.append(line)
        else:
            prose.append(f"#{line}" if re.match(r"#{2,5} ", line) else line)
    out.append(plain_links("\n".join(prose)))
    return "\n".join(out).strip("\n")


def plain_links(text: str) -> str:
    """Turn links to Rust items into plain code, and keep links to addresses."""

    def turn(match: re.Match[str]) -> str:
        if match["code"] is not None:
            url = match["url"] or ""
            return match[0] if "/" in url or url.startswith("#") else match["code"]
        if match["span"] is not None:
            return match["span"]
        if match["text"] is not None:
            return match["text"]
        return f"`{match['bare']}`"

    return _INLINE.sub(turn, text)


def _facts(protocol: ProtocolInfo, source: Path) -> str:
    # The docs speak of tests "below", which is where the file goes on.
    link = f"[{source.relative_to(LAWS)}](../../../{source})"
    return (
        f"`{protocol.name}` in scenarios and on the command line · {protocol.kind} · runs on "
        f"{', '.join(protocol.backends)} · the head of {link}, to which *below* refers"
    )


def _wire(protocol: ProtocolInfo) -> str:
    if protocol.header_bytes == 0 and protocol.echo_bytes == 0:
        return "On the wire: nothing."
    return (
        f"On the wire: {protocol.header_bytes} B in data, "
        f"{protocol.echo_bytes} B in acknowledgements."
    )


def _parameters(protocol: ProtocolInfo) -> str:
    if not protocol.params:
        return "None to set."
    head, rows = ["name", "unit", "default", "meaning", "source"], []
    for param in protocol.params:
        texts = [_cell(plain_links(param.doc)), _cell(plain_links(param.source)) or "–"]
        rows.append([f"`{param.name}`", _unit(param), _default(param), *texts])
    if protocol.kernel is not None:
        head.insert(3, "in the kernel")
        for row, param in zip(rows, protocol.params, strict=True):
            row.insert(3, _in_kernel(param))
    table = [head, ["---"] * len(head), *rows]
    return f"Set as `params.{protocol.name}.NAME`, in a scenario or with `--set`.\n\n" + "\n".join(
        f"| {' | '.join(row)} |" if row[0] != "---" else f"|{'|'.join(row)}|" for row in table
    )


def _in_kernel(param: ParamInfo) -> str:
    """Return the parameter values that the C code supports: a short list, `all`, or
    `–` for none.
    """
    if param.kernel is None:
        return "–"
    return (param.kernel["supported"] or "all").removeprefix("a value from ")


def _unit(param: ParamInfo) -> str:
    if param.choices:
        return " or ".join(f"`{choice}`" for choice in param.choices)
    return tables.UNITS.get(param.unit, param.unit) or "1"


def _default(param: ParamInfo) -> str:
    """Return a parameter's default as a scenario would write it, or `–` without a default."""
    value = param.default
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"`{value}`"
    quantities = {"rate": RATE, "time": TIME, "volume": VOLUME}
    return quantities[param.unit].format(value) if param.unit in quantities else f"{value:.15g}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
