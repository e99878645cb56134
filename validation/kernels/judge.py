"""Turn the facts that checks.sh printed into one verdict per check."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Facts: TypeAlias = Mapping[str, str]
Verdict: TypeAlias = Literal["works", "refused", "fails"]

LAWS = ("maxnet", "maxnet2006", "aecp", "rcp", "vcp", "xcp", "pxcp", "ixcp", "jetmax")
# Short connections of checks.sh. Both ends run the law.
CONNECTIONS = 1024
# A role that ends by a signal: what may be left until `unload`.
ENDS = {
    "host-term": "`host --no-pin`, SIGTERM",
    "host-kill": "`host --no-pin`, `kill -9`",
    "router-term": "`router --no-pin`, SIGTERM",
    "router-kill": "`router --no-pin`, `kill -9`",
}
OPTIONS = {
    "cohabit-improved": "`router --cohabit improved`",
    "cohabit-paper": "`router --cohabit paper`",
    "cohabit-separate": "`router --cohabit improved --separate`",
    "scone": "`router --scone`",
    "csig": "`csig --inside --edge`",
    "csig-end": "`csig --end`",
}


@dataclass(frozen=True)
class Check:
    """A check with its verdict and the observation behind it."""

    name: str
    verdict: Verdict
    seen: str = ""


def exit_of(fact: str | None) -> tuple[int, str]:
    """Return the exit code and last line of a command in checks.sh, or 255 if it was not run."""
    if fact is None:
        return 255, "not run"
    code, _, line = fact.partition(" ")
    return int(code), line


def sentence(line: str) -> str:
    """Return an error message without the program's name."""
    return line.removeprefix("waterfilld: ")


def command(name: str, fact: str | None) -> Check:
    """Judge a command by its exit code: 0 means `works`, 2 with an error message means `refused`,
    and any other code means `fails`.
    """
    code, line = exit_of(fact)
    if code == 0:
        return Check(name, "works")
    if code == 2 and line.startswith("waterfilld: "):
        return Check(name, "refused", sentence(line))
    return Check(name, "fails", sentence(line) or f"exit {code}")


def _document(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except json.JSONDecodeError:
        return {}


def _flow(name: str, fact: str | None) -> Check:
    status = _document(fact)
    senders = [f for f in status.get("flows") or [] if f.get("remote", "").endswith(":5201")]
    priced = [flow for flow in senders if flow.get("mode") == "priced"]
    marked = sum(link.get("marked", 0) for link in status.get("links") or [])
    if priced and marked:
        return Check(name, "works", f"{marked} packets marked")
    modes = ", ".join(str(f.get("fallback_reason") or f.get("mode")) for f in senders) or "no flow"
    return Check(name, "fails", f"{modes}; {marked} packets marked")


def _connections(name: str, fact: str | None) -> Check:
    counters = _document(fact).get("counters") or {}
    started, without = counters.get("started", 0), counters.get("control_without_init", 0)
    if started < CONNECTIONS:
        return Check(name, "fails", f"the law ran for {started} ends")
    # The daemon works without: docs/validation/maxnet-on-linux.md.
    return Check(name, "works", f"skips {without} of {started}" if without else f"{started} ends")


def _left(name: str, fact: str | None, *, allowed: bool = False) -> Check:
    if fact is None:
        return Check(name, "fails", "not run")
    if not fact:
        return Check(name, "works", "nothing stays")
    return Check(name, "works" if allowed else "fails", f"stays: {', '.join(fact.split())}")


def _end(key: str, name: str, facts: Facts) -> Iterator[Check]:
    # What a killed process leaves may stay until `unload`. A start must work after it.
    yield _left(name, facts.get(f"{key}-left"), allowed=key.endswith("kill"))
    yield _left(f"{name}, then `unload`", facts.get(f"{key}-unload-left"))
    yield command(f"{name}, then a start", facts.get(f"{key}-start"))


def _without_modules(facts: Facts) -> Check:
    name = "`probe` where modules are loaded and /lib/modules is absent"
    code, line = exit_of(facts.get("probe-without-modules"))
    if code != 0:
        return Check(name, "fails", line)
    was = present(_document(facts.get("probe")))
    now = present(_document(line))
    lost = [feature for feature, here in was.items() if here and not now.get(feature)]
    return Check(name, "fails" if lost else "works", f"denies {', '.join(lost)}" if lost else "")


def present(probe: Mapping[str, Any]) -> dict[str, bool]:
    """Return the presence of each feature in the document of `probe --json`."""
    return {feature["name"]: feature["present"] for feature in probe.get("features", [])}


def judge(facts: Facts) -> list[Check]:
    """Return the verdicts on a supported kernel, in the order of the checks."""
    checks = [command("`router`", facts.get("router")), command("`host`", facts.get("host"))]
    if exit_of(facts.get("router"))[0] == 0:
        checks += [
            _flow("a flow of 5 Mbit/s and 40 ms is priced", facts.get("status")),
            command("`router` again, under the flow", facts.get("router-again")),
            command("`host` again, under the flow", facts.get("host-again")),
            _flow("the flow stays priced", facts.get("status-again")),
            command("the flow ends without an error", facts.get("flow")),
            _connections("the law's `init()` runs for each connection", facts.get("connections")),
            _left("`unload`", facts.get("unload-left")),
        ]
    for key, name in ENDS.items():
        checks += _end(key, name, facts)
    checks.append(_without_modules(facts))
    for law in LAWS:
        for role in ("router", "host"):
            checks.append(command(f"`{role} --law {law}`", facts.get(f"law-{role}-{law}")))
    checks += [command(name, facts.get(key)) for key, name in OPTIONS.items()]
    checks.append(_left("`router --scone`, then `unload`", facts.get("scone-left")))
    checks.append(_left("`csig`, then `csig --off`", facts.get("csig-left")))
    warning = facts.get("warnings", "not read")
    checks.append(Check("no warning of the kernel", "fails" if warning else "works", warning))
    if facts.get("exit") != "0":
        checks.append(Check("the guest ends", "fails", "it hung, or its script failed"))
    return checks


def judge_oldest(facts: Facts) -> list[Check]:
    """Return the verdicts on an unsupported kernel, where each role must refuse with
    exit code 2.
    """
    checks = []
    for role in ("router", "host"):
        one = command(f"`{role}`", facts.get(role))
        if one.verdict == "works":
            one = Check(one.name, "fails", "loads, although the docs say that it is refused")
        checks.append(one)
    return checks
