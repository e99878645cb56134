"""Fuzz targets that read directories: runs, the cache, sweeps, comparisons,
reproductions, figures.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from validation.fuzz_python import mutate
from validation.fuzz_python.choices import Choices
from validation.fuzz_python.outcome import Finding, read
from waterfill.analysis import compare, draw, plots
from waterfill.papers import output
from waterfill.papers.claims import loading as claims_loading
from waterfill.papers.claims.verdict import state
from waterfill.report import write
from waterfill.runs import backends
from waterfill.runs import cache as runs_cache
from waterfill.runs.result import Result, to_json
from waterfill.runs.stored import load_run
from waterfill.scenario.loading import from_toml
from waterfill.sweeps.dataset import Dataset

RUN = """
name = "small"
duration = "400 ms"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "long"
path = ["l"]
count = 2
[[flow]]
name = "sized"
path = ["l"]
size = "20 kB"
[[traffic]]
kind = "web"
from = "a"
to = "b"
arrival_rate = "30 /s"
"""
_COLUMNS: list[Any] = [
    ("key", "string"), ("status", "string"), ("error", "string"), ("link.l.delay", "double"),
    ("seed", "int64"), ("utilization", "double"), ("wall_s", "double"), ("worker", "string"),
]  # fmt: skip
_ABOUT = {
    "version": "0", "scenario": "s.toml", "backend": "sim", "sets": [],
    "axes": {"link.l.delay": "s"},
    "draw": {"latin": False, "samples": 0, "seed": 1}, "meanings": {"utilization": "share"},
}  # fmt: skip


@cache
def _made() -> Path:
    """Return a folder with a valid run, comparison, sweep and reproduction."""
    root = Path(tempfile.mkdtemp(prefix="waterfill-fuzz-made-"))
    result = backends.run(from_toml(RUN))
    result.write(root / "run")
    results = {name: backends.run(from_toml(RUN, sets=[f"protocol={name}"]))
               for name in ("maxnet", "cubic")}  # fmt: skip
    comparison = compare.of(results)
    comparison.write(comparison.document(), root / "comparison")
    with Dataset(root / "sweep", _COLUMNS, "identity", _ABOUT, RUN) as dataset:
        for i in range(4):
            dataset.record(_row(i))
        dataset.flush()
    (root / "sweep/journal.jsonl").write_text(to_json(_row(9), indent=None) + "\n")
    experiment = claims_loading.select(["maxnet-2007/two-hop"], claims_loading.experiments())[0]
    document = output.document([])
    document["claims"] = [_claim(experiment, claim) for claim in experiment.claims[:3]]
    mine = root / "reports/maxnet-2007/two-hop"
    mine.mkdir(parents=True)
    (mine / "claims.json").write_text(to_json(document))
    return root


def _claim(experiment: Any, claim: Any) -> dict[str, Any]:
    return {**state(experiment, claim), "measured": 1.0, "values": [1.0], "verdict": "reproduced"}


def _row(i: int) -> dict[str, Any]:
    return {"key": f"k{i}", "status": "done", "error": None, "link.l.delay": 0.001 * i,
            "seed": i % 2, "utilization": 0.9, "wall_s": 0.1, "worker": "w"}  # fmt: skip


def _copy(kind: str, folder: Path) -> Path:
    mine = folder / kind
    shutil.rmtree(mine, ignore_errors=True)
    shutil.copytree(_made() / kind, mine)
    return mine


def damage(folder: Path, choices: Choices) -> str:
    """Damage one or two files of a directory, and return the changed texts."""
    texts = ""
    for _ in range(1 + choices.chance(4)):
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        if not paths:
            break
        path = choices.pick(paths)
        kind = choices.below(10)
        if kind == 0:
            path.unlink()
        elif kind == 1:
            path.write_bytes(b"")
        elif kind == 2:
            path.write_bytes(choices.pick(paths).read_bytes())
        elif kind == 3:
            path.write_text(choices.pick(("null", "[]", "{}", "0", '"a"', "[1]", "true", "\n")))
        elif path.suffix == ".json" and kind < 9:
            texts += _changed_json(path, choices)
        elif path.suffix == ".jsonl" and kind < 9:
            texts += _changed_json(path, choices) + "\n"
            path.write_text(texts)
        elif path.suffix == ".toml" and kind < 8:
            texts += mutate.lines(path.read_text(errors="replace"), choices)
            path.write_text(texts, errors="replace")
        elif path.suffix == ".parquet" and kind < 7:
            _changed_table(path, choices)
        else:
            path.write_bytes(mutate.raw(path.read_bytes(), choices))
    return texts


def _changed_json(path: Path, choices: Choices) -> str:
    try:
        given = json.loads(path.read_text(errors="replace"))
        text = json.dumps(mutate.document(given, choices))
    except (ValueError, TypeError, RecursionError, AttributeError):
        text = "[" * 5000
    path.write_text(text, errors="replace")
    return text


def _changed_table(path: Path, choices: Choices) -> None:
    """Change a Parquet table: remove, rename or retype a column, or alter rows or metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError):
        return
    names = table.column_names
    if not names:
        return
    name, kind = choices.pick(names), choices.below(7)
    i = names.index(name)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.rename_columns([choices.pick(mutate.KEYS) if n == name else n for n in names])
    elif kind == 2:
        odd: Any = choices.pick(("a", 1, 1.5, True, None, [1], {"a": 1}))
        table = table.set_column(i, name, pa.array([odd] * table.num_rows))
    elif kind == 3:
        table = table.slice(choices.below(max(1, table.num_rows)), choices.below(5))
    elif kind == 4:
        table = table.replace_schema_metadata(
            {"waterfill.summary": choices.pick(("null", "{}", "[", "[]", '{"engine": 1}'))}
        )
    elif kind == 5:
        table = pa.concat_tables([table, table])
    else:
        number = choices.pick((float("nan"), float("inf"), -1.0, 1e300))
        table = table.set_column(i, name, pa.array([number] * table.num_rows))
    pq.write_table(table, path)


