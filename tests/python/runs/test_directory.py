"""Directories of results that are replaced whole, also by kills at every step."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.runs import directory, files
from waterfill.runs.directory import Stage
from waterfill.runs.files import WriteError

OLD = {"summary.json": "old", "flows.parquet": "old", "traffic.parquet": "old", "figure.png": "old"}
NEW = {"summary.json": "new", "flows.parquet": "new", "links.parquet": "new"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A directory for a result, with its writers' hidden directories next to it."""
    return tmp_path / "out"


def fill(folder: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def content(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def publish(folder: Path, new: dict[str, str]) -> None:
    with Stage(folder) as stage:
        fill(stage.folder, new)
        stage.publish()


# --- directories -------------------------------------------------------------------------------


def test_a_result_replaces_the_old_one_and_keeps_files_of_other_names(out):
    others = {"notes.txt": "mine", "mine/figure.png": "mine", "maxnet/notes.txt": "mine"}
    fill(out, {**OLD, **others, "report.html": "old", "maxnet/figure.png": "old"})
    (out / "link").symlink_to("notes.txt")
    out.chmod(0o750)
    new = {**NEW, "maxnet/summary.json": "new"}
    publish(out, new)
    assert content(out) == {**new, **others, "link": "mine"}
    assert (out / "link").is_symlink()
    assert out.stat().st_mode & 0o777 == 0o750
    assert os.listdir(out.parent) == ["out"]


TABLES = ("flows", "links", "traffic", "transfers", "steps")
FIGURES = ("figure", "rates", "queues", "compare", "seeds", "transfers")


def test_every_series_and_figure_of_the_old_result_goes(out):
    fill(out, OLD)
    fill(out, {f"{table}.parquet": "old" for table in TABLES})
    fill(out, {f"{figure}.{kind}": "old" for figure in FIGURES for kind in ("png", "svg", "pdf")})
    fill(
        out,
        {"packets.pcapng": "old", "f[1].sqlog": "old", "report.html": "old", "report.md": "old"},
    )
    publish(out, NEW)
    assert content(out) == NEW


def test_a_result_that_cannot_take_its_place_leaves_the_old_one(out, monkeypatch):
    publish(out, OLD)
    rename = os.rename

    def refuse_the_new(source, target):
        if Path(target) == out and "new" in Path(source).parts:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_the_new)
    with pytest.raises(WriteError):
        publish(out, NEW)
    assert content(out) == OLD


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_directory_stays_its_owners(out):
    publish(out, OLD)
    os.chown(out, 1234, 1235)
    publish(out, NEW)
    assert (out.stat().st_uid, out.stat().st_gid) == (1234, 1235)


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_directory_may_have_the_name_of_a_hidden_one(tmp_path, name):
    publish(tmp_path / name, OLD)
    publish(tmp_path / name, NEW)
    assert content(tmp_path / name) == NEW


def test_without_links_other_files_are_copied(out, monkeypatch):
    def none(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    fill(out, {**OLD, "notes.txt": "mine"})
    publish(out, NEW)
    assert content(out) == {**NEW, "notes.txt": "mine"}


def test_what_is_not_published_or_has_no_document_changes_nothing(out):
    fill(out, OLD)
    with Stage(out) as stage:
        fill(stage.folder, NEW)
    publish(out, {"figure.png": "new"})
    assert content(out.parent) == {f"out/{name}": text for name, text in OLD.items()}


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"notes.txt": "mine"}, "holds other files than a result"),
        ({"sweep.json": "{}", "points/part-00001.parquet": ""}, "holds a sweep"),
    ],
)
def test_a_directory_of_something_else_is_refused(out, there, said):
    fill(out, there)
    with pytest.raises(WriteError, match=said):
        publish(out, NEW)
    assert content(out.parent) == {f"out/{name}": text for name, text in there.items()}


def test_a_directory_that_cannot_be_renamed_is_refused(out, monkeypatch):
    (out / "deeper").mkdir(parents=True)
    monkeypatch.chdir(out / "deeper")
    for place in (".", "..", out):
        with pytest.raises(WriteError, match="is a mount point or the current directory"):
            publish(place, NEW)
    monkeypatch.chdir("/")
    with pytest.raises(WriteError, match="is a mount point or the current directory"):
        publish("/dev", NEW)


def test_a_link_to_a_directory_stays_a_link(out):
    fill(out, OLD)
    (out.parent / "link").symlink_to("out")
    publish(out.parent / "link", NEW)
    assert (out.parent / "link").is_symlink()
    assert content(out) == NEW


KILLED = """
import os, sys
from waterfill.runs.directory import Stage
_, out, step = sys.argv
calls = iter(range(int(step)))
def ends(function):
    def call(*arguments, **more):
        if next(calls, None) is None:
            os._exit(9)
        return function(*arguments, **more)
    return call
with Stage(out) as stage:
    for name in ("summary.json", "flows.parquet", "links.parquet"):
        (stage.folder / name).write_text("new")
    for name in ("rename", "unlink", "mkdir", "link", "rmdir"):
        setattr(os, name, ends(getattr(os, name)))
    stage.publish()
"""


