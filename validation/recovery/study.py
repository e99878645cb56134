"""Compare the order of sends of Linux's TCP with the record that the simulator's tests repeat.

The record holds patterns of losses, and for each one the order in which Linux sent the packets. A
test of the simulator compares `rack` with it (`sender/linux_order.rs`). This study runs the
patterns on the running kernel again, and `--record` stores what it finds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatch
from functools import partial
from typing import Any

from validation.recovery.path import Pattern, linux_sends
from validation.study import ROOT, ROOT_USER, Option, Options, Report, Study, only
from validation.tables import markdown
from validation.testbed.maxnet_special import isolated
from waterfill.runs.files import write_text

RECORD = ROOT / "crates" / "waterfill-sim" / "tests" / "linux_sends.json"
LAW = "reno"


@dataclass(frozen=True)
class Comparison:
    """Orders of one pattern: that of the record, and those of this kernel in each round."""

    pattern: Pattern
    recorded: str
    found: Sequence[str]

    @property
    def repeats(self) -> int:
        """Number of rounds in which this kernel sent in the recorded order."""
        return sum(order == self.recorded for order in self.found)


def short(order: Sequence[int]) -> str:
    """Return an order of packet numbers as text, with runs such as `0-111`."""
    runs: list[list[int]] = []
    for number in order:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in runs)


def read() -> Mapping[Pattern, str]:
    """Return the recorded patterns with Linux's order of sends."""
    names = {field.name for field in fields(Pattern)}
    document = json.loads(RECORD.read_text(encoding="utf-8"))
    return {
        Pattern(**{key: _frozen(value) for key, value in entry.items() if key in names}): entry[
            "sends"
        ]
        for entry in document["patterns"]
    }


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def write(sends: Mapping[Pattern, str]) -> None:
    """Write the record, one line per pattern."""
    entries = [
        {key: value for key, value in asdict(pattern).items() if value not in (0, "", (), None)}
        | {"sends": order}
        for pattern, order in sends.items()
    ]
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    kernel = os.uname().release.partition("-")[0]
    write_text(RECORD, f'{{"kernel": "{kernel}", "patterns": [\n{lines}\n]}}\n')


def table(found: Sequence[Comparison]) -> str:
    """Return a table with a row per pattern."""
    rows = [
        [
            one.pattern.name,
            one.recorded,
            f"{one.repeats} of {len(one.found)}",
            one.pattern.differs or "the same",
        ]
        for one in found
    ]
    return markdown("pattern|order on Linux, recorded|repeated:|simulator's `rack`", rows)


def work(options: Options) -> Report:
    """Run the chosen patterns on this kernel."""
    record = read()
    chosen = {p: order for p, order in record.items() if fnmatch(p.name, options.only)}
    found = [
        Comparison(
            pattern,
            order,
            [
                short(isolated("recovery", partial(linux_sends, pattern, LAW)).order)
                for _ in range(options.rounds)
            ],
        )
        for pattern, order in chosen.items()
    ]
    if options.record:
        write(dict(record) | {one.pattern: one.found[-1] for one in found})
    failed = [
        f"{one.pattern.name}: sent {one.found[-1]}, recorded {one.recorded}"
        for one in found
        if not one.repeats and not options.record
    ]
    return Report(table(found), [asdict(one) for one in found], failed)


STUDY: Study[None, None] = Study(
    shows="the order in which Linux's TCP sends under 21 patterns of losses, next to `rack`",
    minutes=1,
    needs=(ROOT_USER,),
    options=(
        Option("--rounds", 1, "runs of each pattern", low=1),
        Option("--record", False, "store the orders found, which a test of the simulator repeats"),
        only("late*"),
    ),
    quick={"only": "late*"},
    work=work,
)
