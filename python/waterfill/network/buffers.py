"""Switches of a network whose links share a buffer, and hosts that pull."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from waterfill.contract.network import BufferSpec, LinkSpec, SwitchSpec
from waterfill.network.graph import Direction
from waterfill.scenario.document import Scenario


class Nodes:
    """The nodes of a network: switches, which have links to at least two other nodes, and hosts."""

    def __init__(self, scenario: Scenario, directions: Sequence[Direction]) -> None:
        self._scenario = scenario
        self._neighbors: defaultdict[str, set[str]] = defaultdict(set)
        self._leaving: defaultdict[str, list[int]] = defaultdict(list)
        for i, direction in enumerate(directions):
            self._neighbors[direction.start].add(direction.end)
            self._neighbors[direction.end].add(direction.start)
            self._leaving[direction.start].append(i)

    def switches(self) -> tuple[SwitchSpec, ...]:
        """Return the switches whose links share a buffer.

        Raises InputError if there are none and the scenario has such buffers.
        """
        given = self._scenario.switch
        if given is None:
            return ()
        found = tuple(
            SwitchSpec(
                name=node,
                buffer_bytes=int(given.buffer),
                alpha=given.alpha,
                outputs=tuple(self._leaving[node]),
            )
            for node, others in self._neighbors.items()
            if len(others) > 1 and self._leaving[node]
        )
        if not found:
            why = "no node has links to two others"
            raise self._scenario.error("switch", why, "remove [switch]")
        return found

    def shared(
        self, links: Sequence[LinkSpec], switches: Sequence[SwitchSpec]
    ) -> tuple[LinkSpec, ...]:
        """Return the links, with the buffer of the switch for those that leave one, and hosts that
        pull where the scenario has them.
        """
        found = list(links)
        for switch in switches:
            for i in switch.outputs:
                found[i] = replace(found[i], buffer=BufferSpec("bytes", switch.buffer_bytes))
        nic = self._scenario.nic
        if nic == "pull" or (nic is None and switches):
            for node, others in self._neighbors.items():
                if len(others) == 1:
                    for i in self._leaving[node]:
                        found[i] = replace(found[i], pull=True)
        return tuple(found)
