"""Tests of `queue = "cohabit"` in the testbed: refusals, the daemon's options, a run."""

from __future__ import annotations

import numpy as np
import pytest

import waterfill
from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict
from waterfill.testbed import checks, cohabit, daemon, kernel, plan
from waterfill.testbed.answer import LawSample

OFFERED = ["reno", "cubic", kernel.loadable("maxnet"), kernel.loadable("aecp")]


def scenario(params, flow=()):
    return from_dict(
        {
            "duration": "3 s",
            "link": [{"name": "l", "from": "r1", "to": "r2", "rate": "100 Mbit/s",
                      "delay": "14 ms", "queue": "cohabit", "queue_params": params}],
            "flow": [
                {"name": "f", "path": ["l"], "protocol": "maxnet"},
                {"name": "g", "path": ["l"], "protocol": "cubic"},
                *flow,
            ],
        }
    )  # fmt: skip


def planned(params, flow=()):
    checked = scenario(params, flow)
    resolved = resolve.to_core(checked, kernel.protocols(protocols.load(), OFFERED), "linux")
    cohabit.refuse(checked, resolved)
    laws = kernel.congestion(OFFERED, protocols.load(), None)
    return plan.of(checked, resolved, laws, {"maxnet": 0.9, "aecp": 1.0})


def options(params, flow=()):
    """Return the daemon's options for each router, as a controller and its parameters."""
    found = []
    for pricing in planned(params, flow).pricings:
        words = list(pricing.cohabit)
        assert words[::2] == ["--cohabit", *["--cohabit-set"] * (len(words) // 2 - 1)][: len(words)]
        found.append((words[1], dict(w.split("=") for w in words[3::2])) if words else None)
    return found


def test_the_daemon_gets_the_parameters_of_the_scenario_with_their_defaults():
    (improved,) = options({"depth": "200 ms", "explicit_weight": 2.0})
    assert improved == (
        "improved",
        {"interval": "28000us", "period": "2000000us", "explicit_weight": "2", "ecn": "true",
         "aim": "0.9", "integral": "0.5", "proportional": "1", "depth": "200000us"},
    )  # fmt: skip
    (paper,) = options({"controller": "paper", "estimator": "nred", "update": "tcp-packet"})
    assert paper == (
        "paper",
        {"interval": "28000us", "period": "2000000us", "explicit_weight": "1", "ecn": "false",
         "initial": "0.001", "decrease": "0.9999", "increase": "1.0001", "threshold": "0.97",
         "update": "tcp-packet"},
    )  # fmt: skip


def test_one_module_serves_all_laws_of_a_link_and_is_attached_last():
    both = options({}, [{"name": "h", "path": ["l"], "protocol": "aecp"}])
    assert [found and found[0] for found in both] == [None, "improved"]


@pytest.mark.parametrize(
    ("params", "key", "expected"),
    [
        ({"separate": True}, "separate", "must be false on linux, got true"),
        ({"controller": "off"}, "controller", 'must be "improved" or "paper" on linux, got "off"'),
        ({"controller": "paper"}, "estimator", 'must be "nred" on linux, got "sred"'),
        ({"estimator": "exact"}, "estimator", 'must be "nred" on linux, got "exact"'),
        ({"bins": 512}, "bins", "must be 4096 on linux, got 512"),
        ({"levels": 2}, "levels", "must be 4 on linux, got 2"),
        ({"hash": "pair"}, "hash", 'must be "flow" on linux, got "pair"'),
        ({"inspect": 0.5}, "inspect", "must be 1 on linux, got 0.5"),
        ({"interval": "xcp"}, "interval", 'must be a time on linux, got "xcp"'),
        ({"count_drops": "module"}, "count_drops", 'must be "never" on linux, got "module"'),
        (
            {"controller": "paper", "estimator": "nred", "update": "1 ms"},
            "update",
            '"explicit-packet" or "tcp-packet" on linux, got "0.001 s"',
        ),
    ],
)
def test_what_the_kernel_lacks_is_refused_with_what_it_has(params, key, expected):
    with pytest.raises(InputError) as refused:
        planned(params)
    said = str(refused.value)
    assert f"link.l.queue_params.{key}: " in said
    assert expected in said


def test_what_modules_dropped_explains_retransmissions():
    def link(**laws):
        return {name: {"cohabit": n and {"dropped": n}} for name, n in laws.items()}

    first = {"links": {"0": link(maxnet=1)}}
    last = {"links": {"0": link(aecp=None, maxnet=5), "2": link(maxnet=7), "4": {"rcp": {}}}}
    samples = [LawSample.read(one) for one in (first, last)]
    assert cohabit.dropped(samples) == 12
    assert cohabit.dropped([]) == cohabit.dropped(None) == 0


# --- on the kernel ----------------------------------------------------------------------------

LACKS = checks.missing(http=False) or (
    "the daemon waterfilld beside this Python, got none" if daemon.binary() is None else None
)


@pytest.mark.skipif(LACKS is not None, reason=f"cohabitation in the kernel needs {LACKS}")
def test_on_the_kernel_the_module_counts_flows_and_keeps_tcp_from_taking_the_link(tmp_path):
    """Four MaxNet flows and a CUBIC, ten seconds; without the module CUBIC takes all of it."""
    path = tmp_path / "beside.toml"
    path.write_text(
        """
name = "beside"
duration = "10 s"
measure = ["6 s", "10 s"]
[[link]]
name = "l"
from = "r1"
to = "r2"
rate = "20 Mbit/s"
delay = "5 ms"
queue = "cohabit"
[[flow]]
name = "explicit"
protocol = "maxnet"
path = ["l"]
count = 4
[[flow]]
name = "tcp"
protocol = "cubic"
path = ["l"]
start = "1 s"
"""
    )
    for _ in range(3):  # on a busy host intervals stretch, and flows are counted twice
        result = waterfill.run(path, on="linux")
        columns = result.samples("links", "l")
        flows = [
            np.array(columns[f"cohabit_{name}_flows"].to_pylist(), dtype=float)
            for name in ("explicit", "tcp")
        ]
        medians = [float(np.nanmedian(count[len(count) // 2 :])) for count in flows]
        if medians == [4.0, 1.0]:
            break
    assert medians == [4.0, 1.0]
    probability = np.array(columns["cohabit_drop_probability"].to_pylist(), dtype=float)
    assert 0 < np.nanmax(probability) <= 0.5
    rates = {flow["name"]: flow["rate_bps"] for flow in result.summary["flows"]}
    explicit = sum(rates[f"explicit[{i}]"] for i in range(4))
    # Their fair shares are 14.4 and 3.6 Mbit/s; the host may be busy, so less is asked.
    assert explicit > 0.5 * 14.4e6
    assert rates["tcp"] > 0.25 * 3.6e6
