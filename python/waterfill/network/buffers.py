"""Switches of a network whose links share a buffer, and hosts that pull."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from waterfill.contract.network import BufferSpec, InputSpec, LinkSpec, PfcSpec, SwitchSpec
from waterfill.network.graph import Direction
from waterfill.scenario.document import Scenario
from waterfill.scenario.switch import Switch

# Threshold of an input relative to the free buffer, the usual one of lossless switches.
_PFC_ALPHA = 0.125
_FRAME_BYTES = 64


class Nodes:
    """The nodes of a network: switches, which have links to at least two other nodes, and hosts."""

    def __init__(self, scenario: Scenario, directions: Sequence[Direction]) -> None:
        self._scenario, self._directions = scenario, directions
        self._neighbors: defaultdict[str, set[str]] = defaultdict(set)
        self._leaving: defaultdict[str, list[int]] = defaultdict(list)
        for i, direction in enumerate(directions):
            self._neighbors[direction.start].add(direction.end)
            self._neighbors[direction.end].add(direction.start)
            self._leaving[direction.start].append(i)

    def switches(self, links: Sequence[LinkSpec]) -> tuple[SwitchSpec, ...]:
        """Return the switches whose links share a buffer.

        Raises InputError if there are none and the scenario has such buffers, or if a switch with
        pfc has a link without a reverse direction.
        """
        given = self._scenario.switch
        if given is None:
            return ()
        found = tuple(
            SwitchSpec(
                name=node,
                buffer_bytes=int(given.buffer),
                alpha=given.alpha or (_PFC_ALPHA if given.pfc else 1.0),
                outputs=tuple(self._leaving[node]),
                pfc=self._pfc(given, node, links) if given.pfc else None,
            )
            for node, others in self._neighbors.items()
            if len(others) > 1 and self._leaving[node]
        )
        if not found:
            why = "no node has links to two others"
            raise self._scenario.error("switch", why, "remove [switch]")
        return found

    def _pfc(self, given: Switch, node: str, links: Sequence[LinkSpec]) -> PfcSpec:
        inputs = []
        for i, direction in enumerate(self._directions):
            if direction.end != node:
                continue
            if direction.back is None:
                key = f"link.{direction.name}.duplex"
                why = "must be true at a switch with pfc, whose pause frames need a way back"
                raise self._scenario.error(key, why)
            back = direction.back
            headroom = given.headroom or self._headroom(links[i], links[back])
            inputs.append(InputSpec(link=i, back=back, headroom_bytes=int(headroom)))
        xoff = None if given.xoff is None else int(given.xoff)
        return PfcSpec(xoff_bytes=xoff, inputs=tuple(inputs))

    def _headroom(self, link: LinkSpec, back: LinkSpec) -> int:
        """Return the bytes that a link sends after the decision to pause it.

        The frame waits for a full packet on the way back, and the link's own packet is sent to its
        end. Between them are both delays and the transmission of the frame.
        """
        packet_bytes = self._scenario.packet_size
        waits_s = (packet_bytes + _FRAME_BYTES) * 8 / back.rate_bps
        way_s = waits_s + back.delay_s + link.delay_s
        return math.ceil(round(way_s * link.rate_bps / 8 + packet_bytes, 3))

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
