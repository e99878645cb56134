"""Commented scenarios to start from, one TOML file each in this folder."""

from __future__ import annotations

from functools import cache
from importlib import resources

from waterfill.errors import InputError, nearest

SUFFIX = ".toml"


@cache
def names() -> tuple[str, ...]:
    """Return the names of the templates, sorted."""
    files = resources.files(__name__).iterdir()
    return tuple(sorted(f.name.removesuffix(SUFFIX) for f in files if f.name.endswith(SUFFIX)))


def text(name: str) -> str:
    """Return a template's text; raise InputError for an unknown name."""
    if name not in names():
        raise InputError("new", name, f"unknown template{nearest(name, names())}")
    return (resources.files(__name__) / f"{name}{SUFFIX}").read_text(encoding="utf-8")


def title(name: str) -> str:
    """Return a template's first line without its comment sign."""
    return text(name).partition("\n")[0].lstrip("# ")
