"""Directories that commands wrote, one of each kind, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from waterfill.analysis import compare
from waterfill.runs import backends
from waterfill.scenario.loading import from_toml

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
    comparison = compare.of(results)
    comparison.write(comparison.document(), folder)
    return folder
