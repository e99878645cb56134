"""The daemons under test: started, changed, killed and stopped as an operator would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validation.soak.network import DEVICES, Network
from waterfill.runs.result import Document
from waterfill.testbed import daemon

# How long the verifier may take for the programs, on a host with other load.
READY_S = 60.0
_END_S = 20.0
_REFUSED = 2


@dataclass(frozen=True)
class Settings:
    """What does not change in a run."""

    program: str
    law: str
    pins: Path
    rate_bps: float
    log: Path


class ServiceError(RuntimeError):
    """The daemon did not start, or did not end, as it must."""


class ServiceRefusal(ServiceError):
    """The host lacks what the daemon needs."""


class Service:
    """`waterfilld host` for both hosts and `waterfilld router` for the router.

    The two are started and stopped together; a change of the target is a restart.
    """

    restarts = True
    """Whether a change of the target ends the process."""

    def __init__(self, settings: Settings, network: Network) -> None:
        """Nothing runs until `start`."""
        self._settings, self._network = settings, network
        self._running: list[subprocess.Popen[bytes]] = []
        self._log = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._cookies = [daemon.cookie(host) for host in network.hosts]

    @property
    def pids(self) -> list[int]:
        """The running daemons."""
        return [process.pid for process in self._running]

    def ended(self) -> list[int]:
        """Return the exit codes of daemons that have ended by themselves."""
        return [p.returncode for p in self._running if p.poll() is not None]

    def start(self, target: float) -> None:
        """Start the daemons and wait until they are ready. Raises ServiceError."""
        for arguments in (self._host(), self._router(target)):
            self._running.append(self._start(arguments))
        for process in self._running:
            self._ready(process)

    def change(self, target: float) -> None:
        """Make the routers use another target."""
        self.stop()
        self.start(target)

    def kill(self) -> None:
        """Kill the daemons with SIGKILL."""
        for process in self._running:
            process.kill()
        self._reap()

    def stop(self) -> None:
        """End the daemons by SIGTERM. Raises ServiceError if one does not end well."""
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        codes = self._reap()
        if any(codes):
            raise ServiceError(f"waterfilld ended with {codes} after SIGTERM")

    def status(self) -> Document:
        """Return `waterfilld status --json`, which needs no running daemon."""
        done = subprocess.run(
            [self._settings.program, "status", "--json", "--pins", str(self._settings.pins)],
            capture_output=True, text=True, check=False, timeout=READY_S,
        )  # fmt: skip
        if done.returncode:
            raise ServiceError(f"waterfilld status: {done.stderr.strip()}")
        return dict(json.loads(done.stdout))

    def unload(self) -> None:
        """Remove what is pinned. Raises ServiceError if that fails."""
        with self._network.router.entered():
            done = subprocess.run(
                [self._settings.program, "unload", "--pins", str(self._settings.pins)],
                capture_output=True, text=True, check=False, timeout=READY_S,
            )  # fmt: skip
        if done.returncode:
            raise ServiceError(f"waterfilld unload: {done.stderr.strip()}")

    def _common(self) -> list[str]:
        return ["--pins", str(self._settings.pins), "--line"]

    def _host(self) -> list[str]:
        found = ["host", "--name", self._settings.law, "--unrestricted", *self._common()]
        for cookie in self._cookies:
            found += ["--netns-cookie", str(cookie)]
        return found

    def _router(self, target: float) -> list[str]:
        found = ["router", "--shape", "--target", f"{target:g}", *self._common()]
        for device in DEVICES:
            found += ["--dev", device, "--rate", f"{self._settings.rate_bps:.0f}bit"]
        return found

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._network.router.entered():
            return subprocess.Popen(
                [self._settings.program, *arguments], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=self._log,
            )  # fmt: skip

    def _ready(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        end_s = time.monotonic() + READY_S
        while not process.stdout.read():
            if process.poll() is not None or time.monotonic() > end_s:
                error = ServiceRefusal if process.returncode == _REFUSED else ServiceError
                raise error(f"waterfilld is not ready: {self.last_words()}")
            time.sleep(0.02)

    def last_words(self) -> str:
        """Return the last line of the log."""
        lines = self._settings.log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it wrote nothing"

    def _reap(self) -> list[int]:
        codes = []
        for process in self._running:
            try:
                codes.append(process.wait(_END_S))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise ServiceError(f"waterfilld did not end within {_END_S:g} s") from None
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._running = []
        return codes
