"""Study of proofs, with a line for each theorem: its scope, result and duration.

It fails if a theorem does not hold or z3 does not decide it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from validation.proofs import codecs, contracts, differential, equilibrium, kernels, ranges, source
from validation.proofs.c_source import clang, digest
from validation.proofs.integers import Integers
from validation.study import Need, Option, Options, Study

INPUTS = 60
PROVED = "proved"
Theorem = tuple[str, Callable[[], str]]


def _obligations(domain: Integers) -> str:
    """Return `proved` with the number of operations, or the first unproved operation."""
    for one in domain.obligations:
        if one.proved not in ("intervals", "query"):
            return f"FAILS: {one.where}: {one.what}: {one.proved}"
    return f"{PROVED}, {len(domain.obligations)} operations"


def _plain(proof: Callable[[], bool]) -> Callable[[], str]:
    return lambda: PROVED if proof() else "FAILS, or is not decided"


def _compared(header: str) -> str:
    done, differences = differential.compare(header, INPUTS)
    return f"FAILS: {differences[0]}" if differences else f"{PROVED}, {done} inputs"


def _network(links: int, flows: int) -> str:
    answer, count = equilibrium.prove(links, flows)
    return f"{PROVED}, {count} networks" if answer == PROVED else f"FAILS: {answer}"


def theorems() -> Iterator[Theorem]:
    """Yield each theorem's statement, as a line of the report, and the function that proves it."""
    for header in differential.HEADERS:
        yield f"tree: {header} compiled and as proved: the same", lambda h=header: _compared(h)  # type: ignore[misc]
    for links, flows in equilibrium.SIZES:
        line = f"equilibrium: max-min is the only one: {links} links, {flows} flows"
        yield line, lambda n=links, m=flows: _network(n, m)  # type: ignore[misc]
    for statement, scope, proof in source.theorems():
        yield f"source: {statement} ({scope})", _plain(proof)
    for statement, scope, proof in codecs.theorems():
        yield f"codec: {statement}" + (f" ({scope})" if scope else ""), _plain(proof)
    for name, statement, body in contracts.theorems():
        yield f"shared: {name}: {statement}", lambda b=body: _obligations(b())  # type: ignore[misc]
    for law in ranges.LAWS:
        for function in kernels.functions(ranges.LAWS[law]):
            yield (
                f"kernel: {law}: {function}() over its ranges",
                lambda n=law, f=function: _obligations(kernels.prove(n, f)),  # type: ignore[misc]
            )
            if function in kernels.STARTS:
                yield (
                    f"kernel: {law}: {function}() of zeros",
                    lambda n=law, f=function: _obligations(kernels.prove(n, f, True)),  # type: ignore[misc]
                )


class Proof(NamedTuple):
    """Result of a proof, with its duration in seconds."""

    result: str
    seconds: float

    @property
    def proved(self) -> bool:
        """True if the theorem holds and z3 has decided it."""
        return self.result.startswith(PROVED)


def prove(line: str) -> Proof:
    """Prove the theorem that a line describes."""
    proof = dict(theorems())[line]
    start = time.monotonic()
    try:
        result = proof()
    except AssertionError as error:
        result = f"FAILS: {error}"
    return Proof(result, time.monotonic() - start)


def chosen(options: Options) -> list[str]:
    """Return the lines of all theorems that contain one of the chosen texts."""
    lines = [line for line, _ in theorems()]
    names = options.names
    return [line for line in lines if not names or any(name in line for name in names)]


def _line(line: str, proof: Proof) -> str:
    return f"{line}: {proof.result}, {proof.seconds:.1f} s"


def text(found: Mapping[str, Proof]) -> str:
    """Return a line for each theorem and the number of unproved theorems."""
    failing = sum(not proof.proved for proof in found.values())
    lines = [_line(line, proof) for line, proof in found.items()]
    return "\n".join([*lines, f"{len(found)} theorems, {failing} not proved"])


STUDY = Study(
    shows="codecs, fixed-point C, MaxNet's source and its equilibrium, proved by z3",
    minutes=10,
    needs=(Need("clang", lambda: None if clang() else "clang: apt-get install clang"),),
    options=(Option("names", (), "only theorems with one of these texts in their line"),),
    quick={"names": ("equilibrium: ",)},
    cases=chosen,
    measure=prove,
    row=Proof,
    valid=lambda proof: proof.proved,
    code=digest,
    line=_line,
    table=text,
    failed=lambda found: [_line(line, p) for line, p in found.items() if not p.proved],
)
