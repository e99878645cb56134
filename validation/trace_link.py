"""A link that follows a trace, on the simulator and on the running kernel: rates side by side.

Two flows of one law cross the shipped trace for a minute on each backend. Prints the ratio of the
mean rates and the correlation of the rates over 1 s, and fails if a law misses the goals.
As root. Run: python -m validation.trace_link [PROTOCOL …]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import waterfill
from waterfill.scenario.loading import from_toml

PROTOCOLS = ("cubic", "sack", "newreno", "xcp", "maxnet")
FROM_S, TO_S = 5, 60
RATIO, CORRELATION = 0.05, 0.96
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

SCENARIO = f"""
duration = "{TO_S} s"
sample = "1 s"
measure = ["{FROM_S} s", "{TO_S} s"]
[[link]]
name = "cell"
from = "tower"
to = "phone"
rate = "15 Mbit/s"
delay = "20 ms"
buffer = "2 bdp"
rate_trace = "cellular.csv"
[[flow]]
name = "down"
from = "tower"
to = "phone"
count = 2
"""


def rates(protocol: str, backend: str) -> NDArray[np.float64]:
    """Return the rate of both flows (bit/s) in each second of the window."""
    text = f'protocol = "{protocol}"{SCENARIO}'
    result = waterfill.run(from_toml(text, str(EXAMPLES / "trace.toml")), on=backend)
    flows = result.flows.to_pydict()
    found = np.zeros(TO_S + 1)
    for time_s, bps in zip(flows["time_s"], flows["rate_bps"], strict=True):
        found[round(time_s)] += bps or 0.0
    return found[FROM_S + 1 :]


def main() -> int:
    """Print a line for each protocol; return 1 if one misses the goals."""
    failed = 0
    print(
        "| protocol | mean, simulator | mean, kernel | ratio | correlation |\n|---|---|---|---|---|"
    )
    for protocol in sys.argv[1:] or PROTOCOLS:
        sim, linux = (rates(protocol, backend) for backend in ("sim", "linux"))
        ratio, alike = linux.mean() / sim.mean(), np.corrcoef(sim, linux)[0, 1]
        means = " | ".join(f"{one.mean() / 1e6:.2f} Mbit/s" for one in (sim, linux))
        print(f"| `{protocol}` | {means} | {ratio:.3f} | {alike:.4f} |", flush=True)
        failed |= int(not (abs(ratio - 1) <= RATIO and alike >= CORRELATION))
    return failed


if __name__ == "__main__":
    sys.exit(main())
