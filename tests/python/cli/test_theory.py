"""`waterfill theory …` as it is typed: the contract's keys, figures, one-line errors."""

import pytest
from rich.cells import cell_len

NAMES = {
    "maxnet": ("alpha", "eq13", "implemented"),
    "aecp": ("delay_margin_s", "sampled_delay_margin_s"),
    "xcp": ("alpha_min", "beta"),
    "rcp": ("stable_empty_queue", "stable_standing_queue"),
    "vcp": ("kappa",),
    "abc": ("rtt_limit_s", "delay_margin_s"),
    "jetmax": ("mode",),
    "mkc": ("mode", "overload_per_flow_bps"),
    "alpha_rcp": ("gain", "queue_gain", "load"),
}

SCENARIO = """
duration = "10 s"
protocol = "maxnet"
[[link]]
name = "one"
from = "a"
to = "b"
rate = "155 Mbit/s"
delay = "1 ms"
[[link]]
name = "two"
from = "b"
to = "c"
rate = "100 Mbit/s"
delay = "100 ms"
[[flow]]
name = "short"
path = ["one"]
[[flow]]
name = "long"
path = ["one", "two"]
count = 4
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    return str(path)


@pytest.mark.parametrize("protocol", NAMES)
def test_stability_has_the_contracts_keys(waterfill, protocol):
    ran = waterfill("theory", "stability", protocol, "--max-rtt", "200 ms", "--json")
    assert ran.code == 0
    document = ran.document
    for key in ("omega_rad_s", "slope", "alpha_max", "stable", *NAMES[protocol]):
        assert key in document
    assert isinstance(document["stable"], bool)


def test_stability_of_the_papers_case_shows_the_papers_values(waterfill):
    ran = waterfill("theory", "stability", "maxnet", "--max-rtt", "1000s", "--json")
    document = ran.document
    assert document["omega_rad_s"] == pytest.approx(0.0015317, rel=1e-4)
    assert document["slope"] == pytest.approx(0.3523, rel=1e-3)
    assert document["alpha_max"] == pytest.approx(0.8575, rel=1e-4)
    assert document["stable"] is True
    papers = [entry["paper"] for entry in document["rows"] if entry["paper"] is not None]
    assert papers == [0.001525, 0.3504]
    # Of other parameters the paper prints nothing.
    other = waterfill(
        "theory", "stability", "maxnet", "--set", "params.maxnet.eta=0.1", "--json"
    ).document
    assert all(entry["paper"] is None for entry in other["rows"])
    assert other["eq13"]["eta"] == 0.1


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ("stability aecp", "AECP is not stable at an RTT of 1 s: its delay margin is 644 ms by eq. "
         "38, 670 ms as implemented."),
        ("stability aecp --max-rtt 100ms", "AECP is stable for every RTT up to 100 ms: its delay "
         "margin is 644 ms by eq. 38, 670 ms as implemented."),
        ("stability xcp", "XCP is stable at every RTT that all flows share: α = 0.4 is between "
         "0.248 and 1.46, its bounds at β = 0.226."),
        ("stability xcp --set params.xcp.beta=0.9", "XCP is not stable: no α is, because β = 0.9 "
         "is too large."),
        ("stability rcp", "RCP is stable with an empty queue, where α = 0.4 < α_max = 1.57, and "
         "not stable with a standing queue, at α = 0.4 and β = 1."),
        ("stability vcp", "VCP is stable for any disturbance: κ = 0.25 ≤ 0.5."),
        ("stability abc", "ABC is not shown to be stable at 1 s: with δ = 133 ms the RTT must be "
         "below 200 ms."),
        ("stability jetmax", "JetMax is stable for any delay: τ = 0.6 < 2."),
        (
            "stability alpha_rcp",
            "α-fair RCP is stable at any RTTs and paths, for small disturbances: gain = 0.5 "
            "< 1.65.",
        ),
        (
            "stability alpha_rcp --set params.alpha_rcp.gain=1.2"
            " --set params.alpha_rcp.queue_gain=0.02",
            "α-fair RCP is not stable at one RTT on one link with queue_gain = 0.02:"
            " gain = 1.2 ≥ 1.03.",
        ),
        ("stability mkc", "MKC is stable at any delays, for small disturbances: β = 0.5 < 2."),
        ("stability mkc --set params.mkc.beta=2", "MKC is not stable: β = 2 ≥ 2."),
        ("stability s.toml", "MaxNet is stable for the RTTs of s, 2 ms to 202 ms: α = 0.66 < α_max "
         "= 1.16."),
        ("stability s.toml --protocol rcp", "RCP is stable at every bottleneck of s with an empty "
         "queue, and not stable at two of s with a standing queue."),
        ("margin maxnet", "MaxNet is stable at an RTT of 80 ms: phase margin 65.7°, 43.3° as "
         "implemented."),
        ("margin aecp", "AECP is stable up to an RTT of 644 ms: phase margin 36.9°."),
        ("margin rcp", "RCP is stable at an RTT of 100 ms with an empty queue (phase margin "
         "67.1°), and not stable with a standing queue (phase margin -37°)."),
        ("convergence maxnet", "MaxNet reaches 2/3 of a step in 240 ms and stays within 2 % after "
         "3.55 s at an RTT of 80 ms."),
        ("convergence aecp", "AECP fills 99 % of a link of 62,500 packets/s in 10.9 s, and its "
         "flows are 0.99-fair after 3.38 s."),
        ("convergence jetmax", "JetMax is within 1 % after 6 control intervals, at most 1.08 s at "
         "an RTT of 80 ms."),
        ("convergence jetmax --set params.jetmax.tau=1", "JetMax is within 1 % after 1 control "
         "interval, at most 180 ms at an RTT of 80 ms."),
        ("convergence vcp", "VCP's multiplicative increase makes a window 10 times as large in "
         "7.6 s."),
        ("encoding maxnet", "MaxNet's price field has room for 32 bit/s to 1 Pbit/s in steps of "
         "1e-05: they need 4 + 18 bits, and it has 5 + 18."),
        ("encoding maxnet --set params.maxnet.t=2s", "MaxNet's price field is too small for 32 "
         "bit/s to 1 Pbit/s in steps of 1e-05: they need 6 + 16 bits, and it has 5 + 18."),
        ("encoding aecp", "AECP's field states 0.25 to 4.61e+18 packets/s, rounded by at most "
         "0.0339 %."),
        ("equilibrium s.toml", "MaxNet gives every flow its max-min share."),
        ("equilibrium s.toml --protocol xcp", "XCP is not max-min fair here: short gets 78.2 % of "
         "its share."),
    ],
)  # fmt: skip
def test_the_verdict_is_the_first_sentence(waterfill, scenario, monkeypatch, arguments, verdict):
    monkeypatch.setenv("COLUMNS", "200")
    ran = waterfill("theory", *arguments.split())
    assert ran.out.splitlines()[0] == verdict


def test_the_certificate_is_printed_on_demand(waterfill):
    out = waterfill("theory", "stability", "maxnet", "--certificate").out
    assert out.startswith("MaxNet is stable for every RTT up to 1 s: α = 0.66 < α_max = 1.07.\n")
    assert out.count("Certificate for ") == 2


def test_tuning_returns_parameters_margin_and_certificate(waterfill):
    ran = waterfill("theory", "stability", "maxnet", "--tune", "--max-rtt", "250ms", "--json")
    document = ran.document
    assert document["phase_margin_deg"] == pytest.approx(45.0)
    tuned = document["params"]
    assert tuned["alpha"] * tuned["t"] == pytest.approx(0.25)
    assert document["certificate"]["certified"] is document["stable"] is True
    assert document["tune"]["eq13"]["params"]["alpha"] == pytest.approx(0.7854, abs=1e-4)
    # What it returns is what `stability` certifies.
    sets = [f"--set=params.maxnet.{k}={v}" for k, v in (("alpha", tuned["alpha"]), ("eta", 0.1))]
    again = waterfill(
        *("theory", "stability", "maxnet", "--max-rtt", "1000 s", "--json", *sets),
        f"--set=params.maxnet.t={1000 * tuned['t']} ms",
    ).document
    assert again["implemented"]["alpha_max"] == pytest.approx(document["alpha_max"], rel=1e-6)


def test_a_networks_stability_is_lemma_1_of_its_rtts(waterfill, scenario):
    document = waterfill("theory", "stability", scenario, "--json").document
    assert document["rtts_s"] == pytest.approx([0.002, 0.202])
    assert document["stable"] is True
    assert [b["name"] for b in document["bottlenecks"]] == ["one", "two"]
    assert document["equal_prices"] is False
    wild = waterfill(
        "theory", "stability", scenario, "--set", "params.maxnet.alpha=1.5", "--json"
    ).document
    assert wild["alpha_max"] < 1.5 or wild["implemented"]["alpha_max"] < 1.5
    assert wild["stable"] is False


def test_rcp_link_by_link(waterfill, scenario):
    document = waterfill("theory", "stability", scenario, "--protocol", "rcp", "--json").document
    one, two = document["links"]
    # Link one: d̂ over traffic is (55·2 + 100·202)/155 ms, and 55 of 155 Mbit/s respond.
    assert one["mean_rtt_s"] == pytest.approx((55 * 0.002 + 100 * 0.202) / 155)
    assert one["share"] == pytest.approx(55 / 155)
    assert two["mean_rtt_s"] == pytest.approx(0.202)
    assert two["empty_queue"]["stable"]
    assert not two["standing_queue"]["stable"]


def test_margin_has_the_contracts_keys(waterfill):
    document = waterfill("theory", "margin", "aecp", "--json").document
    assert document["crossover_rad_s"] == pytest.approx(1.0)
    assert document["phase_margin_deg"] == pytest.approx(36.87, abs=0.01)
    assert document["delay_margin_s"] == pytest.approx(0.6435, abs=1e-4)
    assert document["gain_margin"] is None  # infinite
    late = waterfill("theory", "margin", "aecp", "--rtt", "1 s", "--json").document
    assert late["stable"] is False
    assert late["sampled_growth_per_s"]["exact"] > 1


@pytest.mark.parametrize("protocol", ["maxnet", "xcp", "rcp", "vcp", "abc"])
def test_margin_of_the_others(waterfill, protocol):
    document = waterfill("theory", "margin", protocol, "--rtt", "80 ms", "--json").document
    # RCP's own β is unstable with a standing queue.
    assert document["stable"] is (protocol != "rcp")


def test_equilibrium(waterfill, scenario):
    document = waterfill("theory", "equilibrium", scenario, "--protocol", "xcp", "--json").document
    short, long = document["flows"]
    assert (short["bottleneck"], long["bottleneck"]) == ("one", "two")
    assert long["ratio"] == pytest.approx(1.0)
    # Without acknowledgements it is 43.02 of 55 Mbit/s; they only load the way back.
    assert short["rate_bps"] == pytest.approx(43.02e6, rel=1e-3)
    fair = waterfill("theory", "equilibrium", scenario, "--protocol", "rcp", "--json").document
    assert fair["flows"][0]["ratio"] == pytest.approx(1.0)


def test_convergence_and_encoding(waterfill):
    aecp = waterfill("theory", "convergence", "aecp", "--json").document
    assert [e["within"] for e in aecp["efficiency"]] == [True, False, False]
    maxnet = waterfill("theory", "encoding", "maxnet", "--json").document
    needed = maxnet["bits_needed"]
    assert (needed["integer"], needed["fraction"]) == (4, 18)
    steps = {fast["rtt_s"]: fast["log_rate_step"] for fast in maxnet["fast_path"]}
    assert steps[1e-3] == pytest.approx(0.0025, rel=0.02)
    assert steps[10e-6] == pytest.approx(0.25, rel=0.02)
    factor = waterfill("theory", "encoding", "aecp", "--json").document
    assert factor["rate_step"] == pytest.approx(0.00068, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "figures"),
    [
        (("stability", "maxnet"), {"construction", "lead-or-lag"}),
        (("margin", "aecp"), {"margin"}),
        (("convergence", "aecp"), {"efficiency"}),
        (("convergence", "maxnet"), {"steps"}),
        (("encoding", "maxnet"), {"encoding"}),
        (("stability", "rcp"), {"region"}),
        (("stability", "vcp"), {"margin"}),
        (("stability", "abc"), {"margin"}),
        (("stability", "jetmax"), {"steps"}),
        (("stability", "mkc"), {"steps"}),
    ],
)
def test_directories_get_the_document_and_figures(waterfill, tmp_path, arguments, figures):
    ran = waterfill("theory", *arguments, "-o", "out")
    assert ran.code == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"theory.json"} | {f"{f}.{kind}" for f in figures for kind in ("png", "svg")}
    assert "Certificate" not in ran.out
    # A combining mark takes no cell of its own.
    assert max(cell_len(line) for line in ran.out.splitlines()) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stability", "cubic"), "cubic: no router computes its rate"),
        (("stability", "none.toml"), "none.toml: no such file"),
        (("stability", "maxnet", "--max-rtt", "5"), "max-rtt: must be a time such as"),
        (
            ("stability", "maxnet", "--set", "params.xcp.beta=1"),
            "params.xcp.beta: not a param",
        ),
        (
            ("stability", "maxnet", "--set", "params.maxnet.alpha=9"),
            "params.maxnet.alpha: ",
        ),
        (("stability", "aecp", "--tune"), "tune: works only for maxnet"),
        (("stability", "maxnet", "--tune", "--eta", "0"), "eta: must be a number above 0"),
        (("margin", "jetmax"), "jetmax: not covered by this command"),
        (("margin", "jetmux"), "jetmux: neither a protocol"),
        (("equilibrium", "xcp"), "xcp: must be a scenario file"),
        (
            ("convergence", "maxnet", "--rtt", "10 us"),
            "αT = 264 ms is too slow for an RTT of 10 us; see `waterfill theory stability maxnet "
            "--tune --max-rtt '10 us'`",
        ),
        (
            (
                "stability",
                "maxnet",
                "--tune",
                "--max-rtt",
                "12us",
                "--set",
                "params.maxnet.dt_p=5us",
            ),
            "params.maxnet.dt_p: must be at most a quarter of --max-rtt, 3 us, got 5 us",
        ),
        (
            ("stability", "maxnet", "--tune", "--max-rtt", "12us", "--verify-rtt", "1000 s"),
            "tune: not shown to be stable up to 1000 s: α = 0.421 where at most 0.028 is",
        ),
        (("encoding", "xcp"), "xcp: not covered by this command"),
        (
            ("encoding", "maxnet", "--set", "params.maxnet.carriage=csig"),
            "params.maxnet.carriage: not computed, because the field is the paper's; remove it",
        ),
        (("stability", "maxnet", "--protocol", "xcp"), "protocol: no effect, because maxnet is"),
        (("stability", "maxnet", "--eta", "0.1"), "eta: no effect without --tune, got 0.1"),
        (("stability", "maxnet", "--verify-rtt", "1 s"), "verify-rtt: no effect without --tune"),
        (("stability", "maxnet", "--phase-margin", "45"), "phase-margin: no effect without"),
        (("stability", "xcp", "--certificate"), "certificate: only maxnet has one, got xcp"),
        (("stability", "maxnet", "--certificate", "--json"), "no effect with --json, which has it"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(waterfill, arguments, message):
    ran = waterfill("theory", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert message in ran.err


def test_mixed_protocols_are_refused(waterfill, scenario, tmp_path):
    text = SCENARIO.replace('name = "short"', 'name = "short"\nprotocol = "xcp"')
    (tmp_path / "mixed.toml").write_text(text)
    ran = waterfill("theory", "equilibrium", "mixed.toml")
    assert ran.code == 2
    assert "all flows must have one protocol" in ran.err


def test_a_fabric_is_tuned_with_its_own_price_interval(waterfill):
    ran = waterfill("theory", "stability", "maxnet", "--tune", "--max-rtt", "12us", "--json")
    document = ran.document
    tuned = document["params"]
    assert tuned["dt_p"] == pytest.approx(1.2e-6)
    assert document["certificate"]["certified"] is True
    assert document["certificate"]["max_rtt_s"] == pytest.approx(1.2e-3)
    sets = (
        "--set",
        f"params.maxnet.alpha={tuned['alpha']}",
        *(f"--set=params.maxnet.{key}={1e9 * tuned[key]} ns" for key in ("t", "dt_p")),
    )
    times = waterfill("theory", "convergence", "maxnet", "--rtt", "12us", "--json", *sets).document
    # As of the paper's loop at 80 ms: most of a step within six RTTs.
    assert times["implemented"]["after_six_rtts"] > 0.6


@pytest.mark.parametrize("tau", ["1e-300 s", "1e-12 s", "999 ns"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["stability", "maxnet", "--max-rtt"],
        ["stability", "maxnet", "--tune", "--max-rtt"],
        ["stability", "maxnet", "--tune", "--verify-rtt"],
        ["stability", "aecp", "--max-rtt"],
        ["margin", "maxnet", "--rtt"],
        ["margin", "aecp", "--rtt"],
    ],
)
def test_time_that_is_too_short(waterfill, arguments, tau):
    ran = waterfill("theory", *arguments, tau)
    assert ran.code == 2
    option = arguments[-1].removeprefix("--")
    expected = f'{option}: must be at least 1 us, got "{tau}"'
    assert ran.err == f"command line: {expected}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["stability", "maxnet", "--tune", "--eta", "5e-324"],
        ["margin", "aecp", "--rtt", "1000 s"],
        ["margin", "aecp", "--set", "params.aecp.t_2=1ps"],
    ],
)
def test_values_without_an_answer(waterfill, arguments):
    ran = waterfill("theory", *arguments)
    assert ran.code == 2
    assert ran.err.startswith("theory: cannot be computed for these times and parameters:")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["equilibrium", "stability"])
@pytest.mark.parametrize(
    ("entry", "key", "lines"),
    [
        ("link", "link.one.event", 'event = [{at = "5 s", rate = "10 Mbit/s"}]'),
        (
            "link",
            "link.one.rate_trace",
            'rate_trace = {points = [["0 s", "1 Mbit/s"], ["5 s", "2 Mbit/s"]], repeat = false}',
        ),
        (
            "link",
            "link.one.delay_trace",
            'delay_trace = {points = [["0 s", "1 ms"], ["5 s", "2 ms"]], repeat = false}',
        ),
        ("flow", "flow.short.route", 'route = [{at = "5 s", path = ["one"]}]'),
        (
            "flow",
            "flow.short.demand_trace",
            'demand_trace = {points = [["0 s", "1 Mbit/s"], ["5 s", "2 Mbit/s"]], repeat = false}',
        ),
        ("link", "link.one.routers", 'routers = ["rcp"]'),
    ],
)
def test_a_network_that_changes_is_refused(waterfill, tmp_path, command, entry, key, lines):
    name = {"link": "one", "flow": "short"}[entry]
    text = SCENARIO.replace('"maxnet"', '"xcp"').replace(
        f'name = "{name}"', f'name = "{name}"\n{lines}'
    )
    for given in ("rate", "delay"):
        if f"{given}_trace" in lines and entry == "link":
            value = {"rate": "155 Mbit/s", "delay": "1 ms"}[given]
            text = text.replace(f'{given} = "{value}"\n', "", int(given == "delay"))
    (tmp_path / "s.toml").write_text(text)
    assert waterfill("check", "s.toml").code == 0
    ran = waterfill("theory", command, "s.toml")
    assert ran.code == 2
    assert ran.err.startswith(f"s.toml: {key}: theory needs ")
    assert "remove it" in ran.err


@pytest.mark.parametrize("command", ["equilibrium", "stability"])
def test_values_that_the_analysis_does_not_use_are_named(waterfill, scenario, tmp_path, command):
    assert waterfill("theory", command, scenario, "--json").document["notes"] == []
    lines = 'name = "short"\nstart = "1 s"\nsize = "1 MB"'
    text = SCENARIO.replace('name = "short"', lines).replace(
        'name = "one"', 'name = "one"\nloss = 0.01'
    )
    text += '[[traffic]]\nkind = "web"\nfrom = "a"\nto = "b"\nload = "10 %"\n'
    (tmp_path / "s.toml").write_text(text)
    notes = waterfill("theory", command, "s.toml", "--json").document["notes"]
    assert notes == [
        "All flows count as active at once; not used: flow.short.start, flow.short.size.",
        "Nothing is lost or late; not used: link.one.loss.",
        "Flows that arrive at random are not used: traffic.web.",
    ]
    assert notes[0] in waterfill("theory", command, "s.toml").out.replace("\n", " ")


def test_a_network_has_its_own_rtts(waterfill, scenario):
    for protocol in ("xcp", "rcp", "vcp", "jetmax", "aecp"):
        document = waterfill(
            "theory", "stability", scenario, "--protocol", protocol, "--json"
        ).document
        assert document["max_rtt_s"] == pytest.approx(0.202)
    ran = waterfill("theory", "stability", scenario, "--max-rtt", "2 s")
    assert ran.code == 2
    assert 'max-rtt: no effect, because s.toml has its own RTTs, got "2 s"' in ran.err.replace(
        scenario, "s.toml"
    )
