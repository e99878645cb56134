"""`make seeds`: does a verdict hang on the seed, and how wide is a tolerance beside the spread?

Every experiment runs once for each seed, from 1 on. A claim whose value is the same for all of them
is not random. For the others the table shows how far the values lie apart and how near the nearest
of them comes to the place where the verdict would be another one:

- spread: the largest less the smallest value, beside the tolerance;
- room: the smallest distance of a value from where its verdict would change, in spreads. Below
  one, another seed may well change it.

Runs are kept (`waterfill.cache`), so that a table that was interrupted goes on where it was. It
exits with 1 when a verdict changes from seed to seed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from waterfill import claims
from waterfill.claims import Experiment
from waterfill.errors import InputError
from waterfill.live import LiveList
from waterfill.reproduce import Reproduction, reproduce
from waterfill.results import Document, make_directory, to_json, write_text

SEEDS = 5
INTERRUPTED = 130  # as `waterfill reproduce` after Ctrl-C

_COLUMNS = ("claim", "paper", "tolerance", "least", "most", "spread / tolerance", "room", "verdict")


@dataclass(frozen=True)
class Row:
    """One claim over all seeds; `measured` and `verdicts` in their order, None not measured."""

    claim: Document
    measured: tuple[float | None, ...]
    verdicts: tuple[str, ...]

    @property
    def path(self) -> str:
        """PAPER/EXPERIMENT/CLAIM."""
        return f"{self.claim['paper']}/{self.claim['experiment']}/{self.claim['id']}"

    @property
    def same(self) -> bool:
        """Whether all seeds have one verdict."""
        return len(set(self.verdicts)) == 1

    @property
    def random(self) -> bool:
        """Whether the seed matters to the value at all."""
        return len(set(self.measured)) > 1

    @property
    def spread(self) -> float | None:
        """Largest less smallest value, in the claim's unit; None where a seed has none."""
        values = [value for value in self.measured if value is not None]
        return max(values) - min(values) if len(values) == len(self.measured) else None

    @property
    def spread_over_tolerance(self) -> float | None:
        """None without a spread or without a tolerance."""
        if self.spread is None or not self.claim["tolerance"]:
            return None
        return self.spread / float(self.claim["tolerance"])

    @property
    def room(self) -> float | None:
        """Least distance from where the verdict changes, in spreads.

        None where verdicts change, where nothing is random and where there is nothing to compare.
        """
        value, slack = self.claim["paper_value"], self.claim["tolerance"]
        if not self.same or not self.spread or value is None:
            return None
        edges = {
            "=": (value - slack, value + slack),
            "<": (value + slack,),
            ">": (value - slack,),
        }[self.claim["relation"]]
        values = [measured for measured in self.measured if measured is not None]
        least = min(abs(measured - edge) for measured in values for edge in edges)
        return float(least) / self.spread

    def document(self) -> Document:
        """The claim's entry in the document of `--json`."""
        keys = ("id", "paper", "experiment", "relation", "paper_value", "tolerance", "unit")
        values = [value for value in self.measured if value is not None]
        return {key: self.claim[key] for key in (*keys, "expect")} | {
            "measured": list(self.measured),
            "verdicts": list(self.verdicts),
            "same": self.same,
            "random": self.random,
            "least": min(values, default=None),
            "most": max(values, default=None),
            "spread_over_tolerance": self.spread_over_tolerance,
            "room": self.room,
        }


def rows(judged: Sequence[Mapping[str, Sequence[Document]]]) -> list[Row]:
    """One row a claim, from what each seed gave: {experiment: its claims as judged}."""
    return [
        Row(
            claim,
            tuple(seed[path][number]["measured"] for seed in judged),
            tuple(seed[path][number]["verdict"] for seed in judged),
        )
        for path, listed in judged[0].items()
        for number, claim in enumerate(listed)
    ]


def document(found: Sequence[Row], seeds: Sequence[int]) -> Document:
    """{"seeds": …, "claims": […], "counts": {"claims", "random", "changed"}}."""
    return {
        "seeds": list(seeds),
        "claims": [row.document() for row in found],
        "counts": {
            "claims": len(found),
            "random": sum(row.random for row in found),
            "changed": sum(not row.same for row in found),
        },
    }


