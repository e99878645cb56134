"""Results are the same bytes on this CPU, without some of its features, and in WebAssembly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from validation.study import execute
from validation.targets import study
from validation.targets.builds import TARGETS
from validation.targets.cases import committed, small
from waterfill.network import protocols

AGAIN = "if results have changed on purpose, record them: python -m validation.targets.study"
SOURCES = small()


@pytest.fixture(scope="module")
def native():
    found = study.compare(SOURCES, [TARGETS["native"]])
    return {s.name: one["native"] for s, one in zip(SOURCES, found, strict=True)}


def test_every_protocol_runs_on_each_of_its_backends(native):
    for name, info in protocols.load().items():
        on = {source.on for source in SOURCES if source.path == f"protocols/{name}"}
        assert on == set(info.backends) & {"sim", "fluid"}
    assert {name: one for name, one in native.items() if one.startswith("refused")} == {}
    assert len(set(native.values())) == len(native)


def test_this_host_repeats_the_recorded_hashes(native):
    assert native == json.loads(study.RECORD.read_text(encoding="utf-8")), AGAIN


@pytest.mark.parametrize("name", ["masked", "wasm32"])
def test_another_target_gives_the_same_bytes(name, native):
    target = TARGETS[name]
    lacking = target.lacks()
    if lacking is not None:
        pytest.skip(f"needs {lacking}")
    target.build()
    found = study.compare(SOURCES, [target])
    assert {s.name: one[name] for s, one in zip(SOURCES, found, strict=True)} == native


def test_a_difference_is_counted_and_named():
    case = study.Case("queues", tuple(SOURCES[-2:]), ("native", "wasm32"), 0, ("{}", "{}"))
    same = {"native": "1", "wasm32": "1"}
    found = {case: [same, same | {"wasm32": "2"}]}
    assert "| queues | sim | 2 | 0 | 1 of 2 |" in study.table(found)
    assert study.failed(found) == ["queues/cohabit sim: differs on wasm32"]
    assert study.failed({case: [same, same]}) == []


def test_each_committed_scenario_has_a_row_with_its_hashes():
    sim, fluid, other = committed()[:3]
    case = study.Case("examples", (sim, fluid, other), ("native", "wasm32"), 0, ("{}",) * 3)
    same = {"native": "123456789", "wasm32": "123456789"}
    lines = study.table({case: [same, same | {"wasm32": "2"}, {"native": "refused: queue"}]})
    assert f"| {sim.path} | 12345678 | none of 1 | 12345678 | wasm32 |" in lines
    assert f"| {other.path} | refused | – |" in lines
    assert "123456789" not in lines


def test_a_host_without_tools_is_told_what_to_install(monkeypatch, capsys):
    bare = replace(TARGETS["aarch64-musl"], runner=("no-emulator",), hosts=())
    monkeypatch.setitem(TARGETS, "aarch64-musl", bare)
    assert execute(study.STUDY, "targets", ["--targets", "aarch64-musl"]) == 2
    said = capsys.readouterr().err
    assert "aarch64-musl left out: needs no-emulator: apt-get install qemu-user\n" in said
    assert "--targets: nothing to compare with, got aarch64-musl" in said
