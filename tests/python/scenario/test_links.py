"""Tests of queues and faults of links: keys, the core's view, errors."""

import pytest

from known import PROTOCOLS
from waterfill.errors import InputError
from waterfill.network import resolve
from waterfill.scenario import links
from waterfill.scenario.distributions import PartError
from waterfill.scenario.loading import from_toml

BASE = """
duration = "1 s"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "12 Mbit/s"
delay = "1 ms"
KEYS
[[flow]]
name = "f"
path = ["l"]
"""
SACK = BASE.replace("maxnet", "sack")


def core_of(keys):
    """The two directions as the core takes them, as plain data."""
    found = resolve.to_core(from_toml(BASE.replace("KEYS", keys), "S.toml"), PROTOCOLS)
    return found.to_dict()["links"]


def line_of(keys):
    with pytest.raises(InputError) as refused:
        core_of(keys)
    line = str(refused.value)
    assert "\n" not in line
    return line.removeprefix("S.toml: link.l.")


def test_by_default_nothing_happens():
    for direction in core_of(""):
        assert direction["queue"] == {"kind": "droptail", "mark_at": None, "ramp": None}
        assert (direction["loss_model"], direction["reorder"]) == (None, None)
        assert (direction["shaper"], direction["rate_bps"]) == (None, 12e6)
        assert (direction["loss"], direction["duplicate"]) == (0, 0)


DROPTAIL = {"kind": "droptail", "mark_at": None, "ramp": None}
RED = {
    "min_threshold": {"packets": 5},
    "max_threshold": {"packets": 15},
    "max_p": 0.1,
    "weight": 0.002,
    "gentle": True,
    "ecn": True,
}
CODEL = {"target_s": 0.005, "interval_s": 0.1, "ecn": True}
DUALPI2 = {
    "target_s": 0.015,
    "rtt_max_s": 0.1,
    "coupling": 2.0,
    "ramp_start_s": 0.0008,
    "ramp_range_s": 0.0004,
    "ramp_packets": 1,
    "classic_share": 0.1,
}
PIE = {
    "target_s": 0.015,
    "update_s": 0.015,
    "alpha_hz": 0.125,
    "beta_hz": 1.25,
    "max_burst_s": 0.15,
    "ecn": True,
    "mark_below": 0.1,
}


@pytest.mark.parametrize(
    ("keys", "core"),
    [
        ('mark_at = "65 packets"', {**DROPTAIL, "mark_at": {"packets": 65}}),
        ('mark_at = "100 kB"', {**DROPTAIL, "mark_at": {"bytes": 1e5}}),
        ('mark_at = "0 packets"', {**DROPTAIL, "mark_at": {"packets": 0}}),
        (
            'mark_at = "100 kB"\nmark_to = "400 kB"\nmark_max = 0.2',
            {
                **DROPTAIL,
                "mark_at": {"bytes": 1e5},
                "ramp": {"to": {"bytes": 4e5}, "max_p": 0.2},
            },
        ),
        (
            'mark_at = "5 packets"\nmark_to = "6 packets"',
            {
                **DROPTAIL,
                "mark_at": {"packets": 5},
                "ramp": {"to": {"packets": 6}, "max_p": 1.0},
            },
        ),
        ('queue = "red"', {"kind": "red", **RED}),
        (
            'queue = "choke"\nqueue_params = {min_threshold = "10 kB", max_threshold = "30 kB", '
            "ecn = false}",
            {
                "kind": "choke",
                **RED,
                "min_threshold": {"bytes": 1e4},
                "max_threshold": {"bytes": 3e4},
                "ecn": False,
            },
        ),
        (
            'queue = "codel"\nqueue_params = {target = "1 ms", interval = "20 ms"}',
            {"kind": "codel", "target_s": 0.001, "interval_s": 0.02, "ecn": True},
        ),
        (
            'queue = "fq_codel"\nqueue_params = {flows = 8}',
            {"kind": "fq_codel", "codel": CODEL, "quantum_bytes": 1514, "flows": 8},
        ),
        (
            'queue = "pie"\nqueue_params = {target = "20 ms", alpha = 0.25, mark_below = 1}',
            {"kind": "pie", **PIE, "target_s": 0.02, "alpha_hz": 0.25, "mark_below": 1},
        ),
        (
            'queue = "dualpi2"\nqueue_params = {ramp_range = "0 s", classic_share = 0.0625}',
            {"kind": "dualpi2", **DUALPI2, "ramp_range_s": 0, "classic_share": 0.0625},
        ),
        (
            'queue = "fq_pie"\nqueue_params = {max_burst = "0 s", ecn = false, flows = 8}',
            {
                "kind": "fq_pie",
                "pie": {**PIE, "max_burst_s": 0, "ecn": False},
                "quantum_bytes": 1514,
                "flows": 8,
            },
        ),
    ],
)
def test_a_queue_is_of_both_directions(keys, core):
    assert [direction["queue"] for direction in core_of(keys)] == [core, core]


