"""Water-filling, level by level: the rates of all flows each time another link becomes full."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from waterfill.analysis.charts import COLOURS
from waterfill.contract.network import Network
from waterfill.network import maxmin, protocols

_WIDTH, _ROW, _LEFT, _RIGHT = 520, 26, 130, 90


class Level(NamedTuple):
    """One level of water-filling: rates of flow groups, loads of links (bit/s), and full links."""

    rates_bps: dict[str, float]
    loads_bps: dict[str, float]
    capacity_bps: dict[str, float]
    full: list[str]


def levels(network: Network) -> list[Level]:
    """Return the levels at which links become full, with all flows of the network active."""
    targets = protocols.targets(network.params)
    wanted = maxmin.link_targets(network, targets)
    capacity_bps = [link.rate_bps * t for link, t in zip(network.links, wanted, strict=True)]
    classes = [maxmin.FlowClass(f.forward, f.weight, f.limit_bps) for f in network.flows]
    counts = [flow.count for flow in network.flows]
    shares = [s.rate_bps if s else 0.0 for s in maxmin.solve(capacity_bps, classes, counts)]
    used = sorted({link for flow in network.flows for link in flow.forward})
    found = []
    for height in sorted({round(share, 3) for share in shares}):
        rates = [min(share, height) for share in shares]
        loads = {
            link: sum(r * f.count for r, f in zip(rates, network.flows, strict=True)
                      if link in f.forward)
            for link in used
        }  # fmt: skip
        full = [network.links[i].name for i in used if loads[i] > 0.999 * capacity_bps[i]]
        found.append(
            Level(
                {f.name: r for f, r in zip(network.flows, rates, strict=True)},
                {network.links[i].name: load for i, load in loads.items()},
                {network.links[i].name: capacity_bps[i] for i in used},
                full,
            )
        )
    return found


def draw(network: Network, number: int) -> str:
    """Return one level (counted from 0) as an SVG bar chart: links above, flows below."""
    found = levels(network)
    level = found[min(number, len(found) - 1)]
    most_bps = max(level.capacity_bps.values())
    scale = (_WIDTH - _LEFT - _RIGHT) / most_bps
    rows: list[str] = []
    height = 24
    rows.append(f'<text class="wf-title" x="8" y="{height}">Links (Mbit/s of their target)</text>')
    for name, load in level.loads_bps.items():
        height += _ROW
        whole = level.capacity_bps[name] * scale
        full = name in level.full
        text = f"{load / 1e6:.4g} of {level.capacity_bps[name] / 1e6:.4g}{' full' if full else ''}"
        rows.append(_bar(height, name, load * scale, "wf-water", text, whole))
    height += _ROW + 12
    rows.append(f'<text class="wf-title" x="8" y="{height}">Flows (Mbit/s each)</text>')
    for i, (name, rate) in enumerate(level.rates_bps.items()):
        height += _ROW
        count = next(f.count for f in network.flows if f.name == name)
        label = f"{name} ×{count}" if count > 1 else name
        rows.append(_bar(height, label, rate * scale, f"wf-f{i % COLOURS}", f"{rate / 1e6:.4g}"))
    spoken = f"Level {number + 1} of {len(found)}. " + ", ".join(
        f"{name} {rate / 1e6:.4g} Mbit/s" for name, rate in level.rates_bps.items()
    )
    return (
        f'<svg class="wf-chart" viewBox="0 0 {_WIDTH} {height + 16}" role="img" '
        f'aria-label="{escape(spoken)}">{"".join(rows)}</svg>'
    )


def _bar(y: int, name: str, width: float, kind: str, text: str, whole: float = 0.0) -> str:
    outline = (
        f'<rect class="wf-vessel" x="{_LEFT}" y="{y - 14}" width="{whole:.1f}" height="17"/>'
        if whole
        else ""
    )
    end = _LEFT + max(width, whole) + 6
    return (
        f'<text class="wf-small" text-anchor="end" x="{_LEFT - 8}" y="{y}">{escape(name)}</text>'
        f'<rect class="{kind}" x="{_LEFT}" y="{y - 14}" width="{width:.1f}" height="17"/>{outline}'
        f'<text class="wf-small" x="{end:.1f}" y="{y}">{escape(text)}</text>'
    )
