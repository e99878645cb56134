"""Study `kernel-certificates`: check steps of routers and hosts in the running kernel."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from validation.certificates.fixed.laws import verify
from validation.certificates.kernel import hosts, routers
from validation.certificates.replay import Verdict
from validation.study import Need, Option, Options, Report, Study
from validation.tables import markdown
from waterfill.runs.files import make_directory


def work(options: Options) -> Report:
    """Log the steps of each law's routers and hosts, and check the logs."""
    rows, failed = [], []
    with tempfile.TemporaryDirectory(prefix="waterfill-certificates-") as name:
        folder = Path(name)
        for law, logs in _logs(options, folder):
            verdicts = [verify(log) for log in logs]
            wrong = next((str(v.wrong) for v in verdicts if v.wrong is not None), None)
            rows.append(_row(law, verdicts, wrong))
            failed += [] if wrong is None else [f"{law}: {wrong}"]
        if options.keep is not None:
            target = make_directory(Path(options.keep))
            for log in folder.glob("*.steps"):
                shutil.copy(log, target)
    return Report(markdown("law|steps:|by call|not logged:|result", rows), failed=failed)


def _logs(options: Options, folder: Path) -> Iterator[tuple[str, Sequence[Path]]]:
    for law in routers.ROUTERS:
        yield f"{law}, routers", routers.recorded(law, options.steps, folder)
    for law in hosts.laws():
        yield f"{law}, hosts", hosts.recorded(law, options.seconds, folder)


def _row(law: str, verdicts: Sequence[Verdict], wrong: str | None) -> list[object]:
    calls: Counter[str] = Counter()
    for verdict in verdicts:
        calls.update({call: n for (_, _, call), n in verdict.counts.items()})
    by_call = ", ".join(f"{n} {call}" for call, n in calls.most_common())
    dropped = sum(verdict.dropped for verdict in verdicts)
    return [law, calls.total(), by_call, dropped, wrong or "accepted"]


STUDY = Study[Any, Any](
    shows="steps of every law's routers and hosts in the kernel against equations in whole numbers",
    minutes=9,
    needs=(Need("root, waterfilld, bpftool", lambda: routers.lacking() or hosts.lacking()),),
    options=(
        Option("--steps", 300_000, "steps of each law's routers", low=1),
        Option("--seconds", 10.0, "seconds of traffic between each law's hosts", low=0.1),
        Option("--keep", None, "keep the logs in this directory"),
    ),
    quick={"steps": 2000, "seconds": 1.0},
    work=work,
)
