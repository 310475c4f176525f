"""No table keeps files where another's are, or where itself is: they would be deleted with its own."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from hoodie.engine import TaskId
from hoodie.errors import Conflict, HudiError, Invalid
from hoodie.layout.apart import ensure_free, ensure_outside
from hoodie.layout.layout import Layout, LayoutVersion
from hoodie.layout.owner import claim
from hoodie.layout.strategy import may_give, parse_strategy
from hoodie.services.relayout.copies import delete_old
from hoodie.storage import LocalStorage, MemoryStorage
from hoodie.testing.lake import Lake, row

OWN = {"any": type("Any", (), {"prefixes": None, "location": lambda self, partition, file_id: "x"})()}
STRATEGIES = ("map", "rfc60", "bits:4", "bits:8:hex", "fileid:0:2", "own:any")


def version(text: str, folder: str = "rides") -> LayoutVersion:
    return LayoutVersion(1, "0", text, (0,), folder, "", parse_strategy(text, OWN))


def layout(root: str, text: str, folder: str = "rides") -> Layout:
    return Layout((root,), (version(text, folder),), str(uuid.UUID(int=7)))


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("s3://b/rides", "map"),
        ("s3a://b/rides/deeper", "map"),
        ("s3://b/0101/rides", "bits:4"),
        ("s3://b/0101", "bits:4"),
        ("s3://b/ab/rides/deeper", "bits:8:hex"),
        ("s3://b/00c0ffee/rides", "rfc60"),
        ("s3://b/a/rides", "fileid:0:2"),
    ],
)
def test_files_do_not_lie_where_the_table_is(table: str, text: str) -> None:
    with pytest.raises(Invalid, match="where the table at"):
        ensure_outside(layout("s3://b", text), table)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("s3://b/rides", "bits:4"),
        ("s3://b/lake/rides", "bits:4"),
        ("s3://b/0101/trips", "bits:4"),
        ("s3://b/trips", "map"),
        ("s3://b/lake/rides", "map"),
        ("s3://other/rides", "map"),
        ("s3://b/011/rides", "bits:4"),
        ("s3://b/lake/rides", "fileid:0:8"),
        ("s3://b/lake/rides", "own:any"),
    ],
)
def test_a_table_may_lie_below_its_storage_path(table: str, text: str) -> None:
    ensure_outside(layout("s3://b", text), table)


def test_a_move_to_where_the_table_is_loses_nothing(tmp_path: Path) -> None:
    lake = Lake(9, {"hoodie.storage.allowed.roots": str(tmp_path)}, uri=str(tmp_path / "lake"))
    lake.upsert(row("a"))
    above = {"hoodie.storage.path": str(tmp_path)}
    with pytest.raises(Invalid, match="where the table at"):
        lake.table.services.relayout("map", move=True, grace_hours=0, **above)
    assert lake.values() == {"a": "a"}
    lake.ensure_sound()


def free(root: MemoryStorage, one: LayoutVersion, uuid_of: str = "mine") -> None:
    ensure_free(root, one, uuid_of, "memory://mine")


def a_root() -> MemoryStorage:
    return MemoryStorage(str(uuid.uuid4()))


@pytest.mark.parametrize("folder", ["a", "0", "10", "cafe", "dead-beef"])
def test_a_folder_without_prefix_has_no_name_that_others_there_may_get_as_theirs(folder: str) -> None:
    root = a_root()
    free(root, version("map", folder))
    root.put(".hoodie_owners/.probe-1", b"")
    free(root, version("map", folder))
    claim(root, "trips", "theirs", "memory://theirs")
    with pytest.raises(Conflict, match="looks like a prefix"):
        free(root, version("map", folder))
    free(root, version("bits:4", folder))


@pytest.mark.parametrize("text", STRATEGIES)
@pytest.mark.parametrize("is_bare", [False, True])
def test_files_do_not_get_into_a_folder_of_another_table(text: str, is_bare: bool) -> None:
    root, names = a_root(), ("0101", "ab", "00c0ffee")
    for name in names:
        claim(root, name, "theirs", "memory://theirs", is_bare=is_bare)
    met = [name for name in names if may_give(parse_strategy(text, OWN), name)]
    assert bool(met) == (text not in ("map", "own:any"))
    if met and is_bare:
        with pytest.raises(Conflict, match="which is the table's at memory://theirs"):
            free(root, version(text))
    else:
        free(root, version(text))


def test_who_is_there_with_prefixes_and_leaves_them_says_so() -> None:
    root = a_root()
    claim(root, "ab", "theirs", "memory://theirs")
    free(root, version("bits:8:hex"))
    claim(root, "ab", "theirs", "memory://theirs", is_bare=True)
    claim(root, "ab", "theirs", "memory://theirs")
    with pytest.raises(Conflict, match="would get into the folder 'ab'"):
        free(root, version("bits:8:hex"))


def test_a_folder_with_files_is_nobodys_to_take_but_whose_it_is() -> None:
    root = a_root()
    root.put("rides/.hoodie/hoodie.properties", b"")
    with pytest.raises(Conflict, match="is not known to be this table's"):
        free(root, version("map"))
    free(root, version("bits:4"))
    claim(root, "rides", "mine", "memory://mine")
    free(root, version("map"))
    with pytest.raises(Conflict):
        ensure_free(root, version("map"), "theirs", "memory://theirs")


def on_disk(folder: Path, name: str, strategy: str) -> Lake:
    places = {"hoodie.storage.path": str(folder / "root"), "hoodie.storage.strategy": strategy}
    return Lake(9, {**places, "hoodie.table.name": name}, uri=str(folder / f"at-{name}"))


def test_a_creation_that_failed_is_tried_again_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = on_disk(tmp_path, "trips", "map")
    with monkeypatch.context() as patched:
        patched.setattr("hoodie.write.operations._commit", lambda *_, **__: (_ for _ in ()).throw(Invalid("no")))
        with pytest.raises(Invalid, match="no"):
            lake.upsert(row("a"))
    assert (tmp_path / "root" / "trips").is_dir()
    lake.upsert(row("a"))
    assert lake.values() == {"a": "a"}
    lake.ensure_sound()


def test_there_is_a_way_back_to_the_folder_without_prefix_on_a_disk(tmp_path: Path) -> None:
    lake = on_disk(tmp_path, "trips", "map")
    lake.upsert(row("a"), row("b", part="q"))
    for strategy in ("bits:4", "map", "bits:2", "map"):
        lake.table.services.relayout(strategy, move=True, grace_hours=0)
        assert lake.values() == {"a": "a", "b": "a"}
    assert lake.table.validate() == []


@pytest.mark.parametrize("strategy", ["bits:8:hex", "fileid:0:8", "fileid:0:2"])
def test_tables_with_prefixes_share_a_root_whatever_their_names(tmp_path: Path, strategy: str) -> None:
    lakes = [on_disk(tmp_path, name, strategy) for name in ("ab", "rides", "0101")]
    for lake in lakes:
        lake.upsert(row("a"))
    lakes[0].table.drop()
    for lake in lakes[1:]:
        assert lake.values() == {"a": "a"}
        lake.ensure_sound()


@pytest.mark.parametrize("text", [one for one in STRATEGIES if one != "own:any"])
def test_what_a_strategy_gives_it_may_give(text: str) -> None:
    strategy = parse_strategy(text, {})
    for _ in range(50):
        assert may_give(strategy, strategy.location("p", f"{uuid.uuid4()}-0"))
    assert not may_give(strategy, "no/such")


def test_tables_in_one_root_keep_their_files_when_one_is_dropped(tmp_path: Path) -> None:
    trips = on_disk(tmp_path, "trips", "bits:4:hex")
    trips.upsert(*(row(str(number), part=f"p{number}") for number in range(20)))
    for name in ("a", "f", "7"):
        with pytest.raises(HudiError):
            on_disk(tmp_path, name, "map").upsert(row("x"))
    other = on_disk(tmp_path, "others", "map")
    other.upsert(row("x"))
    other.table.drop()
    assert len(trips.values()) == 20
    trips.ensure_sound()


def test_the_end_of_a_move_deletes_no_file_that_is_its_own_copy(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("p/f.parquet", b"rows")
    assert delete_old(TaskId(0, 0, 0), (storage, LocalStorage(str(tmp_path)), "p/f.parquet", False)) is False
    assert storage.read("p/f.parquet") == b"rows"


@pytest.mark.parametrize("strategy", ["map", "bits:2"])
@pytest.mark.parametrize("gone", ["deleted", "moved aside"])
def test_a_table_made_where_another_was_does_not_take_its_files_for_its_own(
    tmp_path: Path, strategy: str, gone: str
) -> None:
    lake = on_disk(tmp_path, "rides", strategy)
    lake.upsert(*(row(str(number)) for number in range(20)))
    if gone == "deleted":
        shutil.rmtree(tmp_path / "at-rides")
    else:
        (tmp_path / "at-rides").rename(tmp_path / "kept")
    for _ in range(2):
        with pytest.raises(Conflict, match="lie in"):
            on_disk(tmp_path, "rides", strategy).upsert(row("new"))
    if gone == "moved aside":
        named = {"hoodie.storage.allowed.roots": str(tmp_path), "hoodie.table.name": "rides"}
        kept = Lake(9, named, uri=str(tmp_path / "kept"))
        assert len(kept.values()) == 20
        kept.table.services.relayout(claim=True)
        kept.upsert(row("new"))
        kept.ensure_sound()
        return
    for path in (tmp_path / "root").rglob("*.parquet"):
        path.unlink()
    fresh = on_disk(tmp_path, "rides", strategy)
    fresh.upsert(row("new"))
    fresh.table.indexes.rebuild()
    assert fresh.values() == {"new": "a"}
    fresh.ensure_sound()


@pytest.mark.parametrize(
    ("strategy", "root"),
    [
        ("map", "root/rides"),
        ("map", "root/rides/deeper"),
        ("bits:4:hex", "root/a/rides"),
        ("bits:4:hex", "root/a/rides/x"),
        ("bits:4:hex", "root/rides"),
        ("map", "link"),
        ("map", "link/deeper"),
    ],
)
def test_no_storage_path_lies_in_a_folder_of_another_table(tmp_path: Path, strategy: str, root: str) -> None:
    lake = on_disk(tmp_path, "rides", strategy)
    lake.upsert(row("a"))
    (tmp_path / "link").symlink_to(tmp_path / "root" / "rides")
    places = {"hoodie.storage.path": str(tmp_path / root), "hoodie.storage.strategy": "bits:2"}
    other = Lake(9, {**places, "hoodie.table.name": "trips"}, uri=str(tmp_path / "at-trips"))
    with pytest.raises(Conflict, match=r"lies in a folder of the table at .*at-rides"):
        other.upsert(row("x"))
    lake.ensure_sound()


@pytest.mark.parametrize("root", ["root/trips", "root/a/trips", "root/rides-2/x"])
def test_a_storage_path_may_lie_beside_folders_of_other_tables(tmp_path: Path, root: str) -> None:
    lake = on_disk(tmp_path, "rides", "map")
    lake.upsert(row("a"))
    places = {"hoodie.storage.path": str(tmp_path / root), "hoodie.storage.strategy": "bits:2"}
    other = Lake(9, {**places, "hoodie.table.name": "others"}, uri=str(tmp_path / "at-others"))
    other.upsert(row("x"))
    for one in (lake, other):
        one.ensure_sound()


def test_files_that_nobody_claims_are_not_taken_for_those_of_a_new_table(tmp_path: Path) -> None:
    lake = on_disk(tmp_path, "rides", "bits:2")
    lake.upsert(row("a"))
    (stray,) = (tmp_path / "root").rglob("*.parquet")
    data = stray.read_bytes()
    lake.table.drop()
    stray.parent.mkdir(parents=True)
    stray.write_bytes(data)
    with pytest.raises(Conflict, match=stray.name):
        on_disk(tmp_path, "rides", "bits:2").upsert(row("new"))
    stray.unlink()
    on_disk(tmp_path, "rides", "bits:2").upsert(row("new"))


@pytest.mark.parametrize("name", ["täbel", "日本", "or:ders", "%41", "a" * 220])
def test_a_name_that_is_no_folder_asks_for_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid, match=r"hoodie\.storage\.folder"):
        on_disk(tmp_path, name, "bits:2").upsert(row("a"))
    plain = Lake(9, {"hoodie.storage.path": None, "hoodie.table.name": name}, uri=str(tmp_path / "plain"))
    plain.upsert(row("a"))
    where = {"hoodie.storage.path": str(tmp_path / "root"), "hoodie.storage.allowed.roots": str(tmp_path)}
    with pytest.raises(Invalid, match=r"hoodie\.storage\.folder"):
        plain.table.services.relayout("bits:2", **where)
    plain.table.services.relayout("bits:2", move=True, grace_hours=0, **where, **{"hoodie.storage.folder": "named"})
    opened = Lake(9, {"hoodie.table.name": name, "hoodie.storage.allowed.roots": str(tmp_path)}, uri=plain.uri)
    opened.table.services.relayout("bits:3", move=True, grace_hours=0)
    assert opened.values() == {"a": "a"}
    opened.table.services.relayout("hive", move=True, grace_hours=0)
    assert opened.values() == {"a": "a"}
