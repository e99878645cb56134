"""SCONE packets and CSIG tags in the dissector. The TCP option's tests are with the daemon's."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from known import ROOT

DISSECTOR = ROOT / "packaging" / "wireshark" / "waterfill.lua"
ADDRESSES = bytes(12)
IPV4 = b"\x08\x00"


def ipv4(protocol: int, body: bytes) -> bytes:
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0, 64, protocol, 0)
    return header + bytes([192, 0, 2, 1, 192, 0, 2, 2]) + body


def udp(payload: bytes) -> bytes:
    return ipv4(17, struct.pack(">HHHH", 4433, 4434, 8 + len(payload), 0) + payload)


def scone(signal: int, rest: bytes) -> bytes:
    """Return a SCONE packet: the signal is in the first byte and the version's first bit."""
    version = 0x6F7DC0FD | (signal & 1) << 31
    head = bytes([0x80 | signal >> 1]) + version.to_bytes(4, "big")
    return head + bytes([4]) + b"dest" + bytes([0]) + rest


def capture_of(frames: list[bytes]) -> bytes:
    """Return a capture file."""
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark (Debian: apt install tshark)")
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for frame in frames:
        capture += struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame
    return capture


def decode(frames: list[bytes], *fields: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """Return these fields of each frame."""
    capture = capture_of(frames)
    asked = [word for field in fields for word in ("-e", field)]
    script = ["-X", f"lua_script:{DISSECTOR}"]
    done = subprocess.run(
        ["tshark", "-n", *script, *options, "-r", "-", "-T", "fields", *asked],
        input=capture,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Lua" not in done.stderr
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def test_scone_signals_are_rates():
    follows = b"\x40" + bytes(30)
    signals = [0, 1, 60, 126, 127]
    frames = [ADDRESSES + IPV4 + udp(scone(signal, follows)) for signal in signals]
    frames.append(ADDRESSES + IPV4 + udp(scone(20, b"")))
    frames.append(ADDRESSES + IPV4 + udp(b"\xc0" + bytes(40)))  # QUIC of another version
    fields = ("waterfill.scone.signal", "waterfill.scone.rate", "_ws.expert.message")
    found = decode(frames, *fields)
    assert [signal for signal, _, _ in found] == ["0", "1", "60", "126", "127", "20", ""]
    rates = [float(rate) for _, rate, _ in found if rate]
    assert rates == pytest.approx([1e5, 112_201.845, 1e8, 199.526e9, 1e6], rel=1e-5)
    reports = [message for _, _, message in found if message]
    assert reports == ["No QUIC packet follows in the datagram"]


def test_wireshark_loads_what_the_package_installs(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a copy of the folder of plugins")
    capture = capture_of([ADDRESSES + IPV4 + udp(scone(60, b"\x40" + bytes(30)))])
    link = (ROOT / "packaging" / "debian" / "waterfilld.links").read_text().split()[1]
    folder = Path("/", link).parent
    if not folder.is_dir():
        pytest.skip(f"needs Wireshark's {folder}, as on Debian for amd64")
    shutil.copytree(folder, tmp_path / "plugins")
    (tmp_path / "plugins" / Path(link).name).symlink_to(DISSECTOR)
    words = ["tshark", "-n", "-r", "-", "-T", "fields", "-e", "waterfill.scone.rate"]
    # Also where its user names it again.
    for more in ([], ["-X", f"lua_script:{DISSECTOR}"]):
        mounted = ["unshare", "-m", "sh", "-ec", 'mount --bind "$0" "$1"; shift; exec "$@"']
        done = subprocess.run(
            [*mounted, tmp_path / "plugins", folder, *words, *more],
            input=capture, capture_output=True, check=True,
        )  # fmt: skip
        assert float(done.stdout) == pytest.approx(1e8)
        assert b"Lua" not in done.stderr


def test_scone_in_a_tcp_option():
    option = bytes([253, 6, 0x6F, 0x7D, 0xFF, 0x80 | 40, 1, 1])
    segment = struct.pack(">HHIIBBHHH", 1, 2, 1, 0, 7 << 4, 16, 1, 0, 0) + option
    found = decode([ADDRESSES + IPV4 + ipv4(6, segment)], "waterfill.scone.rate")
    assert float(found[0][0]) == pytest.approx(1e7)


def test_csig_tags_and_what_is_behind_them():
    # SAI's figure: lm 15 | d 1 | t 4 | s 20 | r 8, and t 3 | r 1 | s 5 | lm 6 | d 1.
    wide = (300 << 33 | 1 << 32 | 7 << 28 | 0x12345 << 8).to_bytes(6, "big")
    compact = (2 << 13 | 17 << 7 | 5 << 1).to_bytes(2, "big")
    behind = IPV4 + udp(b"hello")
    frames = [ADDRESSES + b"\x88\xb6" + wide + behind, ADDRESSES + b"\x88\xb5" + compact + behind]
    frames.append(ADDRESSES + b"\x88\xb5" + compact[:1])
    names = ("type", "code", "locator", "trimmed", "wide")
    fields = [f"waterfill.csig.{name}" for name in names] + ["udp.dstport"]
    found = decode(frames, *fields)
    assert found[0] == ["7", str(0x12345), "300", "1", "1", "4434"]
    assert found[1] == ["2", "17", "5", "0", "0", "4434"]
    assert found[2] == [""] * 6
    elsewhere = ("-o", "waterfill_csig.wide:39321")
    moved = [ADDRESSES + b"\x99\x99" + wide + behind]
    assert decode(moved, "waterfill.csig.code", options=elsewhere) == [[str(0x12345)]]
