"""Traces of rates and distributions of sizes as others publish them: units, clocks, percent."""

from __future__ import annotations

import pytest

from waterfill.errors import InputError
from waterfill.formats.build import Options, imported
from waterfill.formats.writing import text
from waterfill.network import protocols, resolve
from waterfill.scenario import distributions, traces
from waterfill.scenario.distributions import PartError
from waterfill.scenario.loading import from_toml
from waterfill.scenario.units import VOLUME

ROWS = "0,12\n1,24\n2,24\n"
FAST = "0,12000\n1,24000\n2,24000\n"


def points_of(folder, content, **keys):
    path = folder / "trace"
    path.write_text(content, encoding="utf-8")
    return traces.parse({"file": str(path), **keys}).points


@pytest.mark.parametrize(
    ("header", "unit_bps"),
    [
        ("time_s,rate_mbps", 1e6), ("Time (s), Rate [kbit/s]", 1e3), ("t,Mbps", 1e6),
        ("time,bandwidth_MBps", 8e6), ("time,rate (MB/s)", 8e6), ("time,DL-Mbits", 1e6),
        ("time,rateKbps", 1e3), ("time,bps", 1.0), ('"time","rate_mbps"', 1e6),
        ("seconds,Gbit/s", 1e9), ("time,bits per second", 1.0), ("time;x,kB/s", 8e3),
    ],
)  # fmt: skip
def test_the_unit_of_a_header_is_obeyed(tmp_path, header, unit_bps):
    found = points_of(tmp_path, f"{header}\n{ROWS}")
    assert found == ((0, 12 * unit_bps), (1, 24 * unit_bps), (2, 24 * unit_bps))


@pytest.mark.parametrize(
    "header", ["t,rate_MB", "t,rate_mb", "t,KiB/s", "t,MBPS", "t,bytes", "t,packets", "t,rate pps",
               "t,rate_Mibps", "t,rateKiBps"]
)  # fmt: skip
def test_a_header_with_an_unclear_unit_is_refused(tmp_path, header):
    with pytest.raises(PartError, match=r"line 1 of .*: the unit of rates is not clear, got"):
        points_of(tmp_path, f"{header}\n{ROWS}")


@pytest.mark.parametrize(
    ("header", "unit_s"),
    [("time_ms,bps", 1e-3), ("t [us],bps", 1e-6), ("minutes,bps", 60), ("timestamp,bps", 1)],
)
def test_the_unit_of_times_is_obeyed(tmp_path, header, unit_s):
    found = points_of(tmp_path, f"{header}\n{ROWS}".replace(",12", ",12000"))
    assert [at for at, _ in found] == [0, unit_s, 2 * unit_s]


def test_a_value_with_a_unit_keeps_it(tmp_path):
    content = "time_ms,rate_mbps\n0,7 kbit/s\n0.5 s,24\n600,24\n"
    assert points_of(tmp_path, content) == ((0, 7e3), (0.5, 24e6), (0.6, 24e6))


@pytest.mark.parametrize("separator", ["\t", " ", "   "])
def test_the_header_of_white_space_names_a_unit(tmp_path, separator):
    content = f"time_ms,rate_mbps\n{ROWS}".replace(",", separator)
    assert points_of(tmp_path, content) == ((0, 12e6), (1e-3, 24e6), (2e-3, 24e6))


@pytest.mark.parametrize("content", [ROWS, f"t,throughput\n{ROWS}", "0 12000\n1 9000\n"])
def test_small_numbers_need_a_unit(tmp_path, content):
    with pytest.raises(PartError, match=r"the rates of .* have no unit; write unit =") as refused:
        points_of(tmp_path, content)
    assert refused.value.part == "unit"
    assert len(points_of(tmp_path, content, unit="1 bit/s")) > 1
    with pytest.raises(InputError, match='have no unit; add --unit "1 Mbit/s", or'):
        imported("trace", str(tmp_path / "trace"), Options())


def test_a_table_of_white_space_has_the_given_unit(tmp_path):
    content = "# seconds and Mbit/s\n0 12\n1\t24.5\n2   24\n"
    found = points_of(tmp_path, content, unit="1 Mbit/s")
    assert found == ((0, 12e6), (1, 24.5e6), (2, 24e6))


def test_a_clock_is_shifted_on_request_only(tmp_path):
    content = "timestamp,bps\n1690000000.25,1000000\n1690000001.5,2000000\n"
    with pytest.raises(PartError, match=r"the first time must be 0 s, got 1690000000\.25 s; write"):
        points_of(tmp_path, content)
    assert points_of(tmp_path, content, shift=True) == ((0, 1e6), (1.25, 2e6))


