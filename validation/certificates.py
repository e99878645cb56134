"""Certificates of every law: `make certificates`.

Logs the steps of each law on the simulator and the fluid model, and, as root with `waterfilld` and
bpftool, a million steps of MaxNet's and of VCP's router in the kernel (BPF_PROG_TEST_RUN of the
loaded program), and checks them with `waterfill verify`'s equations. Prints a table. Exit code 1: a
step was wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from waterfill import run, verify
from waterfill.errors import RunError
from waterfill.runs.steps import FILE_NAME, StepLog

# Packets of one call of the kernel, below what the ring buffer holds; calls differ in their packet.
_CHUNK = 20_000
_READY_S = 60.0
_PAUSE_S = 0.15
_EXID, _KIND, _FORWARD = b"\x57\x46", 253, 1
_FLAG = 1 << 23
# Numbers of the laws on the wire (enum waterfill_law), and options of their routers.
_NUMBERS = {"maxnet": 0, "vcp": 4}
_OPTIONS = {"maxnet": ["--promise"], "vcp": []}
# Offset of `ifindex` in struct __sk_buff.
_IFINDEX = 40


def scenario(law: str) -> dict[str, Any]:
    """Two bottlenecks, a long flow and two short ones, one of which starts late and weighs two."""
    return {
        "duration": "20 s",
        "protocol": law,
        "link": [
            {"name": "one", "from": "a", "to": "b", "rate": "20 Mbit/s", "delay": "4 ms"},
            {"name": "two", "from": "b", "to": "c", "rate": "15 Mbit/s", "delay": "9 ms"},
        ],
        "flow": [
            {"name": "long", "path": ["one", "two"]},
            {"name": "first", "path": ["one"]},
            {"name": "second", "path": ["two"], "start": "2 s", "weight": 2},
        ],
    }


def logged(law: str, backend: str, rows: int, folder: Path) -> Path:
    """Run a law and return the log of its first steps."""
    file = folder / FILE_NAME
    run(scenario(law), on=backend, steps=StepLog(file, rows))
    return file


# ------------------------------------------------------------------ the kernel


def lacking() -> str | None:
    """Return what a log of the kernel needs that is not here."""
    if os.geteuid() != 0:
        return "root"
    return next(
        (name for name in ("waterfilld", "bpftool", "ip", "nsenter") if not found(name)), None
    )


def found(program: str) -> str | None:
    """Return the path of a program; one beside this interpreter comes first."""
    beside = Path(sys.executable).with_name(program)
    return str(beside) if beside.exists() else shutil.which(program)


def frame(law: str, field: int, syn: bool, size: int) -> bytes:
    """Return a frame with a law's option."""
    kind = 4 * _NUMBERS[law] + _FORWARD
    option = bytes([_KIND, 8]) + _EXID + bytes([kind]) + field.to_bytes(3, "big")
    flags = 2 if syn else 16
    tcp = struct.pack("!HHIIBBHHH", 1000, 2000, 1, 1, 7 << 4, flags, 1000, 0, 0) + option
    payload = bytes(max(size - 20 - len(tcp), 0))
    length = 20 + len(tcp) + len(payload)
    addresses = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, 6, 0, *addresses)
    return bytes(12) + b"\x08\x00" + ip + tcp + payload


def kernel_log(law: str, steps: int, folder: Path, seed: int = 1) -> Path:
    """Load a law's router, run it on packets, and return the log; raise RunError if that fails."""
    namespace = f"wfcert{os.getpid()}"
    inside = ["nsenter", f"--net=/run/netns/{namespace}"]
    file, output = folder / "router.steps", folder / "router.log"
    ip = ["ip", "-n", namespace]
    daemon = None
    _do(["ip", "netns", "add", namespace])
    try:
        _do([*ip, "link", "add", "d0", "type", "veth", "peer", "name", "d1"])
        for device in ("d0", "d1"):
            _do([*ip, "link", "set", device, "up"])
        options = ["--law", law, "--dev", "d0", "--rate", "10 Gbit/s", "--no-pin", *_OPTIONS[law]]
        limits = ["--log-steps", str(file), "--log-limit", str(2 * steps)]
        program = found("waterfilld") or "waterfilld"
        with output.open("w") as log:
            command = [*inside, program, "router", *options, *limits]
            daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + _READY_S
        while "loaded" not in output.read_text():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise RunError(f"waterfilld: {output.read_text().strip()[-200:]}")
            time.sleep(0.1)
        index = int(_do([*ip, "-o", "link", "show", "d0"]).partition(":")[0])
        context = bytearray(192)
        struct.pack_into("=I", context, _IFINDEX, index)
        (folder / "context").write_bytes(context)
        program = router_program(daemon.pid)
        packets(law, steps, folder, [*inside, "bpftool", "prog", "run", "id", program], seed)
    finally:
        if daemon is not None:
            daemon.send_signal(signal.SIGINT)
            daemon.wait()
        subprocess.run(["ip", "netns", "del", namespace], check=False)
    return file


def field(law: str, syn: bool, draw: random.Random) -> int:
    """Return a value that a packet may carry to a router."""
    if law == "vcp":
        return 0 if syn else draw.choice([0, 0, 0, 1, 2, 3, draw.randrange(1 << 24)])
    return _FLAG if syn else draw.choice([0, draw.randrange(1 << 22), draw.randrange(_FLAG)])


def packets(law: str, steps: int, folder: Path, command: Sequence[str], seed: int) -> None:
    """Run the loaded program on packets of different sizes and fields; every seventh is a SYN."""
    draw = random.Random(seed)
    data, context = folder / "frame", folder / "context"
    for number in range(-(-steps // _CHUNK)):
        syn = number % 7 == 3
        value = field(law, syn, draw)
        data.write_bytes(frame(law, value, syn, draw.choice([60, 600, 1500])))
        files = ["data_in", str(data), "ctx_in", str(context)]
        _do([*command, *files, "repeat", str(_CHUNK)])
        time.sleep(_PAUSE_S)  # the daemon empties the ring buffer meanwhile


def router_program(pid: int) -> str:
    """Return the number of the router program that a daemon holds."""
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        for line in info.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "prog_id" and "waterfill_router" in _do(
                ["bpftool", "prog", "show", "id", value.strip()]
            ):
                return value.strip()
    raise RunError("waterfilld holds no router program")


def _do(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


# ------------------------------------------------------------------ the table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="steps of each law and backend")
    parser.add_argument("--kernel-steps", type=int, default=1_000_000)
    given = parser.parse_args(arguments)
    wrong = False
    print("| law | backend | steps | result |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="waterfill-certificates-") as name:
        folder = Path(name)
        for law in verify.laws():
            for backend in ("sim", "fluid"):
                wrong |= show(law, backend, logged(law, backend, given.rows, folder))
        missing = lacking()
        for law in verify.kernel_laws():
            if missing is None:
                wrong |= show(law, "linux", kernel_log(law, given.kernel_steps, folder))
            else:
                print(f"| {law} | linux | 0 | not run: needs {missing} |")
    return int(wrong)


def show(law: str, backend: str, file: Path) -> bool:
    """Check a log and print its line; return whether it is wrong."""
    verdict = verify.verify(file)
    result = "accepted" if verdict.wrong is None else str(verdict.wrong)
    lost = f"; {verdict.dropped} lost" if backend == "linux" and verdict.dropped else ""
    print(f"| {law} | {backend} | {verdict.rows} | {result}{lost} |", flush=True)
    return verdict.wrong is not None


if __name__ == "__main__":
    sys.exit(main())
