"""Contents of the page docs/reference/kernels.md: features, checks and refusals of each kernel."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validation.kernels.judge import LAWS, Check, exit_of, present, sentence
from validation.tables import markdown

HEAD = """\
# Kernels

Written by `make validate STUDY=kernels`. Debian's kernels are booted under QEMU's own emulation;
"running" is the kernel of the host that ran it. What a feature is for, and what the daemon does
without it, is in [the daemon's reference](daemon.md#kernels).
"""


@dataclass(frozen=True)
class KernelRun:
    """A kernel, with the facts that its checks printed and the verdicts on them."""

    series: str
    facts: Mapping[str, str]
    checks: Sequence[Check]

    @property
    def probe(self) -> dict[str, object]:
        """Document printed by `waterfilld probe --json`."""
        try:
            return dict(json.loads(self.facts.get("probe", "")))
        except json.JSONDecodeError:
            return {}

    @property
    def title(self) -> str:
        """Version of the kernel, as a column heading."""
        where = " (running)" if self.series == "running" else ""
        return f"{self.probe.get('kernel', self.series)}{where}"


def _features(runs: Sequence[KernelRun]) -> str:
    held = [present(run.probe) for run in runs]
    names = dict.fromkeys(name for one in held for name in one)
    # What is mounted is a matter of the host, not of its kernel.
    kernel = [name for name in names if not name.startswith(("control groups", "mounted"))]
    rows = [[name, *("yes" if one.get(name) else "no" for one in held)] for name in kernel]
    return markdown("|".join(["feature", *(run.title for run in runs)]), rows) + "\n"


def _laws(checks: Sequence[Check]) -> list[Check]:
    """Return the checks, with the checks of all laws merged into one. The merged check lists the
    laws that fail to load.
    """
    names = {f"`{role} --law {law}`" for role in ("router", "host") for law in LAWS}
    of_laws = [check for check in checks if check.name in names]
    bad = [f"{check.name}: {check.seen}" for check in of_laws if check.verdict != "works"]
    whole = Check("all nine laws load, in both roles", "fails" if bad else "works", "; ".join(bad))
    merged = []
    for check in checks:
        if check.name not in names:
            merged.append(check)
        elif whole not in merged:
            merged.append(whole)
    return merged


def _cell(check: Check | None) -> str:
    if check is None:
        return "not run"
    # Numbers of packets differ from run to run; what is refused, left or skipped is the kernel's.
    if check.verdict == "works":
        return check.seen if check.seen.startswith(("stays", "skips")) else "yes"
    return check.verdict if check.verdict == "refused" else f"**fails**: {check.seen}"


def _checks(runs: Sequence[KernelRun]) -> str:
    merged = [{check.name: check for check in _laws(run.checks)} for run in runs]
    names = dict.fromkeys(name for one in merged for name in one)
    rows = [[name, *(_cell(one.get(name)) for one in merged)] for name in names]
    return markdown("|".join(["", *(run.title for run in runs)]), rows) + "\n"


def _wrapped(text: str, first: str, others: str) -> str:
    """Return a paragraph wrapped to the width of the docs."""
    lines = textwrap.wrap(
        text, 120, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )
    return "".join(f"{line}\n" for line in lines)


def _refusals(runs: Sequence[KernelRun]) -> str:
    """Return a list item for each refusal message, with the checks that it concerns."""
    said: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        for check in run.checks:
            if check.verdict == "refused":
                said.setdefault((run.title, check.seen), []).append(check.name)
    return "".join(
        _wrapped(f'{title}, {", ".join(names)}: "{seen}"', "- ", "  ")
        for (title, seen), names in said.items()
    )


def page(runs: Sequence[KernelRun], oldest: KernelRun | None) -> str:
    """Return the text of docs/reference/kernels.md. `oldest` is a kernel that the daemon must
    refuse.
    """
    parts = [HEAD, "## Features\n", _features([*([oldest] if oldest else []), *runs])]
    parts += ["## Tried\n", _checks(runs)]
    parts += [
        "A flow crosses a router and 40 ms, there and back together, at 5 Mbit/s: a guest without\n"
        "KVM is slow. What a killed process leaves, `unload` removes. Each law is loaded in both\n"
        "roles; its rates are checked [elsewhere](../validation/linux-laws.md).\n\n"
        "The ends of 1,024 short connections show whether the kernel runs the law's programs each\n"
        "time. [What the daemon does]"
        "(../validation/maxnet-on-linux.md#connections-without-an-init)\n"
        "where one does not.\n"
    ]
    refused = _refusals(runs)
    if refused:
        parts += ["## Refused\n", refused]
    if oldest:
        said = [
            f"`waterfilld {role}`:\n\n"
            + _wrapped(sentence(exit_of(oldest.facts.get(role))[1]), "> ", "> ")
            for role in ("router", "host")
        ]
        parts += [f"## Too old\n\n{oldest.title}, Debian 11's, is refused with exit 2.\n", *said]
    return "\n".join(parts)
