"""Study of real networks, described in the package's docstring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from validation.study import Kept, Need, NotKept, Option, Options, Study, only
from validation.topologies import cases, reasons, report, running
from validation.topologies.reasons import Reason
from validation.topologies.running import Record


class TopologyStudyCase(NamedTuple):
    """One law on one network."""

    network: str
    law: str


class Explained(NamedTuple):
    """A run, with reasons for the flows that are off their max-min shares."""

    record: Record
    reasons: list[Reason]


def chosen(options: Options) -> list[TopologyStudyCase]:
    """Return a case for every chosen law on every chosen network."""
    names = [name for group in cases.GROUPS for name in cases.names(group)]
    return [TopologyStudyCase(name, law) for name in names for law in options.laws or cases.laws()]


def measure(case: TopologyStudyCase) -> Explained:
    """Run a law on a network until the rates settle, and explain the exceptions.

    The run is kept for itself, so that another explanation does not repeat it.
    """
    store = Kept("topologies", running.__name__, row=Record)
    try:
        record: Record = store.get(case)
    except NotKept:
        record = running.run(cases.build(*case, running.ENDS_S[-1]))
        store.put(case, record)
    return Explained(record, reasons.explain(record))


def rows(found: Mapping[TopologyStudyCase, Explained]) -> list[report.Explained]:
    """Return the results in order of laws, for the tables."""
    laws = cases.laws()
    return sorted(found.values(), key=lambda row: laws.index(row[0].law))


def failed(found: Mapping[TopologyStudyCase, Explained]) -> list[str]:
    """Return the exceptions that have no reason."""
    return [
        f"{case.network} {case.law}: {one.flow} is {one.error:+.1%} off, unexplained"
        for case, row in found.items()
        for one in row.reasons
        if one.reason == reasons.UNEXPLAINED
    ]


STUDY = Study(
    shows="every explicit law reaches its max-min shares on 229 real networks, in the fluid model",
    minutes=600,
    needs=(Need("topohub", lambda: None if cases.names("topozoo") else "the package topohub"),),
    options=(
        Option("--laws", (), "default: all of the fluid backend", cases.laws),
        only("topozoo/A*"),
    ),
    quick={"laws": ("maxnet", "rcp"), "only": "topozoo/A*"},
    cases=chosen,
    measure=measure,
    row=Explained,
    line=lambda case, row: f"{case.network} {case.law}: {abs(row.record.errors).max():.2%}",
    table=lambda found: f"{report.summary(rows(found))}\n\n{report.evidence(rows(found))}",
    files=lambda found: {"exceptions.csv": report.exceptions(rows(found)) + "\n"},
    failed=failed,
)