def _read_all(found: Result) -> None:
    for name in ("flows", "links", "traffic", "transfers"):
        read(lambda name=name: getattr(found, name))  # type: ignore[misc]
    read(lambda: found.network)


def result(data: bytes, folder: Path) -> None:
    """Fuzz target: read a damaged run and write its report."""
    choices = Choices(data)
    mine = _copy("run", folder)
    texts = damage(mine, choices)
    found = read(lambda: load_run(mine), texts)
    if found is not None:
        _read_all(found)
    if choices.chance(4):
        read(lambda: write.write(mine), texts)


def cached(data: bytes, folder: Path) -> None:
    """Fuzz target: look up a damaged cache entry, which must be a miss or give the
    unchanged run.
    """
    choices = Choices(data)
    scenario = from_toml(RUN)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    entry = runs_cache.entry(scenario, "sim")
    if not _stored():
        runs_cache.store(scenario, "sim", backends.run(scenario))
        _stored().append(shutil.copytree(entry, folder / "entry"))
    shutil.rmtree(entry, ignore_errors=True)
    shutil.copytree(_stored()[0], entry)
    damage(entry, choices)
    kept = read(lambda: [runs_cache.lookup(scenario, "sim")])
    if kept is None:
        raise Finding("cache refuses", "a damaged entry is an error of the user's")
    if kept[0] is None:
        return
    fresh = load_run(_stored()[0])
    if kept[0].summary != fresh.summary:
        raise Finding("cache changes a summary", str(kept[0].summary)[:200])
    for name in ("flows", "links", "transfers"):
        theirs = read(lambda name=name: [getattr(kept[0], name)])  # type: ignore[misc]
        if theirs is None or not theirs[0].equals(getattr(fresh, name)):
            raise Finding("cache changes a table", name)


@cache
def _stored() -> list[Path]:
    return []


def sweep(data: bytes, folder: Path) -> None:
    """Fuzz target: resume a damaged sweep, read its dataset, and write its report."""
    choices = Choices(data)
    mine = _copy("sweep", folder)
    texts = damage(mine, choices)
    if choices.chance(3):
        read(lambda: write.write(mine), texts)

    def open_and_read() -> None:
        with Dataset(mine, _COLUMNS, "identity", _ABOUT, RUN) as dataset:
            dataset.record(_row(5))
            dataset.table()
            dataset.forget(["failed"])

    read(open_and_read, texts)


def reports(data: bytes, folder: Path) -> None:
    """Fuzz target: write report pages of damaged reproductions and comparisons, without script
    injection.
    """
    choices = Choices(data)
    mine = _copy(choices.pick(("reports", "comparison")), folder)
    texts = damage(mine, choices)
    for path in read(lambda: write.write(mine), texts) or ():
        if path.suffix == ".html" and "<script>hacked" in path.read_text():
            raise Finding("script", str(path))


def figures(data: bytes, folder: Path) -> None:
    """Fuzz target: draw a figure of a damaged run."""
    choices = Choices(data)
    mine = _copy("run", folder)
    texts = damage(mine, choices)
    kind = choices.pick(("overview", "rates", "queues"))
    found = read(lambda: load_run(mine), texts)
    if found is not None:
        read(lambda: draw.save(plots.plot(found, kind), folder / "figure", ["svg"]), texts)
