"""Fuzz targets that compute: short runs of scenarios, and the theory of parameters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from validation.fuzz_python import mutate
from validation.fuzz_python.choices import Choices
from validation.fuzz_python.outcome import Finding, read
from validation.fuzz_python.texts import changed_scenario, too_large
from waterfill.network import protocols
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario import loading
from waterfill.scenario.document import Scenario
from waterfill.theory import documents, stability, subject

_RUN_S = 0.02
# Left out until input that asks for very many events is refused with an estimate.
_MAX_PACKETS = 30_000
_MAX_FLOWS = 300


def _small(scenario: Scenario) -> bool:
    """Return True if a scenario's run would have few events."""
    if too_large(scenario) or scenario.params or scenario.duration > _RUN_S:
        return False
    flows = sum(flow.count for flow in scenario.flow) + sum(t.count or 1 for t in scenario.traffic)
    rates = [link.rate for link in scenario.link] + [t.rate or 0.0 for t in scenario.traffic]
    rates += [flow.access_rate or 0.0 for flow in scenario.flow]
    peaks = [rate for link in scenario.link for trace in (link.rate_trace, link.rate_trace_reverse)
             if trace is not None for _, rate in trace.points]  # fmt: skip
    peaks += [e.rate for link in scenario.link for e in link.event or () if e.rate is not None]
    packets = sum([*rates, *peaks]) * _RUN_S / 8 / min(scenario.packet_size, 20 * scenario.ack_size)
    arrivals = sum(t.arrival_rate or 0.0 for t in scenario.traffic) * _RUN_S
    loads = sum(t.load or 0.0 for t in scenario.traffic)
    periods = [t.on for t in scenario.traffic if t.on] + [t.off for t in scenario.traffic if t.off]
    windows = [f.initial_window or 0 for f in scenario.flow] + [
        t.initial_window or 0 for t in scenario.traffic
    ]
    queues = str([link.queue_params for link in scenario.link])
    steps = scenario.step or 1e-3
    return (
        flows <= _MAX_FLOWS and packets <= _MAX_PACKETS and arrivals + loads <= 300
        and min(periods, default=1.0) >= 1e-5 and max(windows, default=0) <= 10_000
        and scenario.sample >= 1e-5 and steps >= 1e-5 and "e-" not in queues
        and all(" ns" not in queues and " ps" not in queues for _ in (0,))
        and all(link.shaper is None or "ns" not in str(link.shaper) for link in scenario.link)
    )  # fmt: skip


def run(data: bytes, folder: Path) -> None:
    """Fuzz target: run a changed scenario for 20 ms and check its summary."""
    choices = Choices(data)
    on = choices.pick(("sim", "sim", "fluid"))
    text = changed_scenario(choices, most=2, without=("params", "step", "measure"))
    short = ["duration=20 ms", "measure=['5 ms', '20 ms']", "sample=1 ms", "check_step=false"]
    source = str(Path(__file__).parents[2] / "examples/fuzzed.toml")
    found = read(lambda: loading.from_toml(_in_time(text), source, short), text)
    if found is None or not _small(found):
        return
    result = read(lambda: backends.run(found, on=on), text)
    if result is not None:
        _check(result)


def _in_time(text: str) -> str:
    """Return a scenario's text with its times divided by 1000, so that they fit into
    a short run.
    """
    return text.replace(' s"', ' ms"')


def _check(result: Result) -> None:
    summary: Any = result.summary
    start_s, stop_s = summary["measure_s"]
    for link, spec in zip(summary["links"], result.network.links, strict=True):
        most = 1.0
        if spec.shaper is not None:  # its bucket may have been full at the start of the window
            most += 8 * spec.shaper.depth_bytes / (spec.rate_bps * (stop_s - start_s))
        if not 0 <= link["utilization"] <= most + 1e-9:
            raise Finding("utilization", f"{link['name']}: {link['utilization']} of {most}")
    for path, number in _numbers(summary):
        if not math.isfinite(number):
            raise Finding("not finite", f"{path}: {number}")
    if result.flows.num_rows and not all(map(math.isfinite, result.flows["rate_bps"].to_pylist())):
        raise Finding("not finite", "rates of the flows")


def _numbers(value: Any, path: str = "") -> list[tuple[str, float]]:
    if isinstance(value, float):
        return [(path, value)]
    if isinstance(value, dict):
        return [pair for key, one in value.items() for pair in _numbers(one, f"{path}.{key}")]
    if isinstance(value, (list, tuple)):
        return [pair for one in value for pair in _numbers(one, f"{path}[]")]
    return []


_TIMES = (
    "1 us", "1.1 us", "10 us", "1 ms", "40 ms", "80 ms", "1 s", "7 s", "100 s", "1000 s", "1e6 s",
)  # fmt: skip
_VALUES = (
    "1e-300", "1e-9", "1e-3", "0.06", "0.1", "0.4", "0.66", "0.9", "1", "1.5", "2", "4", "10",
    "100", "1e9", "1e300", "1 us", "1 ms", "10 ms", "100 ms", "1 s", "100 s", "1e15 bit/s", "true",
    "off",
)  # fmt: skip


def theory(data: bytes, folder: Path) -> None:
    """Fuzz target: compute margins, convergence, encodings or stability of a law with odd
    parameters.
    """
    choices = Choices(data)
    command = choices.pick(("margin", "convergence", "encoding", "stability"))
    laws = {
        "margin": documents.MARGIN, "convergence": documents.CONVERGENCE,
        "encoding": documents.ENCODING, "stability": stability.PROTOCOLS,
    }[command]  # fmt: skip
    law = choices.pick(laws)
    known = [param.name for param in protocols.load()[law].params]
    sets = [f"params.{law}.{choices.pick(known)}={choices.pick(_VALUES)}"
            for _ in range(choices.below(4))]  # fmt: skip
    if choices.chance(6):
        sets.append(f"params.{law}.{choices.pick(known)}={choices.pick(mutate.TEXTS)}")
    time = choices.pick(_TIMES) if not choices.chance(8) else choices.pick(mutate.TEXTS)

    def answer() -> object:
        about = subject.parse(law, sets, laws)
        tau_s = subject.time_s("rtt", time)
        if command == "margin":
            return documents.margin(about, tau_s)
        if command == "convergence":
            return documents.convergence(about, max(tau_s, 1e-3))
        return (
            documents.encoding_of(about)
            if command == "encoding"
            else stability.document(about, tau_s)
        )

    read(answer, str(sets) + time)
