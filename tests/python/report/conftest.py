"""Directories that commands wrote, one of each kind, made once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import synthetic
from waterfill.analysis import compare
from waterfill.evaluation.api import evaluate
from waterfill.papers import output
from waterfill.papers.claims import loading
from waterfill.papers.claims.verdict import judge
from waterfill.report import reproduction
from waterfill.runs import backends
from waterfill.runs.result import to_json
from waterfill.scenario.loading import from_toml
from waterfill.sweeps import dataset

RUN = """
name = "two hops & <more>"
duration = "4 s"
protocol = "maxnet"
sample = "50 ms"

[[link]]
name = "first"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "5 ms"

[[link]]
name = "second"
from = "b"
to = "c"
rate = "12 Mbit/s"
delay = "5 ms"
buffer = "20 kB"

[[flow]]
name = "<script>hacked()</script>"
from = "a"
to = "c"

[[flow]]
name = "local"
path = ["first"]
count = 4
stagger = "200 ms"

[[flow]]
name = "sized"
path = ["second"]
count = 4
start = "1 s"
size = "100 kB"
protocol = "cubic"
"""

MANY = """
name = "many"
duration = "2 s"
protocol = "rcp"

[[link]]
name = "l"
from = "a"
to = "b"
rate = "200 Mbit/s"
delay = "5 ms"

[[flow]]
name = "f"
from = "a"
to = "b"
count = 200
"""


@pytest.fixture(autouse=True, scope="session")
def session_cache(tmp_path_factory):
    """Fixtures of the session run before the cache of a test is set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def made_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    backends.run(from_toml(RUN)).write(folder)
    return folder


@pytest.fixture(scope="session")
def made_many(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    backends.run(from_toml(MANY)).write(folder)
    return folder


@pytest.fixture(scope="session")
def made_comparison(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("comparison")
    results = {
        name: backends.run(from_toml(RUN, sets=[f"protocol={name}"]))
        for name in ("maxnet", "xcp", "cubic")
    }
    # As `compare -o` does, but for the figures.
    for name, result in results.items():
        result.write(folder / name)
    document = compare.of(results).document()
    (folder / compare.DOCUMENT).write_text(to_json(document), encoding="utf-8")
    return folder


SWEPT = """
name = "swept"
duration = "1 s"
protocol = "maxnet"

[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"

[[flow]]
name = "f"
from = "a"
to = "b"
"""


def write_sweep(folder: Path, axes: dict[str, str], rows: list[dict], draw: int = 0) -> Path:
    """Write a dataset as `sweep -o` does, of points that nothing ran."""
    columns = [("key", "string"), ("status", "string"), ("error", "string")]
    columns += [(key, "string" if key == "protocol" else "double") for key in axes]
    columns += [("seed", "int64"), ("utilization", "double"), ("drops", "double")]
    columns += [("overrides", "string")]
    about = {
        "version": "0.1.0", "scenario": "swept.toml", "backend": "sim", "sets": [], "axes": axes,
        "draw": {"latin": False, "samples": draw, "seed": 1},
        "meanings": {"utilization": "utilization of the busiest link", "drops": "drops"},
    }  # fmt: skip
    with dataset.Dataset(folder, columns, "identity", about, SWEPT) as made:
        for place, row in enumerate(rows):
            known = {"key": str(place), "status": "done", "error": None, "overrides": f"p={place}"}
            made.record(known | row)
        made.flush()
    return folder


@pytest.fixture(scope="session")
def made_sweep(tmp_path_factory) -> Path:
    rows = [
        {"protocol": protocol, "link.l.delay": delay, "seed": seed, "drops": 0.0,
         "utilization": 0.9 - delay + 0.01 * seed * (protocol == "xcp")}
        for protocol in ("maxnet", "xcp")
        for delay in (0.01, 0.02, 0.5)
        for seed in (1, 2, 3)
    ]  # fmt: skip
    rows[4] |= {"status": "failed", "error": "<b>no</b>", "utilization": None, "drops": None}
    return write_sweep(
        tmp_path_factory.mktemp("sweep"), {"protocol": "", "link.l.delay": "s"}, rows
    )


@pytest.fixture(scope="session")
def made_map(tmp_path_factory) -> Path:
    rows = [
        {"link.l.delay": delay, "link.l.rate": rate, "seed": 1, "drops": rate / 1e6,
         "utilization": delay}
        for delay in (0.01, 0.02)
        for rate in (1e6, 2e6, 4e6)
    ]  # fmt: skip
    axes = {"link.l.delay": "s", "link.l.rate": "bit/s"}
    return write_sweep(tmp_path_factory.mktemp("map"), axes, rows)


@pytest.fixture(scope="session")
def made_evaluation(tmp_path_factory) -> Path:
    """Verdicts on a suite of three criteria: met, mixed over a numeric axis, not evaluated."""
    folder = tmp_path_factory.mktemp("evaluation")
    suite = Path(__file__).parent.parent / "evaluate" / "small"
    rivals = ["window", "sack"]
    evaluate("cubic", suite=suite, against=rivals, seeds=2, sensitivity=True, calibrate=True).write(
        folder
    )
    return folder


CLAIM = """
[[claim]]
id = "{id}"
source = "§1"
statement = "{id} < 11 & more"
measure = "rate_over"
args = {{ flow = "f", start_s = 0.0, stop_s = 1.0 }}
unit = "Mbit/s"
paper_value = {value}
tolerance = "5 %"
expect = "{expect}"
"""

FIGURE = '[[figure]]\nname = "rates"\nplot = "rates"\nargs = { title = "Rates" }\n'


def reproduced_claims(folder: Path) -> Path:
    """Reproduce an experiment of three claims below a folder: papers/paper/one, out/paper/one."""
    home = folder / "papers" / "paper" / "one"
    home.mkdir(parents=True)
    text = 'title = "One & only"\n' + FIGURE
    text += CLAIM.format(id="holds", value=10.0, expect="reproduced")
    text += CLAIM.format(id="barely", value=10.3, expect="reproduced") + 'why = "seed 4 differs"\n'
    text += CLAIM.format(id="fails", value=20.0, expect="differs") + 'why = "half <b>"\n'
    (home / "claims.toml").write_text(text, encoding="utf-8")
    (home / "README.md").write_text("# What was *found*\n", encoding="utf-8")
    (home / "scenario.toml").write_text('name = "S"\n', encoding="utf-8")
    experiment = loading.load(home / "claims.toml")
    links = {"l": {"utilization": [0.5] * 10, "queue_max_bytes": [1e4] * 10}}
    run = synthetic.result({"f": [10.0e6] * 10}, links)
    sample = [{"run": run}]
    output.write(experiment, sample, judge(experiment, sample), folder / "out" / "paper" / "one")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder in which an experiment of three claims has been reproduced."""
    return reproduced_claims(tmp_path)


@pytest.fixture(scope="session")
def made_claims(tmp_path_factory) -> Path:
    """The page of three claims, one of a short version."""
    root = reproduced_claims(tmp_path_factory.mktemp("claims"))
    (entry,) = reproduction.collect(root / "out", loading.experiments(root / "papers"))
    first, *others = entry.claims
    shortened = type(first).read({**first, "short": ["duration=15 s"]})
    short = replace(entry, claims=[shortened, *others])
    return reproduction.write(root / "out", [short])[0]