def test_a_kill_at_any_step_leaves_the_old_result_or_the_new_one(out):
    """Each call that changes a directory is the last one, once."""
    outcomes = []
    while True:
        fill(out, {**OLD, "notes.txt": "mine"})
        (out / "links.parquet").unlink(missing_ok=True)
        ended = subprocess.run([sys.executable, "-c", KILLED, str(out), str(len(outcomes))])
        directory.recover(out)
        found = content(out)
        assert found.pop("notes.txt") == "mine"
        outcomes.append("new" if found == NEW else "old" if found == OLD else found)
        if not ended.returncode:
            break
        assert ended.returncode == 9
    assert outcomes == ["old"] * outcomes.count("old") + ["new"] * outcomes.count("new")
    assert outcomes.count("old") >= 4
    assert set(content(out.parent)) == {f"out/{name}" for name in content(out)}


def test_the_next_writer_removes_what_a_killed_one_left(out):
    fill(out.parent, {".waterfill-a/new/out/flows.parquet": "", ".waterfill-b/old/out/x": ""})
    fill(out.parent, {".waterfill-c/new/other/flows.parquet": "another's"})
    out.mkdir()
    publish(out, NEW)
    assert sorted(os.listdir(out.parent)) == [".waterfill-c", "out"]


@pytest.mark.parametrize("there", ["missing", "there"])
def test_only_a_missing_result_gets_its_name_back(out, there):
    if there == "there":
        fill(out, NEW)
    fill(out.parent / ".waterfill-a" / "old" / "out", OLD)
    directory.recover(out)
    assert content(out) == (NEW if there == "there" else OLD)


def test_a_result_that_its_writer_is_replacing_is_left_to_it(out):
    old = out.parent / ".waterfill-a" / "old" / "out"
    fill(old, OLD)
    with directory.hold(old):
        directory.recover(out)
    assert not out.exists()


@pytest.mark.parametrize("in_the_way", ["link", "folder", "file"])
def test_nothing_in_the_way_is_replaced_or_followed(out, in_the_way):
    outside = out.parent / "outside"
    fill(outside, {"summary.json": "mine"})
    fill(out, OLD)
    if in_the_way == "link":
        (out / "sub").symlink_to(outside)
    elif in_the_way == "file":
        fill(out, {"sub": "a file"})
    else:
        fill(out, {"sub/summary.json/mine.txt": "mine"})
    before = content(out)
    with pytest.raises(WriteError, match="is in the way of the new result"):
        publish(out, {**NEW, "sub/summary.json": "new"})
    assert content(out) == before
    assert content(outside) == {"summary.json": "mine"}


@pytest.mark.parametrize("old", ["summary.json", "compare.json", "claims.json"])
@pytest.mark.parametrize("new", ["summary.json", "compare.json", "claims.json"])
def test_a_directory_holds_one_kind_of_result(out, old, new):
    fill(out, {old: "old", "report.html": "old", "flows.parquet": "old", "mine.txt": "mine"})
    fill(out, {"scenario.toml": "mine"})
    publish(out, {new: "new"})
    assert content(out) == {new: "new", "mine.txt": "mine", "scenario.toml": "mine"}


# --- two at once -------------------------------------------------------------------------------


HOLDER = """
import sys
from pathlib import Path
from waterfill.runs.directory import Stage
with Stage(sys.argv[1]) as stage:
    print("held", flush=True)
    sys.stdin.read()
    (stage.folder / "summary.json").write_text("theirs")
    stage.publish()
"""


def holder(out: Path) -> subprocess.Popen[str]:
    """Start a process that writes a directory until its standard input ends."""
    command = [sys.executable, "-c", HOLDER, str(out)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    return other


def test_a_directory_that_another_process_writes_is_refused(out, monkeypatch):
    monkeypatch.setattr(directory, "_WAIT_S", 0.05)
    with holder(out) as other:
        with pytest.raises(InputError, match="another command is writing here") as error:
            publish(out, NEW)
        assert "\n" not in str(error.value)
        other.communicate("")
    assert content(out) == {"summary.json": "theirs"}
    publish(out, NEW)  # free again
    assert content(out) == NEW


def test_the_directory_that_has_the_name_is_locked(out, monkeypatch):
    """Another one may get the name after this one was opened."""
    out.mkdir()
    flock, moved = directory._flock, out.with_name("moved")

    def late(descriptor):
        if not moved.exists():
            out.rename(moved)
            out.mkdir()
        return flock(descriptor)

    monkeypatch.setattr(directory, "_flock", late)
    with directory.hold(out, wait_s=5):
        with directory.hold(moved):
            pass
        with pytest.raises(WriteError), directory.hold(out):
            pass


def test_a_lock_ends_with_a_killed_process(out):
    with holder(out) as other:
        other.kill()
        other.communicate()
    publish(out, NEW)
    assert os.listdir(out.parent) == ["out"]


def test_who_ends_now_leaves_nothing_half_written(out):
    with Stage(out) as stage:
        fill(stage.folder, NEW)
        files.abandon()
        assert list(out.parent.rglob("*")) == [out]
