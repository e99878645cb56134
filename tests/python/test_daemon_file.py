"""The published JSON Schema and the daemon accept and refuse the same files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from known import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROGRAM = ROOT / ".venv" / "bin" / "waterfilld"
SCHEMA = json.loads((ROOT / "docs" / "waterfilld.schema.json").read_text())
ROUTER = "[[router]]\ndevice = 'eth1'\nrate = '1 Gbit/s'\n"
CSIG = "[[csig]]\ndevice = 'eth1'\nrole = 'inside'\n"
GOOD = [
    "",
    (ROOT / "packaging" / "waterfilld.toml").read_text(),
    "[host]\n",
    "[[host]]\n[[host]]\nlaw = 'rcp'\nparams = { alpha = 0.5, average = 'reluctant' }\n",
    "[host]\nnetns_cookies = [7, '0x10']\npeers = ['fd00::/8', '192.0.2.1']\noption_kind = 42\n",
    "[host]\nbase_rtt_window = 'unlimited'\nqueue_margin = '0.5 ms'\n",
    "[host]\nbase_rtt_window = '2.5 s'\n",
    "[host]\nname = 'bpf_x'\nfallback = 'reno'\ncgroup = '/sys/fs/cgroup'\nunrestricted = true\n",
    ROUTER,
    ROUTER + "target = 0.5\noverhead = 38\nvirtual_queue = true\nscone = true\n",
    ROUTER + "shape = true\nbuffer = '250 kB'\n[[router]]\ndevice = 'b'\nrate = '10 Gbit/s'\n",
    ROUTER + "shape = true\nbuffer = 250000\n",
    ROUTER + "cohabit = 'paper'\ncohabit_params = { interval = '28 ms', decrease = 0.999 }\n",
    ROUTER + "params = { t_0 = '1 s', promise = true, x_max = '10 Tbit/s' }\n",
    ROUTER + "law = 'xcp'\nparams = { counts = 'own', alpha = 0.3 }\n",
    *(
        ROUTER.replace("1 Gbit/s", rate)
        for rate in ("1gbit", "940Mbit/s", "1e9 bit/s", "125 MB/s", "1.5kbit")
    ),
    CSIG,
    CSIG + "format = 'compact'\nsignal = 'delay'\nto = '1 ms'\nlocator = 63\ntpid_wide = 0x88b7\n",
    CSIG + "from = '1 Mbit/s'\nto = '1gbit'\nt = '1 s'\nx_max = '1 Tbit/s'\ntpid_wide = '0x88b7'\n",
    "[metrics]\nlisten = '[::1]:9465'\n",
    "[log]\nlevel = 'debug'\nformat = 'json'\nburst = 5\ninterval = '1 s'\n",
    "[control]\npath = '/run/x/control.sock'\n[pins]\ndirectory = '/sys/fs/bpf/x'\n",
]
BAD = [
    "[routers]\n",
    "[host]\nlaws = 'rcp'\n",
    "[host]\nlaw = 'tcp'\n",
    "[host]\nparams = { beta = 1 }\n",
    "[host]\nlaw = 'rcp'\nparams = { dt_p = '1 ms' }\n",
    "[host]\npeers = '10.0.0.0/8'\n",
    "[host]\npeers = ['example.org']\n",
    "[host]\nname = 'more_than_15_bytes'\n",
    "[host]\noption_kind = 254\n",
    "[host]\nbase_rtt_window = 'never'\n",
    "[host]\nqueue_margin = 3\n",
    "[[router]]\ndevice = 'eth1'\n",
    "[[router]]\nrate = '1 Gbit/s'\n",
    ROUTER + "target = 1.5\n",
    ROUTER + "target = 0\n",
    ROUTER + "overhead = 14.5\n",
    ROUTER + "shape = 'yes'\n",
    ROUTER + "cohabit = 'both'\n",
    ROUTER + "buffer = 'much'\n",
    ROUTER + "params = { promise = 'maybe' }\n",
    *(ROUTER.replace("1 Gbit/s", rate) for rate in ("fast", "1 Gbps", "1", "1 kGbit/s", "gbit")),
    ROUTER.replace("eth1", "a/b"),
    "[[csig]]\ndevice = 'eth1'\n",
    *(
        CSIG + f"{key} = {value}\n"
        for key, value in (
            ("format", "'wider'"),
            ("signal", "3"),
            ("tpid_wide", "7"),
            ("locator", "0"),
            ("t", "'1 h'"),
        )
    ),
    "[metrics]\nlisten = '9465'\n",
    "[log]\nlevel = 'verbose'\n",
    "[log]\nburst = 0\n",
    "host = 3\n",
]


def _daemon_accepts(text: str, folder: Path) -> bool:
    if not PROGRAM.exists():
        pytest.skip("waterfilld is not built here")
    file = folder / "waterfilld.toml"
    file.write_text(text)
    done = subprocess.run([PROGRAM, "check", file], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2), done.stderr
    assert done.returncode == 0 or done.stderr.count("\n") == 1, done.stderr
    return done.returncode == 0


@pytest.mark.parametrize(("texts", "valid"), [(GOOD, True), (BAD, False)], ids=["good", "bad"])
def test_schema_and_daemon_agree(texts: list[str], valid: bool, tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for text in texts:
        assert validator.is_valid(tomllib.loads(text)) is valid, text
        assert _daemon_accepts(text, tmp_path) is valid, text
