"""What only the local file system can get wrong: durability, crashes, full disks, permissions, links, locks."""

import errno
import fcntl
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CommitUnknown, Conflict, Invalid, Missing, Unavailable, Unsupported
from hoodie.locks import held_lock
from hoodie.storage import Listing, LocalStorage, open_storage, posix
from hoodie.storage.posix import STALE_SECONDS, TEMP_PREFIX
from hoodie.testing.counting_storage import CountingStorage


@pytest.fixture
def storage(tmp_path) -> LocalStorage:
    return LocalStorage(str(tmp_path / "table"))


def names_on_disk(storage: LocalStorage) -> list[str]:
    base = Path(storage.base)
    return sorted(str(path.relative_to(base)) for path in base.rglob("*") if path.is_file())


# durability


@pytest.fixture
def steps(monkeypatch) -> list[tuple[str, str]]:
    """What happened to names and to the disk, in order."""
    seen: list[tuple[str, str]] = []

    def spy(module, name, show):
        real = getattr(module, name)

        def call(*args, **kwargs):
            result = real(*args, **kwargs)
            seen.append((name, show(*args)))
            return result

        monkeypatch.setattr(module, name, call)

    spy(os, "fsync", lambda file: os.path.basename(os.readlink(f"/proc/self/fd/{file}")))
    spy(os, "link", lambda _, new: os.path.basename(new))
    spy(os, "replace", lambda _, new: os.path.basename(new))
    spy(os, "mkdir", lambda path, *_: os.path.basename(path))
    return seen


def plain(steps: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(op, "TEMP" if name.startswith(TEMP_PREFIX) else name) for op, name in steps]


def test_create_syncs_bytes_then_names_then_syncs_the_folder(storage, steps) -> None:
    os.makedirs(storage.base + "/t")
    steps.clear()
    storage.create("t/x", b"1")
    assert plain(steps) == [("fsync", "TEMP"), ("link", "x"), ("fsync", "t")]


def test_put_syncs_bytes_then_replaces_then_syncs_the_folder(storage, steps) -> None:
    os.makedirs(storage.base + "/t")
    steps.clear()
    storage.put("t/x", b"1")
    assert plain(steps) == [("fsync", "TEMP"), ("replace", "x"), ("fsync", "t")]


def test_new_folders_are_synced_into_their_parents(storage, steps) -> None:
    os.makedirs(storage.base)
    steps.clear()
    storage.create("a/b/x", b"1")
    assert plain(steps)[:4] == [("mkdir", "a"), ("fsync", "table"), ("mkdir", "b"), ("fsync", "a")]


def test_closing_an_output_syncs_the_file_and_its_folder(storage, steps) -> None:
    output = storage.open_output("p/f.parquet")
    output.write(b"1")
    steps.clear()
    output.close()
    assert plain(steps) == [("fsync", "f.parquet"), ("fsync", "p")]


def test_a_create_whose_folder_cannot_be_synced_is_unknown(storage, monkeypatch) -> None:
    os.makedirs(storage.base)
    real = os.fsync

    def fsync(file: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{file}"):
            raise OSError(errno.EIO, "Input/output error")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CommitUnknown, match="x was created"):
        storage.create("x", b"1")
    assert names_on_disk(storage) == ["x"]


def test_a_created_file_is_as_old_as_its_name(storage, monkeypatch) -> None:
    """Who finds it tells by its time whether it was there before another one."""
    named: list[float] = []

    def written_slowly(folder: str, data: bytes) -> str:
        temp = posix.write_temp(folder, data)
        os.utime(temp, (1, 1))
        named.append(time.time())
        return temp

    monkeypatch.setattr("hoodie.storage.local.write_temp", written_slowly)
    storage.create("a/x", b"1")
    assert storage.head("a/x").modified_ms >= int(named[0] * 1000) - 10  # the kernel's clock ticks


