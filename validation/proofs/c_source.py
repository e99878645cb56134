"""Syntax trees of the laws' C headers, parsed by clang, with tables, enumerations and
structures.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

KERNEL = Path(__file__).resolve().parents[2] / "crates" / "waterfill-laws" / "kernel"

Node = dict[str, Any]


class Type(NamedTuple):
    """An integer type of C."""

    width: int
    signed: bool

    @property
    def least(self) -> int:
        """Smallest value of the type."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def most(self) -> int:
        """Largest value of the type."""
        return (1 << (self.width - self.signed)) - 1


INT = Type(32, True)
U32 = Type(32, False)
U64 = Type(64, False)
_TYPES = {
    "int": INT,
    "unsigned int": U32,
    "long": Type(64, True),
    "long long": Type(64, True),
    "unsigned long": U64,
    "unsigned long long": U64,
    "unsigned char": Type(8, False),
    "unsigned short": Type(16, False),
    "_Bool": Type(8, False),
    # As elements of arrays, whose names clang leaves as they are.
    "__u32": U32,
    "__u64": U64,
}


def type_of(node: Node) -> Type | str:
    """Return the integer type of a syntax node, or the name of any other type."""
    described = node["type"]
    name = str(described.get("desugaredQualType", described["qualType"]))
    name = name.removeprefix("const ").removeprefix("volatile ").strip()
    if name.startswith("enum "):
        return U32
    return _TYPES.get(name, name)


def array_of(kind: Type | str) -> tuple[Type | str, int] | None:
    """Return an array's element type and length, or None for other types."""
    if isinstance(kind, Type) or not kind.endswith("]"):
        return None
    start = kind.index("[")
    end = kind.index("]")
    element = kind[:start].strip() + kind[end + 1 :]
    return _TYPES.get(element, element), int(kind[start + 1 : end])


@dataclass
class Unit:
    """A parsed translation unit: functions, constants, tables and structures."""

    functions: dict[str, Node] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)  # of enumerations
    tables: dict[str, list[int]] = field(default_factory=dict)
    records: dict[str, list[tuple[str, Type | str]]] = field(default_factory=dict)


def clang() -> str | None:
    """Return the path of clang, or None if this host has none."""
    for name in ("clang", *(f"clang-{version}" for version in range(22, 13, -1))):
        if found := shutil.which(name):
            return found
    return None


def digest() -> str:
    """Return a hash of all headers, under which proof results are kept."""
    total = hashlib.sha256()
    for path in sorted(KERNEL.glob("*.h")):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


@functools.cache
def unit(*headers: str, defines: tuple[str, ...] = ()) -> Unit:
    """Parse headers of `crates/waterfill-laws/kernel` as one translation unit. Needs clang."""
    compiler = clang()
    if compiler is None:
        raise RuntimeError("needs clang, for the syntax tree of the C headers")
    text = '#include "shim.h"\n' + "".join(f'#include "{name}"\n' for name in headers)
    command = [compiler, "-x", "c", "-std=c11", f"-I{KERNEL}", *(f"-D{name}" for name in defines)]
    command += ["-fsyntax-only", "-Xclang", "-ast-dump=json", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    found = Unit()
    for node in json.loads(done.stdout)["inner"]:
        _declare(found, node)
    return found


def _declare(found: Unit, node: Node) -> None:
    inner = node.get("inner", [])
    if node["kind"] == "FunctionDecl" and inner and inner[-1]["kind"] != "ParmVarDecl":
        if any(part["kind"] == "CompoundStmt" for part in inner):
            found.functions[node["name"]] = node
    elif node["kind"] == "EnumDecl":
        value = -1
        for constant in inner:
            value = _constant(constant["inner"][0]) if constant.get("inner") else value + 1
            found.constants[constant["name"]] = value
    elif node["kind"] == "RecordDecl" and "name" in node and inner:
        fields = [(part["name"], type_of(part)) for part in inner if part["kind"] == "FieldDecl"]
        found.records[f"struct {node['name']}"] = fields
    elif node["kind"] == "VarDecl" and inner and inner[0]["kind"] == "InitListExpr":
        parts = inner[0].get("inner", [])
        if all(_is_number(part) for part in parts):
            found.tables[node["name"]] = [_constant(part) for part in parts]


def _is_number(node: Node) -> bool:
    while node["kind"] in ("ImplicitCastExpr", "ConstantExpr", "ParenExpr"):
        node = node["inner"][0]
    return bool(node["kind"] == "IntegerLiteral")


def _constant(node: Node) -> int:
    if "value" in node:
        return int(node["value"])
    return _constant(node["inner"][0])


_INFIX = ("BinaryOperator", "CompoundAssignOperator")


def show(node: Node) -> str:
    """Return an expression as C source, without implicit casts."""
    kind, inner = node.get("kind", ""), node.get("inner", [])
    if kind in _INFIX:
        return f"{show(inner[0])} {node['opcode']} {show(inner[1])}"
    if kind == "UnaryOperator":
        return f"{node['opcode']}{show(inner[0])}"
    if kind == "ParenExpr":
        return f"({show(inner[0])})"
    if kind == "CStyleCastExpr":
        return f"({node['type']['qualType']}){show(inner[0])}"
    if kind == "DeclRefExpr":
        return str(node["referencedDecl"]["name"])
    if kind == "MemberExpr":
        return show(inner[0]) + ("->" if node["isArrow"] else ".") + str(node["name"])
    if kind == "IntegerLiteral":
        return str(node["value"])
    if kind == "ArraySubscriptExpr":
        return f"{show(inner[0])}[{show(inner[1])}]"
    if kind == "CallExpr":
        return f"{show(inner[0])}({', '.join(show(part) for part in inner[1:])})"
    if kind == "ConditionalOperator":
        return f"{show(inner[0])} ? {show(inner[1])} : {show(inner[2])}"
    return show(inner[0]) if inner else kind
