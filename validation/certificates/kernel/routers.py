"""Logs of routers in the kernel: the loaded program runs on test packets (BPF_PROG_TEST_RUN).

Packets differ in size, segments, fields and number; the link's rate, the law's parameters and the
pauses in between make ticks with and without arrivals and idle intervals.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from validation.certificates.fixed import codes
from waterfill.errors import RunError

# Steps of a pass of bpftool, below what the ring buffer holds.
_PASS = 15_000
_FRAMES = 400
_REPEATS = (1, 1, 2, 3, 5, 10, 30)
_READY_S = 60.0
_PAUSE_S = 0.15
_EXID, _KIND, _FORWARD = b"\x57\x46", 253, 1
_FLAG = 1 << 23
# Offsets of `ifindex`, `wire_len` and `gso_segs` in struct __sk_buff, and its size.
_IFINDEX, _WIRE_LEN, _GSO_SEGS, _CONTEXT = 40, 160, 164, 192
_LONGEST = 65_000

# A law's number on the wire (enum waterfill_law), and the options of its routers, each with a part
# of the steps: rates that packets exceed and do not, intervals that end often.
_SLOW, _FAST = ["--rate", "30 Mbit/s"], ["--rate", "20 Gbit/s"]
_SHORT = ["--set", "first_interval=8 ms", "--set", "max_interval=20 ms"]
_LINK = 7
_RELUCTANT = ["--set", "average=reluctant"]
_OTHER_FORM = ["--set", "claim=least-feedback", "--set", "shuffle=draft"]
ROUTERS: dict[str, tuple[int, list[list[str]]]] = {
    "maxnet": (0, [[*_FAST, "--set", "promise=true"], [*_SLOW, "--set", "dt_p=200 us"]]),
    "maxnet2006": (1, [_FAST, [*_SLOW, "--set", "dt=200 us"]]),
    "aecp": (
        2,
        [
            [*_FAST, "--set", "t_2=1 ms", "--set", "beta=100"],
            [*_SLOW, "--set", "t_2=1 ms", "--set", "rounding=nearest", "--set", "ceiling=capacity"],
        ],
    ),
    "rcp": (
        3,
        [
            [*_FAST, "--set", "max_interval=1 ms"],
            [*_SLOW, "--set", "max_interval=3 ms", "--set", "alpha=1", *_RELUCTANT],
        ],
    ),
    "vcp": (
        4,
        [
            [*_FAST, "--set", "t_q=200 us", "--set", "t_rho=2 ms"],
            [*_SLOW, "--set", "t_q=200 us", "--set", "whole_percent=true"],
        ],
    ),
    "xcp": (5, [[*_FAST, *_SHORT], [*_SLOW, *_SHORT, "--set", "counts=own"]]),
    "pxcp": (6, [[*_FAST, *_SHORT], [*_SLOW, *_SHORT, "--set", "counts=own"]]),
    "ixcp": (
        7,
        [
            [*_FAST, *_SHORT, "--set", f"link={_LINK}"],
            [*_SLOW, *_SHORT, *_OTHER_FORM, "--set", f"link={_LINK}"],
        ],
    ),
    "jetmax": (8, [[*_FAST, "--set", "interval=1 ms"], [*_SLOW, "--set", "interval=3 ms"]]),
}


def lacking() -> str | None:
    """Return the first requirement that this host lacks for logging kernel routers, or None."""
    if os.geteuid() != 0:
        return "root"
    return next(
        (name for name in ("waterfilld", "bpftool", "ip", "nsenter") if not found(name)), None
    )


def found(program: str) -> str | None:
    """Return the path of a program, preferably from the directory of this Python interpreter."""
    beside = Path(sys.executable).with_name(program)
    return str(beside) if beside.exists() else shutil.which(program)


def recorded(law: str, steps: int, folder: Path, seed: int = 1) -> list[Path]:
    """Record about `steps` steps of a law's routers and return the logs. Raises RunError if that
    fails.
    """
    draw = random.Random(seed)
    number, routers = ROUTERS[law]
    each = -(-steps // len(routers))
    logs = []
    for place, options in enumerate(routers):
        file = folder / f"{law}-{place}.steps"
        record(["--law", law, *options], (law, number, each, draw), file, folder)
        logs.append(file)
    return logs


def record(
    options: Sequence[str], given: tuple[str, int, int, random.Random], file: Path, folder: Path
) -> None:
    """Load a router with the given options, run the program on packets, and write the log."""
    namespace = f"wfcert{os.getpid()}"
    inside = ["nsenter", f"--net=/run/netns/{namespace}"]
    output = folder / "router.log"
    ip = ["ip", "-n", namespace]
    daemon = None
    _do(["ip", "netns", "add", namespace])
    try:
        _do([*ip, "link", "add", "d0", "type", "veth", "peer", "name", "d1"])
        for device in ("d0", "d1"):
            _do([*ip, "link", "set", device, "up"])
        limits = ["--log-steps", str(file), "--log-limit", str(2 * given[2])]
        program = found("waterfilld") or "waterfilld"
        with output.open("w") as log:
            command = [*inside, program, "router", "--dev", "d0", "--no-pin", *options, *limits]
            daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + _READY_S
        while "loaded" not in output.read_text():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise RunError(f"waterfilld: {output.read_text().strip()[-200:]}")
            time.sleep(0.1)
        index = int(_do([*ip, "-o", "link", "show", "d0"]).partition(":")[0])
        _run_packets(router_program(daemon.pid), index, given, folder, inside)
    finally:
        if daemon is not None:
            daemon.send_signal(signal.SIGINT)
            daemon.wait()
        subprocess.run(["ip", "netns", "del", namespace], check=False)


def _run_packets(
    program: str,
    index: int,
    given: tuple[str, int, int, random.Random],
    folder: Path,
    inside: Sequence[str],
) -> None:
    """Run the loaded program on random packets, some of them repeated. One in seven is a SYN."""
    law, number, steps, draw = given
    left = steps
    while left > 0:
        for place in range(_FRAMES):
            size, segments = draw.choice([60, 600, 1500]), draw.choice([1, 1, 1, 2, 17])
            syn = draw.randrange(7) == 3
            data = frame(number, value(law, syn, draw), syn, size)
            context = bytearray(_CONTEXT)
            struct.pack_into("=I", context, _IFINDEX, index)
            if segments > 1:
                wire = min(segments * len(data), _LONGEST)
                struct.pack_into("=II", context, _WIRE_LEN, wire, segments)
            (folder / f"frame{place}").write_bytes(data)
            (folder / f"context{place}").write_bytes(context)
        lines, wanted = [], min(left, _PASS)
        left -= wanted
        while wanted > 0:
            place, repeat = draw.randrange(_FRAMES), draw.choice(_REPEATS)
            files = f"data_in {folder}/frame{place} ctx_in {folder}/context{place}"
            lines.append(f"prog run id {program} {files} repeat {repeat}\n")
            wanted -= repeat
        batch = folder / "batch"
        batch.write_text("".join(lines))
        _do([*inside, "bpftool", "batch", "file", str(batch)])
        time.sleep(_PAUSE_S)  # the daemon empties the ring buffer, and intervals are idle


def frame(number: int, forward: bytes, syn: bool, size: int) -> bytes:
    """Return an Ethernet frame with a TCP segment that carries a law's option."""
    kind = 4 * number + _FORWARD
    option = bytes([_KIND, 5 + len(forward)]) + _EXID + bytes([kind]) + forward
    option += bytes([1] * (-len(option) % 4))
    flags = 2 if syn else 16
    words = 5 + len(option) // 4
    tcp = struct.pack("!HHIIBBHHH", 1000, 2000, 1, 1, words << 4, flags, 1000, 0, 0) + option
    payload = bytes(max(size - 20 - len(tcp), 0))
    length = 20 + len(tcp) + len(payload)
    addresses = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 6, 0, *addresses)
    return bytes(12) + b"\x08\x00" + ip + tcp + payload