def test_temporary_names_mean_nothing_to_readers_of_hudi_tables(storage, monkeypatch) -> None:
    seen: list[str] = []
    real = os.link
    monkeypatch.setattr(os, "link", lambda temp, full: (seen.append(os.path.basename(temp)), real(temp, full)))
    storage.create("20240101000000000.commit.requested", b"")
    (temp,) = seen
    assert not re.match(r"^(\d+(_\d+)?)(\.\w+)(\.\D+)?$", temp)
    assert not re.match(r"^\.(.+)_(.*)\.(log|archive)\.", temp)
    assert not any(extension in temp for extension in (".parquet", ".orc", ".hfile", ".lance", ".log"))
    assert temp.startswith(".")


# crashes


KILLED = """
import os, signal, sys
from hoodie.storage import LocalStorage
op, victim = sys.argv[2:]
def die(*args): os.kill(os.getpid(), signal.SIGKILL)
setattr(os, victim, die)
getattr(LocalStorage(sys.argv[1]), op)("x", b"new")
"""


@pytest.mark.parametrize(("op", "victim"), [("create", "fsync"), ("create", "link"), ("put", "replace")])
def test_a_process_killed_before_the_file_has_its_name_leaves_no_file(storage, op, victim) -> None:
    storage.put("x", b"old")
    if op == "create":
        storage.delete("x")
    done = subprocess.run([sys.executable, "-c", KILLED, storage.base, op, victim], env=_env(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert any(name.startswith(TEMP_PREFIX) for name in os.listdir(storage.base))
    assert [info.path for info in storage.list("")] == ([] if op == "create" else ["x"])
    assert [info.path for info in storage.list_dir("").files] == ([] if op == "create" else ["x"])
    if op == "create":
        storage.create("x", b"by another")
    else:
        assert storage.read("x") == b"old"
    assert storage.delete_dir("") == 1


def test_a_temporary_file_that_a_dead_writer_left_goes_when_it_is_a_day_old(storage) -> None:
    storage.put("t/x", b"1")
    left = Path(storage.base, "t", TEMP_PREFIX + "left")
    left.write_bytes(b"half of")
    yesterday = time.time() - STALE_SECONDS
    for age, names in ((yesterday + 60, ["t/" + left.name, "t/x"]), (yesterday - 60, ["t/x"])):
        os.utime(left, (age, age))
        assert [info.path for info in storage.list_dir("t").files] == ["t/x"]
        assert names_on_disk(storage) == names


def test_a_writer_removes_what_dead_ones_left_where_nobody_lists(storage) -> None:
    storage.put(".hoodie/.index_defs/index.json", b"{}")
    for folder in (".hoodie", ".hoodie/.index_defs"):
        left = Path(storage.base, folder, TEMP_PREFIX + "left")
        left.write_bytes(b"half of")
        os.utime(left, (0, 0))
    with held_lock(storage, "a plan", "of_work"):
        assert len(names_on_disk(storage)) == 4
    with held_lock(storage, "a write"):
        pass
    assert names_on_disk(storage) == [".hoodie/.index_defs/index.json"]


def test_a_lost_race_and_a_failed_write_leave_no_temporary_file(storage, monkeypatch) -> None:
    storage.create("x", b"1")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    with pytest.raises(Conflict):
        storage.create("x", b"2")
    monkeypatch.setattr(os, "fsync", _failing(errno.EIO))
    for act in (storage.create, storage.put):
        with pytest.raises(Unavailable, match="input/output error"):
            act("y", b"2")
    assert names_on_disk(storage) == ["x"]


def test_a_link_that_succeeded_but_was_answered_with_exists_is_a_success(storage, monkeypatch) -> None:
    real = os.link

    def link_twice(temp: str, full: str) -> None:
        real(temp, full)
        real(temp, full)

    monkeypatch.setattr(os, "link", link_twice)
    storage.create("x", b"1")
    assert names_on_disk(storage) == ["x"]


# file systems without hard links


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_an_exclusive_rename_is_used(storage, monkeypatch, code) -> None:
    monkeypatch.setattr(os, "link", _failing(code))
    storage.create("x", b"1")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    with pytest.raises(Conflict):
        storage.create("x", b"2")
    assert storage.read("x") == b"1"
    assert names_on_disk(storage) == ["x"]


def test_without_any_exclusive_naming_create_is_unsupported(storage, monkeypatch) -> None:
    monkeypatch.setattr(os, "link", _failing(errno.EPERM))
    monkeypatch.setattr(posix, "_renameat2", lambda temp, full: errno.EINVAL)
    with pytest.raises(Unsupported, match="neither hard links nor"):
        storage.create("x", b"1")
    assert names_on_disk(storage) == []


# refusals of the operating system: path, cause and remedy


@pytest.fixture
def full_disk():
    """A real file system of 64 KiB (needs root and mount), else skipped."""
    folder = Path("/tmp") / f"hoodie-full-{os.getpid()}"
    folder.mkdir()
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("cannot mount a tmpfs here (not root, or not allowed)")
        yield LocalStorage(str(folder))
        subprocess.run(["umount", str(folder)], check=True)
    finally:
        folder.rmdir()


def test_a_full_disk_is_unavailable_and_leaves_nothing(full_disk) -> None:
    data = os.urandom(200_000)
    for act in (full_disk.create, full_disk.put):
        with pytest.raises(Unavailable, match=r"no space is left.*Free space") as caught:
            act("t/x", data)
        assert full_disk.absolute("t/x") in str(caught.value)
        assert caught.value.facts["errno"] == "ENOSPC"
    assert names_on_disk(full_disk) == []
    full_disk.create("t/x", b"small")


def test_a_disk_that_fills_under_a_parquet_writer_is_unavailable(full_disk) -> None:
    table = pa.table({"b": [os.urandom(1000) for _ in range(300)]})
    with pytest.raises(Unavailable, match="no space is left"), full_disk.open_output("p/f.parquet") as output:
        pq.write_table(table, output)
    assert names_on_disk(full_disk) == []


def test_a_file_size_limit_is_unavailable(storage) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(Unavailable, match="larger than the limit"), storage.open_output("f") as output:
            output.write(b"x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names_on_disk(storage) == []


@pytest.fixture
def as_nobody():
    """Permissions do not bind root: give its rights up for the test."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        yield
        os.seteuid(0)
    else:
        yield


def test_a_folder_without_write_permission_is_unavailable(tmp_path, request) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder != Path("/tmp"):
            os.chmod(folder, 0o755)
    storage = LocalStorage(str(tmp_path / "table"))
    storage.put("x", b"1")
    os.chmod(storage.base + "/x", 0o600)
    os.chmod(storage.base, 0o555)
    request.getfixturevalue("as_nobody")
    acts = (
        lambda: storage.create("y", b""),
        lambda: storage.put("x", b""),
        lambda: storage.delete("x"),
        lambda: storage.delete_dir(""),
        lambda: storage.open_output("p/f"),
        lambda: held_lock(storage, "a write").__enter__(),
    )
    for act in acts:
        with pytest.raises(Unavailable, match="permission is denied") as caught:
            act()
        assert storage.base in str(caught.value)
    if os.getuid() == 0:  # the owner may read
        for act in (storage.read, storage.open_input):
            with pytest.raises(Unavailable, match="permission is denied"):
                act("x")


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.EROFS, Unavailable, "read-only"),
        (errno.EDQUOT, Unavailable, "quota"),
        (errno.EMFILE, Unavailable, "open files"),
        (errno.ENOMEM, Unavailable, "memory"),
        (errno.EILSEQ, Invalid, "does not take this name"),
    ],
)
def test_refusals_that_cannot_be_made_here_are_translated(storage, monkeypatch, code, kind, words) -> None:
    os.makedirs(storage.base)
    monkeypatch.setattr(os, "open", _failing(code))
    for act in (lambda: storage.create("x", b""), lambda: storage.put("x", b""), lambda: storage.open_output("x")):
        with pytest.raises(kind, match=words) as caught:
            act()
        assert storage.absolute("x") in str(caught.value)
        assert caught.value.facts["errno"] == errno.errorcode[code]


def test_a_name_too_long_is_invalid_for_a_new_file(storage) -> None:
    name = "n" * 300
    for act in (lambda: storage.create(name, b""), lambda: storage.put(name, b""), lambda: storage.open_output(name)):
        with pytest.raises(Invalid, match="too long"):
            act()


def test_a_file_goes_whose_checksum_could_have_no_name(storage) -> None:
    name = "n" * 253
    storage.put(name, b"1")
    storage.put(name, b"2")
    with storage.open_output(name) as file:
        file.write(b"3")
    assert storage.read(name) == b"3"
    assert storage.delete(name)
    assert storage.list_dir("").files == ()


def test_a_name_that_cannot_be_encoded_is_invalid(storage) -> None:
    with pytest.raises(Invalid, match="encoded"):
        storage.create("bad\ud800name", b"")


def test_a_file_where_a_folder_should_be_is_invalid_to_write_below(storage) -> None:
    storage.put("x", b"1")
    for act in (
        lambda: storage.create("x/y", b""),
        lambda: storage.put("x/y", b""),
        lambda: storage.open_output("x/y"),
    ):
        with pytest.raises(Invalid, match="a file is where a folder should be"):
            act()


def test_a_folder_where_a_file_should_be_is_refused(storage) -> None:
    storage.put("d/x", b"1")
    with pytest.raises(Conflict):
        storage.create("d", b"")
    for act in (lambda: storage.put("d", b""), lambda: storage.open_output("d")):
        with pytest.raises(Invalid):
            act()
    assert storage.read("d/x") == b"1"


def test_a_file_that_vanishes_while_listed_is_left_out(storage, monkeypatch) -> None:
    storage.put("a", b"")
    storage.put("b", b"")
    real = os.scandir

    def scandir(path):
        entries = real(path)
        os.unlink(storage.base + "/a")
        return entries

    monkeypatch.setattr(os, "scandir", scandir)
    assert [info.path for info in storage.list_dir("").files] == ["b"]


# data files


def test_an_output_that_cannot_be_synced_is_dropped(storage, monkeypatch) -> None:
    output = storage.open_output("p/f")
    output.write(b"1")
    monkeypatch.setattr(os, "fsync", _failing(errno.EIO))
    with pytest.raises(Unavailable):
        output.close()
    assert output.closed
    assert names_on_disk(storage) == []


def test_a_reader_keeps_the_bytes_of_a_data_file_that_is_replaced(storage) -> None:
    with storage.open_output("f") as output:
        output.write(b"a" * 100_000)
    with storage.open_input("f") as file:
        with storage.open_output("f") as output:
            output.write(b"b")
        assert file.read() == b"a" * 100_000


def test_a_new_data_file_removes_the_stale_checksum(storage) -> None:
    storage.put("p/.f.crc", b"stale")
    storage.open_output("p/f").close()
    assert names_on_disk(storage) == ["p/f"]


def test_files_are_made_with_the_modes_the_user_asks_for(storage) -> None:
    before = os.umask(0o027)
    try:
        storage.create("a", b"")
        storage.put("b", b"")
        storage.open_output("c").close()
    finally:
        os.umask(before)
    assert {os.stat(f"{storage.base}/{name}").st_mode & 0o777 for name in "abc"} == {0o640}


def test_no_descriptor_is_left_open(storage) -> None:
    def use() -> None:
        storage.put("x", b"1")
        storage.delete("y")
        storage.create("y", b"1")
        list(storage.list(""))
        storage.open_output("z").close()
        storage.open_output("w").abort()
        storage.read_range("x", 0, 1)
        storage.open_input("x").close()
        with held_lock(storage, "a write"), pytest.raises(Conflict), held_lock(storage, "a write"):
            pass

    use()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        use()
    assert len(os.listdir("/proc/self/fd")) == before


# links


@pytest.fixture
def outside(tmp_path) -> Path:
    """A folder beside the table that nothing may change."""
    folder = tmp_path / "outside"
    (folder / "below").mkdir(parents=True)
    for name in ("x", ".x.crc", TEMP_PREFIX + "old", "writer.flock", "free.flock", "below/y"):
        (folder / name).write_text(name)
        os.utime(folder / name, (0, 0))
    return folder


def state_of(folder: Path) -> dict[str, tuple[bytes, float]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.lstat().st_mtime)
        for path in (folder, *sorted(folder.rglob("*")))
    }


CHANGES = {
    "create": lambda storage, path: storage.create(path, b"new"),
    "put": lambda storage, path: storage.put(path, b"new"),
    "open_output": lambda storage, path: storage.open_output(path).close(),
    "abort": lambda storage, path: storage.open_output(path).abort(),
    "delete": lambda storage, path: storage.delete(path),
    "delete_dir": lambda storage, path: storage.delete_dir(path),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("path", ["p/x", "p/new", "p/below", "p/below/y", "q/p/x", "r/x", "up/outside/x"])
def test_a_change_behind_a_link_is_refused_and_nothing_there_changes(tmp_path, outside, change, path) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    storage.put("q/own", b"1")
    os.symlink(outside, storage.base + "/p")
    os.symlink("../../outside", storage.base + "/q/p")
    os.symlink("p", storage.base + "/r")
    os.symlink("..", storage.base + "/up")
    before = state_of(outside)
    if path == "p/new" and change in (CHANGES["delete"], CHANGES["delete_dir"]):
        assert not change(storage, path)
    else:
        with pytest.raises(Invalid, match="symbolic link"):
            change(storage, path)
    assert state_of(outside) == before


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("target", ["folder", "file", "nothing", "itself"])
def test_a_link_that_is_named_gives_way_itself(tmp_path, outside, change, target) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    storage.put("q/own", b"1")
    link = storage.base + "/q/link"
    os.symlink({"folder": outside, "file": outside / "x", "nothing": "none", "itself": "link"}[target], link)
    before = state_of(outside)
    try:
        change(storage, "q/link")
    except Conflict:
        assert os.path.islink(link)
    else:
        assert not os.path.islink(link)
    assert state_of(outside) == before


@pytest.mark.parametrize("below", ["", "q"])
def test_a_folder_goes_with_its_links_and_not_with_what_they_lead_to(tmp_path, outside, below) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    for folder in ("q", "q/deeper"):
        storage.put(f"{folder}/own", b"1")
        for name, target in (
            ("f", outside),
            ("g", outside / "x"),
            ("h", "none"),
            ("i", "i"),
            ("j", "."),
            ("k", "../.."),
        ):
            os.symlink(target, f"{storage.base}/{folder}/{name}")
    before = state_of(outside)
    storage.delete_dir(below)
    assert not os.path.lexists(f"{storage.base}/q")
    assert state_of(outside) == before


def test_a_folder_that_becomes_a_link_while_it_is_deleted_is_not_entered(tmp_path, outside, monkeypatch) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    storage.put("q/below/own", b"1")
    before = state_of(outside)
    real = os.fwalk

    def swapped(top, **more):
        os.rename(f"{storage.base}/q", f"{storage.base}/away")
        os.symlink(outside, f"{storage.base}/q")
        return real(top, **more)

    monkeypatch.setattr(os, "fwalk", swapped)
    storage.delete_dir("q/below")
    assert state_of(outside) == before


@pytest.mark.parametrize("linked", [".hoodie", ".hoodie/.locks"])
def test_a_lock_behind_a_link_is_refused_and_changes_nothing_there(tmp_path, outside, linked) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    os.makedirs(os.path.dirname(f"{storage.base}/{linked}"))
    os.symlink(outside, f"{storage.base}/{linked}")
    before = state_of(outside)
    for scope in ("", "plan"):
        with pytest.raises(Invalid, match="symbolic link"), held_lock(storage, "a write", scope):
            pass
    assert state_of(outside) == before


def test_a_lock_file_that_is_a_link_makes_no_file_elsewhere(tmp_path, outside) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    os.makedirs(storage.base + "/.hoodie/.locks")
    os.symlink(outside / "made", storage.base + "/.hoodie/.locks/plan.flock")
    before = state_of(outside)
    with pytest.raises(Invalid), held_lock(storage, "a plan", "plan"):
        pass
    assert state_of(outside) == before


def test_listing_behind_a_link_removes_no_temporary_file_there(tmp_path, outside) -> None:
    storage = LocalStorage(str(tmp_path / "table"))
    os.makedirs(storage.base)
    os.symlink(outside, storage.base + "/p")
    before = state_of(outside)
    assert [info.path for info in storage.list("p")] == [
        "p/.x.crc",
        "p/below/y",
        "p/free.flock",
        "p/writer.flock",
        "p/x",
    ]
    assert state_of(outside) == before


def test_loops_of_links_are_left_out_of_listings(storage) -> None:
    storage.put("a/x", b"")
    storage.put("b/y", b"")
    for name, target in (("a/self", "self"), ("a/up", ".."), ("a/here", "."), ("a/b", "../b"), ("b/a", "../a")):
        os.symlink(target, f"{storage.base}/{name}")
    assert [info.path for info in storage.list("")] == ["a/b/y", "a/x", "b/a/x", "b/y"]
    assert storage.list_dir("a").dirs == ("a/b",)


def test_a_linked_partition_is_listed_and_read(tmp_path) -> None:
    outside = LocalStorage(str(tmp_path / "outside"))
    outside.put("f", b"1")
    storage = LocalStorage(str(tmp_path / "table"))
    os.makedirs(storage.base)
    os.symlink(outside.base, storage.base + "/p")
    os.symlink("nowhere", storage.base + "/dangling")
    assert storage.list_dir("").dirs == ("p",)
    assert [info.path for info in storage.list("")] == ["p/f"]
    with pytest.raises(Missing):
        storage.head("dangling")


# locks


HOLDER = """
import sys, time
from hoodie.locks import held_lock
from hoodie.storage import LocalStorage
with held_lock(LocalStorage(sys.argv[1]), "a write"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_another_process_excludes_and_its_death_frees(storage) -> None:
    command = [sys.executable, "-c", HOLDER, storage.base]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=_env()) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Conflict, match="Another writer holds"), held_lock(storage, "a write"):
            pass
        holder.kill()
        holder.wait()
    with held_lock(storage, "a write"):
        assert names_on_disk(storage) == [".hoodie/.locks/writer.flock"]
    assert names_on_disk(storage) == []


FORKING = """
import os, sys, time
from hoodie.locks import held_lock
from hoodie.storage import LocalStorage
with held_lock(LocalStorage(sys.argv[1]), "a write"):
    if os.fork() == 0:
        print(os.getpid(), flush=True)  # the child itself: what is done after a fork is done in it then
    time.sleep(60)
"""


def test_a_child_does_not_keep_the_lock_of_a_parent_that_was_killed(storage) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKING, storage.base], stdout=subprocess.PIPE, text=True, env=_env()
    ) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            holder.kill()
            holder.wait()
            with held_lock(storage, "the next write"):
                pass
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_child_that_leaves_the_block_of_its_parent_gives_nothing_back(storage) -> None:
    lock = held_lock(storage, "a write")
    lock.__enter__()
    child = os.fork()
    if child == 0:
        lock.__exit__(None, None, None)
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(Conflict), held_lock(LocalStorage(storage.base), "another"):
        pass
    lock.__exit__(None, None, None)
    with held_lock(storage, "the next write"):
        pass


