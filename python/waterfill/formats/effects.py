"""Table of the options of `import` and `generate` that take effect, by source and by traffic.

An option that would change nothing is refused. `--duration`, `--protocol`, `--seed` and `-o` take
effect with every source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waterfill.errors import InputError, nearest, shown

PATTERNS = ("demands", "gravity", "permutation", "all-to-all", "incast", "none")
# Of flows that arrive at random.
ARRIVING = ("all-to-all", "permutation", "incast")

TRAFFIC: Mapping[str, Sequence[str]] = {
    "--traffic demands": ("--traffic", "--load", "--count", "--size"),
    "--traffic gravity": ("--traffic", "--pairs", "--load", "--count", "--size"),
    "--traffic permutation": ("--traffic", "--count", "--size"),
    "--traffic all-to-all": ("--traffic", "--count", "--size"),
    "--traffic incast": ("--traffic", "--pairs", "--count", "--size"),
    "--traffic none": ("--traffic",),
    "--flows": ("--flows", "--origin", "--count"),
    "--sizes and --traffic all-to-all": ("--sizes", "--traffic", "--load"),
    "--sizes and --traffic permutation": ("--sizes", "--traffic", "--load"),
    "--sizes and --traffic incast": ("--sizes", "--traffic", "--load", "--pairs"),
}
"""Options that take effect, by the options that choose the traffic."""

LINKS = ("--rate", "--delay", "--oversubscription", "--unit", "--delay-unit", "--bin", "--shift")
ALL = (
    *LINKS,
    "--traffic",
    "--flows",
    "--origin",
    "--sizes",
    "--pairs",
    "--load",
    "--count",
    "--size",
)


def kind(given: Mapping[str, object], own: str) -> str:
    """Return the key in TRAFFIC of these options. `own` is the source's usual pattern.

    Raises InputError for an unknown pattern.
    """
    if "--flows" in given:
        return "--flows"
    arriving = "--sizes" in given
    pattern = given.get("--traffic", ARRIVING[0] if arriving else own)
    known = ARRIVING if arriving else PATTERNS
    if pattern not in PATTERNS:
        why = f"unknown kind {shown(pattern)}{nearest(str(pattern), known)}"
        raise InputError("--traffic", "", why)
    if pattern not in known:
        why = f"must be one of {', '.join(known)} with --sizes, got {pattern}"
        raise InputError("--traffic", "", why)
    return f"--sizes and --traffic {pattern}" if arriving else f"--traffic {pattern}"


def check(given: Mapping[str, object], able: Sequence[str], reason: str) -> None:
    """Raise InputError for the first given option that is not among those that take effect."""
    for option in ALL:
        if option in given and option not in able:
            value = given[option]
            got = "" if value is True else f", got {shown(str(value))}"  # a flag has no value
            raise InputError(option, "", f"no effect {reason}{got}", "remove it")
