"""Settings of a run in the studio, as a value and as the query of a link that restores them.

The query's keys are those of the command line: `scenario`, `protocol`, `on`, and `set` once for
each key that differs from the scenario's (`set=link.first.rate=1 Gbit/s`). A drawn network has
`link` and `flow` once for each row. `pin` holds the query of the run beside.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

import tomli_w

from waterfill.errors import InputError, nearest, shown
from waterfill.network import protocols
from waterfill.network.protocols import Protocols
from waterfill.scenario import loading
from waterfill.scenario.document import Scenario
from waterfill.studio import drawn, shipped
from waterfill.studio.drawn import Drawing

DRAWN = "drawn"
"""Name of the scenario that is drawn with the form."""


def known() -> Protocols:
    """Return the protocols of this build by name."""
    return protocols.load()


BACKENDS = ("auto", "fluid", "sim")


@dataclass(frozen=True)
class Settings:
    """Settings of one run: a scenario, a protocol (None for the scenario's), changed keys, a
    backend.

    `sets` are keys and values as after `--set`. `on` is "auto" for what answers at once.
    """

    scenario: str = "dumbbell"
    protocol: str | None = None
    sets: tuple[tuple[str, str], ...] = ()
    on: str = "auto"
    drawing: Drawing | None = None

    def with_set(self, key: str, value: str | None) -> Settings:
        """Return the settings with one key changed, or reset to the scenario's value if `value` is
        None.
        """
        kept = tuple((k, v) for k, v in self.sets if k != key)
        return replace(self, sets=kept if value is None else (*kept, (key, value)))

    def with_scenario(self, name: str) -> Settings:
        """Return the settings for another scenario, without changes to keys of links and flows."""
        kept = tuple((k, v) for k, v in self.sets if k.startswith("params."))
        drawing = (self.drawing or drawn.START) if name == DRAWN else None
        return replace(self, scenario=name, sets=kept, drawing=drawing)

    def assignments(self) -> list[str]:
        """Return the `--set` arguments for the command line, including the protocol."""
        chosen = [] if self.protocol is None else [f"protocol={self.protocol}"]
        return [*chosen, *(f"{key}={value}" for key, value in self.sets)]

    def text(self) -> str:
        """Return the scenario's TOML without the changes; raise InputError if the scenario is
        unknown.
        """
        if self.drawing is not None:
            return tomli_w.dumps(drawn.document(self.drawing))
        return shipped.text(self.scenario)

    def load(self) -> Scenario:
        """Return the checked scenario with all changes; raise InputError for an invalid change."""
        return loading.from_toml(self.text(), f"{self.scenario}.toml", self.assignments())

    def command(self) -> str:
        """Return the command line that repeats the run with the scenario saved as S.toml."""
        words = ["waterfill", "run", "S.toml"]
        if self.protocol is not None:
            words += ["--protocol", self.protocol]
        for key, value in self.sets:
            words += ["--set", shlex.quote(f"{key}={value}")]
        return " ".join([*words, "--on", self.on] if self.on != "auto" else words)


def to_query(settings: Settings, pinned: Settings | None = None) -> str:
    """Return the URL query that restores the settings and any pinned run."""
    pairs = [("scenario", settings.scenario)]
    if settings.protocol is not None:
        pairs.append(("protocol", settings.protocol))
    if settings.on != "auto":
        pairs.append(("on", settings.on))
    pairs += [("set", f"{key}={value}") for key, value in settings.sets]
    if settings.drawing is not None:
        links, flows = drawn.to_rows(settings.drawing)
        pairs += [("link", row) for row in links] + [("flow", row) for row in flows]
    if pinned is not None:
        pairs.append(("pin", to_query(pinned)))
    return urlencode(pairs)


def from_query(query: str | Mapping[str, str | Sequence[str]]) -> tuple[Settings, Settings | None]:
    """Read a URL query, given as text or by key; return the settings and the pinned run.

    Raises InputError for an unknown scenario or backend, or a value that cannot be read. Keys that
    are not the studio's are left out.
    """
    found = _values(query)
    pin = _one(found, "pin")
    return _settings(found), None if pin is None else _settings(_values(pin))


def _values(query: str | Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """Return a URL query's values by key."""
    if not isinstance(query, str):
        return {k: [v] if isinstance(v, str) else list(v) for k, v in query.items()}
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(query)
    except ValueError as error:
        raise InputError("studio", "link", f"not a query: {error}") from None
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _settings(found: Mapping[str, list[str]]) -> Settings:
    name, on = _one(found, "scenario") or Settings.scenario, _one(found, "on") or "auto"
    drawing: Drawing | None = None
    if name == DRAWN:
        links, flows = drawn.to_rows(drawn.START)
        drawing = drawn.from_rows(found.get("link", links), found.get("flow", flows))
    elif name not in shipped.names():
        known = [*shipped.names(), DRAWN]
        why = f"unknown scenario {shown(name)}{nearest(name, known)}"
        raise InputError("studio", "scenario", why)
    if on not in BACKENDS:
        raise InputError("studio", "on", f"unknown backend {shown(on)}{nearest(on, BACKENDS)}")
    sets = tuple(_pair(text) for text in found.get("set", []))
    return Settings(name, _one(found, "protocol"), sets, on, drawing)


def _one(found: Mapping[str, Sequence[str]], key: str) -> str | None:
    values = found.get(key)
    return values[-1] if values else None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InputError("studio", "set", f"must be KEY=VALUE, got {shown(text)}")
    return key, value


def scenario_toml(settings: Settings) -> str:
    """Return the scenario with all changes as TOML, ready for `waterfill run`."""
    return settings.load().to_toml()


def document_of(scenario: Scenario) -> dict[str, Any]:
    """Return a checked scenario as a dictionary in file form, with every default filled in."""
    return loading.read_toml(scenario.to_toml())
