"""Files that appear whole: one by one, in sets, and after kills at every step."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.runs import files, interrupt
from waterfill.runs.files import Stage, WriteError

OLD = {"summary.json": "old", "flows.parquet": "old", "traffic.parquet": "old", "figure.png": "old"}
NEW = {"summary.json": "new", "flows.parquet": "new", "links.parquet": "new"}


def fill(folder: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def content(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def publish(folder: Path, new: dict[str, str]) -> list[WriteError]:
    with Stage(folder) as stage:
        fill(stage.folder, new)
        return stage.publish()


# --- sets --------------------------------------------------------------------------------------


def test_a_set_replaces_the_old_one_and_what_was_made_from_it(tmp_path):
    fill(tmp_path, {**OLD, "notes.txt": "mine", "report.html": "old"})
    assert publish(tmp_path, NEW) == []
    assert content(tmp_path) == {**NEW, "notes.txt": "mine"}


def test_what_is_not_published_leaves_nothing(tmp_path):
    fill(tmp_path, OLD)
    with Stage(tmp_path) as stage:
        fill(stage.folder, NEW)
    assert content(tmp_path) == OLD


def test_a_set_with_a_directory_in_its_way_is_left_out_and_the_others_are_not(tmp_path):
    fill(tmp_path, {f"maxnet/{name}": text for name, text in OLD.items()})
    (tmp_path / "xcp" / "summary.json").mkdir(parents=True)
    (tmp_path / "rcp").write_text("a file")
    folders = ("maxnet", "rcp", "rcp/seed-2", "xcp")
    both = {f"{folder}/{name}": text for folder in folders for name, text in NEW.items()}
    refused = publish(tmp_path, {**both, "compare.json": "new"})
    assert [str(error).removeprefix(str(tmp_path)) for error in refused] == [
        "/rcp: expected a directory, found a file",
        "/xcp/summary.json: cannot be written: is a directory",
    ]
    assert content(tmp_path) == {
        **{f"maxnet/{name}": text for name, text in NEW.items()},
        "compare.json": "new",
        "rcp": "a file",
    }


class Killed(BaseException):
    """Stands for kill -9: nothing is cleaned up after it."""


def killed_at(monkeypatch, step: int) -> None:
    """Let the process end at the given call that changes a directory."""
    calls = iter(range(1000))

    def stop(name):
        original = getattr(os, name)

        def call(*arguments, **more):
            if next(calls) == step:
                raise Killed
            return original(*arguments, **more)

        monkeypatch.setattr(os, name, call)

    for name in ("rename", "replace", "unlink", "mkdir"):
        stop(name)


@pytest.mark.parametrize("sub", ["", "maxnet/"])
def test_a_kill_at_any_step_leaves_the_old_set_or_the_new_one(tmp_path, monkeypatch, sub):
    """Each call that changes the directory is the last one, once."""
    outcomes = []
    old, new = ({f"{sub}{name}": text for name, text in each.items()} for each in (OLD, NEW))
    for step in range(40):
        folder = tmp_path / str(step)
        fill(folder, old)
        stage = Stage(folder).__enter__()
        fill(stage.folder, new)
        with monkeypatch.context() as patched:
            killed_at(patched, step)
            try:
                stage.publish()
                ended = True
            except Killed:
                ended = False
        stage._stack.close()  # a lock ends with its process
        files.recover(folder)
        found = {name: text for name, text in content(folder).items() if ".part" not in name}
        outcomes.append("new" if found == new else "old" if found == old else found)
        if ended:
            break
    assert ended
    assert outcomes == ["old"] * outcomes.count("old") + ["new"] * outcomes.count("new")
    assert outcomes.count("old") > 1
    assert outcomes.count("new") > 5


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    (tmp_path / ".waterfill-abc.part" / "sub").mkdir(parents=True)
    publish(tmp_path, NEW)
    assert content(tmp_path) == NEW
    assert sorted(os.listdir(tmp_path)) == sorted(NEW)


def test_published_files_of_others_reach_nothing_outside(tmp_path):
    """A directory may come from anywhere, with what looks like published files in it."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    fill(outside, {"report.html": "mine", "summary.json": "mine"})
    whole = inside / ".waterfill-x.whole"
    fill(whole, {"summary.json": "new", ".stale": "../outside/report.html\n/etc/passwd\n..\n"})
    (inside / ".waterfill-y.whole").symlink_to(outside)
    files.recover(inside)
    assert content(outside) == {"report.html": "mine", "summary.json": "mine"}
    assert (inside / "summary.json").read_text() == "new"


