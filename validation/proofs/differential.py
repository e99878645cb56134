"""Compare the proved syntax tree, executed on plain numbers, with the same headers compiled.

Every function whose arguments and result are numbers gets random and edge inputs. Inputs for which
C defines no result (division by 0, a shift beyond the width) are left out.
"""

from __future__ import annotations

import ctypes
import random
import subprocess
import tempfile
from pathlib import Path

from validation.proofs import ranges
from validation.proofs.bits import BitVectors
from validation.proofs.c_source import KERNEL, Node, Type, Unit, clang, type_of, unit
from validation.proofs.machine import Machine

HEADERS = ["scone.h", *(law.header for law in ranges.LAWS.values())]


def _numeric(functions: dict[str, Node]) -> dict[str, tuple[list[tuple[str, Type]], bool]]:
    """Return, by name, the parameters of each function on integers alone, with True for a signed
    result.
    """
    found = {}
    for name, node in functions.items():
        parts = [part for part in node["inner"] if part["kind"] == "ParmVarDecl"]
        kinds = [(part["name"], type_of(part)) for part in parts]
        result = node["type"]["qualType"].split("(")[0].strip()
        if parts and result in ("__u32", "__u64", "__s64", "int"):
            numbers = [(one, kind) for one, kind in kinds if isinstance(kind, Type)]
            if len(numbers) == len(kinds):
                found[name] = (numbers, result in ("__s64", "int"))
    return found


def _compile(header: str, names: list[str], counts: list[int], folder: Path) -> ctypes.CDLL:
    lines = ['#include "shim.h"', f'#include "{header}"']
    for name, count in zip(names, counts, strict=True):
        arguments = ", ".join(f"a[{index}]" for index in range(count))
        lines.append(
            f"uint64_t proved_{name}(const uint64_t *a) {{ return (uint64_t){name}({arguments}); }}"
        )
    source = folder / f"{header}.c"
    source.write_text("\n".join(lines) + "\n")
    library = folder / f"{header}.so"
    compiler = clang()
    assert compiler is not None
    command = [
        compiler,
        "-std=c11",
        "-O2",
        "-fPIC",
        "-shared",
        f"-I{KERNEL}",
        str(source),
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def _input(chance: random.Random, name: str, kind: Type) -> int:
    if name == "bits":  # a loop takes as many steps
        return chance.randrange(63)
    width = chance.randrange(kind.width - kind.signed + 1)
    edge = chance.choice([0, 1, -1])
    value = (1 << width) + edge if chance.random() < 0.4 else chance.getrandbits(max(1, width))
    if kind.signed and chance.random() < 0.5:
        value = -value
    return max(kind.least, min(kind.most, value))


def compare(header: str, count: int, seed: int = 1) -> tuple[int, list[str]]:
    """Compare interpreted and compiled results of a header's integer functions, on up to `count`
    inputs each. Return the number of runs and the differences.
    """
    parsed: Unit = unit(header)
    functions = _numeric(parsed.functions)
    chance = random.Random(f"{seed} {header}")
    done, differences = 0, []
    with tempfile.TemporaryDirectory(prefix="waterfill-proofs-") as folder:
        counts = [len(parameters) for parameters, _ in functions.values()]
        library = _compile(header, list(functions), counts, Path(folder))
        for name, (parameters, _) in functions.items():
            compiled = getattr(library, f"proved_{name}")
            compiled.restype = ctypes.c_uint64
            for _ in range(count):
                values = [_input(chance, one, kind) for one, kind in parameters]
                try:
                    ours = Machine(parsed, BitVectors()).call(name, list(values))
                except (ArithmeticError, IndexError):
                    continue
                words = (ctypes.c_uint64 * len(values))(*(v & (1 << 64) - 1 for v in values))
                theirs = int(compiled(words))
                done += 1
                if theirs != int(ours) & (1 << 64) - 1:
                    differences.append(f"{name}{tuple(values)}: {theirs}, not {ours}")
    return done, differences
