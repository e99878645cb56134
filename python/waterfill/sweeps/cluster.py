"""Workers of a sweep: local processes, a scheduler's workers, SLURM jobs or Kubernetes pods.

    --workers N                 N processes of this host; the scheduler runs in the front end
    --cluster tcp://HOST:PORT   the workers of a scheduler: `dask scheduler`, `dask worker`
    --cluster FILE.toml         workers that this sweep starts and ends, as below

    kind = "slurm"              or "kubernetes"
    workers = 16                jobs, or pods
    [options]                   of SLURMCluster (dask_jobqueue) or make_cluster_spec
    queue = "batch"
    walltime = "04:00:00"

All of these are Dask clusters; only this module knows which.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from waterfill.errors import InputError, RunError, nearest, one_line, shown
from waterfill.runs.files import read_text, why
from waterfill.runs.pool import cpus

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = ("slurm", "kubernetes")
# One point at a time per process; SLURM's own default would be all of a node.
_SLURM: Mapping[str, Any] = {
    "cores": 1,
    "processes": 1,
    "memory": "2 GB",
    "scheduler_options": {"dashboard_address": ":0"},  # any free port
}
_CONNECT_S = 10.0


@dataclass(frozen=True)
class ClusterPlace:
    """Location of a sweep's workers: a scheduler's `address`, a cluster file's `kind`, or this
    host.
    """

    workers: int = 1
    address: str = ""
    kind: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Description of the workers and their location."""
        plural = "" if self.workers == 1 else "s"
        if self.address:
            return f"workers of {self.address}"
        if self.kind:
            return f"{self.workers} worker{plural} of {self.kind}"
        return f"{self.workers} worker{plural} on this host"


_MAX_FILE_BYTES = 1 << 20


def place(cluster: str | None, workers: int | None) -> ClusterPlace:
    """Return the location of the workers; raise InputError for a wrong address or cluster file.

    Without either, on as many CPUs as this process may use.
    """
    if workers is not None and not 1 <= workers <= 4096:
        raise InputError("command line", "workers", f"must be 1 to 4096, got {workers}")
    if cluster is None:
        return ClusterPlace(workers or cpus())
    if "://" in cluster:
        if not cluster.startswith(("tcp://", "tls://")) or cluster.endswith("://"):
            why = f"must be tcp://HOST:PORT or tls://HOST:PORT, got {shown(cluster)}"
            raise InputError("command line", "cluster", why)
        if workers is not None:
            why = "not possible with a scheduler, which has its own workers"
            raise InputError("command line", "workers", why)
        return ClusterPlace(0, address=cluster)
    return _from_file(Path(cluster), workers)


