"""Tests that a law's parameters are stated in `params!` alone, from which all surfaces follow.

The Rust tests compare the checks, `struct law_params` and the daemon's bytes with it; these here
read the daemon's list, the dissector, the pages, the studio, the certificates and the proofs.
"""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import docs
from validation.certificates.fixed.laws import LAYOUTS
from waterfill.network import protocols
from waterfill.scenario.units import RATE, TIME
from waterfill.studio import controls
from waterfill.testbed import daemon

ROOT = Path(__file__).parents[2]
LAWS = {name: law for name, law in protocols.load().items() if law.kernel is not None}


def members(law):
    return [p for p in LAWS[law].params if p.kernel is not None and p.kernel["member"] is not None]


def test_the_daemon_lists_the_parameters_with_their_defaults():
    if daemon.binary() is None:
        pytest.skip("needs waterfilld")
    done = subprocess.run([daemon.binary(), "laws", "--json"], capture_output=True, check=True)
    listed = {law["name"]: law["parameters"] for law in json.loads(done.stdout)}
    assert listed.keys() == LAWS.keys()
    for law, entries in listed.items():
        # A link's name is no parameter of the law.
        shown = {entry["name"]: entry["default"] for entry in entries if entry["name"] != "link"}
        assert list(shown) == [param.name for param in members(law)]
        for param in members(law):
            text = shown[param.name]
            if param.unit in ("rate", "time"):
                assert {"rate": RATE, "time": TIME}[param.unit].parse(text) == param.default
            elif isinstance(param.default, bool):
                assert text == str(param.default).lower()
            else:
                assert text == param.default or float(text) == param.default


def test_the_dissector_has_the_laws_and_maxnets_demand_function():
    lua = (ROOT / docs.DISSECTOR).read_text()
    assert docs.dissector(LAWS, lua) == lua
    for name in ("x_max", "t"):
        (shown,) = re.findall(rf'^local DEFAULT_{name.upper()} = "(.*)"$', lua, re.MULTILINE)
        assert float(shown) == LAWS["maxnet"].param(name).default
    for law in LAWS.values():
        assert f'[{law.kernel["number"]}] = "{law.name}"' in lua


@pytest.mark.parametrize("law", LAWS)
def test_the_page_shows_defaults_and_the_kernels_ranges(law):
    text = (ROOT / docs.PAGES / f"{law}.md").read_text()
    for param in LAWS[law].params:
        row = f"| `{param.name}` | {docs._unit(param)} | {docs._default(param)} | "
        assert f"{row}{docs._in_kernel(param)} | " in text


@pytest.mark.parametrize("law", LAWS)
def test_the_studios_sliders_begin_at_the_defaults(law):
    scenario = SimpleNamespace(params={})
    shown = {c.key.rpartition(".")[2]: c for c in controls.of_protocol(scenario, law)}
    for param in LAWS[law].params:
        control = shown.get(param.name)
        if isinstance(control, controls.Slider):
            size, _ = controls._scale(param.unit, param.default)
            assert control.steps[control.start].shown == pytest.approx(
                param.default / size, rel=1e-5
            )
        elif isinstance(control, controls.Choice) and isinstance(param.default, str):
            assert control.start == param.default


@pytest.mark.parametrize("law", LAWS)
def test_logs_of_steps_are_read_by_the_members_of_c(law):
    assert law in LAYOUTS, f"validation/certificates/fixed/laws.py: LAYOUTS needs {law}"
    fields = LAYOUTS[law]["params"]
    widths = {"Q": 8, "I": 4}
    assert [widths[code] for _, code in fields] == [m["bytes"] for m in LAWS[law].kernel["members"]]
    assert len({name for name, _ in fields}) == len(fields)


@pytest.mark.parametrize("law", LAWS)
def test_the_proofs_assume_every_value_that_is_accepted(law):
    pytest.importorskip("z3")
    from validation.proofs import ranges

    assert law in ranges.LAWS, f"validation/proofs/ranges.py: LAWS needs {law}"
    proved = ranges.LAWS[law].structures["law_params"]
    of_members = {m["name"].rpartition(".")[2]: m["name"] for m in LAWS[law].kernel["members"]}
    for param in members(law):
        kernel = param.kernel
        member = kernel["member"]
        assumed = proved.get(member) or proved.get(of_members.get(member))
        if assumed is None or kernel["max"] is None:
            continue  # all values of its type
        low, high = (round(kernel[end] * kernel["scale"]) for end in ("min", "max"))
        assert assumed[0] <= low <= high <= assumed[1], (param.name, assumed)


def test_the_default_of_t_0_is_written_in_one_place():
    written = re.compile(r"(?i)t_?0\b.*(130 ?ms|from_millis\(130\)|130_?000\b|0\.13\b)")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("crates", "python", "packaging")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".rs", ".h", ".c", ".py", ".lua", ".toml")
        and not {"tests", "examples", "test"} & set(path.parts)
        and path.name not in ("tests.rs",)
        and written.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["crates/waterfill-laws/src/protocols/maxnet/params.rs"]
