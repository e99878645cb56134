"""The child process that runs points one by one: `python -m waterfill.sweeps.child LIMIT`.

Reads one JSON document per line on standard input, a scenario's text or a point, and answers each
point with one line. It is a process of its own, so that a point that exceeds its memory, crashes
or runs too long ends without its worker. It ends when its parent has gone.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from waterfill.errors import InputError, one_line
from waterfill.network import chance
from waterfill.runs import backends, cache, law_files
from waterfill.runs.directory import next_to, swap
from waterfill.runs.laws import used
from waterfill.runs.progress import Tick
from waterfill.scenario.loading import from_dict
from waterfill.sweeps import measure

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DONE, FAILED, MEMORY = "done", "failed", "memory"
# What refuses a run by its estimate, which counts the limit of this process.
_TOO_LARGE = "of memory are free"


def main() -> int:
    """Run the points read from standard input until the input ends; return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end quietly: the point is run again
    limit = int(sys.argv[1])
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    # What a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    parent = os.getppid()
    bases: dict[str, tuple[dict[str, Any], str, str | None]] = {}

    def orphaned(tick: Tick) -> None:
        if os.getppid() != parent:
            os._exit(1)

    cache.version()
    print("{}", file=answers, flush=True)  # ready
    for line in sys.stdin:
        given = json.loads(line)
        if "text" in given:
            bases[given["base"]] = (_document(given["text"]), given["source"], given.get("laws"))
            continue
        answer = json.dumps(_run(given, *bases[given["base"]], orphaned))
        try:
            answers.write(answer + "\n")
            answers.flush()
        except BrokenPipeError:
            return 1
    return 0


def _document(text: str) -> dict[str, Any]:
    # A wrong text is found before a sweep starts.
    return tomllib.loads(text.replace("\r\n", "\n"))


def _run(
    job: dict[str, Any], document: dict[str, Any], source: str, laws: str | None, report: Any
) -> dict[str, Any]:
    """Run one point; return its row without the key and the axis values."""
    started = time.perf_counter()
    _reset_peak()
    row: dict[str, Any] = {"status": DONE, "error": None}
    try:
        if job["code"] != cache.version():
            raise InputError("worker", "", "runs another version of Waterfill than the front end")
        # As a file, whose name is the scenario's name where it gives none.
        scenario = from_dict(document, source, job["sets"])
        if job["jitter"]:
            scenario = chance.jittered(scenario)
        own = used(law_files.unpack(laws), scenario) if laws else None
        result = backends.run(scenario, on=job["on"], progress=report, laws=own)
        row |= measure.row(result, job["columns"])
        if job["keep"]:
            _keep(result, Path(job["keep"]))
    except MemoryError:
        row = {"status": MEMORY, "error": "exceeded its memory"}
    except (ValueError, RuntimeError, OSError) as error:
        status = MEMORY if _TOO_LARGE in str(error) else FAILED
        row = {"status": status, "error": one_line(str(error))}
    except Exception as error:
        row = {"status": FAILED, "error": one_line(f"{type(error).__name__}: {error}")}
    row["wall_s"] = time.perf_counter() - started
    row["memory_bytes"] = _peak()
    return row


def _keep(result: Any, folder: Path) -> None:
    """Write the run's files atomically, so that the folder is complete or missing."""
    with next_to(folder) as part:
        result.write_into(part)
        swap(part, folder)


def _reset_peak() -> None:
    """Reset the kernel's count of peak memory, if the system allows it."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def _peak() -> int | None:
    """Return the peak resident memory since `_reset_peak` (bytes), or None if unknown."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return None


if __name__ == "__main__":
    sys.exit(main())
