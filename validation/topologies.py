"""Run explicit laws on the Topology Zoo and SNDlib, and compare with max-min: `make topologies`.

    python -m validation.topologies [--laws A,B] [--only TEXT] -o DIR

Networks are the 203 of the Topology Zoo with gravity demands and the 26 of SNDlib with their own,
as the package topohub has them; the busiest link is asked for 1.5 of its rate. Each law that the
fluid backend has runs for `duration_s`, and the mean rate of each flow over the last fifth is
compared to its exact max-min share. Every finished run is a line of DIR/runs.jsonl; a later call
goes on after it. docs/validation/topologies.md has the results and the exceptions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import waterfill
from waterfill.errors import InputError
from waterfill.formats.build import Options, imported
from waterfill.formats.writing import text
from waterfill.network import protocols, resolve
from waterfill.runs.result import Document
from waterfill.scenario.loading import from_dict, read_toml
from waterfill.scenario.units import TIME

GROUPS = ("topozoo", "sndlib")
RATE_BPS = 100e6
PAIRS = 40
LOAD = 1.5
SEED = 1
WITHIN = 0.02
DURATION_S = 30.0
# These settle more slowly: on Abilene AECP is 23 % off after 30 s and 0.1 % after 60 s.
SLOW_DURATION_S = 60.0
SLOW = ("aecp", "maxnet", "maxnet2006")
# Hosts are far enough from their routers that no base RTT is shorter: a fluid step is a tenth of
# the shortest. Shares do not depend on RTTs.
MIN_RTT_S = 0.01
STEPS_PER_RTT = 10
# The exact shares count data only, and acknowledgements of 40 B load the reverse links by 2.7 %.
ACK_SIZE = "1 B"
# Rates of these at rest are not max-min where a flow crosses several full links.
NOT_MAX_MIN = ("vcp", "xcp", "ixcp", "pxcp")


def duration_s(law: str) -> float:
    """Return how long a law runs."""
    return SLOW_DURATION_S if law in SLOW else DURATION_S


def names(group: str) -> list[str]:
    """Return topohub's networks of a group, as GROUP/NAME."""
    spec = find_spec("topohub")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "data" / group
    return sorted(f"{group}/{path.stem}" for path in folder.glob("*.json"))


def laws() -> list[str]:
    """Return the explicit laws of the fluid backend."""
    known = protocols.load().values()
    return [law.name for law in known if law.kind == "explicit" and "fluid" in law.backends]


def run(name: str, law: str) -> Document:
    """Run a law on a network; return the largest error of a flow, and which flow has it."""
    # Rates of the Zoo's links are up to 100 Gbit/s; errors depend on ratios only.
    options = Options(rate_bps=RATE_BPS, pairs=PAIRS, load=LOAD, seed=SEED,
                      duration_s=duration_s(law))  # fmt: skip
    start_s = time.perf_counter()
    document = read_toml(text(imported("topohub", name, options), law, SEED))
    end = TIME.format(duration_s(law))
    document["measure"] = [TIME.format(0.8 * duration_s(law)), end]
    document["ack_size"] = ACK_SIZE
    rtts_s = resolve.base_rtts(from_dict(document))
    for flow in document["flow"]:
        flow["rtt"] = TIME.format(max(rtts_s[flow["name"]], MIN_RTT_S))
    shortest_s = max(min(rtts_s.values()), MIN_RTT_S)
    document["step"] = TIME.format(shortest_s / STEPS_PER_RTT)
    result = waterfill.run(document, on="fluid")
    errors = [
        (abs((flow["rate_bps"] or 0.0) / flow["max_min_bps"] - 1), flow["name"])
        for flow in result.summary["flows"] if flow["max_min_bps"]
    ]  # fmt: skip
    worst, which = max(errors)
    return {
        "network": name, "law": law, "links": len(document["link"]), "flows": len(errors),
        "worst": worst, "flow": which, "within": sum(e <= WITHIN for e, _ in errors),
        "took_s": time.perf_counter() - start_s,
    }  # fmt: skip


def table(rows: Iterable[Document]) -> str:
    """Return a line per law, and its networks in which a flow is off by more than 2 %."""
    by_law: defaultdict[str, list[Document]] = defaultdict(list)
    for row in rows:
        by_law[row["law"]].append(row)
    lines = [
        "| law | networks | all flows within 2 % | flows within 2 % | worst flow |",
        "|---|--:|--:|--:|---|",
    ]
    for law, mine in by_law.items():
        worst = max(mine, key=lambda row: float(row["worst"]))
        good = sum(row["worst"] <= WITHIN for row in mine)
        flows, within = (sum(row[key] for row in mine) for key in ("flows", "within"))
        lines.append(
            f"| {law} | {len(mine)} | {good} | {within} of {flows} "
            f"| {worst['worst']:.1%} ({worst['network']}, {worst['flow']}) |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and print the table; exit code 1 if an error that counts exceeds 2 %."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--laws", help="laws, by commas; default: all of the fluid backend")
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    chosen = parser.parse_args(arguments)
    found = [name for group in GROUPS for name in names(group) if chosen.only in name]
    if not found:
        print("topologies: expected the package topohub and a network of it", file=sys.stderr)
        return 2
    chosen.output.mkdir(parents=True, exist_ok=True)
    file = chosen.output / "runs.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(row["network"], row["law"]) for row in rows}
    with file.open("a", encoding="utf-8") as out:
        for name in found:
            for law in chosen.laws.split(",") if chosen.laws else laws():
                if (name, law) in done:
                    continue
                try:
                    row = run(name, law)
                except InputError as error:
                    print(f"{name} {law}: {error}", file=sys.stderr)
                    return 2
                rows.append(row)
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(f"{name} {law}: {row['worst']:.2%} {row['took_s']:.1f} s", file=sys.stderr)
    rows = [row for row in rows if chosen.only in row["network"]]
    print(table(rows))
    judged = [row for row in rows if row["law"] not in NOT_MAX_MIN]
    return 0 if all(row["worst"] <= WITHIN for row in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