@pytest.mark.parametrize(
    ("content", "keys", "part", "message"),
    [
        ("t,mbps\n" + ROWS, {"unit": "1 kbit/s"}, "unit", "names a unit: .*; remove it here"),
        ("1\n2\n4\n", {"unit": "1 kbit/s"}, "unit", "only for a table, not delivery opport"),
        (FAST, {"bin": "1 s"}, "bin", "only for delivery opportunities, not a table, got"),
        (FAST, {"shift": 1}, "shift", "must be true or false, got 1"),
        ("0,1e6\n2e6,1\n", {}, "file", "the last time must be at most 1000000 s, got 2000000 s"),
        ("0 1 2\n1 2 3\n", {}, "file", "line 1 of .* must be TIME, RATE or a whole number of"),
        ("0,1,2\n1,2,3\n", {}, "file", "line 1 of .* must be TIME, RATE such as"),
        (
            "rate_mbps,time_s\n0,1\n5,2\n",
            {"unit": "1 Mbit/s"},
            "file",
            "line 1 of .* the second column must have rates, .* names times, got .time_s.",
        ),
        ("time_s,rtt_ms\n0,5\n1,3\n", {"unit": "1 Mbit/s"}, "file", "names times, got .rtt_ms."),
    ],
)
def test_wrong_tables_and_keys(tmp_path, content, keys, part, message):
    with pytest.raises(PartError, match=message) as refused:
        points_of(tmp_path, content, **keys)
    assert refused.value.part == part


def test_keys_do_not_go_with_points():
    points = [["0 s", "1 Mbit/s"], ["1 s", "1 Mbit/s"]]
    for key, value in (("unit", "1 kbit/s"), ("shift", True), ("bin", "1 s")):
        with pytest.raises(PartError, match="not allowed with points"):
            traces.parse({"points": points, key: value})


def test_import_writes_the_keys_and_a_run_reads_them(waterfill, tmp_path):
    (tmp_path / "in").write_text("1690000000 1\n1690000002 3\n1690000004 3\n")
    ran = waterfill("import", "trace", "in", "--unit", "1 Mbit/s", "--shift", "-o", "s.toml")
    assert ran.code == 0, ran.err
    written = (tmp_path / "s.toml").read_text()
    assert f'rate_trace = {{file = "{tmp_path}/in", unit = "1 Mbit/s", shift = true}}' in written
    network = resolve.to_core(from_toml(written, "elsewhere/s.toml"), protocols.load())
    changes = [(change.at_s, change.rate_bps) for change in network.links[0].changes]
    assert (network.links[0].rate_bps, changes) == (1e6, [(2.0, 3e6)])


def test_import_refuses_keys_that_change_nothing(tmp_path):
    (tmp_path / "in").write_text(FAST)
    with pytest.raises(InputError, match="--shift: no effect on in, whose first time is 0 s"):
        imported("trace", str(tmp_path / "in"), Options(shift=True))
    with pytest.raises(InputError, match="--bin: only for delivery opportunities"):
        imported("trace", str(tmp_path / "in"), Options(bin_s=1.0))


# The same distribution in each form, as (bytes, probability).
EXPECTED = ((1.0, 0.0), (10_000.0, 0.15), (20_000.0, 0.2), (30_000.0, 1.0))
FORMS = {
    "percent and spaces": "0 0\n10000 15\n20000 20\n30000 100\n",
    "fractions and tabs": "0\t0\n10000\t0.15\n20000\t0.20\n30000\t1\n",
    "commas": "# bytes, share\n0, 0\n1e4, 0.15\n20000,0.2\n30000,1\n",
    "units": "1 B, 0\n10 kB, 0.15\n20 kB, 0.2\n30 kB, 1\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_published_distribution(tmp_path, form):
    path = tmp_path / "cdf.txt"
    path.write_text(FORMS[form])
    given = {"distribution": "empirical", "file": str(path)}
    found = distributions.parse(given, VOLUME).points
    assert found == tuple((x, pytest.approx(share)) for x, share in EXPECTED)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 0.3\n10 1\n", 'must be above zero, got "0 B"'),
        ("0 0\n10 50\n", r"must be in \[0, 1\], got 50"),
        ("size,cdf\n0,0\n10,1\n", "line 1 of .*: must be VALUE, PROBABILITY, got"),
        ("0 0\n10 1 2\n", "must be a volume"),
    ],
)
def test_a_wrong_distribution(tmp_path, content, message):
    path = tmp_path / "cdf.txt"
    path.write_text(content)
    with pytest.raises(PartError, match=message):
        distributions.parse({"distribution": "empirical", "file": str(path)},
                            distributions.replace(VOLUME, zero=False))  # fmt: skip


def test_sizes_of_a_file(waterfill, tmp_path):
    (tmp_path / "cdf.txt").write_text(FORMS["percent and spaces"])
    words = "generate leaf-spine 2 2 2 --sizes cdf.txt --load 0.3 --delay 5us -o s.toml"
    ran = waterfill(*words.split())
    assert ran.code == 0, ran.err
    (source,) = from_toml((tmp_path / "s.toml").read_text(), "elsewhere").traffic
    assert source.sizes.points[1:] == tuple((x, pytest.approx(p)) for x, p in EXPECTED[1:])


def test_a_first_host_without_links_does_not_shorten_the_timeout(tmp_path):
    nodes = "".join(f'node [ id {i} label "{name}" ] ' for i, name in enumerate("ABC"))
    (tmp_path / "in.gml").write_text(f"graph [ {nodes} edge [ source 1 target 2 ] ]")
    layout = imported("gml", str(tmp_path / "in.gml"), Options(sizes="rpc"))
    assert "rto_min" not in text(layout, "reno", 1)
