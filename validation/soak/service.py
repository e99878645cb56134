"""Control of the daemon under test: start, reload, kill and stop, as an operator would do it."""

from __future__ import annotations

import http
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from validation.soak.network import DEVICES, Network
from waterfill.runs.result import Document
from waterfill.testbed import daemon

# How long the verifier may take for the programs, on a host with other load.
READY_S = 300.0
_END_S = 20.0
_REFUSED = 2
_METRICS = ("127.0.0.1", 9465)


@dataclass(frozen=True)
class Settings:
    """Settings of the daemon, which are constant during a run."""

    program: str
    law: str
    folder: Path
    """Folder of the configuration file, the log and the sockets."""
    pins: Path
    rate_bps: float

    @property
    def config(self) -> Path:
        """Path of the configuration file."""
        return self.folder / "waterfilld.toml"

    @property
    def control(self) -> Path:
        """Path of the control socket."""
        return self.folder / "control" / "control.sock"

    @property
    def log(self) -> Path:
        """Path of the daemon's log."""
        return self.folder / "log"


class ServiceError(RuntimeError):
    """Error for a daemon that does not start, reload or stop."""


class ServiceRefusal(ServiceError):
    """Error for a host that lacks a feature that the daemon needs."""


def configuration(
    settings: Settings, cookies: list[int], target: float, *, routed: bool = True
) -> str:
    """Return the daemon's configuration, with the law for both hosts and, if `routed`, both devices
    of the router.
    """
    tables = [
        f'[pins]\ndirectory = "{settings.pins}"',
        f'[control]\npath = "{settings.control}"',
        f'[metrics]\nlisten = "{_METRICS[0]}:{_METRICS[1]}"',
        f'[host]\nname = "{settings.law}"\nunrestricted = true\nnetns_cookies = {cookies}',
    ]
    tables += [
        f'[[router]]\ndevice = "{device}"\nrate = "{settings.rate_bps:.0f}bit"\n'
        f"target = {target:g}\nshape = true"
        for device in DEVICES
        if routed
    ]
    return "\n\n".join(tables) + "\n"


class Service:
    """A `waterfilld run` process in the router's namespace, which serves the router
    and both hosts.
    """

    def __init__(self, settings: Settings, network: Network) -> None:
        """Create the service without starting the daemon."""
        self._settings, self._network = settings, network
        self._process: subprocess.Popen[bytes] | None = None
        self._log = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._cookies = [daemon.cookie(host) for host in network.hosts]
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(settings.folder / "notify"))
        self._ready = threading.Event()
        # It blocks a daemon that nobody reads from.
        threading.Thread(target=self._listen, daemon=True).start()
        self._reloads = 0
        self.routed = True
        """False while the configuration has no routers."""
        self.refused = 0
        """Number of wrong configuration files that the daemon has refused."""

    @property
    def pids(self) -> list[int]:
        """Process ids of the daemon, or an empty list if it is not running."""
        return [] if self._process is None else [self._process.pid]

    def ended(self) -> bool:
        """Return True if the daemon has exited without being stopped."""
        return self._process is not None and self._process.poll() is not None

    def start(self, target: float) -> None:
        """Start the daemon and wait until it is ready. Raises ServiceError if it does not start."""
        self._write(configuration(self._settings, self._cookies, target))
        self._ready.clear()
        environment = {**os.environ, "NOTIFY_SOCKET": str(self._settings.folder / "notify")}
        with self._network.router.entered():
            self._process = subprocess.Popen(
                [self._settings.program, "run", "--config", str(self._settings.config)],
                stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, env=environment,
            )  # fmt: skip
        end_s = time.monotonic() + READY_S
        while not self._ready.wait(0.1):
            code = self._process.poll()
            if code is not None or time.monotonic() > end_s:
                self.kill()
                error = ServiceRefusal if code == _REFUSED else ServiceError
                raise error(f"waterfilld is not ready: {self._last_words()}")

    def reload(self, target: float) -> None:
        """Change the target of the routers, by `waterfilld reload` and by SIGHUP in turn.

        A file that is wrong comes first, and must be refused. Raises ServiceError.
        """
        self._reloads += 1
        self._write(configuration(self._settings, self._cookies, 2.0))
        if self._ask() == 0:
            raise ServiceError("a wrong file was not refused")
        self.refused += 1
        self._write(configuration(self._settings, self._cookies, target))
        if self._reloads % 2:
            if self._ask() != 0:
                raise ServiceError(f"waterfilld reload: {self._last_words()}")
        elif self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def configure(self, target: float, *, routed: bool) -> None:
        """Load a configuration with or without routers. Raises ServiceError."""
        self.routed = routed
        self._write(configuration(self._settings, self._cookies, target, routed=routed))
        if self._ask() != 0:
            raise ServiceError(f"waterfilld reload: {self._last_words()}")

    def kill(self) -> None:
        """Kill the daemon with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the daemon with SIGTERM. Raises ServiceError if it does not exit cleanly."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServiceError(f"waterfilld did not end within {_END_S:g} s") from None
        self._process = None
        if code:
            raise ServiceError(f"waterfilld ended with {code} after SIGTERM")

    def status(self) -> Document:
        """Return the document of `waterfilld status --json`, which works without a
        running daemon.
        """
        return dict(json.loads(self._run("status", "--json")))

    def scrape(self) -> bool:
        """Fetch the metrics page. Return True if the daemon served it."""
        with self._network.router.entered():
            connection = http.client.HTTPConnection(*_METRICS, timeout=READY_S)
            try:
                connection.request("GET", "/metrics")
                answer = connection.getresponse()
                return answer.status == http.HTTPStatus.OK and b"waterfill_loaded" in answer.read()
            except (OSError, http.client.HTTPException):
                return False
            finally:
                connection.close()

    def unload(self) -> None:
        """Remove all pins with `waterfilld unload`. Raises ServiceError if that fails."""
        self._run("unload")

    def _run(self, command: str, *options: str) -> str:
        with self._network.router.entered():
            done = self._call(command, *options, "--pins", str(self._settings.pins))
        if done.returncode:
            raise ServiceError(f"waterfilld {command}: {done.stderr.strip()}")
        return done.stdout

    def _ask(self) -> int:
        """Run `waterfilld reload` and return its exit code."""
        return self._call("reload", "--control", str(self._settings.control)).returncode

    def _call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [self._settings.program, *arguments],
                capture_output=True, text=True, check=False, timeout=READY_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ServiceError(f"waterfilld {arguments[0]} hangs") from None

    def _write(self, text: str) -> None:
        # As configuration management does: the daemon never reads half of a file.
        new = self._settings.config.with_suffix(".new")
        new.write_text(text)
        new.replace(self._settings.config)

    def _listen(self) -> None:
        while True:
            if b"READY=1" in self._notify.recv(1 << 12):
                self._ready.set()

    def _last_words(self) -> str:
        lines = self._settings.log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it wrote nothing"
