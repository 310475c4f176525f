"""Tables on a local disk with symbolic links in them: no write and no service changes what lies behind a link."""

import itertools
import os
from pathlib import Path

import pytest

from hoodie.errors import HudiError, Invalid
from hoodie.table import as_source, write
from hoodie.testing.lake import Lake, row, table_of

pytestmark = pytest.mark.deep

KINDS = [(version, kind) for version in (6, 8, 9) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
HARMLESS = (
    ".hoodie/.temp/20200101000000000",
    ".hoodie/.temp/20200101000000000.spool",
    ".hoodie/.temp/20200101000000000.overwrite",
    ".hoodie/.heartbeat",
    ".hoodie/metadata/.hoodie/.temp/20200101000000000",
    ".hoodie/.aux",
    ".hoodie/.bootstrap",
    "p1/below",
    "foreign",
)
"""Where a link disturbs no write."""
IN_THE_WAY = (
    ".hoodie",
    ".hoodie/.temp",
    ".hoodie/.locks",
    ".hoodie/.index_defs",
    ".hoodie/.schema",
    ".hoodie/archived",
    ".hoodie/metadata",
    ".hoodie/metadata/.hoodie",
    ".hoodie/metadata/files",
    ".hoodie/timeline",
    ".hoodie/timeline/history",
    "p0",
)
BATCH = table_of([row("a", "2", 2, "p0"), row("z", "2", 2, "p1"), row("new", "1", 1, "p2")])
OTHER_KIND = {"hoodie.datasource.write.recordkey.field": "id,part", "hoodie.datasource.write.partitionpath.field": ""}
TIGHT = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def made(uri: str, version: int, table_type: str) -> Lake:
    lake = Lake(version, {"hoodie.datasource.write.table.type": table_type}, uri=uri)
    write(
        as_source(table_of([row("a", part="p0"), row("b", part="p0"), row("z", part="p1")])),
        uri,
        lake.options,
        "append",
    )
    return lake


def everything(lake: Lake) -> list[str]:
    """Every write and service, one after the other; the messages of those that were refused."""
    table = lake.table
    other = next(version for version in (9, 8, 6) if version != lake.version)
    acts = (
        lambda: table.upsert(BATCH),
        lambda: table.delete(table_of([row("b", part="p0")])),
        lambda: table.bulk_insert(table_of([row("c", part="p3")])),
        lambda: table.insert_overwrite(table_of([row("o", part="p0")])),
        lambda: table.delete_partition("p1"),
        table.services.schedule_compaction,
        table.services.compact,
        table.savepoints.create,
        lambda: table.upsert(BATCH),
        lambda: [table.services.restore(one.instant) for one in table.savepoints],
        lambda: [table.savepoints.delete(one.instant) for one in table.savepoints],
        lambda: table.services.rollback(table.timeline().completed_writes()[-1].requested),
        lambda: table.upsert(BATCH),
        lambda: table.services.clean(**TIGHT),
        lambda: table.services.archive(**TIGHT),
        lambda: table.indexes.create("record_index"),
        lambda: table.indexes.drop("record_index"),
        lambda: lake.table.services.upgrade(other),
        lambda: write(as_source(BATCH), lake.uri, lake.options, "overwrite"),
        lambda: write(as_source(BATCH), lake.uri, {**lake.options, **OTHER_KIND}, "overwrite"),
        lake.table.drop,
    )
    refusals = []
    for act in acts:
        try:
            act()
        except HudiError as error:
            refusals.append(str(error))
    return refusals


def moved_out(base: Path, path: str, outside: Path) -> None:
    """A link in the place of the folder or file `path`, which leads to where it lies now, beside things of others."""
    away = outside / path.replace("/", "_")
    there = base / path
    if there.exists():
        there.rename(away)
    else:
        away.mkdir()
        (away / "theirs").mkdir()
        there.parent.mkdir(parents=True, exist_ok=True)
    (away / "x.txt").write_text("precious")
    (away / "20200101000000000.commit").write_text("{}")
    there.symlink_to(away)


def state_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in (folder, *sorted(folder.rglob("*")))
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("version", "table_type"), KINDS[1::2])
def test_links_where_nobody_writes_disturb_nothing_and_what_they_lead_to_stays(tmp_path, version, table_type) -> None:
    plain = made(str(tmp_path / "plain"), version, table_type)
    lake = made(str(tmp_path / "table"), version, table_type)
    outside = tmp_path / "outside"
    outside.mkdir()
    for path in HARMLESS:
        moved_out(tmp_path / "table", path, outside)
    before = state_of(outside)
    assert len(everything(lake)) == len(everything(plain))
    assert state_of(outside) == before


@pytest.mark.parametrize(("path", "kind"), list(zip(IN_THE_WAY, itertools.cycle(KINDS), strict=False)))
def test_nothing_behind_a_link_is_changed_by_any_write_or_service(tmp_path, path, kind) -> None:
    lake = made(str(tmp_path / "table"), *kind)
    outside = tmp_path / "outside"
    outside.mkdir()
    moved_out(tmp_path / "table", path, outside)
    before = state_of(outside)
    assert len(everything(lake)) >= (path in (".hoodie", ".hoodie/.temp", "p0"))
    assert state_of(outside) == before


@pytest.mark.parametrize(("version", "table_type"), KINDS[:4:3])
def test_a_table_behind_a_link_is_a_table_like_any_other(tmp_path, version, table_type) -> None:
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "link")
    plain = made(str(tmp_path / "plain"), version, table_type)
    linked = made(str(tmp_path / "link" / "table"), version, table_type)
    os.rename(tmp_path / "real" / "table", tmp_path / "real" / "moved")
    os.symlink("moved", tmp_path / "real" / "table")
    assert everything(linked) == everything(plain)
    assert state_of(tmp_path / "real" / "moved") == {".": b""}


def test_loops_and_links_to_nothing_disturb_no_write(tmp_path) -> None:
    lake = made(str(tmp_path / "table"), 9, "MERGE_ON_READ")
    for name, target in (
        ("loop", "loop"),
        ("none", "nowhere"),
        ("p0/up", ".."),
        ("p1/here", "."),
        (".hoodie/up", ".."),
    ):
        os.symlink(target, tmp_path / "table" / name)
    assert lake.table.validate() == []
    lake.table.upsert(BATCH)
    assert sorted(lake.table.scan().read_all()["id"].to_pylist()) == ["a", "b", "new", "z"]


def test_a_write_into_a_linked_partition_is_refused_and_reading_it_goes_on(tmp_path) -> None:
    lake = made(str(tmp_path / "table"), 9, "COPY_ON_WRITE")
    (tmp_path / "outside").mkdir()
    moved_out(tmp_path / "table", "p0", tmp_path / "outside")
    with pytest.raises(Invalid, match=r"p0 is or lies behind a symbolic link.*bind mount"):
        lake.table.upsert(BATCH)
    assert sorted(lake.table.scan().read_all()["id"].to_pylist()) == ["a", "b", "z"]
    lake.table.upsert(table_of([row("c", part="p2")]))
    assert sorted(lake.table.scan().read_all()["id"].to_pylist()) == ["a", "b", "c", "z"]
