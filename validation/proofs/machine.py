"""Interpreter for functions of clang's syntax tree, over an interchangeable domain of numbers.

Both sides of a condition that is not known are executed and joined. Loops must end after a known
number of iterations. Memory is a table from places to values; a place is a tuple: a variable or an
object, then fields and indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from validation.proofs.c_source import INT, Node, Type, Unit, array_of, show, type_of

MemoryPlace = tuple[Any, ...]
Value = Any


@dataclass(frozen=True)
class Pointer:
    """Address of a place in memory, with an offset in elements."""

    place: MemoryPlace
    offset: int = 0


@dataclass
class State:
    """A reachable state: memory, path conditions, and the facts that a number domain derived from
    these conditions.
    """

    memory: dict[MemoryPlace, Value] = field(default_factory=dict)
    guard: tuple[Any, ...] = ()
    known: dict[Any, Any] = field(default_factory=dict)

    def copy(self) -> State:
        """Return an independent copy of the state."""
        return State(dict(self.memory), self.guard, dict(self.known))


class Domain(Protocol):
    """Interface of a domain of numbers, on which the interpreter computes.

    `at` is the syntax node, for messages. Conditions may be Python's bool.
    """

    machine: Machine | None

    def constant(self, value: int, kind: Type) -> Value:
        """Return a constant of a type."""
        ...

    def binary(self, op: str, a: Value, b: Value, kind: Type, at: Node) -> Value:
        """Return the result of a binary operation on a and b."""
        ...

    def compare(self, op: str, a: Value, b: Value, kind: Type) -> Any:
        """Return the condition that a comparison of a and b holds."""
        ...

    def negative(self, a: Value, kind: Type, at: Node) -> Value:
        """Return −a."""
        ...

    def cast(self, a: Value, source: Type, target: Type, at: Node) -> Value:
        """Return a number cast to another type."""
        ...

    def truth(self, a: Value, kind: Type) -> Any:
        """Return the condition that a number is not 0."""
        ...

    def number(self, condition: Any) -> Value:
        """Return 1 if a condition holds, and 0 if not."""
        ...

    def both(self, a: Any, b: Any) -> Any:
        """Return the conjunction of two conditions."""
        ...

    def invert(self, a: Any) -> Any:
        """Return the negation of a condition."""
        ...

    def assume(self, state: State, condition: Any) -> None:
        """Add a condition to a state."""
        ...

    def join(self, conditions: list[Any], values: list[Value], states: list[State]) -> Value:
        """Return a number that equals each value under its condition."""
        ...

    def table(self, numbers: Sequence[int], index: Value, kind: Type, at: Node) -> Value:
        """Return a table entry."""
        ...

    def concrete(self, value: Value) -> int | None:
        """Return a number as an integer if its value is known, or None."""
        ...

    def any_of(self, alternatives: list[list[Any]]) -> tuple[Any, ...]:
        """Return the conditions of a state that is reached under any of several alternatives."""
        ...


Call = Callable[["Machine", list[Value], Node], Value]


class Unsupported(Exception):
    """Raised for C code that this interpreter does not support."""


@dataclass
class _Frame:
    function: str
    number: int
    returns: list[tuple[State, Value]] = field(default_factory=list)
    # Of each loop that is executed, the states in which it was left.
    breaks: list[list[State]] = field(default_factory=list)


class Machine:
    """Interpreter of a translation unit's functions, which share one memory."""

    def __init__(self, unit: Unit, domain: Domain, calls: dict[str, Call] | None = None) -> None:
        self.unit = unit
        self.domain = domain
        self.calls = calls or {}
        self.state: State | None = State()
        self.frames: list[_Frame] = []
        self.assigned: Callable[[str, Node, Value], Value] | None = None
        self.iterated: Callable[[str, int], None] | None = None
        # Arrays whose elements have any values: how many rows and how many words an index may name.
        self.arrays: dict[MemoryPlace, tuple[int, int]] = {}
        self.any_value: Callable[[Type], Value] | None = None
        self._frames = 0
        self._results: dict[tuple[Any, ...], tuple[Any, list[Value], Value]] = {}
        domain.machine = self

    # ------------------------------------------------------------ memory

    @property
    def live(self) -> State:
        """State of the code that is being executed, which must be reachable."""
        assert self.state is not None
        return self.state

    @property
    def function(self) -> str:
        """Name of the function that is being executed."""
        return self.frames[-1].function if self.frames else ""

    def local(self, name: str) -> Value:
        """Return the value of a local variable in the current function."""
        return self.live.memory[self._named(name)]

    def set_local(self, name: str, value: Value) -> None:
        """Replace the value of a local variable in the current function."""
        self.live.memory[self._named(name)] = value

    def _named(self, name: str) -> MemoryPlace:
        number = self.frames[-1].number
        found = [p for p in self.live.memory if p[0] == "local" and p[1] == number and p[3] == name]
        return found[-1]

    def load(self, place: MemoryPlace, kind: Type | str) -> Value:
        """Return the number, pointer or whole structure at a place in memory."""
        memory = self.live.memory
        if place in memory:
            return memory[place]
        if self._is_any(place):
            assert isinstance(kind, Type)
            assert self.any_value
            return self.any_value(kind)
        if isinstance(kind, str) and kind in self.unit.records:
            size = len(place)
            return {p[size:]: value for p, value in memory.items() if p[:size] == place}
        raise Unsupported(f"{self.function}: {place} is read before it is set")

    def store(self, place: MemoryPlace, value: Value) -> None:
        """Store a number, a pointer or a whole structure at a place in memory."""
        if self._is_any(place):
            return
        if isinstance(value, dict):
            for rest, part in value.items():
                self.live.memory[place + rest] = part
        else:
            self.live.memory[place] = value

    def _is_any(self, place: MemoryPlace) -> bool:
        return (place[0],) in self.arrays

    def zero(self, place: MemoryPlace, kind: Type | str) -> None:
        """Set a number or all fields of a structure to 0."""
        if array := array_of(kind):
            for index in range(array[1]):
                self.zero((*place, index), array[0])
            return
        if isinstance(kind, Type):
            self.store(place, self.domain.constant(0, kind))
        elif kind in self.unit.records:
            for name, part in self.unit.records[kind]:
                self.zero((*place, name), part)

    # ------------------------------------------------------------ functions

    def call(self, name: str, arguments: list[Value]) -> Value:
        """Execute a function and return its value, or None for a void function."""
        node = self.unit.functions[name]
        self._frames += 1
        frame = _Frame(name, self._frames)
        self.frames.append(frame)
        base = len(self.live.guard)
        parameters = [part for part in node["inner"] if part["kind"] == "ParmVarDecl"]
        for parameter, value in zip(parameters, arguments, strict=True):
            self.store(
                self._local(parameter), self._assign(parameter.get("name", ""), parameter, value)
            )
        body = next(part for part in node["inner"] if part["kind"] == "CompoundStmt")
        self._run(body)
        if self.state is not None:
            frame.returns.append((self.state, None))
        states = [state for state, _ in frame.returns]
        for state in states:
            for place in [p for p in state.memory if p[0] == "local" and p[1] == frame.number]:
                del state.memory[place]
        self.state, value = self._join(base, states, [value for _, value in frame.returns])
        self.frames.pop()
        return value

    def _local(self, node: Node) -> MemoryPlace:
        return ("local", self.frames[-1].number, node["id"], node.get("name"))

    def _join(self, base: int, states: list[State], values: list[Value]) -> tuple[State, Value]:
        """Join states that share their first `base` conditions, and join one value per state."""
        if len(states) == 1:
            return states[0], values[0]
        alternatives = [list(state.guard[base:]) for state in states]
        conditions: list[Any] = []
        for alternative in alternatives:
            condition: Any = True
            for part in alternative:
                condition = self.domain.both(condition, part)
            conditions.append(condition)
        joined = State(guard=states[0].guard[:base] + self.domain.any_of(alternatives))
        joined.known = {
            key: value
            for key, value in states[0].known.items()
            if all(state.known.get(key) == value for state in states)
        }
        self.state = joined
        for place in states[0].memory:
            found = [state.memory.get(place) for state in states]
            if all(one is not None for one in found):
                joined.memory[place] = self._join_values(conditions, found, states)
        if all(value is None for value in values):
            return joined, None
        return joined, self._join_values(conditions, values, states)

    def _join_values(
        self, conditions: list[Any], values: list[Value], states: list[State]
    ) -> Value:
        first = values[0]
        if all(value is first for value in values) or isinstance(first, Pointer):
            return first
        if isinstance(first, dict):
            return {
                key: self._join_values(conditions, [value[key] for value in values], states)
                for key in first
            }
        return self.domain.join(conditions, values, states)

    # ------------------------------------------------------------ statements

    def _run(self, node: Node) -> None:
        if self.state is None:
            return
        kind, inner = node["kind"], node.get("inner", [])
        if kind == "CompoundStmt":
            for part in inner:
                self._run(part)
        elif kind == "DeclStmt":
            for part in inner:
                self._variable(part)
        elif kind == "IfStmt":
            self._if(inner)
        elif kind == "ForStmt":
            self._for(inner)
        elif kind == "BreakStmt":
            self.frames[-1].breaks[-1].append(self.live)
            self.state = None
        elif kind == "ReturnStmt":
            value = self.value(inner[0]) if inner else None
            if isinstance(value, dict):
                value = dict(value)
            self.frames[-1].returns.append((self.live, value))
            self.state = None
        elif kind not in ("GCCAsmStmt", "NullStmt"):  # the asm of float_bits() changes nothing
            self.value(node)

    def _variable(self, node: Node) -> None:
        place = self._local(node)
        if not node.get("inner"):
            return
        initial = node["inner"][0]
        if initial["kind"] == "InitListExpr":
            kind = type_of(initial)
            assert isinstance(kind, str)
            for (name, part), value in zip(
                self.unit.records[kind], initial.get("inner", []), strict=False
            ):
                if value["kind"] == "ImplicitValueInitExpr":
                    self.zero((*place, name), part)
                else:
                    self.store((*place, name), self.value(value))
            if not initial.get("inner"):
                self.zero(place, kind)
            return
        self.store(place, self._assign(node.get("name", ""), node, self.value(initial)))

    def _assign(self, name: str, node: Node, value: Value) -> Value:
        return self.assigned(name, node, value) if self.assigned else value

    def _if(self, inner: list[Node]) -> None:
        condition = self.condition(inner[0])
        if isinstance(condition, bool):
            if condition:
                self._run(inner[1])
            elif len(inner) > 2:
                self._run(inner[2])
            return
        before = self.live
        base = len(before.guard)
        ends: list[State] = []
        for side, test in (
            (inner[1], condition),
            (inner[2] if len(inner) > 2 else None, self.domain.invert(condition)),
        ):
            self.state = before.copy()
            self.domain.assume(self.state, test)
            if side is not None:
                self._run(side)
            if self.state is not None:
                ends.append(self.state)
        self.state = self._join(base, ends, [None] * len(ends))[0] if ends else None

    def _for(self, inner: list[Node]) -> None:
        start, _, test, step, body = inner
        if start:
            self._run(start)
        base = len(self.live.guard)
        breaks: list[State] = []
        self.frames[-1].breaks.append(breaks)
        self._iterate(test, step, body)
        self.frames[-1].breaks.pop()
        if breaks:
            ends = [*breaks, self.live]
            self.state = self._join(base, ends, [None] * len(ends))[0]

    def _iterate(self, test: Node, step: Node, body: Node) -> None:
        count = 0
        while True:
            condition = self.condition(test)
            if not isinstance(condition, bool):
                raise Unsupported(f"{self.function}: a loop that ends when {show(test)} is false")
            if not condition:
                return
            self._run(body)
            if self.state is None:
                raise Unsupported(f"{self.function}: a loop that returns")
            self.value(step)
            if self.iterated:
                self.iterated(self.function, count)
            count += 1

    # ------------------------------------------------------------ expressions

    def place(self, node: Node) -> MemoryPlace:
        """Return the place in memory that an expression refers to."""
        kind, inner = node["kind"], node.get("inner", [])
        if kind == "ParenExpr":
            return self.place(inner[0])
        if kind == "DeclRefExpr":
            declared = node["referencedDecl"]
            if declared["name"] in self.unit.tables:
                return ("table", declared["name"])
            return self._local(declared)
        if kind == "MemberExpr":
            base = self.value(inner[0]) if node["isArrow"] else self.place(inner[0])
            if isinstance(base, Pointer):
                base = base.place
            return (*base, node["name"])
        if kind == "UnaryOperator" and node["opcode"] == "*":
            pointer = self.value(inner[0])
            return (*pointer.place, pointer.offset) if pointer.offset else pointer.place
        if kind == "ArraySubscriptExpr":
            pointer, index = self.value(inner[0]), self.value(inner[1])
            if pointer.place in self.arrays:
                bound = self.arrays[pointer.place][isinstance(type_of(node), Type)]
                self.domain.table(range(bound), index, INT, node)
                return (*pointer.place, "[]")
            number = self.domain.concrete(index)
            if number is None:
                return ("dynamic", pointer.place, index)
            return (*pointer.place, pointer.offset + number)
        raise Unsupported(f"{self.function}: {kind} as a place: {show(node)}")

    def condition(self, node: Node) -> Any:
        """Return the condition that an expression is true."""
        kind, inner = node["kind"], node.get("inner", [])
        if kind in ("ParenExpr", "ImplicitCastExpr") and _is_plain(node):
            return self.condition(inner[0])
        if kind == "BinaryOperator":
            op = node["opcode"]
            if op in ("<", "<=", ">", ">=", "==", "!="):
                a, b = self.value(inner[0]), self.value(inner[1])
                kind_of = type_of(inner[0])
                assert isinstance(kind_of, Type)
                return self.domain.compare(op, a, b, kind_of)
            if op in ("&&", "||"):
                return self._short(op, inner)
        if kind == "UnaryOperator" and node["opcode"] == "!":
            return self.domain.invert(self.condition(inner[0]))
        kind_of = type_of(node)
        assert isinstance(kind_of, Type)
        return self.domain.truth(self.value(node), kind_of)

    def _short(self, op: str, inner: list[Node]) -> Any:
        first = self.condition(inner[0])
        if isinstance(first, bool):
            return self.condition(inner[1]) if first == (op == "&&") else first
        before = self.live
        self.state = before.copy()
        self.domain.assume(self.state, first if op == "&&" else self.domain.invert(first))
        second = self.condition(inner[1])
        self.state = before
        if op == "&&":
            return self.domain.both(first, second)
        invert = self.domain.invert
        return invert(self.domain.both(invert(first), invert(second)))

    def value(self, node: Node) -> Value:
        """Return the value of an expression."""
        kind, inner = node["kind"], node.get("inner", [])
        handler = getattr(self, f"_value_{kind}", None)
        if handler is None:
            raise Unsupported(f"{self.function}: {kind}: {show(node)}")
        return handler(node, inner)

    def _value_ParenExpr(self, node: Node, inner: list[Node]) -> Value:
        return self.value(inner[0])

    _value_ConstantExpr = _value_ParenExpr

    def _value_IntegerLiteral(self, node: Node, inner: list[Node]) -> Value:
        kind = type_of(node)
        assert isinstance(kind, Type)
        return self.domain.constant(int(node["value"]), kind)

    def _value_DeclRefExpr(self, node: Node, inner: list[Node]) -> Value:
        declared = node["referencedDecl"]
        if declared["kind"] == "EnumConstantDecl":
            return self.domain.constant(self.unit.constants[declared["name"]], INT)
        return Pointer(self.place(node))

    def _value_ImplicitCastExpr(self, node: Node, inner: list[Node]) -> Value:
        cast, source, target = node["castKind"], inner[0], type_of(node)
        if cast == "LValueToRValue":
            if source["kind"] == "ImplicitCastExpr":
                return self.value(source)
            place = self.place(source)
            if place[0] == "dynamic":
                return self._dynamic(place, target, node)
            if place[0] == "table":
                assert isinstance(target, Type)
                return self.domain.constant(self.unit.tables[place[1]][place[2]], target)
            return self.load(place, target)
        if cast == "ArrayToPointerDecay":
            return Pointer(self.place(source))
        if cast == "IntegralCast":
            return self._cast(source, target, node)
        if cast in ("FunctionToPointerDecay", "BuiltinFnToFnPtr"):
            return source["referencedDecl"]["name"]
        if cast in ("NoOp", "BitCast", "ToVoid"):
            return self.value(source)
        raise Unsupported(f"{self.function}: {cast}: {show(node)}")

    _value_CStyleCastExpr = _value_ImplicitCastExpr

    def _dynamic(self, place: MemoryPlace, target: Type | str, node: Node) -> Value:
        _, base, index = place
        assert isinstance(target, Type)
        if base[0] == "table":
            return self.domain.table(self.unit.tables[base[1]], index, target, node)
        found = sorted(p for p in self.live.memory if p[:-1] == base)
        return self.domain.table([self.live.memory[p] for p in found], index, target, node)

    def _cast(self, source: Node, target: Type | str, node: Node) -> Value:
        assert isinstance(target, Type)
        kind = type_of(source)
        assert isinstance(kind, Type)
        return self.domain.cast(self.value(source), kind, target, node)

    def _value_BinaryOperator(self, node: Node, inner: list[Node]) -> Value:
        op = node["opcode"]
        if op == "=":
            place, value = self.place(inner[0]), self.value(inner[1])
            self.store(place, self._assign(show(inner[0]), node, value))
            return value
        if op in ("<", "<=", ">", ">=", "==", "!=", "&&", "||"):
            return self.domain.number(self.condition(node))
        a, b = self.value(inner[0]), self.value(inner[1])
        if isinstance(a, Pointer):
            number = self.domain.concrete(b)
            assert op == "+"
            assert number is not None
            return Pointer(a.place, a.offset + number)
        kind = type_of(node)
        assert isinstance(kind, Type)
        return self.domain.binary(op, a, b, kind, node)

    def _value_CompoundAssignOperator(self, node: Node, inner: list[Node]) -> Value:
        place, target = self.place(inner[0]), type_of(inner[0])
        right = self.value(inner[1])
        left = self.load(place, target)
        described = {"type": node["computeResultType"]}
        kind = type_of(described)
        assert isinstance(kind, Type)
        assert isinstance(target, Type)
        left = self.domain.cast(left, target, kind, node)
        value = self.domain.binary(node["opcode"][:-1], left, right, kind, node)
        value = self.domain.cast(value, kind, target, node)
        self.store(place, self._assign(show(inner[0]), node, value))
        return value

    def _value_UnaryOperator(self, node: Node, inner: list[Node]) -> Value:
        op = node["opcode"]
        if op == "!":
            return self.domain.number(self.condition(node))
        if op == "&":
            return Pointer(self.place(inner[0]))
        kind = type_of(node)
        if op in ("++", "--"):
            place = self.place(inner[0])
            before = self.load(place, kind)
            assert isinstance(kind, Type)
            one = self.domain.constant(1, kind)
            after = self.domain.binary("+" if op == "++" else "-", before, one, kind, node)
            self.store(place, self._assign(show(inner[0]), node, after))
            return before if node["isPostfix"] else after
        assert isinstance(kind, Type)
        if op == "-":
            return self.domain.negative(self.value(inner[0]), kind, node)
        if op == "~":
            every = self.domain.constant(kind.most, kind)
            return self.domain.binary("-", every, self.value(inner[0]), kind, node)
        raise Unsupported(f"{self.function}: {show(node)}")

    def _value_UnaryExprOrTypeTraitExpr(self, node: Node, inner: list[Node]) -> Value:
        return None  # only memset() asks for sizes, of whole objects

    def _value_ConditionalOperator(self, node: Node, inner: list[Node]) -> Value:
        condition = self.condition(inner[0])
        if isinstance(condition, bool):
            return self.value(inner[1] if condition else inner[2])
        before = self.live
        base = len(before.guard)
        states, values = [], []
        for side, test in ((inner[1], condition), (inner[2], self.domain.invert(condition))):
            self.state = before.copy()
            self.domain.assume(self.state, test)
            values.append(self.value(side))
            states.append(self.live)
        self.state, value = self._join(base, states, values)
        return value

    def _value_CallExpr(self, node: Node, inner: list[Node]) -> Value:
        name = self.value(inner[0])
        if name == "__builtin_memset":
            return self._clear(inner)
        arguments = [self.value(part) for part in inner[1:]]
        if name.startswith("__sync_fetch_and_"):
            return self._atomic(name, arguments, node)
        if name in self.calls:
            return self._contract(name, arguments, node)
        return self.call(name, arguments)

    def _atomic(self, name: str, arguments: list[Value], node: Node) -> Value:
        """Execute an atomic operation on a number in memory and return the old value."""
        pointer, operand = arguments[:2]
        kind = type_of(node)
        assert isinstance(kind, Type)
        before = self.load(pointer.place, kind)
        op = "|" if "_or" in name else "+"
        self.store(pointer.place, self.domain.binary(op, before, operand, kind, node))
        return before

    def _contract(self, name: str, arguments: list[Value], node: Node) -> Value:
        """Return the result of a function's contract. Equal arguments without pointers give the
        same result.
        """
        key = (name, *(id(argument) for argument in arguments))
        found = self._results.get(key)
        if found and self.live.guard[: len(found[0])] == found[0]:
            return found[2]
        result = self.calls[name](self, arguments, node)
        if not any(isinstance(argument, Pointer) for argument in arguments):
            self._results[key] = (self.live.guard, arguments, result)
        return result

    def _clear(self, inner: list[Node]) -> None:
        """Execute a memset() to 0 of a structure or of a wire value's bytes."""
        pointed = inner[1]
        while pointed["kind"] in ("ImplicitCastExpr", "ParenExpr"):
            pointed = pointed["inner"][0]
        pointer = self.value(inner[1])
        kind = type_of(pointed)
        name = str(kind).removesuffix("*").strip() if isinstance(kind, str) else kind
        if name in self.unit.records:
            self.zero(pointer.place, name)
            return
        for place in [p for p in self.live.memory if p[: len(pointer.place)] == pointer.place]:
            self.zero(place, Type(8, False))

    def _value_GCCAsmStmt(self, node: Node, inner: list[Node]) -> Value:
        return None


def _is_plain(node: Node) -> bool:
    """Return True if an expression and its inner expression are always true or false together."""
    if node["kind"] == "ParenExpr":
        return True
    source, target = type_of(node["inner"][0]), type_of(node)
    widens = isinstance(source, Type) and isinstance(target, Type) and target.width >= source.width
    return node.get("castKind") == "IntegralCast" and widens
