"""Write the first version of a protocol: its file, module line and registry line.

    make new-protocol NAME=foo [KERNEL=1]

The file compiles, passes what every protocol must pass, and has two tests: the router's passes, the
equation's fails and says what to do next. With KERNEL=1 the protocol also has its kernel form: the
law in C, its number, its entry in the daemon, and passing tests that both arithmetics agree. A name
that cannot be used is one line, exit code 2, and changes nothing.
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
CAPTURE = LAWS / "capture.rs"
KERNEL = Path("crates/waterfill-laws/kernel")
NUMBERS = KERNEL / "law.h"
DAEMON = Path("crates/waterfill-linux/src/daemon/kernel/laws.rs")

DAEMON_ENTRY = """\
    LoadableLaw {
        name: "@name@",
        host: embedded!("host_@name@"),
        router: embedded!("router_@name@"),
        link: &[signal("rate_bps", "rate", SignalUnit::BitsPerSecond, parts_of::<10>), arrival()],
        source: &[signal("rate_received_bps", "received", SignalUnit::BitsPerSecond, whole)],
        echoed: signal("rate_bps", "rate", SignalUnit::BitsPerSecond, whole),
        words: words("a rate", "the rate does not fall"),
    },
"""

# Rust's keywords that match the pattern of names, the reserved ones included.
KEYWORDS = """
    abstract as async await become box break const continue crate do dyn else enum extern false
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self
    static struct super trait true try type typeof unsafe unsized use virtual where while yield
"""


class BadName(Exception):
    """Error for a name that cannot be used for a protocol. The message gives the reason in one
    sentence.
    """


def check_name(name: str, root: Path = ROOT) -> None:
    """Raise BadName if `name` cannot be used for a new protocol."""
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
    if (root / KERNEL / f"{name}.h").exists():
        raise BadName(f"{name} is taken by {KERNEL / name}.h: choose another name")
    used = TEMPLATE.read_text(encoding="utf-8") + (root / REGISTRY).read_text(encoding="utf-8")
    if re.search(rf"\b{name.capitalize()}\b", used):
        raise BadName(f"the laws use {name.capitalize()} for something else: choose another name")


def create(name: str, root: Path = ROOT, *, kernel: bool = False) -> list[Path]:
    """Write the files of a new protocol and return their paths relative to `root`. `kernel` adds
    the C version.

    Raises BadName, with nothing written, if the name cannot be used.
    """
    check_name(name, root)
    variant = name.capitalize()

    def read(path: Path) -> str:
        return (root / path).read_text(encoding="utf-8")

    form = ", in kernel" if kernel else ""
    written = {
        LAWS / "protocols" / f"{name}.rs": _filled(".rs.in", name, kernel=kernel),
        MODULES: _with_module(read(MODULES), name),
        REGISTRY: _with_line(read(REGISTRY), f"    {variant}: {name}::{variant}{form};\n"),
    }
    if kernel:
        fixed_point = LAWS / "protocols" / name / "fixed_point.rs"
        written |= {
            fixed_point: _filled("_fixed_point.rs.in", name, kernel=True),
            KERNEL / f"{name}.h": _filled(".h.in", name, kernel=True),
            KERNEL / f"{name}.c": _filled(".c.in", name, kernel=True),
            NUMBERS: _with_number(read(NUMBERS), name),
            CAPTURE: _with_values(read(CAPTURE), variant),
            DAEMON: _with_entry(read(DAEMON), name),
        }
    for path, content in written.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    return list(written)


def _filled(template: str, name: str, *, kernel: bool) -> str:
    """Return a template with the name filled in and with only the marked lines of the chosen
    variant.
    """
    text = (ROOT / "tools" / f"new_protocol{template}").read_text(encoding="utf-8")
    kept, left_out = ("@kernel@", "@real@") if kernel else ("@real@", "@kernel@")
    lines = [line for line in text.splitlines() if not line.startswith(left_out)]
    text = "".join(f"{line.removeprefix(kept)}\n" for line in lines)
    for written, form in (
        ("@name@", name),
        ("@Name@", name.capitalize()),
        ("@NAME@", name.upper()),
        ("@imports@", ", ".join(sorted(["Header", "Params", name.capitalize()]))),
    ):
        text = text.replace(written, form)
    return text


def _with_number(header: str, name: str) -> str:
    """Return the C header of law numbers with the next number added for the law `name`."""
    numbers = re.findall(r"^\tWATERFILL_\w+ = (\d+),\n", header, flags=re.MULTILINE)
    last = f" = {numbers[-1]},\n"
    return header.replace(last, f"{last}\tWATERFILL_{name.upper()} = {int(numbers[-1]) + 1},\n", 1)


def _with_values(capture: str, variant: str) -> str:
    """Return the source of packet captures with match arms for the new law's header and echo."""
    rest = "            _ => [0; VALUE_MAX],\n        }\n    }\n\n    /// "
    requests, headers, echoes, after = capture.split(rest)
    line = "            Any{}::{variant}({}) => {}.value(),\n"
    header = line.format("Header", "header", "header", variant=variant)
    echo = line.format("Echo", "echo", "echo", variant=variant)
    return f"{requests}{rest}{headers}{header}{rest}{echoes}{echo}{rest}{after}"


def _with_entry(laws: str, name: str) -> str:
    """Return the daemon's table of laws with an entry for the new law."""
    before, after = laws.split("];\n\n/// Returns the law ")
    entry = DAEMON_ENTRY.replace("@name@", name)
    return f"{before}{entry}];\n\n/// Returns the law {after}"


def _with_module(modules: str, name: str) -> str:
    """Return the list of modules with the new module added, in rustfmt's order."""
    *head, tail = re.split(r"^(?=pub mod )", modules.rstrip() + "\n", flags=re.MULTILINE)
    listed = [*head[1:], tail, f"pub mod {name};\n"]
    return head[0] + "".join(sorted(listed, key=lambda line: line.split()[2].rstrip(";")))


def _with_line(registry: str, line: str) -> str:
    """Return the registry with one line added at the end of its list."""
    head = registry.rstrip().removesuffix("}")
    return f"{head}{line}}}\n"


def main(arguments: list[str]) -> int:
    """Write the protocol named by the first argument and return the exit code."""
    name, kernel, *_ = [*arguments, "", ""]
    try:
        written = create(name, ROOT, kernel=kernel == "1")
    except BadName as error:
        print(f"new-protocol: {error}", file=sys.stderr)
        return 2
    print("wrote", *written, sep="\n  ")
    print(f"next: cargo test --package waterfill-laws {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