@pytest.mark.parametrize(
    ("keys", "name", "core"),
    [
        (
            'loss_model = {kind = "independent", p = 0.5}',
            "loss_model",
            {"kind": "independent", "p": 0.5},
        ),
        (
            'loss_model = {kind = "gilbert-elliott", p = 0.1, r = 1}',
            "loss_model",
            {"kind": "gilbert-elliott", "p": 0.1, "r": 1, "loss_good": 0, "loss_bad": 1},
        ),
        (
            'loss_model = {kind = "periodic", every = 10_000}',
            "loss_model",
            {"kind": "periodic", "every": 10_000},
        ),
        # 1500 bytes take 1 ms on this link.
        ("reorder = 0.25", "reorder", {"share": 0.25, "delay_s": 0.005}),
        (
            'reorder = {share = 0.25, delay = "3 ms"}',
            "reorder",
            {"share": 0.25, "delay_s": 0.003},
        ),
        ("reorder = {share = 1}", "reorder", {"share": 1, "delay_s": 0.005}),
        ("duplicate = 0.125", "duplicate", 0.125),
    ],
)
def test_a_fault_is_forward_only(keys, name, core):
    forward, back = core_of(keys)
    assert forward[name] == core
    assert not back[name]


LEVEL = 'must be a queue length such as "65 packets" or "100 kB"'
ERRORS = {
    "mark_at = 65": f"mark_at: {LEVEL}, got 65",
    'mark_at = "1 bdp"': f'mark_at: {LEVEL}, got "1 bdp"',
    'mark_at = "-3 packets"': ('mark_at: must not be negative, got "-3 packets"'),
    "mark_max = 0.5": "mark_max: has no effect without mark_to, got 0.5",
    'mark_to = "5 packets"': 'mark_to: needs mark_at, below it, got "5 packets"',
    'mark_at = "5 packets"\nmark_to = "5 packets"': (
        'mark_to: must be above mark_at, in the same unit, got "5 packets" and "5 packets"'
    ),
    'mark_at = "5 packets"\nmark_to = "9 MB"': (
        'mark_to: must be above mark_at, in the same unit, got "5 packets" and "9 MB"'
    ),
    'mark_at = "5 packets"\nmark_to = "9 packets"\nmark_max = 2': (
        "mark_max: must be in [0, 1], got 2"
    ),
    'queue = "red"\nmark_at = "5 packets"': (
        'mark_at: not allowed with queue = "red", got 5 packets'
    ),
    'queue = "fred"': (
        'queue: must be "droptail", "red", "codel", "fq_codel", "pie", "fq_pie", "dualpi2", '
        '"choke" or "cohabit", got "fred"'
    ),
    "queue_params = 3": "queue_params: must be a table, got 3",
    "queue_params = {target = 3}": (
        'queue_params: not allowed with queue = "droptail", got {"target": 3}'
    ),
    'queue = "codel"\nqueue_params = {tarbet = "3 ms"}': (
        'queue_params.tarbet: unknown parameter of queue = "codel", did you mean "target"?'
    ),
    'queue = "codel"\nqueue_params = {target = 3}': (
        'queue_params.target: must be a time such as "5 ms", got 3'
    ),
    'queue = "codel"\nqueue_params = {target = "100 ms"}': (
        "queue_params.target: must be below interval, 100 ms, got 100 ms"
    ),
    'queue = "codel"\nqueue_params = {ecn = 1}': ("queue_params.ecn: must be true or false, got 1"),
    'queue = "fq_codel"\nqueue_params = {flows = 0}': (
        "queue_params.flows: must be from 1 to 65536, got 0"
    ),
    'queue = "fq_codel"\nqueue_params = {quantum = "0 B"}': (
        'queue_params.quantum: must be above zero, got "0 B"'
    ),
    'queue = "pie"\nqueue_params = {update = "1 ns"}': (
        'queue_params.update: must be at least 1 us, got "1 ns"'
    ),
    'queue = "dualpi2"\nqueue_params = {rtt_max = "2 us"}': (
        'queue_params.rtt_max: must be at least 3 us, got "2 us"'
    ),
    'queue = "dualpi2"\nqueue_params = {classic_share = 1}': (
        "queue_params.classic_share: must be below 1, got 1"
    ),
    'queue = "pie"\nqueue_params = {beta = -1}': (
        "queue_params.beta: must be in [0, 1e+09], got -1"
    ),
    'queue = "red"\nqueue_params = {max_p = 0}': ("queue_params.max_p: must be in (0, 1], got 0"),
    'queue = "red"\nqueue_params = {min_threshold = "20 packets"}': (
        "queue_params.max_threshold: must be above min_threshold, 20 packets, got 15 packets"
    ),
    'queue = "choke"\nqueue_params = {min_threshold = "2 kB"}': (
        "queue_params.max_threshold: must be in bytes, as min_threshold is, got 15 packets"
    ),
    "loss_model = 0.1": (
        "loss_model: must be a table such as "
        '{kind = "gilbert-elliott", p = 0.001, r = 0.1}, got 0.1'
    ),
    "loss_model = {p = 0.1}": (
        'loss_model.kind: must be one of "independent", "gilbert-elliott", "periodic", got nothing'
    ),
    'loss_model = {kind = "gilbert", p = 0.1}': (
        'loss_model.kind: must be one of "independent", "gilbert-elliott", "periodic", '
        'got "gilbert"'
    ),
    'loss_model = {kind = "gilbert-elliott", p = 0.1}': (
        "loss_model.r: missing; write a number from 0 to 1"
    ),
    'loss_model = {kind = "periodic"}': ("loss_model.every: missing; write a whole number above 0"),
    'loss_model = {kind = "periodic", every = 0}': (
        "loss_model.every: must be from 1 to 9223372036854775807, got 0"
    ),
    'loss_model = {kind = "independent", p = 1.5}': ("loss_model.p: must be in [0, 1], got 1.5"),
    'loss_model = {kind = "independent", q = 0.5}': (
        'loss_model.q: unknown parameter of kind = "independent"; known: p'
    ),
    'loss = 0.1\nloss_model = {kind = "independent", p = 0.5}': (
        "loss_model: not allowed together with loss; remove one of them"
    ),
    'reorder = "1 %"': (
        'reorder: must be 0.01, or a table such as {share = 0.01, delay = "5 ms"}, got "1 %"'
    ),
    "reorder = 2": "reorder: must be in [0, 1], got 2",
    'reorder = {delay = "3 ms"}': "reorder.share: missing; write a number from 0 to 1",
    'reorder = {share = 0.1, delay = "0 s"}': ('reorder.delay: must be above zero, got "0 s"'),
    'shaper = "1 Mbit/s"': (
        'shaper: must be a table such as {rate = "500 Mbit/s", depth = "64 kB", '
        'timer = "1 ms"}, got "1 Mbit/s"'
    ),
    'shaper = {depth = "3 kB"}': ('shaper.rate: missing; write a quantity such as "622 Mbit/s"'),
    'shaper = {rate = "1 Mbit/s", depth = "3 kB", timer = "2 s"}': (
        'shaper.timer: must be at most 1 s, got "2 s"'
    ),
    'shaper = {rate = "12 Mbit/s", depth = "3 kB"}': (
        "shaper.rate: must be below the link's 12 Mbit/s, got 12 Mbit/s"
    ),
    'policer = {rate = "12 Mbit/s", depth = "3 kB"}': (
        "policer.rate: must be below the link's 12 Mbit/s, got 12 Mbit/s"
    ),
    'shaper = {rate = "1 Mbit/s", depth = "3 kB"}\npolicer = {rate = "1 Mbit/s", depth = "3 kB"}': (
        "policer: not allowed on a link with a shaper"
    ),
    'shaper = {rate = "1 Mbit/s", depth = "1499 B"}': (
        "shaper.depth: must be at least one packet, 1.5 kB, got 1.499 kB"
    ),
    'queue = "codel"\nshaper = {rate = "1 Mbit/s", depth = "3 kB"}': (
        'shaper: needs a queue that serves in order of arrival, got "codel"'
    ),
    "duplicate = -0.1": ("duplicate: must be in [0, 1], got -0.1"),
    "ack_aggregation = 0.02": (
        'ack_aggregation: must be "20 ms", or a table such as {every = "20 ms", at = "5 s", '
        'until = "8 s"}, got 0.02'
    ),
    'ack_aggregation = "0 s"': ('ack_aggregation: must be above zero, got "0 s"'),
    'ack_aggregation = {at = "0 s"}': (
        'ack_aggregation.every: missing; write a quantity such as "20 ms"'
    ),
    'ack_aggregation = {every = "1 ms", at = "1 s"}': (
        "ack_aggregation.at: must be before the end of the run at 1 s, got 1 s"
    ),
    'ack_aggregation = {every = "1 ms", at = "500 ms", until = "200 ms"}': (
        "ack_aggregation.until: must be after 500 ms, got 200 ms"
    ),
    "ack_thinning = 8": (
        'ack_thinning: not allowed without ack_aggregation; add one such as "20 ms"'
    ),
    'ack_aggregation = "1 ms"\nack_thinning = 1': (
        "ack_thinning: must be from 2 to 2147483647, got 1"
    ),
}


