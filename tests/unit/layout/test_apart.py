"""No table keeps files where another's are, or where itself is: they would be deleted with its own."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from hoodie.errors import Conflict, HudiError, Invalid
from hoodie.layout.apart import ensure_free, ensure_outside
from hoodie.layout.layout import Layout, LayoutVersion
from hoodie.layout.owner import claim
from hoodie.layout.strategy import may_give, parse_strategy
from hoodie.storage import MemoryStorage
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
        ("s3://b/lake/rides", "own:any"),
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


@pytest.mark.parametrize("folder", ["a", "0", "10", "cafe", "dead-beef"])
def test_a_folder_without_prefix_has_no_name_that_others_may_get_as_theirs(folder: str) -> None:
    with pytest.raises(Invalid, match="looks like a prefix"):
        ensure_free(MemoryStorage(str(uuid.uuid4())), version("map", folder))
    ensure_free(MemoryStorage(str(uuid.uuid4())), version("bits:4", folder))


@pytest.mark.parametrize("text", STRATEGIES)
def test_files_do_not_get_into_a_folder_of_another_table(text: str) -> None:
    root = MemoryStorage(str(uuid.uuid4()))
    for name in ("0101", "ab", "00c0ffee"):
        claim(root, name, "theirs", "memory://theirs")
    met = [name for name in ("0101", "ab", "00c0ffee") if may_give(parse_strategy(text, OWN), name)]
    assert bool(met) == (text != "map")
    if met:
        with pytest.raises(Conflict, match="is another table's"):
            ensure_free(root, version(text))
    else:
        ensure_free(root, version(text))


def test_a_folder_that_holds_something_is_nobodys_to_take() -> None:
    root = MemoryStorage(str(uuid.uuid4()))
    root.put("rides/.hoodie/hoodie.properties", b"")
    with pytest.raises(Conflict, match="is not empty"):
        ensure_free(root, version("map"))
    ensure_free(root, version("map"), is_used=True)
    ensure_free(root, version("bits:4"))


@pytest.mark.parametrize("text", [one for one in STRATEGIES if one != "own:any"])
def test_what_a_strategy_gives_it_may_give(text: str) -> None:
    strategy = parse_strategy(text, {})
    for _ in range(50):
        assert may_give(strategy, strategy.location("p", f"{uuid.uuid4()}-0"))
    assert not may_give(strategy, "no/such")


def test_tables_in_one_root_keep_their_files_when_one_is_dropped(tmp_path: Path) -> None:
    def lake(name: str, strategy: str) -> Lake:
        places = {"hoodie.storage.path": str(tmp_path / "root"), "hoodie.storage.strategy": strategy}
        return Lake(9, {**places, "hoodie.table.name": name}, uri=str(tmp_path / f"at-{name}"))

    trips = lake("trips", "bits:4:hex")
    trips.upsert(*(row(str(number), part=f"p{number}") for number in range(20)))
    for name in ("a", "f", "7"):
        with pytest.raises(HudiError):
            lake(name, "map").upsert(row("x"))
    other = lake("others", "map")
    other.upsert(row("x"))
    other.table.drop()
    assert len(trips.values()) == 20
    trips.ensure_sound()