def _from_file(path: Path, workers: int | None) -> ClusterPlace:
    try:
        text = read_text(path, _MAX_FILE_BYTES)
    except FileNotFoundError:
        problem = "no such file; type tcp://HOST:PORT or the name of a cluster's TOML file"
        raise InputError(str(path), "", problem) from None
    except (OSError, ValueError) as error:
        raise InputError(str(path), "", f"cannot read the file: {why(error)}") from None
    try:
        document = tomllib.loads(text)
    except ValueError as error:
        from waterfill.scenario.loading import toml_error

        got = one_line(toml_error(error, text))
        raise InputError(str(path), "", f"not valid TOML: {got}") from None
    for key in document:
        if key not in ("kind", "workers", "options"):
            known = nearest(key, ("kind", "workers", "options"))
            raise InputError(str(path), key, f"unknown key{known}")
    kind = document.get("kind")
    if kind not in KINDS:
        raise InputError(str(path), "kind", f"must be slurm or kubernetes, got {shown(kind)}")
    count = workers or document.get("workers", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 4096:
        raise InputError(str(path), "workers", f"must be 1 to 4096, got {shown(count)}")
    options = document.get("options", {})
    if not isinstance(options, dict):
        raise InputError(str(path), "options", f"must be a table, got {shown(options)}")
    return ClusterPlace(count, kind=kind, options=options)


def described(where: ClusterPlace) -> str:
    """Return the definition of a cluster: a SLURM job script or a Kubernetes resource (JSON).

    Raises InputError for options that Dask's cluster does not have.
    """
    if where.kind == "slurm":
        need("dask_jobqueue", "slurm")
        with _slurm(where) as cluster:
            return str(cluster.job_script())
    if where.kind == "kubernetes":
        need("dask_kubernetes", "kubernetes")
        return json.dumps(kubernetes_spec(where), indent=2)
    raise InputError("command line", "cluster", "no file given that describes a cluster")


def need(module: str, extra: str) -> None:
    """Raise InputError unless a module is installed."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        why = f"needs the Python package {module}: pip install 'waterfill[{extra}]'"
        raise InputError("command line", "sweep", why)


def kubernetes_spec(where: ClusterPlace) -> dict[str, Any]:
    """Return the DaskCluster resource of Dask's operator for a cluster file."""
    from dask_kubernetes.operator import make_cluster_spec

    options = {"name": "waterfill-sweep", **where.options}
    if "image" not in options:
        why = "missing; name an image that has this version of Waterfill and Dask"
        raise InputError("command line", "options.image", why)
    # One thread per pod, so that points do not share a pod's memory.
    command = ["dask", "worker", "--nthreads", "1", "--name", "$(DASK_WORKER_NAME)"]
    try:
        spec: dict[str, Any] = make_cluster_spec(
            n_workers=where.workers, **{"worker_command": command, **options}
        )
    except TypeError as error:
        raise InputError("command line", "options", one_line(str(error))) from None
    found: dict[str, Any] = _without_none(spec)
    return found


def _without_none(value: Any) -> Any:
    """Return plain data without keys whose value is None, which Kubernetes refuses."""
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


def _slurm(where: ClusterPlace) -> Any:
    from dask_jobqueue.slurm import SLURMCluster

    options = {**_SLURM, **where.options}
    try:
        return SLURMCluster(**options)
    except (TypeError, ValueError) as error:
        raise InputError("command line", "options", one_line(str(error))) from None


def _accepted(script: str) -> None:
    """Raise InputError if SLURM refuses the job, and RunError if SLURM is not installed."""
    try:
        ran = subprocess.run(
            ["sbatch", "--test-only"], input=script, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise RunError("sbatch: no such program; a cluster of kind slurm needs SLURM") from None
    if ran.returncode:
        said = (ran.stderr.strip().splitlines() or ["refused"])[-1]
        raise InputError("command line", "cluster", f"SLURM refuses such a job: {said}")


class Cluster:
    """A running cluster with a client. A context manager that ends the processes it started.

    `client` is Dask's, None after the scheduler was lost; `reconnect` tries to get a new one.
    """

    def __init__(self, where: ClusterPlace) -> None:
        self.where = where
        self.client: Any = None
        self._stack = ExitStack()
        self._target: Any = where.address

    def __enter__(self) -> Cluster:
        _configure()
        try:
            if not self.where.address:
                self._target = self._stack.enter_context(self._start())
            self.reconnect()
            if self.client is None:
                raise RunError(f"{self.where.address}: no Dask scheduler answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
        self._stack.close()

    def _start(self) -> Any:
        if self.where.kind == "slurm":
            need("dask_jobqueue", "slurm")
            cluster = _slurm(self.where)
            _accepted(cluster.job_script())
            cluster.scale(jobs=self.where.workers)
            return cluster
        if self.where.kind == "kubernetes":
            need("dask_kubernetes", "kubernetes")
            from dask_kubernetes.operator import KubeCluster

            return KubeCluster(custom_cluster_spec=kubernetes_spec(self.where))
        from distributed import LocalCluster

        # Threads: each runs its points in a child process, and this process only hands them out.
        # Without an address the scheduler takes one port for all sweeps of a host, and warns.
        return LocalCluster(
            n_workers=1, threads_per_worker=self.where.workers, processes=False,
            dashboard_address="127.0.0.1:0", memory_limit=0, silence_logs=logging.CRITICAL,
        )  # fmt: skip

    def drop(self) -> None:
        """Close the client. The scheduler then cancels the client's unfinished tasks."""
        if self.client is not None:
            with suppress(Exception):
                self.client.close(timeout=2)
            self.client = None

    def reconnect(self) -> bool:
        """Try once to connect to the scheduler; return True on success."""
        from distributed import Client

        self.drop()
        try:
            self.client = Client(
                self._target, timeout=_CONNECT_S, set_as_default=False, direct_to_workers=False
            )
        except (OSError, TimeoutError, ValueError):
            self.client = None
        return self.client is not None

    def connected(self) -> bool:
        """Return True if the client is connected to its scheduler."""
        return self.client is not None and self.client.status == "running"

    def threads(self) -> int:
        """Return the number of points that can run at once, or 0 without workers or without a
        scheduler.
        """
        if not self.connected():
            return 0
        try:
            info = self.client.scheduler_info(n_workers=-1)
        except TypeError:  # older versions list all workers
            info = self.client.scheduler_info()
        return sum(int(worker["nthreads"]) for worker in info["workers"].values())


def _configure() -> None:
    """Configure Dask for sweeps: quiet, and tolerant of lost workers."""
    import dask

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set(
        {
            # Points run in children, so that a lost worker is not the fault of its point.
            "distributed.scheduler.allowed-failures": 20,
            "distributed.admin.large-graph-warning-threshold": "1 GB",
            "distributed.comm.timeouts.connect": "10s",
            # Do not steal points that take seconds from each other's workers.
            "distributed.scheduler.worker-saturation": 1.0,
        }
    )