@pytest.mark.parametrize(("keys", "line"), ERRORS.items(), ids=ERRORS)
def test_error(keys, line):
    assert line_of(keys) == line


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ('mark_at = "3 packets"', 'mark_at: "3 packets" is not supported'),
        ('queue = "red"', 'queue: "red" is not supported'),
        ("duplicate = 0.1", "duplicate: 0.1 is not supported"),
        ("reorder = 0.1", "reorder: 0.1 is not supported"),
        ('shaper = {rate = "1 Mbit/s", depth = "3 kB"}', "shaper: .* is not supported"),
        ('policer = {rate = "1 Mbit/s", depth = "3 kB"}', "policer: .* is not supported"),
        ('ack_aggregation = "20 ms"', 'ack_aggregation: "20 ms" is not supported'),
    ],
)
def test_the_fluid_model_refuses_what_it_does_not_have(keys, line):
    found = from_toml(BASE.replace("KEYS", keys), "S.toml")
    with pytest.raises(InputError, match=f"^S.toml: link.l.{line} by the fluid backend"):
        resolve.to_core(found, PROTOCOLS, "fluid")
    plain = from_toml(BASE.replace("KEYS", ""))
    assert resolve.to_core(plain, PROTOCOLS, "fluid")


def test_acknowledgements_are_held_in_both_directions():
    keys = 'ack_aggregation = "20 ms"\nack_thinning = 8'
    for direction in core_of(keys):
        effect = {"kind": "acks", "every_s": 0.02, "thinning": 8}
        (fault,) = direction["faults"]
        assert fault == {"from_s": 0.0, "until_s": 1.0, "share": 1.0, "effect": effect}
    table = 'ack_aggregation = {every = "1 ms", at = "200 ms", until = "500 ms"}'
    (fault,) = core_of(table)[0]["faults"]
    assert (fault["from_s"], fault["until_s"], fault["effect"]["thinning"]) == (0.2, 0.5, 1)


def test_set_names_one_parameter():
    found = from_toml(
        BASE.replace("KEYS", 'queue = "codel"'),
        sets=['link.l.queue_params.target="2 ms"', "link.l.duplicate=0.5"],
    )
    forward = resolve.to_core(found, PROTOCOLS).links[0]
    assert (forward.queue.target_s, forward.duplicate) == (0.002, 0.5)


def test_as_run_is_the_same_link():
    keys = """
mark_at = "1500 B"
loss_model = {kind = "gilbert-elliott", p = 0.1, r = 0.25}
reorder = {share = 0.25, delay = "3 ms"}
duplicate = 0.125
shaper = {rate = "3 Mbit/s", depth = "4500 B", timer = "10 ms"}
"""
    found = from_toml(BASE.replace("KEYS", keys))
    again = from_toml(found.to_toml())
    assert resolve.to_core(again, PROTOCOLS) == resolve.to_core(found, PROTOCOLS)


def test_a_shaper_sets_the_capacity_of_both_directions():
    keys = 'shaper = {rate = "3 Mbit/s", depth = "4500 B", timer = "10 ms"}'
    for direction in core_of(keys):
        assert direction["rate_bps"] == 3e6
        assert direction["shaper"] == {"line_bps": 12e6, "depth_bytes": 4500, "timer_s": 0.01}
        # 1 bdp of 3 Mbit/s and 2 ms is less than a packet.
        assert direction["buffer"]["size"] == 1500
    assert core_of('shaper = {rate = "3 Mbit/s", depth = "4500 B"}')[0]["shaper"]["timer_s"] == 0