@pytest.mark.parametrize(
    ("folder", "expected"), [(0o755, 0o600), (0o775, 0o660), (0o750, 0o600), (0o777, 0o666), (0o700, 0o600)]
)
def test_only_who_may_write_can_open_the_lock(storage, folder, expected) -> None:
    storage.put(".hoodie/x", b"")
    os.chmod(storage.base + "/.hoodie", folder)
    with held_lock(storage, "a write"):
        assert stat.S_IMODE(os.stat(storage.base + "/.hoodie/.locks").st_mode) == folder
        assert stat.S_IMODE(os.stat(storage.base + "/.hoodie/.locks/writer.flock").st_mode) == expected


READER = """
import fcntl, os, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for name in ("", "/.hoodie", "/.hoodie/.locks", "/.hoodie/.locks/writer.flock"):
    try:
        fcntl.flock(os.open(sys.argv[1] + name, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError:
        print("no", name, flush=True)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_who_may_only_read_stops_no_writer(storage) -> None:
    storage.put(".hoodie/.locks/writer.flock", b"")
    os.remove(storage.base + "/.hoodie/.locks/writer.flock")
    holding = held_lock(storage, "a write that is killed")
    holding.__enter__()
    for folder in (storage.base, *(str(one) for one in Path(storage.base).parents if "pytest" in str(one))):
        os.chmod(folder, 0o755)
    command = [sys.executable, "-c", READER, storage.base]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_env()) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "no /.hoodie/.locks/writer.flock\n"
        assert reader.stdout.readline() == "locked\n"
        holding.__exit__(None, None, None)
        with held_lock(storage, "the next write"):
            pass
        reader.kill()


def test_a_forked_child_does_not_keep_the_lock(storage) -> None:
    with held_lock(storage, "a write"):
        child = os.fork()
        if child == 0:
            time.sleep(20)
            os._exit(0)
    try:
        with held_lock(storage, "the next write"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_the_lock_is_on_the_file_that_is_there(storage, monkeypatch) -> None:
    real = fcntl.flock
    full = storage.base + "/.hoodie/.locks/writer.flock"
    turns = []

    def flock(file: int, how: int) -> None:
        if not turns:  # its holder gives it back, and another one makes it anew, between open and lock
            turns.append(1)
            os.remove(full)
            Path(full).touch()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with held_lock(storage, "a write"), pytest.raises(Conflict), held_lock(LocalStorage(storage.base), "another"):
        pass


def test_folders_that_are_empty_when_a_lock_is_given_back_go(storage, tmp_path) -> None:
    none = LocalStorage(str(tmp_path / "none"))
    with held_lock(none, "a write"):
        assert is_held(none)
    assert not os.path.lexists(none.base)
    os.mkdir(none.base)
    with held_lock(none, "a write"):
        pass
    assert os.listdir(none.base) == []
    storage.put(".hoodie/hoodie.properties", b"")
    storage.put("p/x", b"")
    with held_lock(storage, "drop"):
        storage.delete_dir("p")
        assert storage.delete_dir("") == 1
        assert is_held(storage)
    assert not os.path.lexists(storage.base)


def is_held(storage: LocalStorage) -> bool:
    try:
        with held_lock(LocalStorage(storage.base), "a look"):
            return False
    except Conflict:
        return True


def test_threads_that_take_and_give_back_a_lock_of_an_empty_folder_exclude_each_other(tmp_path) -> None:
    inside, most, done = [], [], []

    def work() -> None:
        storage = LocalStorage(str(tmp_path / "t"))
        for _ in range(150):
            with suppress(Conflict), held_lock(storage, "a write"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                done.append(1)

    with ThreadPoolExecutor(6) as pool:
        for one in [pool.submit(work) for _ in range(6)]:
            one.result()
    assert done
    assert set(most) == {1}
    # The folder itself may stay: who looked while another was removing folders takes it for one that was there before.
    assert not os.path.lexists(tmp_path / "t") or os.listdir(tmp_path / "t") == []


def test_where_folders_cannot_be_locked_the_file_stays(storage, monkeypatch) -> None:
    real = fcntl.flock

    def flock(file: int, how: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{file}"):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with held_lock(storage, "a write"), pytest.raises(Conflict), held_lock(storage, "another"):
        pass
    with held_lock(storage, "a third"):
        pass
    assert names_on_disk(storage) == [".hoodie/.locks/writer.flock"]


def test_lock_files_of_dead_holders_of_a_scope_go_with_the_next_and_those_of_living_ones_stay(storage) -> None:
    for name in ("dead.flock", "writer.flock"):
        storage.put(f".hoodie/.locks/{name}", b"")
    with held_lock(storage, "a plan", "living"):
        with held_lock(storage, "another plan", "another"):
            assert ".hoodie/.locks/dead.flock" in names_on_disk(storage)
        assert names_on_disk(storage) == [".hoodie/.locks/living.flock", ".hoodie/.locks/writer.flock"]
        with pytest.raises(Conflict), held_lock(storage, "the same plan", "living"):
            pass
    assert names_on_disk(storage) == [".hoodie/.locks/writer.flock"]


def test_a_lock_that_fails_otherwise_is_unavailable(storage, monkeypatch) -> None:
    monkeypatch.setattr(fcntl, "flock", _failing(errno.EIO))
    with pytest.raises(Unavailable), held_lock(storage, "a write"):
        pass


# names of the base


@pytest.mark.parametrize(
    ("given", "uri", "absolute"),
    [
        ("/a/b", "/a/b", "/a/b/p/f"),
        ("/a/b/", "/a/b", "/a/b/p/f"),
        ("/a//b/../c", "/a/c", "/a/c/p/f"),
        ("file:///a/b/", "file:///a/b", "/a/b/p/f"),
        ("file:/a/b", "file:///a/b", "/a/b/p/f"),
        ("file://localhost/a/b", "file:///a/b", "/a/b/p/f"),
        ("/with space/p%20q", "/with space/p%20q", "/with space/p%20q/p/f"),
        ("file:///p%20q", "file:///p%20q", "/p%20q/p/f"),
    ],
)
def test_base_names_are_normalised_and_literal(given, uri, absolute) -> None:
    storage = open_storage(given)
    assert (storage.uri, storage.absolute("p/f"), storage.scheme) == (uri, absolute, "file")
    assert LocalStorage(storage.uri) == storage


def test_a_relative_base_is_below_the_working_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = open_storage(Path("rel/table"))
    monkeypatch.chdir("/")
    storage.put("x", b"1")
    assert storage.uri == str(tmp_path / "rel/table")
    assert (tmp_path / "rel/table/x").read_bytes() == b"1"


@pytest.mark.parametrize("given", ["", "file:relative", "file://host/x", "file://", "/nul\0"])
def test_a_base_that_names_no_folder_is_invalid(given) -> None:
    with pytest.raises(Invalid):
        open_storage(given)


def test_the_root_of_the_system_can_be_a_base() -> None:
    assert open_storage("/").absolute("etc/x") == "/etc/x"


@pytest.mark.parametrize("given", ["hdfs://host/x", "ftp://host/x", "dbfs://x"])
def test_an_unknown_scheme_is_unsupported_and_names_the_known(given) -> None:
    with pytest.raises(Unsupported, match=r"s3://"):
        open_storage(given)


# the counting shim


def test_the_shim_kills_the_process_at_the_chosen_call(storage) -> None:
    code = (
        "import sys\nfrom hoodie.storage import LocalStorage\n"
        "from hoodie.testing.counting_storage import CountingStorage\n"
        "storage = CountingStorage(LocalStorage(sys.argv[1]), **{sys.argv[2]: 2})\n"
        "storage.put('a', b'')\nstorage.put('b', b'')\nstorage.put('c', b'')\n"
    )
    for when, left in (("kill_at", ["a"]), ("kill_after", ["a", "b"])):
        done = subprocess.run([sys.executable, "-c", code, storage.base, when], env=_env(), check=False)
        assert done.returncode == -signal.SIGKILL
        assert names_on_disk(storage) == left


def test_parquet_writes_reach_the_shim_one_by_one(storage) -> None:
    counting = CountingStorage(storage)
    with counting.open_output("f.parquet") as output:
        pq.write_table(pa.table({"a": [1, 2, 3]}), output)
    ops = [call.op for call in counting.calls]
    assert (ops[0], ops[-1]) == ("open_output", "close")
    assert set(ops[1:-1]) == {"write"}


def _failing(code: int):
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def _env() -> dict[str, str]:
    """This environment, with the package importable in a child even when it is not installed."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_file_whose_whole_path_is_too_long_is_not_taken_for_missing(tmp_path) -> None:
    """By a shorter path to the same folder, as of a mount, it can be read."""
    far = tmp_path.joinpath(*["z" * 200] * 5)
    far.mkdir(parents=True)
    (tmp_path / "near").symlink_to(far)
    near, far_storage = LocalStorage(str(tmp_path / "near" / "t")), LocalStorage(str(far / "t"))
    folder = "/".join(["y" * 200] * 16)
    near.put(f"{folder}/f", b"1")
    assert near.read(f"{folder}/f") == b"1"
    for ask in (far_storage.head, far_storage.read, far_storage.list_dir):
        with pytest.raises(Invalid, match="too long"):
            ask(folder if ask == far_storage.list_dir else f"{folder}/f")
    other = folder.replace("y", "x")
    assert far_storage.list_dir(other) == Listing((), ())
    with pytest.raises(Missing):
        far_storage.head(f"{other}/f")
