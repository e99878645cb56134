"""Results do not depend on the CPU: without its features, glibc and NumPy change no byte."""

import json
import math
import os
import subprocess
import sys

import pytest

from waterfill import _core
from waterfill.formats import graph

SERIES = """
import hashlib, json, sys
import waterfill
scenario = waterfill.load(sys.argv[1])
digests = {}
for backend in sys.argv[2:]:
    result = waterfill.run(scenario, on=backend)
    digest = hashlib.sha256()
    for table in (result.flows, result.links, result.traffic):
        digest.update(repr(table.to_pydict()).encode())
    digests[backend] = digest.hexdigest()
print(json.dumps(digests))
"""
SCENARIO = """
name = "any-host"
duration = "3 s"
protocol = "{protocol}"
link = [
  {{ name = "a-b", from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms" }},
  {{ name = "b-c", from = "b", to = "c", rate = "8 Mbit/s", delay = "15 ms" }},
]
flow = [
  {{ name = "long", from = "a", to = "c" }},
  {{ name = "short", from = "a", to = "b", start = "1 s" }},
]
"""
# glibc selects functions by these; the names are those of glibc up to 2.32 and since.
MASKED = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-FMA4_Usable,-AVX2,-FMA,-FMA4",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3",
}


@pytest.mark.parametrize(
    ("protocol", "backends"),
    [("maxnet", ["sim", "fluid"]), ("aecp", ["sim", "fluid"]), ("cubic", ["sim"])],
)
def test_the_cpu_changes_no_byte(protocol, backends, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO.format(protocol=protocol))

    def digests(more):
        # NumPy may warn of features that it was built with and cannot disable.
        command = [sys.executable, "-W", "ignore", "-c", SERIES, str(path), *backends]
        ran = subprocess.run(command, env={**os.environ, **more}, capture_output=True, check=True)
        return json.loads(ran.stdout)

    assert digests(MASKED) == digests({})


@pytest.mark.parametrize("x", [1e-9, 0.3, 0.5, 0.9999, 1.0, -0.7])
def test_the_cores_functions_are_those_of_mathematics(x):
    near = pytest.approx
    assert _core.sin(x) == near(math.sin(x), rel=4e-16)
    assert _core.cos(x) == near(math.cos(x), rel=4e-16)
    assert _core.asin(x) == near(math.asin(x), rel=4e-16)
    assert _core.ln_1p(x) == near(math.log1p(x), rel=4e-16)
    assert _core.ln(abs(x)) == near(math.log(abs(x)), rel=4e-16)
    assert _core.log10(abs(x)) == near(math.log10(abs(x)), rel=4e-16)
    assert _core.pow(abs(x), 0.3) == near(math.pow(abs(x), 0.3), rel=4e-16)


def test_great_circles_have_their_known_lengths():
    quarter = math.pi / 2 * 6371.0
    assert graph.great_circle_km((0, 0), (90, 0)) == pytest.approx(quarter, rel=1e-12)
    assert graph.great_circle_km((0, 90), (120, -90)) == pytest.approx(2 * quarter, rel=1e-12)
    berlin, paris = (13.4050, 52.5200), (2.3522, 48.8566)
    assert graph.great_circle_km(berlin, paris) == pytest.approx(877.5, rel=2e-3)
