"""Test network of the soak: two hosts and a router, each an unnamed network namespace."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

from waterfill.testbed.isolate import Namespace

# The router's devices, towards the first and the second host.
DEVICES = ("ra", "rb")
ADDRESSES = ("10.0.1.1", "10.0.2.1")
# Packets of 1500 bytes cost so much CPU that a busy host does not carry 200 Mbit/s each way.
MTU_BYTES = 9000
_GATEWAYS = ("10.0.1.254", "10.0.2.254")


@dataclass(frozen=True)
class Network:
    """Network namespaces of the hosts and the router. The kernel removes them when the last process
    exits.
    """

    hosts: tuple[Namespace, Namespace]
    router: Namespace


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


def build() -> Network:
    """Create the network. Raises OSError or RuntimeError if the kernel refuses."""
    network = Network((Namespace(), Namespace()), Namespace())
    with network.router.entered():
        setting("ipv4/ip_forward", 1)
        run("ip", "link", "set", "lo", "up")
        for device, gateway, host in zip(DEVICES, _GATEWAYS, network.hosts, strict=True):
            there = f"/proc/{os.getpid()}/fd/{host.fd}"
            mtu = ("mtu", str(MTU_BYTES))
            peer = ("peer", "name", "eth0", *mtu, "netns", there)
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
