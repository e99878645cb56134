"""The sliders of a scenario as plain data: the keys that they set, and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from waterfill.network import protocols
from waterfill.network.protocols import ParamInfo
from waterfill.scenario.document import Scenario
from waterfill.studio.settings import known


class Step(NamedTuple):
    """One position of a slider: the number it shows, and the value for `--set`."""

    shown: float
    value: str


@dataclass(frozen=True)
class Slider:
    """A slider: the key it sets, its label with unit, its steps, and its initial step."""

    key: str
    label: str
    steps: Sequence[Step]
    start: int

    def value_of(self, shown: float) -> str:
        """Return the `--set` value of the step nearest to a displayed number."""
        return min(self.steps, key=lambda step: abs(step.shown - shown)).value


@dataclass(frozen=True)
class Choice:
    """A parameter chosen from words: its key, its label, the words, and the current word."""

    key: str
    label: str
    words: Sequence[str]
    start: str


def slider(key: str, label: str, shown: Sequence[float], unit: str, now: float) -> Slider:
    """Build a slider whose steps include the current value."""
    numbers = sorted({*(float(f"{x:.3g}") for x in shown), float(f"{now:.6g}")})
    steps = [Step(x, f"{x:.6g} {unit}".strip()) for x in numbers]
    start = min(range(len(numbers)), key=lambda i: abs(numbers[i] - now))
    return Slider(key, label, steps, start)


def of_link(scenario: Scenario, name: str) -> list[Slider]:
    """Return the sliders for the rate, delay and loss of one link."""
    link = next(link for link in scenario.link if link.name == name)
    rates = [x * 10**e for e in range(0, 5) for x in (1, 1.5, 2, 3, 4, 5, 6, 8)]
    delays = [x * 10**e for e in range(-1, 3) for x in (1, 1.5, 2, 3, 4, 5, 6, 8)]
    losses = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    loss = slider("", "", losses, "", 100 * link.loss)
    steps = [Step(step.shown, f"{step.shown / 100:.6g}") for step in loss.steps]
    found = [
        slider(f"link.{name}.rate", "Rate (Mbit/s)", rates, "Mbit/s", link.rate / 1e6),
        slider(f"link.{name}.delay", "Delay, one way (ms)", delays, "ms", 1e3 * link.delay),
        Slider(f"link.{name}.loss", "Random loss (%)", steps, loss.start),
    ]
    if link.delay_trace is not None:  # a delay next to it is refused
        del found[1]
    if link.rate_reverse is not None:
        key, label = f"link.{name}.rate_reverse", "Rate, reverse (Mbit/s)"
        found.append(slider(key, label, rates, "Mbit/s", link.rate_reverse / 1e6))
    if link.delay_reverse is not None:
        key, label = f"link.{name}.delay_reverse", "Delay, reverse (ms)"
        found.append(slider(key, label, delays, "ms", 1e3 * link.delay_reverse))
    return found


def of_flow(scenario: Scenario, name: str) -> list[Slider]:
    """Return the slider for the number of flows of one group."""
    flow = next(flow for flow in scenario.flow if flow.name == name)
    counts = [*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100]
    return [slider(f"flow.{name}.count", "Flows of the group", counts, "", flow.count)]


_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_PER_DECADE = 20


def of_protocol(scenario: Scenario, protocol: str) -> list[Slider | Choice]:
    """Return the controls of a known protocol's parameters: sliders for numbers, choices for words.

    Numbers go from a tenth to ten times the default, as far as the core accepts them. What a link
    sets to no value of the parameter is shown as the default: the answer says what is wrong.
    """
    info = known().get(protocol)
    if info is None:
        return []
    set_params = scenario.params.get(protocol, {})
    found: list[Slider | Choice] = []
    for param in info.params:
        key = f"params.{protocol}.{param.name}"
        now = param.default
        if param.name in set_params:
            with suppress(ValueError):
                now = param.parse(set_params[param.name])
        if param.unit in ("flag", "choice"):
            found.append(_choice(key, param, now))
        elif isinstance(param.default, (int, float)) and isinstance(now, (int, float)):
            made = _number(key, protocol, param, float(param.default), float(now))
            if made is not None:
                found.append(made)
    return found


def _choice(key: str, param: ParamInfo, now: object) -> Choice:
    words = list(param.choices) or ["true", "false"]
    if isinstance(now, bool):
        start = (words[0] if now else words[-1]) if param.choices else str(now).lower()
    else:
        start = str(now)
    return Choice(key, label(param), words, start if start in words else words[0])


def _number(key: str, protocol: str, param: ParamInfo, default: float, now: float) -> Slider | None:
    if default == 0:
        return None  # a switch in disguise: no range follows from it
    size, unit = _scale(param.unit, default)
    values = [v / size for v in _accepted(protocol, param, default)]
    made = slider(key, label(param, unit), values, unit, now / size)
    return made if len(made.steps) > 1 else None


@cache
def _accepted(protocol: str, param: ParamInfo, default: float) -> tuple[float, ...]:
    """Return a parameter's values from a tenth to ten times the default that the core accepts."""
    values = default * np.logspace(-1, 1, 2 * _PER_DECADE + 1)
    return tuple(float(v) for v in values if _accepts(protocol, param, float(f"{v:.3g}")))


def _scale(kind: str, value: float) -> tuple[float, str]:
    if kind == "time":
        return next(((size, unit) for size, unit in _TIMES if value >= size), _TIMES[-1])
    if kind == "rate":
        return 1.0, "bit/s"
    return 1.0, {"volume": "B", "packets": "packets"}.get(kind, "")


def _accepts(protocol: str, param: ParamInfo, value: float) -> bool:
    if param.unit in ("count", "packets") and not value.is_integer():
        return False
    try:
        protocols.targets({protocol: {param.name: value}})
    except ValueError:
        return False
    return True


_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "mu": "μ", "tau": "τ", "xi": "ξ",
    "kappa_q": "κ_q", "t": "T", "t_0": "T₀", "t_2": "T₂", "q_0": "q₀", "x_0": "x₀", "delta": "δ",
}  # fmt: skip


def symbol(name: str) -> str:
    """Return a parameter's symbol in the papers, or its name."""
    return _GREEK.get(name, name)


def label(param: ParamInfo, unit: str = "") -> str:
    """Return the label of a parameter: symbol, unit, and description."""
    shown = f"{symbol(param.name)} ({unit})" if unit else symbol(param.name)
    return f"{shown}: {param.doc.rstrip('.').partition(';')[0]}"
