"""Test network of the soak: two hosts and a router, each an unnamed network namespace."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from waterfill.runs.result import Document
from waterfill.testbed import topology
from waterfill.testbed.delayline import DelayLine
from waterfill.testbed.isolate import Namespace

# The router's devices, towards the first and the second host.
DEVICES = ("ra", "rb")
ADDRESSES = ("10.0.1.1", "10.0.2.1")
# Packets of 1500 bytes cost so much CPU that a busy host does not carry 200 Mbit/s each way.
MTU_BYTES = 9000
# Delay of each direction, with a delay line.
DELAY_NS = 2_000_000
_HOLD_BYTES = 64 << 20
_GATEWAYS = ("10.0.1.254", "10.0.2.254")


@dataclass(frozen=True)
class Network:
    """Network namespaces of the hosts and the router. The kernel removes them when the last process
    exits.
    """

    hosts: tuple[Namespace, Namespace]
    router: Namespace
    wires: Namespace | None = None
    """Namespace of the delay line between the router and the second host, if there is one."""


def run(*command: str) -> str:
    """Run a program in the calling thread's namespace and return its output. Raises RuntimeError if
    the program fails.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def setting(name: str, value: int | str) -> None:
    """Set the kernel setting net.NAME (with slashes) in the calling thread's namespace."""
    with open(f"/proc/sys/net/{name}", "w") as file:
        file.write(str(value))


def delay_line(network: Network, changes: list[Document]) -> DelayLine:
    """Start the delay line, with these changes in both directions, on any CPU.

    Raises DelayLineError.
    """
    assert network.wires is not None
    ends = (("there", "w0", "w1"), ("back", "w1", "w0"))
    lines = [{"name": name, "from": start, "to": end, "delay_ns": DELAY_NS,
              "hold_bytes": _HOLD_BYTES, "changes": changes}
             for name, start, end in ends]  # fmt: skip
    allowed = os.sched_getaffinity(0)
    with network.wires.entered():
        line = DelayLine(lines, mtu_bytes=MTU_BYTES, seed=1)
    os.sched_setaffinity(0, allowed)
    return line


def _insert_wires(network: Network) -> None:
    """Put two devices between the router and the second host, which a delay line joins."""
    assert network.wires is not None
    there = f"/proc/{os.getpid()}/fd/{network.wires.fd}"
    ends = ((network.router, DEVICES[1], "w0"), (network.hosts[1], "eth0", "w1"))
    for space, device, wire in ends:
        with space.entered():
            run("ip", "link", "add", device, "mtu", str(MTU_BYTES), "gso_max_segs", "1", "type",
                "veth", "peer", "name", wire, "mtu", str(MTU_BYTES), "netns", there)  # fmt: skip
            topology.disable_offloads(device)
        with network.wires.entered():
            topology.disable_offloads(wire)
            run("ip", "link", "set", wire, "up")


def build(*, wires: bool = False) -> Network:
    """Create the network. Raises OSError or RuntimeError if the kernel refuses.

    With `wires`, a delay line must join the devices between the router and the second host.
    """
    network = Network((Namespace(), Namespace()), Namespace(), Namespace() if wires else None)
    if wires:
        _insert_wires(network)
    with network.router.entered():
        setting("ipv4/ip_forward", 1)
        run("ip", "link", "set", "lo", "up")
        for device, gateway, host in zip(DEVICES, _GATEWAYS, network.hosts, strict=True):
            there = f"/proc/{os.getpid()}/fd/{host.fd}"
            mtu = ("mtu", str(MTU_BYTES))
            peer = ("peer", "name", "eth0", *mtu, "netns", there)
            if not wires or device != DEVICES[1]:
                run("ip", "link", "add", device, *mtu, "type", "veth", *peer)
            run("ip", "address", "add", f"{gateway}/24", "dev", device)
            run("ip", "link", "set", device, "up")
    for host, address, gateway in zip(network.hosts, ADDRESSES, _GATEWAYS, strict=True):
        with host.entered():
            run("ip", "link", "set", "lo", "up")
            run("ip", "address", "add", f"{address}/24", "dev", "eth0")
            run("ip", "link", "set", "eth0", "up")
            run("ip", "route", "add", "default", "via", gateway)
            # Ports of closed connections stay taken for a minute.
            setting("ipv4/ip_local_port_range", "10000 65535")
    return network