@pytest.mark.parametrize(
    "attack", ["link in place", "link in set", "stale is a link", "other user"]
)
def test_published_files_of_others_follow_no_link(tmp_path, monkeypatch, attack):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    fill(outside, {"summary.json": "mine", "report.html": "mine"})
    whole = inside / ".waterfill-x.whole"
    fill(whole, {"sub/summary.json": "evil", "sub/.stale": "report.html"})
    if attack == "link in place":
        (inside / "sub").symlink_to(outside)
    elif attack == "link in set":
        (whole / "more").symlink_to(outside)
    elif attack == "stale is a link":
        (whole / ".stale").symlink_to(outside / "report.html")
    else:
        monkeypatch.setattr(os, "geteuid", lambda: inside.stat().st_uid + 1)
    files.recover(inside)
    assert content(outside) == {"summary.json": "mine", "report.html": "mine"}
    assert attack == "link in place" or not (inside / "sub").exists()


def test_a_set_is_not_written_through_a_link_in_its_place(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    fill(outside, {"summary.json": "mine"})
    inside.mkdir()
    (inside / "sub").symlink_to(outside)
    (refused,) = publish(inside, {"summary.json": "new", "sub/summary.json": "new"})
    assert str(refused) == f"{inside / 'sub'}: expected a directory, found a symbolic link"
    assert content(outside) == {"summary.json": "mine"}
    assert (inside / "summary.json").read_text() == "new"


@pytest.mark.parametrize("old", ["summary.json", "compare.json", "claims.json"])
@pytest.mark.parametrize("new", ["summary.json", "compare.json", "claims.json"])
def test_a_directory_holds_one_kind_of_result(tmp_path, old, new):
    fill(tmp_path, {old: "old", "report.html": "old", "flows.parquet": "old", "mine.txt": "mine"})
    fill(tmp_path, {"scenario.toml": "mine"})
    assert not publish(tmp_path, {new: "new"})
    assert content(tmp_path) == {new: "new", "mine.txt": "mine", "scenario.toml": "mine"}


def test_no_result_is_written_over_a_sweep(tmp_path):
    fill(tmp_path, {"sweep.json": "{}", "points/part-00001.parquet": ""})
    with pytest.raises(WriteError, match="holds a sweep"):
        publish(tmp_path, NEW)


# --- two at once -------------------------------------------------------------------------------


HOLDER = """
import sys
from pathlib import Path
from waterfill.runs.files import Stage
with Stage(sys.argv[1]) as stage:
    print("held", flush=True)
    sys.stdin.read()
    (stage.folder / "summary.json").write_text("theirs")
    stage.publish()
"""


def test_a_directory_that_another_process_writes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_WAIT_S", 0.05)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another run is writing here") as error:
            publish(tmp_path, NEW)
        assert "\n" not in str(error.value)
        other.communicate("")
    assert content(tmp_path) == {"summary.json": "theirs"}
    publish(tmp_path, NEW)  # free again
    with Stage(tmp_path), Stage(tmp_path):  # one process may, as `compare` does
        pass


def test_a_lock_ends_with_a_killed_process(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        other.kill()
        other.communicate()
    assert publish(tmp_path, NEW) == []


# --- single files ------------------------------------------------------------------------------


def test_a_new_file_is_never_half_there(tmp_path, monkeypatch):
    path = tmp_path / "s.toml"
    files.write_new(path, "text\n")
    with pytest.raises(WriteError, match="expected a new file, got one that exists"):
        files.write_new(path, "other\n")
    assert content(tmp_path) == {"s.toml": "text\n"}

    def full(self, text, encoding):
        self.write_bytes(b"ha")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(WriteError, match="cannot be written: no space left on device"):
        files.write_new(tmp_path / "t.toml", "half\n")
    assert os.listdir(tmp_path) == ["s.toml"]


def test_without_links_a_new_file_is_renamed(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    files.write_new(tmp_path / "s.toml", "text\n")
    assert content(tmp_path) == {"s.toml": "text\n"}


def test_who_ends_now_leaves_nothing_half_written(tmp_path):
    with Stage(tmp_path) as stage:
        fill(stage.folder, NEW)
        files.abandon()
        assert os.listdir(tmp_path) == []


def test_a_signal_while_files_are_moved_waits_until_they_are(tmp_path):
    seen = []
    with interrupt.undisturbed():
        assert interrupt.afterwards(lambda: seen.append("end"))
        assert seen == []
    assert seen == ["end"]
    assert not interrupt.afterwards(lambda: seen.append("now"))
