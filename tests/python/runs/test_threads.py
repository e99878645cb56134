"""Runs on several threads: the same bytes, options that are refused, and the networks of bench/."""

import ctypes
import hashlib
import importlib.util
import json
import os
import threading
from pathlib import Path

import pytest

import waterfill
from waterfill import _core
from waterfill.network import protocols, resolve
from waterfill.runs import backends, engine, pool
from waterfill.scenario.loading import from_toml, load

ROOT = Path(__file__).parents[3]
CHAIN = """
name = "chain"
duration = "2 s"
protocol = "maxnet"
link = [
  { name = "a-b", from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms" },
  { name = "b-c", from = "b", to = "c", rate = "10 Mbit/s", delay = "5 ms" },
  { name = "c-d", from = "c", to = "d", rate = "10 Mbit/s", delay = "5 ms" },
]
flow = [
  { name = "right", from = "a", to = "d" },
  { name = "left", from = "d", to = "a" },
]
"""


def test_threads_do_not_change_a_byte(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(CHAIN)
    documents = []
    for threads in ("1", "2", "3"):
        ran = waterfill("run", "s.toml", "--json", "--threads", threads, "-o", threads)
        assert ran.code == 0, ran.err
        document = json.loads(ran.out)
        del document["engine"]["wall_s"]
        document["engine"].pop("packet_transmissions_per_s", None)
        series = [
            (tmp_path / threads / f"{which}.parquet").read_bytes() for which in ("flows", "links")
        ]
        documents.append((document, series))
    assert documents[0] == documents[1] == documents[2]


def bench_networks():
    """Return the module bench/networks.py."""
    spec = importlib.util.spec_from_file_location("networks", ROOT / "bench" / "networks.py")
    networks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(networks)
    return networks


COMMITTED = [*sorted(ROOT.glob("examples/*.toml")), *sorted(ROOT.glob("papers/*/*/scenario.toml"))]


def shown(path, threads, seconds):
    """The whole result of a run, and the number of threads that it used."""
    simulation = _core.Simulation(resolve.to_core(load(path), protocols.load(), "sim"))
    used = simulation.set_threads(threads)
    simulation.advance(seconds)
    summary = simulation.summary()
    summary["engine"]["wall_s"] = 0.0
    series = [
        (name, kind, bytes(column))
        for which in ("flows", "links", "traffic")
        for name, (kind, column) in simulation.series(which).items()
    ]
    return used, (json.dumps(summary), series)


def threads_with_the_same_bytes(path, seconds):
    """Return the numbers of threads, 8 at most, that gave the results of one thread."""
    _, one = shown(path, 1, seconds)
    used = {1}
    for most in (2, 3, 8):
        threads, several = shown(path, most, seconds)
        assert several == one, (path, threads)
        used.add(threads)
    return used


def test_the_committed_networks_give_the_same_bytes_on_several_threads():
    found = [threads_with_the_same_bytes(path, 0.3) for path in COMMITTED]
    assert {1} in found  # a network that cannot be divided runs on one
    assert set.union(*found) > {1, 2, 3}


@pytest.mark.parametrize(("name", "seconds"), [("fat-tree", 1e-3), ("wan", 0.1)])
def test_the_networks_of_the_bench_give_the_same_bytes_on_several_threads(tmp_path, name, seconds):
    (tmp_path / "s.toml").write_text(bench_networks().NETWORKS[name]())
    assert threads_with_the_same_bytes(tmp_path / "s.toml", seconds) == {1, 2, 3, 8}


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def test_memory_that_a_thread_has_freed_is_returned():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]

    def fill():
        blocks = [libc.malloc(8192) for _ in range(6000)]
        for block in blocks:
            ctypes.memset(block, 1, 8192)
        for block in blocks[:-1]:  # the last one keeps the heap from shrinking by itself
            libc.free(block)

    thread = threading.Thread(target=fill)
    thread.start()
    thread.join()
    before = resident_bytes()
    engine.release_memory()
    assert before - resident_bytes() > 20e6


@pytest.mark.parametrize(("threads", "calls"), [(1, 0), (3, 1)])
def test_a_run_on_several_threads_returns_memory(tmp_path, monkeypatch, threads, calls):
    seen = []
    monkeypatch.setattr(engine, "release_memory", lambda: seen.append(1))
    (tmp_path / "s.toml").write_text(CHAIN)
    backends.run(tmp_path / "s.toml", threads=threads)
    assert len(seen) == calls


def test_the_core_says_how_many_threads_it_uses(tmp_path):
    (tmp_path / "s.toml").write_text(CHAIN)
    network = resolve.to_core(load(tmp_path / "s.toml"), protocols.load(), "sim")
    assert [_core.Simulation(network).set_threads(n) for n in (1, 2, 3)] == [1, 2, 3]
    begun = _core.Simulation(network)
    begun.advance(0.1)
    assert begun.set_threads(2) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--threads", "0"), "command line: threads: must be from 1 to 1024, got 0"),
        (
            ("--threads", "2", "--on", "fluid"),
            "threads: fluid cannot use several threads; use --on sim",
        ),
        (
            ("--threads", "2", "--pcap", "-o", "out"),
            "threads: a run cannot use several threads and record packets",
        ),
    ],
)
def test_wrong_options_are_one_line(waterfill, tmp_path, arguments, message):
    (tmp_path / "s.toml").write_text(CHAIN)
    ran = waterfill("run", "s.toml", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_a_mapping_runs_on_several_threads(tmp_path):
    (tmp_path / "s.toml").write_text(CHAIN)
    one, three = (backends.run(tmp_path / "s.toml", threads=n) for n in (1, 3))
    assert one.flows.equals(three.flows)
    assert one.links.equals(three.links)


def test_the_networks_of_the_bench_stay_as_they_were_measured():
    texts = {name: make() for name, make in bench_networks().NETWORKS.items()}
    digests = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}
    assert digests == {"fat-tree": "691ddcc98ba27995", "wan": "ded43eb080e1ffaf"}
    assert sum(flow.count for flow in from_toml(texts["fat-tree"]).flow) == 1024


class Fixed:
    """A window that never changes."""

    def __init__(self, start):
        self.packet_bytes = start.packet_bytes

    def on_ack(self, ack):
        pass

    def limit(self):
        return 2 * self.packet_bytes, None


def test_laws_in_python_share_one_thread_and_other_runs_do_not():
    laws = {"fixed": waterfill.PythonLaw(source=Fixed, paced=False)}
    chain = from_toml(CHAIN, "chain.toml", {"duration": "0.2 s"})
    own = chain.model_copy(update={"protocol": "fixed"})
    scenarios = {"own 1": own, "own 2": own, "own 3": own, "maxnet": chain}

    def threads_of_runs(threads: int) -> dict[str, int]:
        found: dict[str, int] = {}
        pool.run_each(
            scenarios, threads=threads, laws=dict.fromkeys(["own 1", "own 2", "own 3"], laws),
            progress=lambda name, _: found.__setitem__(name, threading.get_ident()),
        )  # fmt: skip
        return found

    found = threads_of_runs(2)
    assert found["own 1"] == found["own 2"] == found["own 3"] != found["maxnet"]
    assert len(set(threads_of_runs(1).values())) == 1
