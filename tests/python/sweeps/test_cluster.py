"""Tests of cluster files: the jobs they start, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.sweeps import cluster

SLURM = 'kind = "slurm"\nworkers = 3\n[options]\nqueue = "batch"\nwalltime = "02:00:00"\n'
KUBERNETES = 'kind = "kubernetes"\nworkers = 8\n[options]\nimage = "example.org/waterfill:1"\n'


def place(folder: Path, text: str) -> cluster.ClusterPlace:
    path = folder / "c.toml"
    path.write_text(text)
    return cluster.place(str(path), None)


def test_places():
    assert cluster.place(None, 3).title == "3 workers on this host"
    assert cluster.place("tcp://10.0.0.1:8786", None).address == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind = 1", "kind: must be slurm or kubernetes"),
        ('kind = "slurm"\nworker = 2', "unknown key"),
        ('kind = "slurm"\nworkers = 0', "must be 1 to 4096"),
        ('kind = "slurm"\noptions = 3', "must be a table"),
        ("kind =", "not valid TOML"),
        ("kind = 1\nkind = 2", "not valid TOML: kind has a value already"),
    ],
)
def test_wrong_files_are_said_in_one_line(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as error:
        place(tmp_path, text)
    assert "\n" not in str(error.value)


def test_the_script_of_a_job(tmp_path):
    pytest.importorskip("dask_jobqueue")
    script = cluster.described(place(tmp_path, SLURM))
    for line in ("#SBATCH -p batch", "#SBATCH -t 02:00:00", "#SBATCH --cpus-per-task=1"):
        assert line in script
    assert "dask worker" in script or "dask_worker" in script


def test_the_resource_fits_the_definition_of_dasks_operator(tmp_path):
    pytest.importorskip("dask_kubernetes", reason="needs waterfill[kubernetes]")
    import dask_kubernetes
    import yaml
    from jsonschema import Draft202012Validator

    spec = json.loads(cluster.described(place(tmp_path, KUBERNETES)))
    folder = Path(dask_kubernetes.__file__).parent
    definitions = [
        document
        for path in folder.rglob("crds/*.yaml")
        for document in yaml.safe_load_all(path.read_text())
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition"
    ]
    mine = next(d for d in definitions if d["spec"]["names"]["kind"] == "DaskCluster")
    schema = mine["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert [e.message for e in Draft202012Validator(schema).iter_errors(spec)] == []
    assert spec["spec"]["worker"]["replicas"] == 8
    with pytest.raises(InputError, match="image"):
        cluster.described(place(tmp_path, 'kind = "kubernetes"\n'))


def test_a_device_is_no_clusters_file():
    with pytest.raises(InputError, match="/dev/zero: cannot read the file: not a regular file"):
        cluster.place("/dev/zero", None)
