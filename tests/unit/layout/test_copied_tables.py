"""A table whose own folder was copied or moved while its data files stay where they are: one table changes them."""

import shutil

import pytest

from hoodie.errors import Conflict, Invalid, Unavailable
from hoodie.table import Table
from hoodie.testing.lake import row, table_of

SCHEMA = table_of([row("a")]).schema
NEWEST = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


@pytest.fixture
def root(tmp_path):
    """The storage path."""
    return tmp_path / "data"


@pytest.fixture(params=["6", "8", "9"])
def table(request, tmp_path, root):
    options = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.write.table.version": request.param,
        "hoodie.storage.path": str(root),
        "hoodie.clean.automatic": "false",
    }
    made = Table.create(str(tmp_path / "table"), schema=SCHEMA, options=options)
    made.upsert(table_of([row("a", "1", 1)]))
    return made


def opened(path, root):
    return Table.open(str(path), options={"hoodie.storage.allowed.roots": str(root), "hoodie.clean.automatic": "false"})


def values(table):
    found = table.scan(columns=["id", "v"]).read_all().to_pydict()
    return dict(zip(found["id"], found["v"], strict=True))


def test_a_copy_is_read_and_changes_nothing(table, tmp_path, root):
    """It has the identity of the original, whose files its clean would delete."""
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "table", copy)
    assert values(opened(copy, root)) == {"a": "1"}
    table.upsert(table_of([row("a", "2", 2)]))
    files = {path for path in root.rglob("*") if path.is_file()}
    for act in (
        lambda one: one.upsert(table_of([row("a", "copied", 9)])),
        lambda one: one.delete_partition("p"),
        lambda one: one.services.relayout("bits:4"),
        lambda one: one.drop(),
    ):
        with pytest.raises(Conflict, match=f"belongs to the table at .*, and {copy} is a copy of it"):
            act(opened(copy, root))
        assert {path for path in root.rglob("*") if path.is_file()} >= files
    opened(copy, root).services.clean(**NEWEST)  # knows of nothing to take
    assert values(table) == {"a": "2"}
    table.upsert(table_of([row("a", "3", 3)]))
    table.services.clean(**NEWEST)
    assert values(table) == {"a": "3"}
    assert table.validate() == []


def test_a_table_that_was_moved_says_so_once(table, tmp_path, root):
    moved = tmp_path / "elsewhere" / "table"
    shutil.move(tmp_path / "table", moved)
    with pytest.raises(Conflict, match="--claim"):
        opened(moved, root).upsert(table_of([row("a", "2", 2)]))
    done = opened(moved, root).services.relayout(claim=True)
    assert done.steps == (f"the storage paths know the table at {moved}",)
    opened(moved, root).upsert(table_of([row("a", "3", 3)]))
    assert values(opened(moved, root)) == {"a": "3"}
    assert opened(moved, root).validate() == []


def test_another_spelling_of_the_table_path_is_the_same_table(table, tmp_path, root):
    (tmp_path / "link").symlink_to(tmp_path / "table")
    for path in (f"file://{tmp_path}/table/", tmp_path / "link"):
        opened(path, root).upsert(table_of([row("a", "again", 5)]))
    assert values(table) == {"a": "again"}


def test_lost_owner_objects_are_made_again_and_those_of_others_are_not_taken(table, tmp_path, root):
    owner = root / ".hoodie_owners" / "rides"
    owner.unlink()
    with pytest.raises(Unavailable, match="--claim"):
        opened(tmp_path / "table", root).upsert(table_of([row("a", "2", 2)]))
    assert opened(tmp_path / "table", root).services.relayout(claim=True) is not None
    opened(tmp_path / "table", root).upsert(table_of([row("a", "2", 2)]))
    owner.write_text('{"uuid": "other", "table": "/theirs"}')
    with pytest.raises(Conflict, match="belongs to the table at /theirs"):
        opened(tmp_path / "table", root).services.relayout(claim=True)


def test_there_is_nothing_to_claim_without_storage_paths(tmp_path):
    options = {"hoodie.table.name": "plain", "hoodie.datasource.write.recordkey.field": "id"}
    plain = Table.create(str(tmp_path / "plain"), schema=SCHEMA, options=options)
    with pytest.raises(Invalid, match="no storage paths"):
        plain.services.relayout(claim=True)
