"""Qlog files of simulated flows, checked against the definitions of qlog 0.3."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import waterfill
from waterfill.runs import backends
from waterfill.runs.qlog import Qlog

SCENARIO = """
name = "qlog"
duration = "4 s"
measure = ["0 s", "4 s"]
[[link]]
name = "link1"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "30 kB"
"""
METHODS = ("reno", "newreno", "rfc6675", "rack", "quic")


def flow(name: str, more: str = "", protocol: str = "cubic") -> str:
    return f'[[flow]]\nname = "{name}"\nprotocol = "{protocol}"\npath = ["link1"]\n{more}\n'


def record(tmp_path: Path, text: str, **options: Any) -> tuple[waterfill.Result, Qlog]:
    (tmp_path / "s.toml").write_text(text)
    qlog = Qlog(tmp_path, **options)
    return backends.run(tmp_path / "s.toml", qlog=qlog), qlog


def read(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the events of a JSON text sequence (RFC 7464)."""
    text = file.read_text()
    assert text.startswith("\x1e")
    assert text.endswith("\n")
    header, *events = [json.loads(part) for part in text.split("\x1e")[1:]]
    return header, events


# Definitions of draft-ietf-quic-qlog-main-schema-03 and -quic-events-03: for each member a check,
# and whether it must be present.
Check = Callable[[Any], bool]
Members = Mapping[str, tuple[Check, bool]]


def whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def real(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def one_of(*words: str) -> Check:
    return lambda value: value in words


def array(check: Check, minimum: int = 0) -> Check:
    return lambda value: (
        isinstance(value, list) and len(value) >= minimum and all(check(item) for item in value)
    )


def members(definition: Members, others: Check | None = None) -> Check:
    """Return a check of an object. `others` checks unspecified members, None forbids them."""

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        known = all(definition[key][0](value[key]) for key in value if key in definition)
        more = [value[key] for key in value if key not in definition]
        needed = {key for key, (_, must) in definition.items() if must}
        return (
            known
            and needed <= value.keys()
            and (not more if others is None else all(map(others, more)))
        )

    return check


def ack_range(value: Any) -> bool:
    if not array(whole, 1)(value) or len(value) > 2:
        return False
    return len(value) == 1 or value[0] < value[1]


def text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


HEADER = members({"packet_type": (one_of("initial", "1RTT"), True), "packet_number": (whole, True)})
RAW = members({"length": (whole, True)})
FRAMES = {
    "stream": members({
        "frame_type": (one_of("stream"), True), "stream_id": (whole, True),
        "offset": (whole, True), "length": (whole, True),
    }),
    "ack": members({
        "frame_type": (one_of("ack"), True), "ack_delay": (real, False), "ce": (whole, False),
        "acked_ranges": (array(ack_range, 1), True),
    }),
}  # fmt: skip


def frame(value: Any) -> bool:
    return FRAMES[value["frame_type"]](value)


TIMES = ("min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance")
COUNTS = (
    "congestion_window", "bytes_in_flight", "ssthresh", "packets_in_flight", "pacing_rate",
)  # fmt: skip
PACKET = members({"header": (HEADER, True), "raw": (RAW, True), "frames": (array(frame), True)})
EVENTS: Mapping[str, Check] = {
    "transport:packet_sent": PACKET,
    "transport:packet_received": PACKET,
    "recovery:packet_lost": members({
        "header": (HEADER, True),
        "trigger": (one_of("reordering_threshold", "time_threshold", "pto_expired"), False),
    }),
    "recovery:metrics_updated": members(
        {
            **dict.fromkeys(TIMES, (real, False)),
            **dict.fromkeys(COUNTS, (whole, False)),
        },
        others=lambda value: type(value) in (int, float),
    ),
    "recovery:congestion_state_updated": members({
        "old": (text, False), "new": (text, True),
        "trigger": (one_of("persistent_congestion", "ECN"), False),
    }),
}  # fmt: skip
TRACE = members({
    "title": (text, False),
    "vantage_point": (members({"name": (text, False), "type": (one_of("client"), True)}), True),
    "common_fields": (members({
        "group_id": (text, False), "protocol_type": (lambda value: value == ["QUIC"], True),
        "reference_time": (real, True), "time_format": (one_of("relative"), True),
    }), True),
})  # fmt: skip
FILE = members({
    "qlog_version": (one_of("0.3"), True), "qlog_format": (one_of("JSON-SEQ"), True),
    "title": (text, False), "trace": (TRACE, True),
})  # fmt: skip
EVENT = members(
    {"time": (real, True), "name": (EVENTS.__contains__, True), "data": (lambda _: True, True)}
)


def checked(file: Path) -> list[dict[str, Any]]:
    """Return the events of a file after all checks of its structure."""
    header, events = read(file)
    assert FILE(header), header
    for event in events:
        assert EVENT(event), event
        assert EVENTS[event["name"]](event["data"]), event
    assert all(a["time"] <= b["time"] for a, b in pairwise(events))
    return events


def of(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["name"] == name]


def numbers(packets: list[dict[str, Any]], kind: str = "1RTT") -> list[int]:
    headers = [packet["header"] for packet in packets]
    return [header["packet_number"] for header in headers if header["packet_type"] == kind]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Five flows, one per recovery method, that lose packets in one queue."""
    folder = tmp_path_factory.mktemp("qlog")
    each = "".join(flow(name, f'recovery = "{name}"') for name in METHODS)
    result, qlog = record(folder, SCENARIO + each)
    return folder, result, qlog


def test_every_record_has_the_structure_of_qlog(run):
    folder, _, qlog = run
    sizes = [(folder / f"{name}.sqlog").stat().st_size for name in METHODS]
    assert qlog.logged.size_bytes == sum(sizes)
    assert qlog.logged.full_at_s is None
    every = [checked(folder / f"{name}.sqlog") for name in METHODS]
    assert qlog.logged.events == sum(map(len, every))
    for events in every:
        assert {event["name"] for event in events} == EVENTS.keys()


@pytest.mark.parametrize("method", METHODS)
def test_packets_are_those_of_the_summary(run, method):
    folder, result, _ = run
    events = checked(folder / f"{method}.sqlog")
    row = result.summary["flows"][METHODS.index(method)]
    sent = of(events, "transport:packet_sent")
    # Each transmission has the next number.
    assert numbers(sent) == list(range(len(numbers(sent))))
    assert numbers(sent, "initial") == [0]
    offsets = [packet["frames"][0]["offset"] for packet in sent[1:]]
    assert len(offsets) - len(set(offsets)) == row["retransmissions"] > 0
    lost = numbers(of(events, "recovery:packet_lost"))
    assert len(lost) == len(set(lost))
    # A QUIC probe repeats data that is not lost.
    assert row["retransmissions"] <= len(lost) + 10 * (method == "quic")
    acked: set[int] = set()
    for packet in of(events, "transport:packet_received")[1:]:
        for part in packet["frames"]:
            for first, *last in part["acked_ranges"]:
                acked.update(range(first, (last or [first])[0] + 1))
    assert acked <= set(numbers(sent))
    if method in ("reno", "newreno"):
        return  # a timeout declares lost what has arrived out of order
    assert len(acked & set(lost)) <= 2
    assert row["retransmissions"] >= len(lost) - 30  # those of the end wait
    metrics = of(events, "recovery:metrics_updated")
    in_flight = [update["packets_in_flight"] for update in metrics if "packets_in_flight" in update]
    assert len(set(numbers(sent)) - acked - set(lost)) == in_flight[-1]


def test_states_follow_slow_start_and_recovery(run):
    folder, _, _ = run
    states = of(checked(folder / "rack.sqlog"), "recovery:congestion_state_updated")
    assert [state["new"] for state in states[:2]] == ["slow_start", "recovery"]
    assert all(a["new"] == b["old"] for a, b in pairwise(states))
    assert "congestion_avoidance" in {state["new"] for state in states}


def test_a_mark_is_the_trigger_of_a_recovery(tmp_path):
    marking = SCENARIO.replace("30 kB", "1 MB") + 'queue = "codel"\n'
    record(tmp_path, marking + flow("f", "ecn = true"))
    states = of(checked(tmp_path / "f.sqlog"), "recovery:congestion_state_updated")
    assert {state.get("trigger") for state in states if state["new"] == "recovery"} == {"ECN"}


def test_an_explicit_law_logs_its_signals(tmp_path):
    record(tmp_path, SCENARIO + flow("f", protocol="maxnet"))
    metrics = of(checked(tmp_path / "f.sqlog"), "recovery:metrics_updated")
    assert any("price" in update for update in metrics)


def test_a_log_changes_nothing_and_repeats(run, tmp_path):
    folder, result, _ = run
    text = (folder / "s.toml").read_text()
    again, _ = record(tmp_path, text, flows=["quic"])
    assert [path.name for path in tmp_path.glob("*.sqlog")] == ["quic.sqlog"]
    assert (tmp_path / "quic.sqlog").read_bytes() == (folder / "quic.sqlog").read_bytes()
    without = backends.run(folder / "s.toml")
    assert without.summary["flows"] == again.summary["flows"] == result.summary["flows"]


def test_the_limit_ends_all_files(tmp_path):
    _, qlog = record(tmp_path, SCENARIO + flow("f"), limit_bytes=20_000)
    assert 20_000 <= qlog.logged.size_bytes < 21_000
    assert 0 < qlog.logged.full_at_s < 1
    checked(tmp_path / "f.sqlog")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--qlog",), "command line: qlog: needs -o DIR, where FLOW.sqlog is written"),
        (
            ("--qlog", "-o", "out", "--on", "fluid"),
            "qlog: fluid cannot log flows as qlog; use --on",
        ),
        (("--qlog-flow", "g", "-o", "out"), 'qlog-flow: unknown flow "g"'),
        (
            ("--qlog", "-o", "out", "--set", "flow.f.count=257"),
            "at most 256 flows can be logged, g",
        ),
    ],
)
def test_wrong_options_are_one_line(waterfill, tmp_path, arguments, message):
    (tmp_path / "s.toml").write_text(SCENARIO + flow("f"))
    ran = waterfill("run", "s.toml", *arguments)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert message in ran.err


def test_each_flow_of_a_group_has_a_file(tmp_path):
    text = SCENARIO.replace("4 s", "1 s") + flow("a/b", "count = 3") + flow("c")
    record(tmp_path, text, flows=["a/b[1]", "c"])
    assert {path.name for path in tmp_path.glob("*.sqlog")} == {"a%2Fb[1].sqlog", "c.sqlog"}
    header, _ = read(tmp_path / "a%2Fb[1].sqlog")
    assert header["title"] == "a/b[1]"
