"""CPU time and memory of large networks: fat-trees under a permutation, and long lists of flows.

    python bench/large.py [K …]

Each fat-tree of K-port switches (8, 16 and 32 by default) goes from its rule to the page of a run
of 0.1 ms, with links of 100 Gbit/s and 1 µs. Then the scenario of 100,000 flow entries, and that
of one entry with a count of 1,000,000, are loaded and resolved. Each network has its own process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any, TypeVar

from waterfill.cli import tables
from waterfill.formats import writing
from waterfill.formats.build import Options, generated
from waterfill.network import protocols, resolve
from waterfill.report import write
from waterfill.runs import backends
from waterfill.scenario.loading import from_toml

Found = TypeVar("Found")
SIZES = (8, 16, 32)
ENTRIES, COUNT = 100_000, 1_000_000
STEPS = ("generate", "load", "resolve", "run", "files", "page", "tables")

_LINK = """
duration = "1 s"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Gbit/s"
delay = "5 ms"
"""


class Steps:
    """CPU time of the steps of one process (s)."""

    def __init__(self) -> None:
        """Start without steps."""
        self.cpu_s: dict[str, float] = {}

    def take(self, name: str, step: Callable[[], Found]) -> Found:
        """Return what `step` returns, and keep its CPU time."""
        before_s = self._now_s()
        found = step()
        self.cpu_s[name] = self.cpu_s.get(name, 0.0) + self._now_s() - before_s
        return found

    def row(self, first: Sequence[str], sizes: Sequence[str] = ("", "")) -> str:
        """Return a row of a Markdown table: CPU times, sizes of files and page, peak memory."""
        times = [f"{self.cpu_s[name]:.2f}" if name in self.cpu_s else "" for name in STEPS]
        peak_mb = getrusage(RUSAGE_SELF).ru_maxrss / 1024
        return f"| {' | '.join([*first, *times, *sizes, f'{peak_mb:,.0f}'])} |"

    @staticmethod
    def _now_s() -> float:
        used = getrusage(RUSAGE_SELF)
        return used.ru_utime + used.ru_stime


def fat_tree(k: int) -> str:
    """Run a fat-tree from its rule to its page, and return its row."""
    steps = Steps()
    options = Options(rate_bps=1e11, delay_s=1e-6, pattern="permutation", duration_s=1e-4)
    layout = steps.take("generate", partial(generated, "fat-tree", [k], options))
    text = steps.take("generate", partial(writing.text, layout, "maxnet", 1))
    scenario = steps.take("load", partial(from_toml, text))
    links, flows = len(layout.links), len(layout.flows)
    del layout, text
    steps.take("resolve", partial(resolve.to_core, scenario, protocols.load()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constants of laws that do not fit such short RTTs
        result = steps.take("run", partial(backends.run, scenario, on="sim", threads=1))
    steps.take("tables", partial(tables.run, result.summary))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        steps.take("files", partial(result.write, path))
        mb = sum(file.stat().st_size for file in path.iterdir()) / 1e6
        del result
        steps.take("page", partial(write.write, path))
        page_mb = (path / "report.html").stat().st_size / 1e6
    return steps.row([f"k = {k}", f"{links:,}", f"{flows:,}"], [f"{mb:.1f}", f"{page_mb:.1f}"])


def flows(entries: int, count: int) -> str:
    """Load and resolve a scenario of many flows over one link, and return its row."""
    parts = [f'[[flow]]\nname = "f{i}"\nfrom = "a"\nto = "b"\ncount = {count}\n'
             f'start = "{i % 1000} us"\n' for i in range(entries)]  # fmt: skip
    text = _LINK + "".join(parts)
    steps = Steps()
    protocols.load()
    scenario = steps.take("load", partial(from_toml, text))
    steps.take("resolve", partial(resolve.to_core, scenario, protocols.load()))
    return steps.row([f"{entries:,} entries, count = {count:,}", "1", f"{entries * count:,}"])


def main(arguments: list[str]) -> None:
    """Print the table, or the row of one network."""
    if arguments[:1] == ["--one"]:
        entries, count = map(int, arguments[1:])
        print(flows(entries, count) if count else fat_tree(entries))
        return
    sizes = [int(word) for word in arguments] or SIZES
    seconds = [f"{step} s" for step in STEPS]
    names = ("network", "links", "flows", *seconds, "files MB", "page MB", "memory MB")
    print(f"| {' | '.join(names)} |\n|{'---|' + '--:|' * (len(names) - 1)}", flush=True)
    for point in [*((k, 0) for k in sizes), (ENTRIES, 1), (1, COUNT)]:
        one: list[Any] = [sys.executable, __file__, "--one", *map(str, point)]
        subprocess.run(one, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
