"""Tests of faults of routers and hosts: keys, the core's view, errors."""

from __future__ import annotations

import pytest

import waterfill
from waterfill.contract import elements
from waterfill.errors import InputError
from waterfill.network.protocols import load
from waterfill.network.resolve import to_core
from waterfill.scenario.loading import from_toml
from waterfill.scenario.unsupported import unsupported
from waterfill.scenario.validation import FormerKey

FILE = """
protocol = "xcp"
duration = "4 s"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "10 ms"
{link}
[[flow]]
name = "f"
from = "a"
to = "b"
{flow}
"""


def scenario_of(link="", flow=""):
    return from_toml(FILE.format(link=link, flow=flow), "test")


def fault(section, *lines):
    return "\n".join([f"[[{section}.fault]]", *lines])


def resolved(link="", flow=""):
    scenario = scenario_of(link, flow)
    assert from_toml(scenario.to_toml(), "again").to_toml() == scenario.to_toml()
    return to_core(scenario, load())


def test_restarts_and_clocks_are_changes_of_the_link():
    network = resolved(
        "\n".join(
            (
                '[[link.event]]\nat = "2 s"\nrate = "5 Mbit/s"',
                fault("link", 'kind = "restart"', 'at = "2 s"'),
                fault("link", 'kind = "clock"', 'at = "1 s"', 'step = "-200 ms"'),
                fault("link", 'kind = "clock"', 'at = "1 s"', 'step = "1 s"', 'direction = "both"'),
            )
        )
    )
    forward, back = network.links
    found = [(c.at_s, c.rate_bps, c.restart, c.clock_step_s) for c in forward.changes]
    assert found == [(1.0, None, False, 0.8), (2.0, 5e6, True, None)]
    assert [(c.at_s, c.clock_step_s) for c in back.changes] == [(1.0, 1.0), (2.0, None)]


def test_the_other_faults_keep_their_order():
    link = "\n".join(
        (
            fault("link", 'kind = "strip"', 'at = "1 s"', 'until = "2 s"', "share = 0.5"),
            fault("link", 'kind = "lie"', 'value = "max"'),
            fault("link", 'kind = "corrupt"', 'direction = "reverse"'),
            fault("link", 'kind = "hold"', 'every = "20 ms"', 'direction = "both"'),
        )
    )
    now = r'\[3\].kind: "hold" works .* write ack_aggregation = "20 ms" on the link'
    with pytest.warns(FormerKey, match=now):
        forward, back = resolved(link).links
    spec = elements.FaultSpec
    hold = spec(from_s=0.0, until_s=4.0, share=1.0, effect=elements.Hold(every_s=0.02))
    assert forward.faults == (
        spec(from_s=1.0, until_s=2.0, share=0.5, effect=elements.Strip()),
        spec(from_s=0.0, until_s=4.0, share=1.0, effect=elements.Lie(value="max")),
        hold,
    )
    assert back.faults == (
        spec(from_s=0.0, until_s=4.0, share=1.0, effect=elements.Corrupt()),
        hold,
    )


def test_faults_of_hosts():
    flow = "\n".join(
        (
            fault("flow", 'kind = "lie"', 'at = "1 s"'),
            fault("flow", 'kind = "ignore"', 'until = "2 s"'),
            fault("flow", 'kind = "clock"', 'at = "3 s"', 'step = "-1 s"'),
        )
    )
    spec = elements.HostFaultSpec
    assert resolved(flow=flow).flows[0].faults == (
        spec(from_s=1.0, until_s=4.0, effect=elements.ReceiverLie()),
        spec(from_s=0.0, until_s=2.0, effect=elements.Ignore()),
        spec(from_s=3.0, until_s=4.0, effect=elements.ClockStep(step_s=-1.0)),
    )
    assert "fault" not in scenario_of().to_toml()


def test_a_fault_acts_and_the_network_without_it_is_unchanged():
    plain = waterfill.run(scenario_of())
    link = fault("link", 'kind = "strip"')  # 10 packets per RTT stay
    stripped = waterfill.run(scenario_of(link))
    rates = [run.summary["flows"][0]["rate_bps"] for run in (plain, stripped)]
    assert rates[1] < 0.9 * rates[0]
    shares = [run.summary["flows"][0]["max_min_bps"] for run in (plain, stripped)]
    assert shares[0] == shares[1]


