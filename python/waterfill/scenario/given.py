"""Keys of a scenario that have another value than their default, for notes and refusals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from waterfill.errors import InputError
from waterfill.scenario.document import SECTIONS, Scenario

# A note names so many keys and counts the others.
_NAMED = 3


def keys(scenario: Scenario, section: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the key path of each value of a section that is not its default, such as
    `flow.long.size`.
    """
    fields = SECTIONS[section].model_fields
    for index, entry in enumerate(getattr(scenario, section)):
        for name in names:
            if getattr(entry, name) != fields[name].default:
                yield f"{scenario.key(section, index)}.{name}"


def flow_sources(scenario: Scenario) -> list[str]:
    """Return the key paths of the [[traffic]] entries that start flows."""
    return [
        scenario.key("traffic", index)
        for index, entry in enumerate(scenario.traffic)
        if entry.starts_flows
    ]


# Keys of a run that no analysis of a scenario reads.
_RUN = frozenset({
    "measure", "sample", "series", "step", "check_step", "rto_min", "syn_rto", "rttvar_min",
    "ip_version", "base_rtt_window",
})  # fmt: skip


def refuse_unread(scenario: Scenario, command: str, more: Iterable[str] = ()) -> None:
    """Raise InputError for a key of the command line that only a run reads. `more` are further keys
    that the command does not read.
    """
    unread = _RUN.union(more)
    for key in scenario.set_keys:
        if key.split(".")[0] in unread:
            raise InputError("command line", key, f"no effect on {command}", "remove it")


def listed(found: list[str]) -> str:
    """Return key paths as words: the first three, and the number of the others."""
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {more} more" if more > 0 else "")
