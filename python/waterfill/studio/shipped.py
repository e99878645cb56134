"""The studio's scenarios: the templates of `waterfill new`, and the scenarios of its tours."""

from __future__ import annotations

from functools import cache
from importlib import resources

from waterfill.errors import InputError, nearest, shown
from waterfill.scenario import templates

_FOLDER = "scenarios"


@cache
def names() -> tuple[str, ...]:
    """Return the names of all built-in scenarios: first the templates, then the scenarios of
    tours.
    """
    folder = resources.files("waterfill.studio") / _FOLDER
    files = folder.iterdir() if folder.is_dir() else ()
    own = (f.name for f in files if f.name.endswith(templates.SUFFIX))
    return (*templates.names(), *sorted(name.removesuffix(templates.SUFFIX) for name in own))


@cache
def text(name: str) -> str:
    """Return a scenario's TOML text; raise InputError for an unknown name."""
    if name in templates.names():
        return templates.text(name)
    if name not in names():
        why = f"unknown scenario {shown(name)}{nearest(name, names())}"
        raise InputError("studio", "scenario", why)
    path = resources.files("waterfill.studio") / _FOLDER / f"{name}{templates.SUFFIX}"
    return path.read_text(encoding="utf-8")


def title(name: str) -> str:
    """Return the first line of a scenario without its comment sign."""
    return text(name).partition("\n")[0].lstrip("# ")
