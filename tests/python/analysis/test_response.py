"""Response functions: closed forms by hand, the Monte-Carlo, and a few cells of the tables."""

from __future__ import annotations

import pytest

from waterfill.analysis import response


def test_closed_forms_by_hand():
    assert response.mathis_window(1.5e-2) == pytest.approx(10.0)  # √(1.5 / 0.015)
    # RFC 9438, table 1: p = 1e-5, RTT 0.1 s: CUBIC's average window is 1054 packets.
    assert response.cubic_window(1e-5, 0.1) == pytest.approx(1054, abs=1)
    # Below the Reno-friendly region's edge it is Reno's.
    assert response.cubic_window(1e-2, 0.01) == response.mathis_window(1e-2)
    # Padhye without time-outs to speak of is Mathis's, √(2bp/3) for b = 1.
    assert response.padhye_window(1e-6, 10.0, 1e-9) == pytest.approx(response.mathis_window(1e-6))
    assert response.padhye_window(1e-2, 0.01, 1.0) < 0.5 * response.mathis_window(1e-2)


def test_independent_losses_give_reno_a_little_more_than_periodic_ones():
    # ∫ of the stationary window of AIMD(1, ½) under Poisson losses: 1.31/√p beside √(3/2) = 1.22.
    window = response.monte_carlo(response.RenoWindow, 1e-4, 0.1, episodes=20_000)
    assert window / response.mathis_window(1e-4) == pytest.approx(1.31 / 1.2247, rel=0.03)


def test_the_monte_carlo_times_out_where_three_packets_do_not_follow():
    class Two:
        cwnd = 2.0

        def grow(self, rtt_s: float) -> None: ...

        def reduce(self) -> None: ...

    window = response.monte_carlo(Two, 0.01, 0.1, episodes=2000)
    # A loss in a hundred packets or so, each costs a second: 5 s of packets to 1 s of time-out.
    assert 1.3 < window < 1.8


@pytest.mark.parametrize(
    ("protocol", "loss", "p", "rtt_s", "judged"),
    [
        ("reno", "periodic", 1e-3, 0.05, True),
        ("reno", "periodic", 1e-2, 0.05, False),
        ("cubic", "periodic", 3e-4, 0.2, True),
        ("sack", "independent", 3e-3, 0.01, True),
        ("cubic", "independent", 1e-3, 0.2, True),
    ],
)
def test_cells(protocol, loss, p, rtt_s, judged):
    (cell,) = response.cells([(protocol, loss)], [p], [rtt_s], losses=320)
    assert (cell.judged, cell.within) == (judged, True)
    if loss == "independent":
        assert cell.losses >= 300
