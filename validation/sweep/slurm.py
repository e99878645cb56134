"""Run a sweep through SLURM, with Debian's slurm-wlm and munge as two one-core nodes on this host.

Starts munged, slurmctld and two slurmd with files of its own in a temporary folder, runs the sweep
with a cluster's file, and ends all of them. Services of the host are not touched.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import polars

from validation.study import ROOT_USER, Need, Option, Options, Report, Study
from validation.sweep import scenario
from waterfill.errors import RunError

_LIMIT_S = 240.0
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue")
_CONF = """\
ClusterName=sweep
SlurmctldHost={host}
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port=16821 CPUs=1 RealMemory=4000
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port=16822 CPUs=1 RealMemory=4000
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_CLUSTER = """\
kind = "slurm"
workers = 2

[options]
queue = "debug"
walltime = "00:20:00"
memory = "2 GB"
interface = "lo"
scheduler_options = {{ dashboard_address = ":0" }}
log_directory = "{folder}/jobs"
local_directory = "{folder}"
job_script_prologue = ["export PYTHONPATH={path}"]
"""


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin"


def lacks() -> str | None:
    """Return the SLURM programs that this host lacks, or None."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"{', '.join(missing)}: apt-get install slurm-wlm munge" if missing else None


def work(given: Options) -> Report:
    """Run the sweep and check that both nodes ran points and that no point is missing."""
    path = _path()
    running: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="waterfill-slurm-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        conf = folder / "slurm.conf"
        conf.write_text(_CONF.format(host=socket.gethostname(), folder=folder))
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)
        for each in ("state", "spool-node1", "spool-node2", "jobs"):
            (folder / each).mkdir()
        environment = {**os.environ, "PATH": path, "SLURM_CONF": str(conf)}

        def start(*words: str) -> None:
            with (folder / "log").open("ab") as log:
                running.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log))

        try:
            start(
                *("munged", "--force", "--foreground", f"--key-file={folder}/munge.key"),
                *(f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid"),
                *(f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"),
            )
            time.sleep(1)
            start("slurmctld", "-D", "-f", str(conf))
            for number in (1, 2):
                start("slurmd", "-D", "-f", str(conf), "-N", f"node{number}")
            ready = _ready(environment)
            if not ready:
                for log in sorted(folder.glob("*.log")):
                    print(log.name, log.read_text()[-1500:], file=sys.stderr)
                print((folder / "log").read_text()[-1500:], file=sys.stderr)
                raise RunError("SLURM's nodes did not become idle")
            cluster = folder / "cluster.toml"
            here = Path(__file__).parents[2]
            cluster.write_text(_CLUSTER.format(folder=folder, path=here))
            out = folder / "out"
            source = scenario.write(folder, "30 s")
            words = scenario.command(source, given.points, out, "--cluster", str(cluster))
            started = time.monotonic()
            ran = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=_LIMIT_S
            )
            took_s = time.monotonic() - started
            if ran.returncode:
                raise RunError(ran.stderr)
            rows = polars.read_parquet(out / "points" / "part-*.parquet")
            for _ in range(50):  # jobs that end take a moment to leave the list
                listed = subprocess.run(["squeue", "-h"], env=environment, capture_output=True)
                if not listed.stdout.strip():
                    break
                time.sleep(0.2)
        finally:
            for process in reversed(running):
                process.terminate()
            for process in running:
                process.wait()
    done = rows.filter(rows["status"] == "done")["key"].n_unique()
    where = Counter(rows["worker"].to_list())
    counts = " and ".join(map(str, where.values()))
    left = len(listed.stdout.split(b"\n")) - 1
    text = (
        f"{done} of {given.points} points in {took_s:.1f} s by {len(where)} jobs, "
        f"which ran {counts}; {left} jobs left"
    )
    good = done == len(rows) == given.points and len(where) == 2 and not left
    return Report(text, failed=() if good else ["points are missing, or a node ran none"])


def _ready(environment: dict[str, str]) -> bool:
    """Wait until both SLURM nodes are idle. Return False if that takes too long."""
    for _ in range(120):
        words = ["sinfo", "-h", "-N", "-o", "%t"]
        ran = subprocess.run(words, env=environment, capture_output=True, text=True)
        if ran.stdout.split() == ["idle", "idle"]:
            return True
        time.sleep(0.5)
    print(ran.stdout, ran.stderr, file=sys.stderr)
    return False


STUDY: Study[None, None] = Study(
    shows="a sweep by SLURM's jobs on two nodes runs each point once",
    minutes=2,
    needs=(ROOT_USER, Need("SLURM", lacks)),
    options=(Option("--points", 20, "number of points", low=2),),
    work=work,
)
