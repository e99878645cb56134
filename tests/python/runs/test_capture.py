"""Captures of simulated runs, as tshark reads them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from waterfill.network import protocols
from waterfill.runs import backends
from waterfill.runs.capture import Capture
from waterfill.runs.result import Document

ROOT = Path(__file__).parents[3]
DISSECTOR = ROOT / "packaging" / "wireshark" / "waterfill.lua"
LINK = """
[[link]]
name = "{name}"
from = "{start}"
to = "{end}"
rate = "10 Mbit/s"
delay = "5 ms"
buffer = "2 MB"
"""
FIELDS = (
    "frame.interface_name", "tcp.stream", "tcp.seq_raw", "tcp.len", "frame.comment",
    "_ws.expert.message", "waterfill.law", "waterfill.role", "udp.length", "tcp.flags.syn",
)  # fmt: skip


def scenario(links: int = 1, duration: str = "2 s") -> str:
    """Return a row of links."""
    head = f'name = "capture"\nduration = "{duration}"\n'
    ends = [(f"link{i + 1}", f"r{i}", f"r{i + 1}") for i in range(links)]
    return head + "".join(LINK.format(name=n, start=a, end=b) for n, a, b in ends)


def flow(name: str, protocol: str, path: str = '["link1"]', more: str = "") -> str:
    return f'[[flow]]\nname = "{name}"\nprotocol = "{protocol}"\npath = {path}\n{more}\n'


def record(text: str, file: Path, **options: Any) -> tuple[Document, Capture]:
    """Run a scenario with a capture; return its summary."""
    capture = Capture(file, **options)
    scenario = file.with_name("s.toml")
    scenario.write_text(text)
    result = backends.run(scenario, capture=capture)
    return json.loads(result.to_json()), capture


def tshark(file: Path) -> list[dict[str, str]]:
    """Return the fields of each packet; skip the test where tshark is missing."""
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark (Debian: apt install tshark)")
    checks = [
        word for layer in ("ip", "tcp", "udp") for word in ("-o", f"{layer}.check_checksum:TRUE")
    ]
    fields = [word for field in FIELDS for word in ("-e", field)]
    script = ["-X", f"lua_script:{DISSECTOR}"]
    done = subprocess.run(
        ["tshark", "-n", *script, *checks, "-r", file, "-T", "fields", *fields],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Lua" not in done.stderr, done.stderr
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in done.stdout.splitlines()]


def experts(packets: list[dict[str, str]]) -> Counter[str]:
    """Count expert messages, without those that every handshake has."""
    found = Counter(p["_ws.expert.message"] for p in packets if p["tcp.flags.syn"] != "1")
    del found[""]
    return found


def test_a_run_without_loss_has_no_error_and_every_law_its_option(tmp_path):
    laws = [name for name, known in protocols.load().items() if known.kind == "explicit"]
    text = scenario(duration="4 s")
    # RACK's tail loss probe would be a retransmission, of a packet that only waits in the queue.
    more = 'size = "40 kB"\nrecovery = "rfc6675"'
    text += "".join(flow(law, law, more=more) for law in [*laws, "cubic"])
    text += '[[traffic]]\nname = "cbr"\nkind = "cbr"\npath = ["link1"]\nrate = "100 kbit/s"\n'
    record(text, tmp_path / "packets.pcapng", snaplen=1600)
    packets = tshark(tmp_path / "packets.pcapng")
    assert experts(packets) == {}
    assert {p["frame.interface_name"] for p in packets} == {"link1", "link1:rev"}
    received = Counter[str]()
    for p in packets:
        received[p["tcp.stream"]] += int(p["tcp.len"] or 0)
    streams = [bytes_ for stream, bytes_ in received.items() if stream]
    assert streams == [40_000] * (len(laws) + 1)
    # Values forward on data, echoes on acknowledgements; none from CUBIC.
    data = {
        p["waterfill.law"]: p["waterfill.role"] for p in packets if p["tcp.len"] not in ("", "0")
    }
    acks = {
        p["waterfill.law"]: p["waterfill.role"]
        for p in packets
        if p["frame.interface_name"] == "link1:rev" and p["tcp.flags.syn"] == "0"
    }
    numbers = [str(number) for number in range(9)]
    assert data == dict.fromkeys(numbers, "1") | {"": ""}
    assert acks == dict.fromkeys(numbers, "2") | {"": ""}
    assert {p["udp.length"] for p in packets if p["tcp.stream"] == ""} == {"1480"}


def test_losses_and_retransmissions_are_those_of_the_summary(tmp_path):
    text = 'measure = ["0 s", "2 s"]\n' + scenario() + "loss = 0.02\n" + flow("long", "maxnet")
    document, _ = record(text, tmp_path / "packets.pcapng")
    packets = tshark(tmp_path / "packets.pcapng")
    lost = sum(p["frame.comment"] == "lost on the wire" for p in packets)
    assert lost == document["links"][0]["lost"] > 10
    sent = Counter(p["tcp.seq_raw"] for p in packets if p["tcp.len"] not in ("", "0"))
    repeated = sum(times - 1 for times in sent.values())
    # The last ones may not have arrived at the end of the run.
    assert 0 <= document["flows"][0]["retransmissions"] - repeated <= 2
    found = experts(packets)
    assert (
        sum(times for message, times in found.items() if "retransmission" in message)
        >= repeated / 2
    )
    assert any("Duplicate ACK" in message for message in found)


def test_one_link_of_several_reads_without_errors(tmp_path):
    text = scenario(2) + flow("long", "maxnet", '["link1", "link2"]')
    record(text, tmp_path / "packets.pcapng", links=["link2"])
    packets = tshark(tmp_path / "packets.pcapng")
    assert {p["frame.interface_name"] for p in packets} == {"link2", "link2:rev"}
    assert len(packets) > 1000
    assert experts(packets) == {}


def test_the_limit_bounds_the_file(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(scenario() + flow("long", "maxnet"))
    ran = waterfill("run", "s.toml", "--pcap", "--pcap-limit", "20 kB", "-o", "out")
    file = tmp_path / "out" / "packets.pcapng"
    # Beside packets there are two blocks of statistics.
    assert 19_000 < file.stat().st_size < 20_500
    assert "packets.pcapng: reached its limit of 20 kB at 0." in ran.err
    assert ran.code == 0
    assert len(tshark(file)) > 100


def test_a_capture_changes_nothing_of_the_run(tmp_path):
    text = scenario() + flow("long", "xcp")
    with_it, capture = record(text, tmp_path / "packets.pcapng")
    without = json.loads(backends.run(tmp_path / "s.toml").to_json())
    assert capture.recorded is not None
    assert capture.recorded.size_bytes == capture.file.stat().st_size
    for document in (with_it, without):
        del document["engine"]["wall_s"]
        del document["engine"]["packet_transmissions_per_s"]
    assert with_it == without


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pcap",), "command line: pcap: needs -o DIR, where packets.pcapng is written"),
        (
            ("--pcap", "-o", "out", "--on", "fluid"),
            "pcap: fluid cannot record packets; use --on sim",
        ),
        (("--pcap-link", "link9", "-o", "out"), 'pcap-link: unknown link "link9", did you'),
        (("--pcap", "--pcap-snaplen", "40", "-o", "out"), "pcap-snaplen: must be 80 to 65535"),
        (("--pcap", "--pcap-limit", "many", "-o", "out"), "pcap-limit: must be a volume"),
    ],
)
def test_wrong_options_are_one_line(waterfill, tmp_path, arguments, message):
    (tmp_path / "s.toml").write_text(scenario(duration="100 ms") + flow("long", "maxnet"))
    ran = waterfill("run", "s.toml", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_line(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(scenario(duration="100 ms") + flow("long", "maxnet"))
    (tmp_path / "out" / "packets.pcapng").mkdir(parents=True)
    ran = waterfill("run", "s.toml", "--pcap", "-o", "out")
    assert ran.code == 1
    assert ran.err.endswith("\nout/packets.pcapng: is in the way of the new result; remove it\n")
    assert "long" in ran.out
