"""Scenarios whose results are compared between targets, and the requests that engines read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from validation.study import ROOT
from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_toml

BACKENDS = ("sim", "fluid")
# Two bottlenecks and a flow that starts late: the part of a scenario that both engines run.
PLAIN = """
name = "plain"
duration = "2 s"
protocol = "{protocol}"
params = {{ {params} }}
link = [
  {{ name = "a-b", from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms", buffer = "30 kB" }},
  {{ name = "b-c", from = "b", to = "c", rate = "8 Mbit/s", delay = "15 ms", buffer = "30 kB" }},
]
flow = [
  {{ name = "long", from = "a", to = "c" }},
  {{ name = "short", from = "a", to = "b", start = "500 ms" }},
]
"""
# A queue, a faulty wire, and traffic of every kind: for the packet simulator only.
RICH = """
name = "rich"
duration = "2 s"
protocol = "cubic"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
buffer = "100 kB"
loss_model = {{ kind = "gilbert-elliott", p = 0.002, r = 0.2 }}
reorder = {{ share = 0.01, delay = "3 ms" }}
duplicate = 0.005
{queue}
[[flow]]
name = "tcp"
from = "a"
to = "b"
count = 3
start_jitter = "100 ms"
[[flow]]
name = "explicit"
protocol = "maxnet"
from = "a"
to = "b"
[[traffic]]
name = "pages"
kind = "web"
from = "a"
to = "b"
arrival_rate = "20 /s"
sizes = {{ distribution = "pareto", mean = "20 kB", shape = 1.35, max = "1 MB" }}
[[traffic]]
name = "answers"
kind = "web"
from = "b"
to = "a"
arrival_rate = "10 /s"
sizes = {{ distribution = "exponential", mean = "5 kB" }}
[[traffic]]
name = "random"
kind = "poisson"
path = ["l"]
rate = "500 kbit/s"
[[traffic]]
name = "bursts"
kind = "onoff"
path = ["l"]
rate = "1 Mbit/s"
on = "100 ms"
off = "200 ms"
distribution = "pareto"
shape = 1.5
"""
QUEUES = ("droptail", "red", "codel", "fq_codel", "pie", "fq_pie", "dualpi2", "choke", "cohabit")


@dataclass(frozen=True)
class Source:
    """A scenario and the backend that runs it. `text` is empty if the scenario is the file `path`
    of the checkout.
    """

    path: str
    on: str
    text: str = ""

    @property
    def name(self) -> str:
        """Path of the scenario and backend."""
        return f"{self.path} {self.on}"

    @property
    def group(self) -> str:
        """Folder of the scenario, or paper that it is from."""
        return str(Path(*Path(self.path).parts[: 2 if self.path.startswith("papers") else 1]))

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario; raise InputError if it is wrong."""
        text = self.text or (ROOT / self.path).read_text(encoding="utf-8")
        return from_toml(text, str(ROOT / self.path))

    def request(self, events: int | None = None) -> str:
        """Return the resolved network with its backend, as the JSON that the Rust core reads.

        The run ends after a number of events, if one is given. Returns an empty text if the backend
        does not support the scenario.
        """
        scenario = self.scenario
        try:
            network = resolve.to_core(scenario, protocols.load(), self.on)
        except InputError:
            return ""
        step_s = scenario.step if self.on == "fluid" else None
        document = {
            "network": network.to_dict(), "backend": self.on, "step_s": step_s, "events": events,
        }  # fmt: skip
        return json.dumps(document, allow_nan=False)


def small() -> list[Source]:
    """Return short scenarios of every protocol, arithmetic, queue and kind of traffic."""
    found = []
    for name, info in protocols.load().items():
        plain = PLAIN.format(protocol=name, params="")
        found += [Source(f"protocols/{name}", on, plain) for on in BACKENDS if on in info.backends]
        if any(param.name == "arithmetic" for param in info.params):
            params = f'{name} = {{ arithmetic = "kernel-host" }}'
            text = PLAIN.format(protocol=name, params=params)
            found.append(Source(f"kernel-host/{name}", "sim", text))
    for queue in QUEUES:
        text = RICH.format(queue=f'queue = "{queue}"')
        found.append(Source(f"queues/{queue}", "sim", text))
    return found


def committed() -> list[Source]:
    """Return every scenario file in examples/ and papers/ on both backends, sorted by path."""
    files = [*ROOT.glob("examples/*.toml"), *ROOT.glob("papers/*/*/*.toml")]
    paths = sorted(path for path in files if path.name != "claims.toml")
    return [Source(str(path.relative_to(ROOT)), on) for path in paths for on in BACKENDS]