def value(law: str, syn: bool, draw: random.Random) -> bytes:
    """Return a random forward value, as a packet might carry it to a law's router."""
    if law == "jetmax":
        return jetmax_value(draw)
    if law in {"xcp", "pxcp", "ixcp"}:
        names = struct.pack(">HH", draw.choice([0, _LINK, _LINK, 300]), draw.randrange(1 << 16))
        return xcp_value(syn, draw) + (names if law == "ixcp" else b"")
    if law == "rcp":
        code = draw.choice([0, 0, draw.randrange(_FLAG), draw.randrange(1 << 24)])
        rtt = draw.choice([0, draw.randrange(10 << 11, 17 << 11), draw.randrange(1 << 16)])
        return code.to_bytes(3, "big") + rtt.to_bytes(2, "big")
    if law == "vcp":
        field = 0 if syn else draw.choice([0, 0, 0, 1, 2, 3, draw.randrange(1 << 24)])
    elif law == "aecp":
        field = draw.choice([0, draw.randrange(1 << 16), draw.randrange(1 << 24)])
    else:
        field = _FLAG if syn else draw.choice([0, draw.randrange(1 << 22), draw.randrange(_FLAG)])
    return field.to_bytes(3, "big")


def any_code(bits: int, draw: random.Random) -> bytes:
    """Return the wire code of a random number of up to `bits` bits, or sometimes a random code."""
    wide = draw.randrange(1 << draw.randrange(bits + 1))
    code = draw.choice([codes.code(wide), codes.code(wide), draw.randrange(1 << 24)])
    return code.to_bytes(3, "big")


def jetmax_value(draw: random.Random) -> bytes:
    """Return a random JetMax value: x, share, g, weight and hops. At least half name the router as
    the flow's own.
    """
    passed = draw.choice([0, 0, 1, 2, 30, 31])
    own = draw.choice([min(passed + 1, 31), draw.randrange(32)])
    following = draw.choice([0, draw.randrange(32)])
    hops = passed << 10 | own << 5 | following
    weight = draw.choice([0x40, 0x40, draw.randrange(256)])
    fields = [any_code(38, draw), draw.choice([bytes(3), any_code(38, draw)]), any_code(38, draw)]
    return b"".join(fields) + struct.pack(">BH", weight, hops)


def xcp_value(syn: bool, draw: random.Random) -> bytes:
    """Return a random XCP value: RTT, time per byte and feedback, usually of ordinary
    magnitudes.
    """
    rtt = codes.code(draw.randrange(1 << 12, 1 << 22)).to_bytes(3, "big")
    time = codes.code(draw.randrange(1 << draw.randrange(20, 38))).to_bytes(3, "big")
    change = draw.randrange(1 << draw.randrange(40)) * draw.choice([-1, 1])
    given = draw.choice([0, 0, min(max((1 << 39) + change, 0), (1 << 40) - 1)])
    if syn:
        rtt = time = bytes(3)
    elif draw.randrange(8) == 0:
        rtt, time = any_code(45, draw), any_code(45, draw)
    return rtt + time + given.to_bytes(5, "big")


def router_program(pid: int) -> str:
    """Return the id of the router program that a daemon has loaded."""
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        for line in info.read_text().splitlines():
            name, _, number = line.partition(":")
            if name == "prog_id" and "waterfill_router" in _do(
                ["bpftool", "prog", "show", "id", number.strip()]
            ):
                return number.strip()
    raise RunError("waterfilld holds no router program")


def _do(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout
