import math
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterfill.errors import InputError
from waterfill.scenario import units
from waterfill.scenario.loading import from_dict, from_toml, tomllib
from waterfill.scenario.units import (
    PACKETS,
    RATE,
    SPAN,
    STEP,
    TIME,
    VOLUME,
    Buffer,
    number,
    whole,
)
from waterfill.scenario.validation import RateInBytes


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (RATE, "1 Gbit/s", 1e9),
        (RATE, "622 Mbit/s", 622e6),
        (RATE, "622Mbit/s", 622e6),
        (RATE, " 2.5 kbit/s ", 2500.0),
        (RATE, "1 bit/s", 1.0),
        (RATE, "1e3 Tbit/s", 1e15),
        (RATE, "1 Pbit/s", 1e15),
        (RATE, "125 MB/s", 1e9),
        (RATE, "1 B/s", 8.0),
        (TIME, "0 s", 0.0),
        (TIME, "14.5 ms", 0.0145),
        (TIME, "3 us", 3e-6),
        (TIME, "3 µs", 3e-6),
        (TIME, "3 μs", 3e-6),
        (TIME, "7 ns", 7e-9),
        (TIME, "1 ps", 1e-12),
        (VOLUME, "2 MB", 2e6),
        (VOLUME, "8 kbit", 1000.0),
        (PACKETS, "500 packets", 500.0),
        (PACKETS, "1 packet", 1.0),
    ],
)
def test_parses_to_the_nearest_float_in_si(kind, text, value):
    assert kind.parse(text) == value


RATE_WANTED = 'must be a rate such as "622 Mbit/s", got '


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (RATE, 622e6, RATE_WANTED + "622000000.0"),
        (RATE, "622", RATE_WANTED + '"622"'),
        (RATE, "622 ms", RATE_WANTED + '"622 ms"'),
        (RATE, "622 Mbps", RATE_WANTED + '"622 Mbps", did you mean "622 Mbit/s"?'),
        (
            RATE,
            "1 mbit/s",
            RATE_WANTED + '"1 mbit/s", did you mean "1 Mbit/s"?',
        ),  # a millibit is nobody's rate
        (RATE, "1 Mb/s", RATE_WANTED + '"1 Mb/s", did you mean "1 Mbit/s"?'),
        (RATE, "nan Mbit/s", RATE_WANTED + '"nan Mbit/s"'),
        (RATE, "inf bit/s", RATE_WANTED + '"inf bit/s"'),
        (RATE, math.nan, RATE_WANTED + "NaN"),
        (RATE, True, RATE_WANTED + "true"),
        (RATE, None, RATE_WANTED + "null"),
        (RATE, ["1 bit/s"], RATE_WANTED + '["1 bit/s"]'),
        (RATE, "1,5 Mbit/s", RATE_WANTED + '"1,5 Mbit/s"'),
        (RATE, "1 bit/s\nx", RATE_WANTED + '"1 bit/s\\nx"'),
        (RATE, "٣ Mbit/s", RATE_WANTED + '"٣ Mbit/s"'),
        (RATE, "1e-400 bit/s", RATE_WANTED + '"1e-400 bit/s"'),
        (RATE, "0 bit/s", 'must be above zero, got "0 bit/s"'),
        (RATE, "-3 Mbit/s", 'must be above zero, got "-3 Mbit/s"'),
        (TIME, "-1 s", 'must not be negative, got "-1 s"'),
        (TIME, "1 min", 'must be a time such as "80 ms", got "1 min"'),
        (TIME, "2e6 s", 'must be at most 1000000 s, got "2e6 s"'),
        (SPAN, "0 ms", 'must be above zero, got "0 ms"'),
        (PACKETS, "1.5 packets", 'must be a whole number of packets, got "1.5 packets"'),
    ],
)
def test_refuses_in_one_sentence(kind, value, message):
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        kind.parse(value)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "text", ["1e999999999 bit/s", "9" * 400 + " bit/s", "1e99999999999999999999 s"]
)
def test_a_number_too_large_for_a_float_is_refused(text):
    kind = TIME if text.endswith(" s") else RATE
    with pytest.raises(ValueError, match=r"^must be "):
        kind.parse(text)


positive = st.floats(min_value=1e-12, max_value=1e17, allow_nan=False)


@given(value=positive, kind=st.sampled_from([RATE, VOLUME]))
def test_what_format_writes_parse_reads_as_the_same_float(value, kind):
    assert kind.parse(kind.format(value)) == value


@given(value=st.floats(min_value=0, max_value=1e6, allow_subnormal=False))
def test_times_survive_writing(value):
    assert TIME.parse(TIME.format(value)) == value


@given(
    digits=st.decimals(min_value=0, max_value=10**6, places=4, allow_nan=False),
    prefix=st.sampled_from([("", 0), ("m", -3), ("u", -6), ("n", -9)]),
)
def test_prefixes_are_decimal(digits, prefix):
    assert TIME.parse(f"{digits:f} {prefix[0]}s") == float(digits * Decimal(10) ** prefix[1])


@pytest.mark.parametrize(
    ("value", "text"),
    [(622e6, "622 Mbit/s"), (1e9, "1 Gbit/s"), (0.5, "0.5 bit/s"), (1e15, "1 Pbit/s")],
)
def test_format_is_what_a_person_writes(value, text):
    assert RATE.format(value) == text


@pytest.mark.parametrize(
    ("text", "buffer"),
    [
        ("1 bdp", Buffer(1.0, "bdp")),
        ("0.25 bdp", Buffer(0.25, "bdp")),
        ("500 packets", Buffer(500.0, "packets")),
        ("2 MB", Buffer(2e6, "bytes")),
        ("0 packets", Buffer(0.0, "packets")),
    ],
)
def test_buffers(text, buffer):
    assert Buffer.parse(text) == buffer
    assert Buffer.parse(buffer.format()) == buffer


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (500, 'must be a buffer such as "1 bdp", "500 packets" or "2 MB", got 500'),
        ("2 s", 'must be a buffer such as "1 bdp", "500 packets" or "2 MB", got "2 s"'),
        ("1.5 packets", 'must be a whole number of packets, got "1.5 packets"'),
        ("-1 bdp", 'must not be negative, got "-1 bdp"'),
    ],
)
def test_buffers_refused(value, message):
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        Buffer.parse(value)
    assert str(refused.value) == message


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1, "0.5", True, None, 10**400])
def test_ratios_refused(value):
    with pytest.raises(ValueError, match=r"^must be "):
        number(value, minimum=0, maximum=1)


@pytest.mark.parametrize("value", [-1, 1.0, True, "1", 2**63])
def test_whole_numbers_refused(value):
    with pytest.raises(ValueError, match=r"^must be (a whole number )?from 0 to 9"):
        whole(value)


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        (RATE, "60 Mbps", "60 Mbit/s"),
        (RATE, "1Gbps", "1 Gbit/s"),
        (RATE, "100 kbits/sec", "100 kbit/s"),
        (RATE, "60 mbit/s", "60 Mbit/s"),
        (TIME, "20 MS", "20 ms"),
        (TIME, "3 seconds", "3 s"),
        (VOLUME, "10 megabytes", None),
        (VOLUME, "10 KB", "10 kB"),
        (VOLUME, "500 bytes", "500 B"),
        (RATE, "60 MB", None),
        (RATE, "fast", None),
        (TIME, 60, None),
    ],
)
def test_a_unit_that_is_nearly_right_gets_a_suggestion(kind, written, meant):
    with pytest.raises(ValueError, match="must be a") as error:
        kind.parse(written)
    assert str(error.value).partition(", did you mean ")[2] == (f'"{meant}"?' if meant else "")
    assert kind.hint(written) == meant
    if meant is not None:
        assert kind.parse(meant) > 0


def test_a_buffer_gets_a_suggestion_too():
    with pytest.raises(ValueError, match='got "1 BDP", did you mean "1 bdp"'):
        Buffer.parse("1 BDP")


@given(
    st.sampled_from([units.RATE, units.TIME, units.VOLUME, units.PACKETS, units.FREQUENCY]),
    st.integers(0, 10**17),
    st.data(),
)
def test_the_short_way_gives_the_float_that_decimals_give(quantity, number, data):
    unit = data.draw(st.sampled_from(sorted(quantity.units)))
    exact = float(Decimal(number) * quantity.units[unit])
    if 0 < exact <= quantity.at_most and (not quantity.whole or exact.is_integer()):
        assert quantity.parse(f"{number} {unit}") == exact
        assert quantity.parse(f" {number}.0{unit}") == exact


@pytest.mark.parametrize(
    "text", ["10 ms", "010 ms", "10  ms", "10\tms", "10ms", "+10 ms", "1e1 ms"]
)
def test_other_ways_to_write_a_time_are_the_same_time(text):
    assert units.TIME.parse(text) == 0.01


@pytest.mark.parametrize("text", ["٣ ms", "1_0 ms", " ms", "10 mss"])
def test_what_is_no_number_is_none_the_short_way_either(text):
    with pytest.raises(ValueError, match="must be a time"):
        units.TIME.parse(text)


def test_a_number_above_ten_is_no_share_of_a_link():
    link = {"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms"}

    def load(given):
        web = {"kind": "web", "name": "w", "path": ["l"], "protocol": "maxnet", "load": given}
        return from_dict({"duration": "1 s", "link": [link], "traffic": [web]}).traffic[0]

    with pytest.raises(InputError, match=r'60 is a load of 6000 %; did you mean "60 %"'):
        load(60)
    assert load("60 %").load == load(0.6).load == 0.6
    large = load("2000 %")
    assert load(large.model_dump()["load"]).load == large.load == 20


def test_a_step_that_is_too_large_is_quoted_with_its_sign():
    with pytest.raises(ValueError, match='at least -3600 s, got "-1e300 s"'):
        STEP.parse("-1e300 s")
    assert STEP.parse("-3600 s") == -3600.0


IN_BYTES = """
duration = "1 s"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "1 GB/s"
delay = "1 ms"
event = [{at = "0.5 s", rate = "2 MB/s"}]
[[flow]]
name = "f"
from = "a"
to = "b"
protocol = "maxnet"
"""


@pytest.mark.parametrize("form", ["file", "dictionary", "override"])
def test_a_rate_in_bytes_is_repeated_in_bits(form):
    bits = IN_BYTES.replace("GB/s", "Gbit/s").replace("MB/s", "Mbit/s")
    load = {
        "file": partial(from_toml, IN_BYTES, "s.toml"),
        "dictionary": partial(from_dict, tomllib.loads(IN_BYTES), "s.toml"),
        "override": partial(from_toml, bits, "s.toml", ["link.l.rate=1 GB/s"]),
    }[form]
    with pytest.warns(RateInBytes) as said:
        load()
    place = "command line" if form == "override" else "s.toml"
    rates = {"link.l.rate": "1 GB/s is 8 Gbit/s"}
    if form != "override":
        rates["link.l.event[0].rate"] = "2 MB/s is 16 Mbit/s"
    assert [str(one.message) for one in said] == [
        f"{place}: {key}: {text}; B is a byte, bit a bit" for key, text in rates.items()
    ]
    from_toml(bits)  # a warning would be an error here