WRONG = {
    (fault("link", 'kind = "strap"'), ""): 'link.l.fault[0].kind: must be "restart", "clock", ',
    (fault("link", 'kidn = "lie"'), ""): 'link.l.fault[0].kidn: unknown key, did you mean "kind"?',
    (fault("link", 'at = "1 s"'), ""): 'link.l.fault[0].kind: missing; write one of "restart", ',
    (fault("link", 'kind = "lie"'), ""): 'link.l.fault[0].value: missing; write one of "zero", ',
    (
        fault("link", 'kind = "hold"'),
        "",
    ): "link.l.fault[0].every: missing; write a time such as ",
    (fault("link", 'kind = "strip"', 'step = "1 s"'), ""): (
        'link.l.fault[0].step: not allowed with kind = "strip"'
    ),
    (fault("link", 'kind = "strip"', "share = 2"), ""): "link.l.fault[0].share: must be in [0, 1]",
    (fault("link", 'kind = "restart"'), ""): "link.l.fault[0].at: must be above zero, ",
    (fault("link", 'kind = "strip"', 'at = "4 s"'), ""): (
        "link.l.fault[0].at: must be before the end of the run at 4 s, got 4 s"
    ),
    (fault("link", 'kind = "strip"', 'at = "2 s"', 'until = "2 s"'), ""): (
        "link.l.fault[0].until: must be after 2 s, got 2 s"
    ),
    ("duplex = false\n" + fault("link", 'kind = "strip"', 'direction = "both"'), ""): (
        "link.l.fault[0].direction: must be forward with duplex = false"
    ),
    (
        'shaper = {rate = "1 Mbit/s", depth = "64 kB"}\n'
        + fault("link", 'kind = "restart"', 'at = "1 s"'),
        "",
    ): 'link.l.fault[0].kind: "restart" is not allowed on a link with a shaper',
    (
        "",
        fault("flow", 'kind = "strip"'),
    ): 'flow.f.fault[0].kind: must be "lie", "ignore" or "clock"',
    ("", fault("flow", 'kind = "clock"', 'at = "1 s"')): (
        'flow.f.fault[0].step: missing; write a time such as "-200 ms"'
    ),
    ("", fault("flow", 'kind = "clock"', 'at = "1 s"', 'step = "0 s"')): (
        'flow.f.fault[0].step: must not be zero, got "0 s"'
    ),
    ("", fault("flow", 'kind = "clock"', 'at = "1 s"', 'step = "-2 s"')): (
        "flow.f.fault[0].step: must not step back by more than 1 s, got -2 s"
    ),
    ("", fault("flow", 'kind = "clock"', 'at = "1 s"', 'step = "2 h"')): (
        'flow.f.fault[0].step: must be a time such as "-200 ms", got "2 h"'
    ),
}


@pytest.mark.parametrize("keys", WRONG)
def test_a_wrong_fault_is_one_sentence(keys):
    with pytest.raises(InputError) as error:
        scenario_of(*keys)
    assert str(error.value).startswith(f"test: {WRONG[keys]}")


def test_the_fluid_backend_refuses_faults():
    scenario = scenario_of(fault("link", 'kind = "strip"'), fault("flow", 'kind = "ignore"'))
    found = dict(unsupported(scenario, "fluid"))
    assert found["link.l.fault"] == "not supported by the fluid backend, got 1"
    assert found["flow.f.fault"] == "not supported by the fluid backend, got 1"


@pytest.mark.parametrize("law", ["hpcc", "powertcp"])
@pytest.mark.parametrize(
    ("link", "flow", "key"),
    [
        (fault("link", 'kind = "strip"'), "", "link.l.fault[0].kind"),
        (fault("link", 'kind = "lie"', 'value = "max"'), "", "link.l.fault[0].kind"),
        ("", fault("flow", 'kind = "lie"'), "flow.f.fault[0].kind"),
    ],
)
def test_faults_that_telemetry_does_not_have_are_refused(law, link, flow, key):
    scenario = from_toml(FILE.format(link=link, flow=flow).replace('"xcp"', f'"{law}"'), "test")
    with pytest.raises(InputError, match=f"does not change the signals of {law}") as error:
        to_core(scenario, load())
    assert error.value.key == key
    lie = FILE.format(link=fault("link", 'kind = "lie"', 'value = "max"'), flow="")
    advice = from_toml(lie.replace('"xcp"', '"scone"'), "test")
    with pytest.raises(InputError, match="does not change the signals of scone"):
        to_core(advice, load())
    restart = FILE.format(link=fault("link", 'kind = "restart"', 'at = "1 s"'), flow="")
    to_core(from_toml(restart.replace('"xcp"', f'"{law}"'), "test"), load())
