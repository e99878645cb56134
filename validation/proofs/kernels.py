"""Proofs of every function in a law's header, over the ranges of its structures.

Each function of `law.h`'s interface is executed on structures whose fields have any values in their
ranges. Proved are: no operation leaves its type, no shift exceeds its width, no divisor is 0, no
index leaves its table, what the shared functions require holds, and the structures are in their
ranges afterwards.
"""

from __future__ import annotations

from typing import Any

import z3

from validation.proofs import contracts, ranges
from validation.proofs.c_source import Node, Type, array_of, type_of, unit
from validation.proofs.integers import Integers, Number
from validation.proofs.machine import Machine, MemoryPlace, Pointer

# Structures whose ranges must hold afterwards, too.
KEPT = ("law_link", "law_cpu", "law_source", "law_receiver", "host_pace", "cohabit_link")
COMMON: dict[str, dict[str, ranges.Range]] = {
    "law_packet": {"bytes": (0, (1 << 32) - 1), "syn": ranges.SWITCH},
    "law_tcp": {
        "now_us": ranges.TIME,
        "packet": (1, 1 << 16),
        "payload": (1, 1 << 16),
        "srtt_us": (0, 1 << 31),
        "base_rtt_us": (0, 1 << 31),
        "acked": (0, 1 << 30),
    },
    "host_send": {"window": (0, 1 << 30)},
}
BYTES = 16
# Functions that are also called on a structure of zeros, and which.
STARTS = {"law_link_set": "law_link", "law_source_init": "law_source"}


