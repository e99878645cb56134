"""Analysis of the laws' equations: stability, margins, equilibria, convergence and encoding.

One file per topic. `loops` has what holds for every loop: frequency responses, margins, convex
hulls. The laws follow: `maxnet` and `certificate` (maxnet-2007 §VIII), `tuning` (§VIII.E), `aecp`
and `sampled` (aecp-2010 §4, and the loop with its sampling times), `xcp`, `rcp`, `vcp`,
`accel_brake` (abc-2020), `jetmax`, `mkc`, `alpha_rcp`, `sperc` (its rounds), `encoding` (header
fields). `allocation` and `equilibrium` are about networks: max-min shares, and the fixed point of
XCP, iXCP and P-XCP.
`subject` reads what a command analyses, `stability` and `documents` build what `--json` prints,
`plots` the figures.

From Python, the functions here return the documents that the commands `waterfill theory` print with
`--json`. Their first argument is a protocol's name, a scenario file or a `waterfill.Scenario`;
`set` has overrides such as {"params.maxnet.alpha": 0.5}.

>>> import waterfill
>>> waterfill.theory.check_stability("maxnet", max_rtt="10 s")["stable"]
True

Frequencies are in rad/s, times in s, rates in bit/s; gains have no unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from waterfill.runs.backends import Checkable
    from waterfill.theory.subject import Subject

Subjects: TypeAlias = "str | Checkable"
Document: TypeAlias = dict[str, Any]


def check_stability(
    what: Subjects,
    *,
    max_rtt: str = "1 s",
    protocol: str | None = None,
    set: Mapping[str, Any] | None = None,
) -> Document:
    """Check if a law is stable up to an RTT, or on a scenario's network, whose RTTs then count."""
    from waterfill.theory import stability

    about = _subject(what, stability.PROTOCOLS, protocol, set)
    return stability.document(about, _time_s("max_rtt", max_rtt))


def margins(what: str, *, rtt: str | None = None, set: Mapping[str, Any] | None = None) -> Document:
    """Compute a law's crossover, phase margin and delay margin."""
    from waterfill.theory import documents

    about = _subject(what, documents.MARGIN, None, set, network=False)
    return documents.margin(about, None if rtt is None else _time_s("rtt", rtt))


def equilibrium_rates(
    scenario: Subjects, *, protocol: str | None = None, set: Mapping[str, Any] | None = None
) -> Document:
    """Compute the equilibrium rates of all flows of a network. XCP's are not max-min."""
    from waterfill.network import protocols
    from waterfill.theory import documents

    able = [name for name, info in protocols.load().items() if info.kind == "explicit"]
    return documents.equilibrium_of(_subject(scenario, able, protocol, set, network=True))


def convergence_times(
    what: str, *, rtt: str = "80 ms", set: Mapping[str, Any] | None = None
) -> Document:
    """Compute how fast a law fills links and becomes fair, at an RTT."""
    from waterfill.theory import documents

    about = _subject(what, documents.CONVERGENCE, None, set, network=False)
    return documents.convergence(about, _time_s("rtt", rtt))


def header_encoding(what: str, *, set: Mapping[str, Any] | None = None) -> Document:
    """Compute the range and precision of a law's header field."""
    from waterfill.theory import documents

    return documents.encoding_of(_subject(what, documents.ENCODING, None, set, network=False))


def _subject(
    what: Subjects,
    supported: Sequence[str],
    protocol: str | None,
    sets: Mapping[str, Any] | None,
    *,
    network: bool | None = None,
) -> Subject:
    """Return the subject of an analysis, which has to be a network or a protocol if `network` is
    True or False.
    """
    from waterfill.errors import InputError, shown
    from waterfill.theory import subject

    with _named_theory():
        about = subject.parse(what, sets or {}, supported, protocol)
    if network is not None and network != (about.network is not None):
        wanted = "a scenario" if network else "a protocol"
        raise InputError("theory", "", f"must be {wanted}, got {shown(what)}")
    return about


def _time_s(name: str, text: str) -> float:
    """Return the time (s) in an argument; raise InputError if it is invalid or too small."""
    from waterfill.theory import subject

    with _named_theory():
        return subject.time_s(name, text)


@contextmanager
def _named_theory() -> Iterator[None]:
    """Let messages about the command line name `theory` instead."""
    from waterfill.errors import InputError

    try:
        yield
    except InputError as error:
        if error.file != "command line":
            raise
        raise InputError("theory", error.key, error.problem, error.advice) from None
