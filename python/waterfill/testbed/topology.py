"""Builder of a plan inside the process tree: namespaces, veth pairs, addresses, routes, queues."""

from __future__ import annotations

import array
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from socket import AF_INET, AF_INET6, SOCK_DGRAM, socket
from typing import Any

from pyroute2 import IPRoute

from waterfill.testbed import netlink
from waterfill.testbed.delayline import LINE_CPU
from waterfill.testbed.isolate import SCRATCH, Namespace, mount, unmount
from waterfill.testbed.plan import ETHERNET_BYTES, WIRES, Plan, Port, Stream

# The size of a namespace's own socket table. The host's shared table has a quarter of a million
# slots, all visited whenever sockets are listed: 3 % of a CPU.
_SOCKET_SLOTS = 1024
_ONLINK = 4
_PERMANENT = 0x80
_RTAX_RTO_MIN = 13
_SIOCETHTOOL = 0x8946
# ethtool's commands to set (to off) and get each offload that makes frames longer than the MTU or
# leaves checksums to a network card.
OFFLOADS = {
    "tx_checksum": (0x17, 0x16),
    "tso": (0x1F, 0x1E),
    "gso": (0x24, 0x23),
    "gro": (0x2C, 0x2B),
}


class Topology:
    """The testbed's network: its namespaces, their netlink sockets, and their interfaces' indexes.

    Namespaces are made first, empty; `build` fills them. In between a law can be loaded, which the
    hosts' routes then name.
    """

    def __init__(self, plan: Plan) -> None:
        """Create the empty namespaces; raise OSError if the kernel refuses."""
        self.plan = plan
        self.family = AF_INET if plan.ip_version == 4 else AF_INET6
        with suppress(OSError):  # since Linux 6.2
            _set("ipv4/tcp_child_ehash_entries", _SOCKET_SLOTS)
        self.spaces = [Namespace.current()]
        self.spaces += [Namespace() for _ in plan.namespaces[1:]]
        self.routes: list[netlink.Route] = []
        self._ip: list[Any] = []
        for space in self.spaces:
            with space.entered():
                self._settings()
                self.routes.append(netlink.Route())
                self._ip.append(IPRoute())
        self.holds: list[dict[str, Any]] = []
        self._index: dict[tuple[int, str], int] = {}

    def build(self) -> None:
        """Build the network in the namespaces, once; raise OSError if the kernel refuses."""
        try:
            self._build()
        finally:
            for ip in self._ip:
                ip.close()

    def index(self, port: Port) -> int:
        """Return an interface's index in its namespace."""
        return self._index[port.namespace, port.name]

    def namespace(self, number: int) -> Namespace:
        """Return a namespace by its number in the plan."""
        return self.spaces[number]

    def offloads(self) -> dict[str, bool]:
        """Return the offloads of the run's hosts. An offload is True if any host has it enabled."""
        found = dict.fromkeys(OFFLOADS, False)
        for number in sorted(self.plan.hosts()):
            with self.spaces[number].entered():
                for name, (_, get) in OFFLOADS.items():
                    found[name] |= bool(_ethtool("eth0", get))
        return found

    # --- building

    def _settings(self) -> None:
        """Apply kernel settings that interfaces inherit when they are created."""
        if self.plan.ip_version == 4:
            _set("ipv6/conf/all/disable_ipv6", 1)
            _set("ipv6/conf/default/disable_ipv6", 1)
            for which in ("all", "default"):
                _set(f"ipv4/conf/{which}/rp_filter", 0)
                _set(f"ipv4/conf/{which}/send_redirects", 0)
        else:
            for which in ("all", "default"):
                _set(f"ipv6/conf/{which}/disable_ipv6", 0)
                _set(f"ipv6/conf/{which}/accept_ra", 0)
                _set(f"ipv6/conf/{which}/accept_dad", 0)
                _set(f"ipv6/conf/{which}/router_solicitations", 0)
                _set(f"ipv6/conf/{which}/addr_gen_mode", 1)
                _set(f"ipv6/conf/{which}/mldv1_unsolicited_report_interval", 2**31 - 1)
                _set(f"ipv6/conf/{which}/mldv2_unsolicited_report_interval", 2**31 - 1)

    def _build(self) -> None:
        wires = 0
        for cable in self.plan.cables:
            if cable.there is None or cable.back is None:
                self._veth(cable.a, cable.b)
                continue
            halves = [Port(WIRES, f"w{wires + n}", "") for n in (0, 1)]
            wires += 2
            self._veth(cable.a, halves[0])
            self._veth(cable.b, halves[1])
            for hold, (start, end) in ((cable.there, halves), (cable.back, reversed(halves))):
                self.holds.append(
                    {
                        "name": hold.name, "from": start.name, "to": end.name,
                        "delay_ns": round(hold.delay_s * 1e9), "hold_bytes": hold.hold_bytes,
                        "changes": [
                            {
                                "at_ns": round(change.at_s * 1e9),
                                "delay_ns": round(change.delay_s * 1e9),
                                "rate_bps": change.rate_bps,
                            }
                            for change in hold.changes
                        ],
                        **asdict(hold.faults),
                    }
                )  # fmt: skip
        self._steer()
        for ip in self._ip:
            # Without any address, here 127.0.0.1, a namespace accepts no route via a neighbour.
            ip.link("set", index=1, state="up")
        hosts = self.plan.hosts()
        for number, space in enumerate(self.spaces):
            with space.entered():
                if number not in hosts and number != WIRES:
                    _set("ipv4/ip_forward", 1)
                    if self.plan.ip_version == 6:
                        _set("ipv6/conf/all/forwarding", 1)
        for port, shaper in self.plan.shapers():
            self.routes[port.namespace].shape(
                self.index(port), rate_bps=shaper.rate_bps, burst_bytes=shaper.burst_bytes,
                limit=shaper.limit, overhead_bytes=-ETHERNET_BYTES,
            )  # fmt: skip
        for stream in self.plan.streams:
            self._host(stream, stream.source, stream.source_address)
            self._host(stream, stream.sink, stream.sink_address)
        for route in self.plan.routes:
            if route.namespace not in hosts:
                self._route(route.namespace, route.destination, route.interface, route.neighbour)

    def _steer(self) -> None:
        """Steer the reception of the delay line's frames to CPUs other than the line's own.

        Otherwise the receiver's work, up to TCP's acknowledgement, runs inside the line's own
        system call: at 1 Gbit/s that takes a whole CPU, and frames leave late.
        """
        others = [cpu for cpu in sorted(os.sched_getaffinity(0)) if cpu != LINE_CPU]
        if not others:
            return
        mask = f"{sum(1 << cpu for cpu in others):x}"
        ports: dict[int, list[str]] = {}
        for cable in self.plan.cables:
            if cable.there is not None:
                for port in (cable.a, cable.b):
                    ports.setdefault(port.namespace, []).append(port.name)
        folder = f"{SCRATCH}/sys"
        os.mkdir(folder)
        for number, names in ports.items():
            # sysfs shows the interfaces of the namespace in which it was mounted.
            with self.spaces[number].entered():
                mount("sysfs", folder, "sysfs")
            try:
                for name in names:
                    path = f"{folder}/class/net/{name}/queues/rx-0/rps_cpus"
                    with suppress(OSError), open(path, "w") as file:
                        file.write(mask)
            finally:
                unmount(folder)
        os.rmdir(folder)

    def _veth(self, a: Port, b: Port) -> None:
        def end(port: Port) -> dict[str, Any]:
            fields: dict[str, Any] = {
                "ifname": port.name, "net_ns_fd": self.spaces[port.namespace].fd,
                "mtu": self.plan.mtu_bytes, "txqlen": 1000,
            }  # fmt: skip
            if port.mac:
                fields["address"] = port.mac
            return fields

        # One segment per frame, also from TCP, which otherwise uses software GSO.
        single = {} if self.plan.offloads else {"gso_max_segs": 1}
        self._ip[WIRES].link("add", kind="veth", **end(a), **single, peer=end(b))
        for port in (a, b):
            ip = self._ip[port.namespace]
            (index,) = ip.link_lookup(ifname=port.name)
            self._index[port.namespace, port.name] = index
            if not self.plan.offloads:
                with self.spaces[port.namespace].entered():
                    disable_offloads(port.name)
            ip.link("set", index=index, state="up", **single)

    def _host(self, stream: Stream, number: int, address: str) -> None:
        ip = self._ip[number]
        with self.spaces[number].entered():
            host_settings(stream)
        index = self._index[number, "eth0"]
        ip.addr("add", index=index, address=address, prefixlen=self.plan.address_bits,
                **({} if self.plan.ip_version == 4 else {"flags": 0x02}))  # fmt: skip
        metrics: dict[str, int | str] = {
            # Set on the route: a namespace's default must be a law that every user may choose.
            "cc_algo": stream.congestion,
            "initcwnd": stream.initial_window_packets,
            "rto_min": max(1, round(self.plan.rto_min_s * 1e3)),
            "lock": 1 << _RTAX_RTO_MIN,
        }
        if not stream.delayed_ack:
            metrics["quickack"] = 1
        for route in self.plan.routes:
            if route.namespace == number:
                self._route(
                    number, route.destination, route.interface, route.neighbour,
                    metrics=metrics, prefsrc=address,
                )  # fmt: skip

    def _route(self, number: int, destination: str, interface: str, mac: str, **more: Any) -> None:
        """Add a host route via a neighbour with a known MAC, so that no ARP is needed."""
        ip, index = self._ip[number], self._index[number, interface]
        gateway = "169.254.1.1" if self.plan.ip_version == 4 else "fe80::1"
        ip.neigh("replace", dst=gateway, lladdr=mac, ifindex=index, state=_PERMANENT,
                 family=self.family)  # fmt: skip
        ip.route(
            "add", dst=f"{destination}/{self.plan.address_bits}", gateway=gateway, oif=index,
            flags=_ONLINK, family=self.family, **more,
        )  # fmt: skip


