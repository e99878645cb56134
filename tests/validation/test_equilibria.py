"""Fixed points beside the packet simulator: XCP's Fig. 4 and random networks."""

import pytest

from validation import equilibria

MBPS = 1e6


def test_fig_4_beside_the_simulator():
    """Every flow within 3 % of the fixed point, on our instance of ixcp-2007's Fig. 4."""
    found = equilibria.compare(equilibria.fig_4(), "xcp")
    assert len(found) == 80
    assert abs(equilibria.worst(found).error) <= equilibria.FIG_4_TOLERANCE
    # Max-min is far off: the model has something to say.
    first = next(flow for flow in found if flow.bottleneck == "l1")
    assert first.model_bps < 0.87 * 10 * MBPS


@pytest.mark.parametrize("protocol", ["xcp", "ixcp", "maxnet"])
def test_random_networks_beside_the_simulator(protocol):
    """The first of the fifty of `python -m validation.equilibria`, every flow within 5 %."""
    for document in equilibria.networks(1):
        most = equilibria.worst(equilibria.compare(document, protocol))
        assert abs(most.error) <= equilibria.NETWORK_TOLERANCE, (document["name"], most)


def test_the_comparisons_networks_are_the_same_every_time():
    assert equilibria.network(3) == equilibria.network(3) != equilibria.network(4)