class ProofRun:
    """Proof run of one function of a law, on structures with any values in their ranges.

    With `zeroed`, the structure that the function starts has zeros instead.
    """

    def __init__(
        self, law: ranges.ProofLaw, function: str, zeroed: bool = False, each: int | None = None
    ) -> None:
        self.law = law
        self.function = function
        self.zeroed = STARTS[function] if zeroed else ""
        self.domain = Integers(wraps=law.wraps, cuts=law.cuts, assumed=law.assumed)
        self.machine = Machine(unit(law.header), self.domain, contracts.CONTRACTS)
        self.machine.assigned = self.domain.assigned
        self.machine.arrays = law.arrays
        self.machine.any_value = lambda kind: self.domain.variable("any", kind.least, kind.most)
        self.each = each
        self.done = False
        self.structures: list[tuple[str, MemoryPlace]] = []

    def run(self) -> Integers:
        """Execute the function, and then prove that the structures are in their ranges."""
        node = self.machine.unit.functions[self.function]
        parameters = [part for part in node["inner"] if part["kind"] == "ParmVarDecl"]
        arguments = [self._argument(parameter) for parameter in parameters]
        self.machine.call(self.function, arguments)
        self.done = True
        for name, place in self.structures:
            if name in KEPT:
                self._check(name, place)
        self.domain.agree(self.machine.live.memory.values())
        return self.domain

    def _argument(self, parameter: Node) -> Any:
        kind, name = type_of(parameter), parameter["name"]
        if isinstance(kind, Type):
            low, high = self.law.arguments.get((self.function, name), (kind.least, kind.most))
            if (self.function, name) in self.law.each and self.each is not None:
                low = high = self.each
            return self.domain.variable(name, low, high)
        place = (name,)
        target = kind.replace("const ", "").removesuffix("*").strip()
        if place in self.law.arrays:
            return Pointer(place)
        if target.startswith("struct "):
            structure = target.removeprefix("struct ")
            if structure == self.zeroed:
                self.machine.zero(place, target)
            else:
                self._structure(structure, target, place, "")
                self._relate(structure, place)
            self.structures.append((structure, place))
        else:
            width = 8 if "char" in target or "__u8" in target else 64
            for index in range(BYTES if width == 8 else 4):
                number = self.domain.variable(f"{name}{index}", 0, (1 << width) - 1)
                self.machine.store((*place, index), number)
            if width == 8:  # *value
                self.machine.store(place, self.machine.load((*place, 0), Type(8, False)))
        return Pointer(place)

    def _range(self, structure: str, name: str, kind: Type) -> ranges.Range:
        entered = self.law.entered.get((self.function, f"{structure}.{name}"))
        if entered and not self.done:
            return entered
        for found in (self.law.structures, COMMON):
            if name in found.get(structure, {}):
                return found[structure][name]
        return kind.least, kind.most

    def _structure(self, structure: str, record: str, place: MemoryPlace, prefix: str) -> None:
        for name, kind in self.machine.unit.records[record]:
            if isinstance(kind, Type):
                low, high = self._range(structure, prefix + name, kind)
                number = ranges.setup(
                    self.domain, f"{structure}.{prefix}{name}", low, high, self.law
                )
                self.machine.store((*place, name), number)
            elif array := array_of(kind):
                element, count = array
                assert isinstance(element, Type)
                low, high = self._range(structure, prefix + name, element)
                for index in range(count):
                    number = self.domain.variable(f"{name}{index}", low, high)
                    self.machine.store((*place, name, index), number)
            else:
                self._structure(structure, kind, (*place, name), f"{prefix}{name}.")

    def _fields(self, structure: str, place: MemoryPlace) -> dict[str, Number]:
        memory = self.machine.live.memory
        size = len(place)
        return {
            # An array's elements share its ranges.
            ".".join(map(str, found[size:])): value
            for found, value in memory.items()
            if found[:size] == place and len(found) > size
        }

    def _relate(self, structure: str, place: MemoryPlace) -> None:
        if structure in self.law.relations:
            fields = self._fields(structure, place)
            formulas = self.law.relations[structure](fields)
            parts = [number for number in fields.values() if number.constant is None]
            holder = Number(0, 0, 0)
            holder.facts, holder.parents = formulas, tuple(parts)
            for number in parts:
                number.parents = (*number.parents, holder)

    def _check(self, structure: str, place: MemoryPlace) -> None:
        fields = self._fields(structure, place)
        domain = self.domain
        for name, number in fields.items():
            name = name.rstrip("0123456789").removesuffix(".") if "." in name else name
            full = f"{structure}.{name}"
            record_type = Type(64, False)
            low, high = self._range(structure, name, record_type)
            if full in self.law.factors:
                claim: Any = contracts.is_factor(number, self.law.factors[full])
                domain.require(f"{full} is a factor", False, claim, [number], {})
            elif name in self.law.structures.get(structure, {}):
                now = domain.interval(number)
                claim = z3.And(low <= number.term, number.term <= high)
                easy = now.low >= low and now.high <= high
                domain.require(f"{full} in [{low}, {high}]", easy, claim, [number], {})
        if structure in self.law.relations:
            for formula in self.law.relations[structure](fields):
                roots = [number for number in fields.values() if number.constant is None]
                domain.require(f"{structure}: {formula}", False, formula, roots, {})


def functions(law: ranges.ProofLaw) -> list[str]:
    """Return the interface functions that a law defines."""
    found = unit(law.header).functions
    if law.entries:
        return list(law.entries)
    names = [name for name in found if name.startswith(("law_", "host_"))]
    helpers = {"law_read_u24", "law_write_u24", "law_read_u16", "law_write_u16"}
    return [name for name in names if name not in helpers | law.skip]


def prove(name: str, function: str, zeroed: bool = False) -> Integers:
    """Prove one function of a law, separately for each value of an argument in the law's `each`."""
    law = ranges.LAWS[name]
    counts = [high for (of, _), high in law.each.items() if of == function]
    domain = ProofRun(law, function, zeroed, 0 if counts else None).run()
    for value in range(1, counts[0] + 1 if counts else 1):
        domain.obligations += ProofRun(law, function, zeroed, value).run().obligations
    return domain
