"""Work and memory grow with a network's size and no faster: counts of lines, not times."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from functools import cache, partial
from types import FrameType
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text

import waterfill
from waterfill.cli import formats, tables
from waterfill.contract.network import Network
from waterfill.formats import writing
from waterfill.formats.build import Options, generated
from waterfill.network import maxmin, protocols, resolve
from waterfill.runs import effective
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_toml
from waterfill.testbed import variation

# Doubling the ports of a fat-tree's switches multiplies its hosts, links and flows by this number.
_GROWTH = 8
# Heaps and sorts add a logarithm, a network with twice as many flows per link longer lists.
_TOLERANCE = 1.2


def lines(work: Callable[[], Any]) -> int:
    """Return how many lines of Python `work` executes, with one more for each turn of a loop."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@cache
def text(k: int) -> str:
    options = Options(rate_bps=1e8, delay_s=0.004, pattern="permutation", duration_s=0.2)
    return writing.text(generated("fat-tree", [k], options), "maxnet", 1)


@cache
def scenario(k: int) -> Scenario:
    return from_toml(text(k))


@cache
def network(k: int) -> Network:
    return resolve.to_core(scenario(k), protocols.load())


def shares(k: int) -> None:
    lives = maxmin.lives_of(network(k))
    maxmin.mean_rates(network(k), {}, lives, lives)


def arriving(pattern: str, k: int) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        formats.generate("fat-tree", [k], arriving="rpc", traffic=pattern)


WORK: dict[str, Callable[[int], Any]] = {
    "generate": text.__wrapped__,
    "generate arrivals, all-to-all": partial(arriving, "all-to-all"),
    "generate arrivals, incast": partial(arriving, "incast"),
    "load": scenario.__wrapped__,
    "resolve": network.__wrapped__,
    "max-min shares": shares,
    "check": lambda k: effective.document(scenario(k)),
    "changes of links on linux": lambda k: variation.refuse(scenario(k), network(k)),
}


@pytest.mark.parametrize("name", WORK)
def test_work_grows_with_the_size_of_a_fat_tree(name):
    work = WORK[name]
    work(4)  # imports and caches
    for k in (4, 8):
        scenario(k), scenario(2 * k), network(k), network(2 * k)
        few, many = (lines(partial(work, size)) for size in (k, 2 * k))
        assert many < _TOLERANCE * _GROWTH * few, f"{name}: {few} lines for {k}, {many} for {2 * k}"


def test_a_table_of_many_rows_shows_the_extremes():
    result = waterfill.run(scenario(8))
    shown = [part for part in tables.run(result.summary) if isinstance(part, Table)]
    flows, links = ([str(cell) for cell in table.columns[0].cells] for table in shown)
    notes = [str(part) for part in tables.run(result.summary) if isinstance(part, Text)]
    rates = sorted(result.summary["flows"], key=lambda flow: flow["rate_bps"])
    assert [rates[0]["name"], rates[-1]["name"]] == [flows[0], flows[10]]
    assert len(flows) == 20
    assert (
        f"… and {128 - 20} other groups. Listed: the 10 lowest rates and the 10 highest" in notes[1]
    )
    busiest = max(result.summary["links"], key=lambda link: link["utilization"])
    longest = max(result.summary["links"], key=lambda link: link["queue_bytes"]["max"])
    assert {busiest["name"], longest["name"]} <= set(links)
    assert f"… and {768 - len(links)} other links." in notes[2]