def disable_offloads(interface: str) -> None:
    """Turn off every offload of `OFFLOADS` for an interface of the calling thread's namespace."""
    for set_, _ in OFFLOADS.values():
        _ethtool(interface, set_, 0)


def host_settings(stream: Stream) -> None:
    """Set the TCP options of a stream's host in the calling thread's namespace."""
    buffer_bytes = 2 * stream.window_bytes  # the kernel uses half of a buffer for its own overhead
    _set("ipv4/tcp_rmem", f"4096 {buffer_bytes} {buffer_bytes}")
    _set("ipv4/tcp_wmem", f"4096 {buffer_bytes} {buffer_bytes}")
    _set("ipv4/tcp_no_metrics_save", 1)
    _set("ipv4/tcp_timestamps", 1)
    _set("ipv4/tcp_sack", int(stream.sack))
    _set("ipv4/tcp_ecn", int(stream.ecn))
    # Data beyond the window that waits in the sender's socket is also sent after its stop.
    _set("ipv4/tcp_notsent_lowat", 1 << 23)


def _set(name: str, value: int | str) -> None:
    with open(f"/proc/sys/net/{name}", "w") as file:
        file.write(str(value))


def setting(name: str) -> str:
    """Return a kernel setting in the calling thread's namespace, or "" if the setting is
    missing.
    """
    try:
        with open(f"/proc/sys/net/{name}") as file:
            return file.read().strip()
    except OSError:
        return ""


@contextmanager
def _control() -> Iterator[socket]:
    with socket(AF_INET, SOCK_DGRAM) as control:
        yield control


def _ethtool(interface: str, command: int, value: int = 0) -> int:
    """Run one of ethtool's old commands, which take and return one number."""
    data = array.array("B", struct.pack("=II", command, value))
    address, _ = data.buffer_info()
    request = struct.pack("=16sQ8x", interface.encode(), address)
    with _control() as control:
        fcntl.ioctl(control, _SIOCETHTOOL, request)
    return int(struct.unpack("=II", data.tobytes())[1])
