"""Write the first version of a protocol: its file, its module line and its registry line.

    make new-protocol NAME=foo

The file compiles, passes what every protocol must pass, and has two tests: the router's passes, the
equation's fails and says what to do next. A name that cannot be used is one line, exit code 2, and
changes nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "tools" / "new_protocol.rs.in"
LAWS = Path("crates/waterfill-laws/src")
MODULES = LAWS / "protocols" / "mod.rs"
REGISTRY = LAWS / "registry.rs"

# Rust's keywords that match the pattern of names, the reserved ones included.
KEYWORDS = """
    abstract as async await become box break const continue crate do dyn else enum extern false
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self
    static struct super trait true try type typeof unsafe unsized use virtual where while yield
"""


class BadName(Exception):
    """A name that cannot be a protocol's; one sentence that says why."""


def check_name(name: str, root: Path = ROOT) -> None:
    """Raise BadName unless `name` can be the name of a new protocol."""
    if not re.fullmatch("[a-z][a-z0-9]*", name):
        raise BadName(
            f"NAME must be a lower-case letter and then lower-case letters or digits, such as foo, "
            f"got {name!r}"
        )
    if name in KEYWORDS.split():
        raise BadName(f"{name} is a keyword of Rust and cannot name a module: choose another name")
    protocols = root / LAWS / "protocols"
    taken = sorted([*protocols.rglob(f"{name}.rs"), *protocols.rglob(f"{name}/mod.rs")])
    if taken:
        raise BadName(f"{name} is taken by {taken[0].relative_to(root)}: choose another name")
    used = TEMPLATE.read_text(encoding="utf-8") + (root / REGISTRY).read_text(encoding="utf-8")
    if re.search(rf"\b{name.capitalize()}\b", used):
        raise BadName(f"the laws use {name.capitalize()} for something else: choose another name")


def create(name: str, root: Path = ROOT) -> list[Path]:
    """Write a new protocol; returns the files written, below `root`.

    Raises BadName, with nothing written, if the name cannot be used.
    """
    check_name(name, root)
    variant = name.capitalize()
    text = TEMPLATE.read_text(encoding="utf-8")
    file = LAWS / "protocols" / f"{name}.rs"
    modules = (root / MODULES).read_text(encoding="utf-8")
    registry = (root / REGISTRY).read_text(encoding="utf-8")
    written = {
        file: text.replace("@name@", name).replace("@Name@", variant),
        MODULES: _with_module(modules, name),
        REGISTRY: _with_line(registry, f"    {variant}: {name}::{variant};\n"),
    }
    for path, content in written.items():
        (root / path).write_text(content, encoding="utf-8")
    return list(written)


def _with_module(modules: str, name: str) -> str:
    """The list of modules with one more, in the order of names that rustfmt keeps."""
    *head, tail = re.split(r"^(?=pub mod )", modules.rstrip() + "\n", flags=re.MULTILINE)
    listed = [*head[1:], tail, f"pub mod {name};\n"]
    return head[0] + "".join(sorted(listed, key=lambda line: line.split()[2].rstrip(";")))


def _with_line(registry: str, line: str) -> str:
    """The registry with one more line at the end of its list, which ends the file."""
    head = registry.rstrip().removesuffix("}")
    return f"{head}{line}}}\n"


def main(arguments: list[str]) -> int:
    """Write the protocol named by the only argument; returns the exit code."""
    name = arguments[0] if arguments else ""
    try:
        written = create(name, ROOT)
    except BadName as error:
        print(f"new-protocol: {error}", file=sys.stderr)
        return 2
    print("wrote", *written, sep="\n  ")
    print(f"next: cargo test --package waterfill-laws {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
