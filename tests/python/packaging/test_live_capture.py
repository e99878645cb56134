"""The dissector on packets of the real daemon: two hosts and a router in namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from known import ROOT

DISSECTOR = ROOT / "packaging" / "wireshark" / "waterfill.lua"
WATERFILLD = ROOT / ".venv" / "bin" / "waterfilld"
TOOLS = ("tshark", "iperf3", "ip", "nsenter", "sysctl", "timeout")
NETWORK = """
for n in a r b; do ip netns add {p}$n; ip -n {p}$n link set lo up; done
for e in a:1 b:2; do n=${{e%:*}}; i=${{e#*:}}
  ip -n {p}$n link add eth0 type veth peer name to-$n netns {p}r
  ip -n {p}$n addr add 10.66.$i.1/24 dev eth0; ip -n {p}r addr add 10.66.$i.2/24 dev to-$n
  ip -n {p}$n link set eth0 up; ip -n {p}r link set to-$n up
  ip -n {p}$n route add default via 10.66.$i.2
done
nsenter --net=/run/netns/{p}r sysctl -qw net.ipv4.ip_forward=1
nsenter --net=/run/netns/{p}r {w} router --dev to-b --rate 20mbit --shape --once --pins {pins}/r
{w} host --once --name {law} --cgroup {cgroup} --pins {pins}/h
"""
TRAFFIC = """
echo $$ > {cgroup}/cgroup.procs
nsenter --net=/run/netns/{p}b timeout 15 iperf3 -s -1 >&2 &
nsenter --net=/run/netns/{p}b timeout 15 tshark -q -i eth0 -s 128 -a duration:4 -w {file} tcp >&2 &
capture=$!
sleep 1.5
nsenter --net=/run/netns/{p}a timeout 10 iperf3 -c 10.66.2.1 -C {law} -t 1 >&2
wait $capture
"""
REMOVE = """
nsenter --net=/run/netns/{p}r {w} unload --pins {pins}/r
{w} unload --pins {pins}/h
for n in a r b; do ip netns del {p}$n; done
rmdir {pins} {cgroup}
"""


def shell(script: str, **names: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", script.format(**names)], capture_output=True, text=True, check=False
    )


def cgroup_root() -> Path | None:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)


def test_options_of_the_daemon_are_decoded(tmp_path):
    root = cgroup_root()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid() != 0 or root is None or missing or not WATERFILLD.exists():
        pytest.skip(f"needs root, cgroup v2, waterfilld and {', '.join(missing or TOOLS)}")
    prefix = f"wfd{os.getpid()}"
    cgroup = root / prefix
    names = {
        "p": prefix, "w": WATERFILLD, "law": f"bpf_{prefix}"[:15], "cgroup": cgroup,
        "pins": f"/sys/fs/bpf/{prefix}", "file": tmp_path / "live.pcapng",
    }  # fmt: skip
    cgroup.mkdir()
    try:
        made = shell("set -e\n" + NETWORK, **names)
        if made.returncode != 0:
            pytest.skip(f"cannot make the network: {made.stderr.strip().splitlines()[-1]}")
        sent = shell(TRAFFIC, **names)
    finally:
        shell(REMOVE, **names)
    fields = ("waterfill.price", "waterfill.echo.price", "waterfill.start_rate", "waterfill.law")
    asked = [word for field in (*fields, "_ws.expert.message") for word in ("-e", field)]
    script = ["-X", f"lua_script:{DISSECTOR}"]
    done = subprocess.run(
        ["tshark", "-n", *script, "-r", tmp_path / "live.pcapng", "-T", "fields", *asked],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, sent.stderr + done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    prices = [float(row[0]) for row in rows if row[0]]
    echoes = [float(row[1]) for row in rows if row[1]]
    starts = [float(row[2]) for row in rows if row[2]]
    assert len(prices) > 100, sent.stderr
    assert len(echoes) > 50
    # At 18 Mbit/s the price is T ln(x_max / rate) = 7.13 s; more flows, and CUBIC's, raise it.
    assert all(7.0 < price < 12.0 for price in prices)
    assert all(7.0 < echo < 12.0 for echo in echoes)
    # An idle link grants (mu + (1 - mu) / 4) of its rate.
    assert max(starts) == pytest.approx(18.5e6, rel=1e-3)
    assert {row[3] for row in rows} <= {"0", ""}
    assert not any("MaxNet has" in row[4] for row in rows)
