"""`validation.testbed.scone`: the datagrams that it sends, and how it judges advice."""

from __future__ import annotations

import pytest

from validation.testbed.scone import judged, packet, rate_bps, signal, table


def row(*signals: int) -> dict[str, object]:
    return {"flows": 4, "share_bps": 9e6, "mean_bps": 9e6, "signals": list(signals)}


def test_a_packet_asks_for_no_advice_and_has_scones_version():
    data = packet()
    assert signal(data) == 127
    version = int.from_bytes(data[1:5], "big") & 0x7FFFFFFF
    assert (data[0], version) == (0xFF, 0x6F7DC0FD)
    assert data[5:] == b"\x04\x01\x02\x03\x04\x00\x40\x01\x02\x03\x04"


def test_signals_are_steps_of_a_twentieth_of_a_decade():
    assert rate_bps(0) == 1e5
    assert rate_bps(40) == pytest.approx(1e7)


@pytest.mark.parametrize(("signals", "ok"), [((39, 39, 40), True), ((40, 40, 39), False)])
def test_the_median_must_be_the_signal_nearest_to_the_share(signals: tuple[int, ...], ok: bool):
    found = judged(row(*signals))
    assert found["ok"] is ok
    assert found["within"] == pytest.approx(sum(n == 39 for n in signals) / 3)
    assert "9.00" in table([found])