def table(found: Iterable[Row]) -> str:
    """A Markdown table of the random claims, those nearest to another verdict first."""

    def order(row: Row) -> tuple[bool, float]:
        return row.same, math.inf if row.room is None else row.room

    lines = [f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS)]
    for row in sorted((row for row in found if row.random), key=order):
        claim, entry = row.claim, row.document()
        sign = "" if claim["relation"] == "=" else f"{claim['relation']} "
        unit = "" if claim["unit"] in (None, "ratio") else f" {claim['unit']}"
        paper = "–" if claim["paper_value"] is None else f"{sign}{claim['paper_value']:.4g}{unit}"
        verdict = row.verdicts[0] if row.same else f"**{_tally(row.verdicts)}**"
        never = " (or never)" if row.spread is None and entry["most"] is not None else ""
        cells = [
            row.path,
            paper,
            _number(claim["tolerance"]),
            _number(entry["least"]),
            _number(entry["most"]) + never,
            _number(row.spread_over_tolerance),
            _number(row.room),
            verdict,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _tally(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))


def summary(found: Sequence[Row], seeds: Sequence[int]) -> str:
    """How many claims there are, how many are random, and which verdicts change."""
    counts = document(found, seeds)["counts"]
    changed = [f"{row.path}: {_tally(row.verdicts)}" for row in found if not row.same]
    head = (
        f"{counts['claims']} claims, seeds {seeds[0]} to {seeds[-1]}: {counts['random']} of them "
        f"have a value that depends on the seed, {counts['changed']} a verdict that does"
    )
    return "\n".join([head, *changed])


def judge(
    chosen: Sequence[Experiment], seeds: Sequence[int], short: bool = False
) -> list[dict[str, list[Document]]] | None:
    """What each seed gives, {experiment: its claims as judged}; None after Ctrl-C."""
    found = []
    for seed in seeds:
        print(f"seed {seed}", file=sys.stderr, flush=True)
        one = _judge_one(chosen, seed, short)
        if one.interrupted:
            return None
        found.append({experiment.path: one.claims[experiment.path] for experiment in chosen})
    return found


def _judge_one(chosen: Sequence[Experiment], seed: int, short: bool) -> Reproduction:
    with LiveList(len(chosen)) as live:

        def done(experiment: Experiment, judged: list[Document], _: list[Path]) -> None:
            live.done(experiment.path, judged)

        return reproduce(
            chosen,
            None,
            short=short,
            seed=seed,
            planned=live.planned,
            progress=live.show,
            done=done,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exit 0 when every claim has one verdict for all seeds, else 1."""
    parser = argparse.ArgumentParser(prog="python -m waterfill.seeds", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="PAPER[/EXPERIMENT]", help="all by default")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="1 to N")
    parser.add_argument("--short", action="store_true", help="shorter runs of fewer points")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("-o", metavar="DIR", type=Path, help="writes seeds.json and seeds.md there")
    options = parser.parse_args(arguments)
    try:
        if options.seeds < 2:
            expected = f"expected 2 or more, there is nothing to compare in {options.seeds}"
            raise InputError("command line", "--seeds", expected)
        known = claims.experiments()
        chosen = claims.select(options.names, known) if options.names else known
        folder = None if options.o is None else make_directory(options.o)
        seeds = range(1, options.seeds + 1)
        judged = judge(chosen, seeds, options.short)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if judged is None:
        print("interrupted; the runs that ended are kept", file=sys.stderr)
        return INTERRUPTED
    found = rows(judged)
    text = f"{table(found)}\n\n{summary(found, seeds)}\n"
    if folder is not None:
        write_text(folder / "seeds.json", to_json(document(found, seeds)) + "\n")
        write_text(folder / "seeds.md", text)
    print(to_json(document(found, seeds)) if options.json else text, end="\n" * options.json)
    return 0 if all(row.same for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
