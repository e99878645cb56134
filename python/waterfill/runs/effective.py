"""Effective configuration of a scenario: all values in force, including defaults, without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from waterfill.contract.network import LinkSpec, Network, TrafficSpec, plain
from waterfill.contract.summary import LawSummary
from waterfill.errors import InputError
from waterfill.network import fit, maxmin, profile, protocols, resolve
from waterfill.runs import law_files
from waterfill.runs import laws as own
from waterfill.runs.backends import BACKENDS, prepare
from waterfill.runs.laws import PythonLaw
from waterfill.scenario.document import Scenario


def document(
    scenario: Scenario, on: str = "sim", laws: Mapping[str, PythonLaw] | None = None
) -> dict[str, Any]:
    """Return the values that a run of this scenario would use, in SI units.

    `backends` is {backend: why it cannot run this scenario here, or None}. `links` has one entry
    per direction, with its buffer, target and queue; `flows` one per [[flow]], with its route and
    base RTT; `params` every parameter of the protocols used. `laws` are laws in Python by name.

    Raises InputError for what the backend `on` cannot run.
    """
    prepare(scenario, on, laws)
    table = own.summaries(law_files.with_installed(laws or {}, scenario.protocols()))
    known = protocols.load() | own.infos(table)
    # A fabric's million routes take seconds to resolve.
    network = resolve.to_core(scenario, known, on)
    for key, message in _misfits(scenario, network, known):
        protocols.warn_of_misfit(scenario.source, key, message)
    # The backend `on` can run it.
    refusals = {b: None if b == on else _refusal(scenario, b, laws) for b in BACKENDS}
    return in_force(scenario, {"backends": refusals}, table, network)


def in_force(
    scenario: Scenario,
    more: Mapping[str, Any] | None = None,
    laws: Mapping[str, LawSummary] | None = None,
    network: Network | None = None,
) -> dict[str, Any]:
    """Return the effective values of a scenario and the values of `more`, even if this host cannot
    run the scenario.

    `laws` are those in Python of the run, as its summary has them. `network` is the scenario's, if
    it has been resolved; every backend runs a subset of the simulator's scenarios.
    """
    laws = laws or {}
    known = protocols.load() | own.infos(laws)
    targets = {name: law.target for name, law in laws.items()}
    network = resolve.to_core(scenario, known) if network is None else network
    params = protocols.with_defaults(network.protocols, network.params, known)
    return {
        "scenario": scenario.name,
        "file": scenario.source,
        "seed": scenario.seed,
        "duration_s": scenario.duration,
        "measure_s": list(scenario.measure_s),
        "packet_bytes": network.packet_bytes,
        **(more or {}),
        "links": _links(network, targets),
        "flows": _flows(network),
        "traffic": [_source(network, source) for source in network.traffic],
        "params": params,
        "profile": scenario.profile,
        "constants": profile.rows(scenario, network, params, known),
    }


def warn_of_misfits(
    scenarios: Iterable[Scenario], on: str, laws: Mapping[str, LawSummary] | None = None
) -> None:
    """Warn of constants that do not fit the scenarios' RTTs or have no effect, once for each."""
    known, named = protocols.load() | own.infos(laws or {}), set[str]()
    for scenario in scenarios:
        network = resolve.to_core(scenario, known, on)
        for key, message in _misfits(scenario, network, known):
            if key not in named:
                protocols.warn_of_misfit(scenario.source, key, message)
            named.add(key)


def _misfits(
    scenario: Scenario, network: Network, known: protocols.Protocols
) -> Iterator[tuple[str, str]]:
    params = protocols.with_defaults(network.protocols, network.params, known)
    yield from protocols.misfits(network, params, known)
    yield from fit.samples(network)
    yield from resolve.idle_window(scenario, network, known)


def _refusal(scenario: Scenario, backend: str, laws: Mapping[str, PythonLaw] | None) -> str | None:
    try:
        prepare(scenario, backend, laws)
    except InputError as error:
        return f"{error.key}: {error.message}" if error.key else error.message
    return None


def _links(network: Network, of_laws: dict[str, float]) -> list[dict[str, Any]]:
    targets = maxmin.link_targets(network, protocols.targets(network.params) | of_laws)
    return [_link(link, target) for link, target in zip(network.links, targets, strict=True)]


def _link(link: LinkSpec, target: float) -> dict[str, Any]:
    """Return a link's effective values, with the buffer size as `buffer_bytes` or
    `buffer_packets`.
    """
    entry: dict[str, Any] = {}
    for key, value in plain(link).items():
        if key == "buffer":
            entry["buffer_bytes"] = link.buffer.size if link.buffer.unit == "bytes" else None
            entry["buffer_packets"] = link.buffer.size if link.buffer.unit == "packets" else None
        else:
            entry[key] = value
    return entry | {"target": target}


def _flows(network: Network) -> list[dict[str, Any]]:
    return [_with_names(network, plain(flow)) for flow in network.flows]


def _source(network: Network, source: TrafficSpec) -> dict[str, Any]:
    """Return the values of a traffic source, with the number of its pairs in place of the pairs."""
    if source.flows is None or not source.flows.pairs:
        return _with_names(network, plain(source))
    pairs = sum(map(len, source.flows.pairs))
    entry = plain(replace(source, flows=replace(source.flows, pairs=(), routes=())))
    entry["flows"]["pairs"] = pairs
    return _with_names(network, entry)


def _with_names(network: Network, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a flow or a traffic source with link names in place of link indexes."""
    for key in ("forward", "reverse", "path"):
        if entry.get(key) is not None:
            entry[key] = [network.links[index].name for index in entry[key]]
    if "after" in entry:
        entry["after"] = [network.flows[index].name for index in entry["after"]]
    if "demands" in entry:  # of a [[flow]]; a traffic source has routes by group, below
        entry["routes"] = [_with_names(network, route) for route in entry["routes"]]
    if isinstance(entry.get("flows"), dict):
        flows = entry["flows"]
        flows["flow"] = _with_names(network, flows["flow"])
        flows["routes"] = [[_with_names(network, r) for r in group] for group in flows["routes"]]
    return entry
