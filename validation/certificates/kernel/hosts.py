"""Logs of hosts in the kernel that send to each other over one testbed link."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from validation.certificates.fixed.laws import LAYOUTS
from validation.testbed.maxnet_special import bed, isolated, listen, streams
from waterfill.errors import RunError
from waterfill.runs.result import Document
from waterfill.testbed import checks, daemon
from waterfill.testbed.daemon import Daemon, Laws

# The laws whose hosts can be logged, with the parameters of each log: the second selects other
# equations. With its own parameters AECP needs seconds to start.
_AECP = {"x_0": 1000, "t_2": "10 ms", "beta": 5}
_XCP: tuple[Mapping[str, Any], Mapping[str, Any]] = (
    {},
    {"first_window": 4, "halve_on_loss": False},
)
HOSTS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "maxnet": ({}, {"average": False, "compensate": False, "order": "rate-first"}),
    "maxnet2006": (
        {},
        {"rtt_unit": "100 us", "average": False, "wnd_update_freq": 3, "compensate": False},
    ),
    "rcp": ({}, {"first_rate": 0.2}),
    "aecp": (_AECP, {**_AECP, "form": "exact", "step": "acknowledgement"}),
    "vcp": ({}, {"freeze": "overload", "alpha": 2, "beta": 0.75}),
    **dict.fromkeys(("xcp", "pxcp", "ixcp"), _XCP),
    "jetmax": ({}, {"tau": 0.3, "epsilon": 0.1}),
}


def laws() -> list[str]:
    """Return the laws whose hosts have equations."""
    return [law for law in HOSTS if "source" in LAYOUTS[law]]


def lacking() -> str | None:
    """Return the requirements that this host lacks for logging hosts in the kernel, or None."""
    return checks.missing(http=True) or (None if daemon.binary() else "waterfilld")


def scenario(law: str, params: Mapping[str, Any]) -> Document:
    """Return a scenario with unlimited, application-limited and short flows in both directions."""
    link = {"name": "l", "from": "r1", "to": "r2", "rate": "50 Mbit/s", "delay": "2 ms",
            "buffer": "100 kB"}  # fmt: skip
    kinds: Mapping[str, Document] = {
        "bulk": {"count": 2}, "paused": {"demand": "3 Mbit/s"}, "short": {"size": "200 kB"},
    }  # fmt: skip
    flows = [
        {"name": f"{name}-{way}", "path": [path], **kind}
        for way, path in (("there", "l"), ("back", "l:rev"))
        for name, kind in kinds.items()
    ]
    return {"duration": "600 s", "protocol": law, "params": {law: dict(params)}, "link": [link],
            "flow": flows}  # fmt: skip


def recorded(law: str, seconds: float, folder: Path) -> list[Path]:
    """Run a law under traffic, once per set of parameters, and return the hosts' logs.

    Raises RunError if it fails.
    """
    files = [folder / f"{law}-host-{number}.steps" for number in range(len(HOSTS[law]))]
    for file, params in zip(files, HOSTS[law], strict=True):
        isolated(f"hosts of {law}", partial(_record, scenario(law, params), seconds, file))
    return files


def _record(document: Document, seconds: float, file: Path) -> None:
    class Logging(Laws):
        def start(self, namespace: int, arguments: list[str]) -> Daemon:
            more = ["--log-steps", str(file)] if arguments[0] == "host" else []
            return super().start(namespace, [*arguments, *more])

    on = bed(document, laws=Logging)
    running = streams(on)
    for one in running:
        listen(one)
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        for one in running:
            if one.sender is None or one.transfer() is not None:  # a download begins again
                one.start()
            elif trouble := one.trouble():
                raise RunError(trouble)
        time.sleep(0.02)
    for one in running:
        one.stop()
    on.close()
