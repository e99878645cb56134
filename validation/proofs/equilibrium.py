"""Proof that max-min is the only equilibrium of MaxNet, on every network up to a size.

A network is a set of links with any positive capacities, and a route, some of the links, for each
flow. In equilibrium

- a flow's price is the largest on its route, and its rate D(price), where D is any strictly
  decreasing function, the same for all flows [maxnet-2007:eq2, eq7];
- a link's load is at most its capacity, and equals it where its price is above p_min =
  D^-1(capacity), below which no price is [maxnet-2007:eq3, VI].

Water-filling raises all rates together and stops those of a link that is full. z3 shows for each
order in which links can become full that the rates of an equilibrium are water-filling's: so they
are max-min, and no two equilibria differ in them. That an equilibrium exists is not shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import z3

Route = frozenset[int]


def networks(links: int, flows: int) -> Iterator[tuple[Route, ...]]:
    """Yield the routes of all networks with given numbers of links and flows, up to renumbering.
    Every link is used.
    """
    routes = [
        frozenset(chosen)
        for size in range(1, links + 1)
        for chosen in itertools.combinations(range(links), size)
    ]
    seen: set[tuple[tuple[int, ...], ...]] = set()
    for network in itertools.combinations_with_replacement(routes, flows):
        if len(frozenset().union(*network)) < links:
            continue
        first = min(
            tuple(sorted(tuple(sorted(order[link] for link in route)) for route in network))
            for order in itertools.permutations(range(links))
        )
        if first not in seen:
            seen.add(first)
            yield network


def equilibrium(
    network: tuple[Route, ...], capacities: list[z3.ArithRef], rates: list[z3.ArithRef], name: str
) -> list[z3.BoolRef]:
    """Return the conditions under which given rates are an equilibrium of a network."""
    demand = z3.Function("D", z3.RealSort(), z3.RealSort())
    links = len(capacities)
    prices = [z3.Real(f"p{name}{link}") for link in range(links)]
    least = [z3.Real(f"least{link}") for link in range(links)]
    heard = [z3.Real(f"q{name}{flow}") for flow in range(len(network))]
    known = [*least, *heard]
    facts = [demand(least[link]) == capacities[link] for link in range(links)]
    facts += [demand(q) == rate for q, rate in zip(heard, rates, strict=True)]
    facts += [(a < b) == (demand(a) > demand(b)) for a in known for b in known if a is not b]
    for flow, route in enumerate(network):
        facts += [heard[flow] >= prices[link] for link in route]
        facts.append(z3.Or(*(heard[flow] == prices[link] for link in route)))
        facts.append(rates[flow] >= 0)
    for link in range(links):
        load = z3.Sum(*(rates[flow] for flow, route in enumerate(network) if link in route))
        facts += [prices[link] >= least[link], load <= capacities[link]]
        facts.append(z3.Or(prices[link] == least[link], load == capacities[link]))
    return facts


def fillings(
    network: tuple[Route, ...], capacities: list[z3.ArithRef]
) -> Iterator[tuple[list[z3.BoolRef], list[z3.ArithRef]]]:
    """Yield each order of water-filling, as its conditions and the resulting rates."""

    def fill(
        conditions: list[z3.BoolRef], rates: dict[int, z3.ArithRef]
    ) -> Iterator[tuple[list[z3.BoolRef], list[z3.ArithRef]]]:
        rising = [flow for flow in range(len(network)) if flow not in rates]
        if not rising:
            yield conditions, [rates[flow] for flow in range(len(network))]
            return
        levels = {}
        for link, capacity in enumerate(capacities):
            users = [flow for flow in rising if link in network[flow]]
            stopped = [rates[flow] for flow in rates if link in network[flow]]
            if users:
                levels[link] = (capacity - z3.Sum(*stopped, 0)) / len(users)
        for link, level in levels.items():
            full = [level <= other for which, other in levels.items() if which != link]
            full_here = {flow: level for flow in rising if link in network[flow]}
            yield from fill([*conditions, *full], {**rates, **full_here})

    yield from fill([], {})


def prove(links: int, flows: int) -> tuple[str, int]:
    """Prove the theorem for all networks of a size. Return z3's answer and the number
    of networks.
    """
    count = 0
    capacities = [z3.Real(f"c{link}") for link in range(links)]
    positive = [capacity > 0 for capacity in capacities]
    for network in networks(links, flows):
        count += 1
        rates = [z3.Real(f"x{flow}") for flow in range(flows)]
        solver = z3.Solver()
        solver.add(*positive, *equilibrium(network, capacities, rates, ""))
        if solver.check() != z3.sat:  # else the theorem would hold of nothing
            return f"{sorted(map(sorted, network))}: no equilibrium at all", count
        for conditions, filled in fillings(network, capacities):
            solver.push()
            differs = z3.Or(*(x != y for x, y in zip(rates, filled, strict=True)))
            solver.add(*conditions, differs)
            answer = solver.check()
            solver.pop()
            if answer != z3.unsat:
                return f"{sorted(map(sorted, network))}: {answer}", count
    return "proved", count


SIZES = [(links, flows) for links in (1, 2, 3) for flows in (1, 2, 3, 4)] + [(4, 4), (3, 5)]
