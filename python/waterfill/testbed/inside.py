"""The process tree of one run, which builds the network, runs the traffic and samples counters.

`python -m waterfill.testbed.inside`, started by `front`. Standard input is the job as one JSON
line, then `stop` to end early; closing it kills the tree. Standard output is JSON lines, each with
one of the keys `progress` (seconds), `result`, `error`, `refused` (by a daemon: wrong input).
"""

from __future__ import annotations

import json
import os
import select
import time
import traceback
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from waterfill.runs.result import Document, finite
from waterfill.testbed import isolate
from waterfill.testbed.answer import (
    Answer,
    HoldEntry,
    PlanEntry,
    PricingEntry,
    ShaperEntry,
    StreamEntry,
)

_READY_S = 10.0
_PROGRESS_S = 0.2
# Before time 0, in addition to the clients' own lead, so that everything has started by then.
_SETTLE_S = 0.05


def main() -> None:
    """Run the job read from standard input, and exit."""
    isolate.enter()
    output = os.fdopen(os.dup(1), "w", buffering=1)

    def say(**message: Any) -> None:
        output.write(json.dumps(finite(message)) + "\n")

    code = 0
    try:
        job = json.loads(_line())
        say(result=_Run(job, say).result())
    except Exception as error:  # of any kind: the front end reports it
        from waterfill.testbed.daemon import DaemonRefusal

        if isinstance(error, DaemonRefusal):
            say(refused=str(error))
        else:
            say(error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
        code = 1
    output.close()
    # The kernel kills the rest of the tree with its init; threads are not waited for.
    os._exit(code)


def _prioritise_sampling() -> None:
    """Give this process real-time priority for sampling. Child processes keep normal priority."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))


def _line() -> str:
    """Read a line of standard input without buffering, so that `select` sees the next one."""
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(0, 1 if data else 1 << 16)
        if not piece:
            os._exit(1)
        data += piece
        while len(piece) == 1 << 16 and not data.endswith(b"\n"):
            piece = os.read(0, 1 << 16)
            data += piece
    return data.decode()


class _Run:
    def __init__(self, job: Document, say: Any) -> None:
        from waterfill.contract.network import Network
        from waterfill.scenario.loading import from_toml
        from waterfill.testbed import checks, plan
        from waterfill.testbed.bed import RunNetwork
        from waterfill.testbed.flows import Running

        self.say = say
        self.resolved = Network.from_dict(job["network"])
        scenario = from_toml(job["scenario"])
        laws = {name: plan.Congestion(**law) for name, law in job["congestion"].items()}
        self.plan = plan.of(scenario, self.resolved, laws, job["targets"])
        self.bed = RunNetwork(self.plan, job["params"])
        self.topology, self.line = self.bed.topology, self.bed.line
        self.running = [Running(s, self.topology, n) for n, s in enumerate(self.plan.streams)]
        for running in self.running:
            running.prepare()
        self._wait_until_ready()
        self.base_rtts = checks.base_rtts(self.topology)
        self.before = checks.facts(self.topology)

    def _wait_until_ready(self) -> None:
        end_s = time.monotonic() + _READY_S
        for running in self.running:
            while not running.ready:
                listener = running.listener
                if time.monotonic() > end_s or (listener and listener.poll() is not None):
                    name = running.stream.name
                    raise RuntimeError(f"the server of {name} does not listen")
                time.sleep(0.005)

    def result(self) -> Answer:
        from waterfill.testbed import delayline, sampling, variation

        duration_s = self.resolved.duration_s
        sample_s = self.resolved.sample_s
        lead_s = max(running.lead_s for running in self.running)
        start_s = time.monotonic() + lead_s + _SETTLE_S
        sampler = sampling.Sampler(
            self.topology, self.line, self.bed.laws, sample_s=sample_s, start_s=start_s
        )
        actions = [(r.stream.start_s - r.lead_s, n, r.start) for n, r in enumerate(self.running)]
        actions += [
            (r.stream.stop_s, n, r.stop) for n, r in enumerate(self.running)
            if r.stream.stop_s < duration_s
        ]  # fmt: skip
        links = variation.Variation(self.plan, self.resolved, self.topology, self.bed.laws)
        changes = links.actions(sampler.now_s)
        actions += [(at_s, -1 - n, act) for n, (at_s, act) in enumerate(changes)]
        if self.line is not None:
            self.line.start(time.time_ns() + round((start_s - time.monotonic()) * 1e9))
        actions.sort(key=lambda action: action[:2])
        load_before = sampling.host_load()
        _prioritise_sampling()
        delayline.join_line_cpu()
        coarse_n, fine_next_s, progress_s = 0, 0.0, 0.0
        stopped_s: float | None = None
        while True:
            now_s = sampler.now_s()
            coarse_s = min(coarse_n * sample_s, duration_s)
            wait_s = min(coarse_s, fine_next_s, actions[0][0] if actions else coarse_s) - now_s
            if wait_s > 0:
                if select.select([0], [], [], wait_s)[0]:
                    if not os.read(0, 4096):
                        os._exit(1)  # the front end has ended
                    stopped_s = sampler.now_s()
                    sampler.take()
                    break
                continue
            if actions and actions[0][0] <= now_s:
                with delayline.on_hosts_cpus():
                    actions.pop(0)[2]()
            if coarse_s <= now_s:
                sampler.take()
                if coarse_s >= duration_s:
                    break
                coarse_n = max(coarse_n + 1, int(now_s / sample_s))
            if fine_next_s <= now_s:
                sampler.take_fine()
                fine_next_s = max(fine_next_s + sampler.fine_s, now_s)
                if now_s > progress_s + _PROGRESS_S:
                    progress_s = now_s
                    self.say(progress=now_s)
        load_after = sampling.host_load()
        samples = sampler.finish()
        answer = Answer(
            plan=PlanEntry(
                namespaces=self.plan.namespaces,
                streams=[StreamEntry.read(asdict(s)) for s in self.plan.streams],
                shapers=[ShaperEntry.read(asdict(s)) for _, s in self.plan.shapers()],
                holds=[HoldEntry.read(asdict(h)) for h in self.plan.holds()],
                pricings=[PricingEntry.read(asdict(p)) for p in self.plan.pricings],
            ),
            samples=samples,
            troubles=[r.trouble() for r in self.running],
            transfers=[r.transfer() for r in self.running],
            base_rtts_s=self.base_rtts,
            facts=self.before,
            machine=[load_before, load_after],
            changes=links.applied(start_s),
            host_drops=sampling.host_drops(self.topology),
            delay_line=None if self.line is None else self.line.stats(),
            interrupted_at_s=stopped_s,
        )
        for running in self.running:
            running.stop()
        self.bed.close()
        return answer


if __name__ == "__main__":
    main()