def test_a_policer_sets_the_capacity_and_has_a_shapers_keys():
    keys = 'policer = {rate = "3 Mbit/s", depth = "4500 B"}\nqueue = "codel"'
    for direction in core_of(keys):
        assert (direction["rate_bps"], direction["shaper"]) == (3e6, None)
        assert direction["policer"] == {"line_bps": 12e6, "depth_bytes": 4500, "timer_s": 0}


def test_bursts_of_a_shaper_leave_at_the_rate_of_their_direction():
    keys = 'rate_reverse = "5 Mbit/s"\nshaper = {rate = "3 Mbit/s", depth = "4500 B"}'
    forward, reverse = core_of(keys)
    assert (forward["rate_bps"], reverse["rate_bps"]) == (3e6, 3e6)
    assert (forward["shaper"]["line_bps"], reverse["shaper"]["line_bps"]) == (12e6, 5e6)


def test_the_simulator_takes_every_queue_and_fault():
    from waterfill import run

    faults = "loss_model = {kind = 'independent', p = 0.01}\nreorder = 0.1\nduplicate = 0.1"
    for queue in ("droptail", "red", "codel", "fq_codel", "pie", "fq_pie", "dualpi2", "choke"):
        keys = f'queue = "{queue}"\nbuffer = "3 packets"\n{faults}'
        result = run(from_toml(SACK.replace("KEYS", keys), sets=["duration=10 s"]))
        forward = result.summary["links"][0]
        assert forward["drops"] > 0
        assert forward["lost"] > 0
        assert forward["marks"] == 0
        assert "marks" in result.links.column_names
    marking = SACK.replace("KEYS", 'mark_at = "2 packets"\nbuffer = "20 packets"') + "ecn = true\n"
    result = run(from_toml(marking, sets=["duration=10 s"]))
    assert result.summary["links"][0]["marks"] > 0
    assert sum(result.samples("links", "l")["marks"].to_pylist()) > 0


def test_a_schema_is_of_every_table():
    schemas = [links.queue_schema(), links.loss_schema(), links.late_schema()]
    tables = [t for s in schemas for t in s["anyOf"] if t.get("type") == "object"]
    assert len(tables) == 11
    assert all(table["additionalProperties"] is False for table in tables)


def test_a_wrong_table_names_its_part():
    with pytest.raises(PartError) as refused:
        links.read_queue("red", {"weight": 2})
    assert refused.value.part == "weight"
