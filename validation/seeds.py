"""`make seeds`: does a verdict hang on the seed, and how wide is a tolerance beside the spread?

Every experiment runs once for each seed, from 1 on; one that takes a mean over several seeds
(`seeds` in its claims.toml) runs so often for each. A claim whose value is the same for all of
them is not random. For the others the table shows how far the values lie apart and how near the
nearest of them comes to the place where the verdict would be another one:

- spread: the largest less the smallest value, beside the tolerance;
- margin: the smallest distance of a value from where its verdict would change, in spreads. Below
  one, another seed may well change it;
- single runs: where they lie, for a claim whose values are means.

Runs are kept (`waterfill.runs.cache`), so that an interrupted table goes on where it was. It
exits with 1 when a verdict changes from seed to seed, when single runs lie on both sides of a
tolerance's edge and the claim has no `over_seeds`, and when they lie elsewhere than it says.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from waterfill.cli.live import LiveList
from waterfill.errors import InputError
from waterfill.papers.claims import loading
from waterfill.papers.claims.chance import OverSeeds
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.verdict import edges
from waterfill.papers.reproduce import Reproduction, reproduce
from waterfill.runs.result import Document, make_directory, to_json, write_text

SEEDS = 5
INTERRUPTED = 130  # as `waterfill reproduce` after Ctrl-C

# Another sample's extremes differ by chance: by this share of the range on record they may.
_ASTRAY = 0.5

_PARTED = "on both sides of where the verdict changes, and no over_seeds on record says so"

_COLUMNS = (
    *("claim", "paper", "tolerance", "least", "most", "spread / tolerance", "margin"),
    *("single runs", "verdict"),
)


@dataclass(frozen=True)
class Row:
    """One claim over all seeds; `measured` and `verdicts` in their order, None not measured.

    `singles` are the values of all runs, where a value measured is a mean over several.
    """

    claim: Document
    measured: tuple[float | None, ...]
    verdicts: tuple[str, ...]
    singles: tuple[float | None, ...] = ()

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
    def margin(self) -> float | None:
        """Least distance from where the verdict changes, in spreads.

        None where verdicts change, where nothing is random and where there is nothing to compare.
        """
        if not self.same or not self.spread or not self._edges:
            return None
        values = [measured for measured in self.measured if measured is not None]
        least = min(abs(measured - edge) for measured in values for edge in self._edges)
        return float(least) / self.spread

    @property
    def single_runs(self) -> OverSeeds | None:
        """Where single runs lie; None where values are of one run, or one has none."""
        values = [value for value in self.singles if value is not None]
        if len(self.singles) == len(self.measured) or len(values) < max(2, len(self.singles)):
            return None
        return OverSeeds(runs=len(values), least=min(values), most=max(values))

    @property
    def complaint(self) -> str | None:
        """What is wrong with the verdicts or with what is on record of single runs."""
        if not self.same:
            return _tally(self.verdicts)
        found, record = self.single_runs, self.claim["over_seeds"]
        if found is None:
            return None
        lie = f"single runs lie from {found.least:.4g} to {found.most:.4g}"
        if record is None:
            return f"{lie}, {_PARTED}" if found.parted_by(self._edges) else None
        slack = _ASTRAY * (record["most"] - record["least"])
        off = [found.least - record["least"], found.most - record["most"]]
        # Fewer runs than the record's need not reach as far.
        off = off if found.runs >= record["runs"] else [min(off[0], 0.0), max(off[1], 0.0)]
        if max(map(abs, off)) <= slack:
            return None
        return f"{lie}, on record is {record['least']:.4g} to {record['most']:.4g}"

    @property
    def _edges(self) -> tuple[float, ...]:
        value = self.claim["paper_value"]
        if value is None:
            return ()
        return edges(self.claim["relation"], value, self.claim["tolerance"])

    def document(self) -> Document:
        """The claim's entry in the document of `--json`."""
        keys = ("id", "paper", "experiment", "relation", "paper_value", "tolerance", "unit")
        values = [value for value in self.measured if value is not None]
        return {key: self.claim[key] for key in (*keys, "expect")} | {
            "measured": list(self.measured),
            "verdicts": list(self.verdicts),
            "same": self.same,
            "random": self.random,
            "singles": list(self.singles),
            "complaint": self.complaint,
            "least": min(values, default=None),
            "most": max(values, default=None),
            "spread_over_tolerance": self.spread_over_tolerance,
            "margin": self.margin,
        }


def rows(judged: Sequence[Mapping[str, Sequence[Document]]]) -> list[Row]:
    """One row a claim, from what each seed gave: {experiment: its claims as judged}."""
    return [
        Row(
            claim,
            tuple(seed[path][number]["measured"] for seed in judged),
            tuple(seed[path][number]["verdict"] for seed in judged),
            tuple(value for seed in judged for value in seed[path][number]["values"]),
        )
        for path, listed in judged[0].items()
        for number, claim in enumerate(listed)
    ]


def document(found: Sequence[Row], seeds: Sequence[int]) -> Document:
    """{"seeds": …, "claims": […], "counts": {"claims", "random", "changed", "complaints"}}."""
    return {
        "seeds": list(seeds),
        "claims": [row.document() for row in found],
        "counts": {
            "claims": len(found),
            "random": sum(row.random for row in found),
            "changed": sum(not row.same for row in found),
            "complaints": sum(row.complaint is not None for row in found),
        },
    }


def table(found: Iterable[Row]) -> str:
    """A Markdown table of the random claims, those nearest to another verdict first."""

    def order(row: Row) -> tuple[bool, float]:
        return row.complaint is None, math.inf if row.margin is None else row.margin

    lines = [f"| {' | '.join(_COLUMNS)} |", "|" + "---|" * len(_COLUMNS)]
    for row in sorted((row for row in found if row.random), key=order):
        claim, entry = row.claim, row.document()
        sign = "" if claim["relation"] == "=" else f"{claim['relation']} "
        unit = "" if claim["unit"] in (None, "ratio") else f" {claim['unit']}"
        paper = "–" if claim["paper_value"] is None else f"{sign}{claim['paper_value']:.4g}{unit}"
        verdict = row.verdicts[0] if row.same else f"**{_tally(row.verdicts)}**"
        never = " (or never)" if row.spread is None and entry["most"] is not None else ""
        single = row.single_runs
        cells = [
            row.path,
            paper,
            _number(claim["tolerance"]),
            _number(entry["least"]),
            _number(entry["most"]) + never,
            _number(row.spread_over_tolerance),
            _number(row.margin),
            "–" if single is None else f"{single.least:.4g} to {single.most:.4g}",
            verdict,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _tally(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))


def summary(found: Sequence[Row], seeds: Sequence[int]) -> str:
    """How many claims there are, how many are random, and what is wrong with which."""
    counts = document(found, seeds)["counts"]
    wrong = [f"{row.path}: {row.complaint}" for row in found if row.complaint is not None]
    head = (
        f"{counts['claims']} claims, seeds {seeds[0]} to {seeds[-1]}: {counts['random']} of them "
        f"have a value that depends on the seed, {counts['changed']} a verdict that does"
    )
    return "\n".join([head, *wrong])


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
    """The command; exit 0 when nothing is to be complained of, else 1."""
    parser = argparse.ArgumentParser(prog="python -m validation.seeds", description=__doc__)
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
        known = loading.experiments()
        chosen = loading.select(options.names, known) if options.names else known
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
    return 0 if all(row.complaint is None for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
