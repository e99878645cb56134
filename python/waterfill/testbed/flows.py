"""Real traffic: iperf3 for flows without a size and for CBR, nginx and curl for downloads."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO

from waterfill.testbed import netlink
from waterfill.testbed.isolate import SCRATCH
from waterfill.testbed.plan import CLIENT_PORT, HTTP_PORT, IPERF_PORT, Stream
from waterfill.testbed.topology import Topology

# UDP and IP headers; TCP's are in tcp_info.
_UDP_BYTES = {4: 28, 6: 48}
_FOREVER_S = 86400
# RTTs that iperf3 needs before its data connection starts: it is started that much earlier.
_IPERF_RTTS = 3
_IPERF_START_S = 0.03

_NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; sendfile on; keepalive_timeout 60; default_type application/octet-stream;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen {address}:{port}; root {folder}/files; }}
}}
"""


class Running:
    """The processes of one stream. `prepare` starts the server, `start` the client."""

    def __init__(self, stream: Stream, topology: Topology, number: int) -> None:
        self.stream, self.topology = stream, topology
        self.folder = Path(SCRATCH) / f"stream{number}"
        self.folder.mkdir()
        self.listener: subprocess.Popen[bytes] | None = None
        self.sender: subprocess.Popen[bytes] | None = None
        listens = stream.source if stream.kind == "http" else stream.sink
        with topology.namespace(listens).entered():
            self._diag = netlink.SockDiag()

    @property
    def lead_s(self) -> float:
        """Time (s) by which the client must start before its stream."""
        if self.stream.kind == "http":
            return 0.0
        return _IPERF_START_S + _IPERF_RTTS * self.stream.start_rtt_s

    def prepare(self) -> None:
        """Start the stream's server."""
        stream = self.stream
        if stream.kind == "http":
            files = self.folder / "files"
            files.mkdir()
            with open(files / "data", "wb") as file:
                file.truncate(stream.size_bytes or 0)  # sparse: zeros without memory
            address = stream.source_address
            config = self.folder / "nginx.conf"
            config.write_text(
                _NGINX.format(
                    folder=self.folder, port=HTTP_PORT,
                    address=address if ":" not in address else f"[{address}]",
                )
            )  # fmt: skip
            command = ["nginx", "-c", str(config), "-p", str(self.folder)]
            self.listener = self.run(stream.source, command, "server")
        else:
            command = ["iperf3", "--server", "--one-off", "--json", "--interval", "0",
                       "--bind", stream.sink_address, "--port", str(IPERF_PORT)]  # fmt: skip
            self.listener = self.run(stream.sink, command, "server")

    @property
    def ready(self) -> bool:
        """True if the stream's server is listening."""
        port = HTTP_PORT if self.stream.kind == "http" else IPERF_PORT
        return self._diag.listening(self.topology.family, port)

    def start(self) -> None:
        """Start the client, which runs until all its data has been received or `stop` is called."""
        stream = self.stream
        if stream.kind == "http":
            address = stream.source_address
            host = address if ":" not in address else f"[{address}]"
            command = ["curl", "--silent", "--show-error", "--globoff", "--output", "/dev/null",
                       "--write-out", "%{json}", f"http://{host}:{HTTP_PORT}/data"]  # fmt: skip
            self.sender = self.run(stream.sink, command, "client")
            return
        command = ["iperf3", "--client", stream.sink_address, "--port", str(IPERF_PORT),
                   "--cport", str(CLIENT_PORT), "--time", str(_FOREVER_S), "--json",
                   "--interval", "0"]  # fmt: skip
        if stream.kind == "cbr":
            packet = self.topology.plan.mtu_bytes
            payload = packet - _UDP_BYTES[self.topology.plan.ip_version]
            rate = (stream.rate_bps or 0.0) * payload / packet
            command += ["--udp", "--length", str(payload), "--bitrate", f"{rate:.0f}",
                        "--pacing-timer", "200"]  # fmt: skip
        else:
            command += ["--congestion", stream.congestion, "--zerocopy"]
            if stream.rate_bps is not None:
                command += ["--bitrate", f"{stream.rate_bps * self._payload_share():.0f}",
                            "--pacing-timer", "200"]  # fmt: skip
            if stream.paced:
                command += [
                    "--fq-rate",
                    "100G",
                ]  # switches pacing on, at a rate that no law reaches
        self.sender = self.run(stream.source, command, "client")

    def _payload_share(self) -> float:
        packet = self.topology.plan.mtu_bytes
        return (packet - (52 if self.topology.plan.ip_version == 4 else 72)) / packet

    def stop(self) -> None:
        """Kill the stream's client and server."""
        for process in (self.sender, self.listener):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()

    def trouble(self) -> str | None:
        """Return the client's error message, or None if the client is running, succeeded or was
        killed.
        """
        if self.sender is None or self.sender.poll() in (None, 0, -9):
            return None
        text = self._output("client.err") or self._output("client.out")
        with suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["error"]
        return " ".join(str(text).split())[:300] or f"exit code {self.sender.returncode}"

    def transfer(self) -> tuple[float, int] | None:
        """Return a finished download's time since curl's start (s) and payload (bytes), or None if
        there is none.
        """
        if self.stream.kind != "http" or self.sender is None or self.sender.poll() != 0:
            return None
        document = json.loads(self._output("client.out"))
        return float(document["time_total"]), int(document["size_download"])

    def _output(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(errors="replace")
        except OSError:
            return ""

    def run(self, number: int, command: list[str], name: str) -> subprocess.Popen[bytes]:
        """Start a command in a namespace. Its output is written to NAME.out and NAME.err."""
        environment = {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "HOME": SCRATCH,
                       "TMPDIR": SCRATCH, "LC_ALL": "C"}  # fmt: skip

        def file(kind: str) -> IO[bytes]:
            return open(self.folder / f"{name}.{kind}", "wb")

        with self.topology.namespace(number).entered(), file("out") as out, file("err") as err:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
                cwd=self.folder,
            )  # fmt: skip
