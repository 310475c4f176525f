"""Which schema a table has, and when its files must be read by column id."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.fileview import FolderView
from hoodie.spec import TableConfig, keys
from hoodie.spec.schema_history import (
    IdField,
    SchemaHistory,
    SchemaVersion,
    encode_schema_history,
    encode_schema_version,
)
from hoodie.state.table_schema import SCHEMA_HISTORY_DIR, load_newest_schema, load_schema, load_table_schema
from hoodie.testing.hand_table import ROWS, HandTable, at
from hoodie.timeline import instant_path

RENAMED = pa.schema([("id", pa.string()), ("part", pa.string()), ("amount", pa.int64())])
GROUP = ("p", "f")


def version(number: str, names: Mapping[int, str]) -> SchemaVersion:
    fields = tuple(IdField(id, name, optional=True, kind="string") for id, name in names.items())
    return SchemaVersion(int(number), max(names), fields)


FIRST = version("0", {1: "id", 2: "part", 3: "qty"})
SECOND = version(at(2), {1: "id", 2: "part", 3: "amount"})
ADDED = version(at(2), {1: "id", 2: "part", 3: "qty", 4: "extra"})


def alter(table: HandTable, requested: str, schema: pa.Schema, *versions: SchemaVersion) -> None:
    """An ALTER TABLE: an empty commit that says the newest version, and a schema commit with all of them."""
    extra = {"latest_schema": encode_schema_version(versions[0])}
    table.commit(requested, {}, schema=schema, extra=extra, operation="ALTER_SCHEMA")
    completed = f"_{requested[:-3]}400" if table.profile.stores_completion_time else ""
    for ending, data in (
        (f"{requested}.schemacommit.requested", b""),
        (f"{requested}.schemacommit.inflight", b""),
        (f"{requested}{completed}.schemacommit", encode_schema_history(SchemaHistory(versions))),
    ):
        table.storage.put(f"{SCHEMA_HISTORY_DIR}/{ending}", data)


@pytest.fixture(name="table")
def _table(profile):
    table = HandTable(profile)
    table.commit(at(1), {GROUP: [{"id": "k", "qty": 7}]})
    return table


def view(table: HandTable):
    return FolderView(table.storage, table.timeline()).load()


def loaded(table: HandTable, as_of: str | None = None):
    return load_schema(table.storage, table.config, view(table), as_of)


def newest(table: HandTable):
    return load_newest_schema(table.storage, table.config, table.timeline())


def test_a_table_whose_columns_never_changed_has_no_ids(table):
    found = loaded(table)
    assert (found.arrow, found.ids) == (ROWS, None)


def test_after_a_rename_files_are_read_by_id(table):
    alter(table, at(2), RENAMED, SECOND, FIRST)
    found = loaded(table)
    assert found.arrow == RENAMED
    assert found.ids is not None
    mapping = found.ids.mapping(at(1), RENAMED)
    assert mapping is not None
    assert mapping.stored.names == ["id", "part", "qty"]
    assert found.ids.mapping(at(3), RENAMED) is None


def test_before_the_rename_the_old_name_counts(table):
    alter(table, at(2), RENAMED, SECOND, FIRST)
    found = loaded(table, at(1))
    assert found.arrow == ROWS
    assert found.ids is not None
    assert found.ids.mapping(at(1), ROWS) is None
    newer = found.ids.mapping(at(3), ROWS)
    assert newer is not None
    assert newer.stored.names == ["id", "part", "amount"]


def test_an_added_column_leaves_files_to_be_read_by_name(table):
    alter(table, at(2), ROWS, ADDED, FIRST)
    assert loaded(table).ids is None


def test_a_schema_commit_of_an_instant_that_was_rolled_back_does_not_count(table):
    alter(table, at(2), ROWS, ADDED, FIRST)
    left = encode_schema_history(SchemaHistory((version(at(3), {1: "id", 2: "part", 3: "amount"}), FIRST)))
    table.storage.put(f"{SCHEMA_HISTORY_DIR}/{at(3)}_{at(3, 1)}.schemacommit", left)
    table.storage.put(f"{SCHEMA_HISTORY_DIR}/{at(3)}.schemacommit", left)
    assert loaded(table).ids is None


def test_a_history_that_is_gone_is_an_error_once_columns_were_changed(table):
    alter(table, at(2), RENAMED, SECOND, FIRST)
    table.storage.delete_dir(SCHEMA_HISTORY_DIR)
    with pytest.raises(Corrupt, match="history of its schema"):
        loaded(table)


def test_a_history_that_is_gone_does_not_matter_while_columns_are_as_they_were_made(table):
    alter(table, at(2), ROWS, FIRST)
    table.storage.delete_dir(SCHEMA_HISTORY_DIR)
    assert loaded(table).ids is None


def test_a_damaged_history_is_named(table):
    alter(table, at(2), RENAMED, SECOND, FIRST)
    (path,) = [one.path for one in table.storage.list(SCHEMA_HISTORY_DIR) if one.path.endswith(".schemacommit")]
    table.storage.put(path, b'{"schemas": [')
    with pytest.raises(Corrupt, match="schemacommit is not a schema history") as raised:
        loaded(table)
    assert raised.value.facts["path"] == path


@pytest.mark.parametrize("load", [loaded, newest])
def test_a_damaged_schema_of_a_commit_names_the_commit(table, load):
    table.commit(at(2), {}, extra={keys.SCHEMA_EXTRA: '{"type":"record",'})
    with pytest.raises(Corrupt, match="Not an Avro schema") as raised:
        load(table)
    last = table.timeline().last_completed_write()
    assert raised.value.facts["path"] == instant_path(table.profile, last)


def test_a_damaged_schema_of_the_table_names_its_properties(profile):
    table = HandTable(profile)
    table.config = TableConfig({**table.config.raw, "hoodie.table.create.schema": "[1"})
    with pytest.raises(Corrupt, match="Not an Avro schema") as raised:
        loaded(table)
    assert raised.value.facts["path"] == keys.PROPERTIES_FILE


def test_who_reads_by_name_is_told_that_names_will_not_do(table):
    alter(table, at(2), RENAMED, SECOND, FIRST)
    with pytest.raises(Unsupported, match="column id"):
        load_table_schema(table.storage, table.config, view(table))


def test_a_writer_is_told_that_it_cannot_continue_the_history(table):
    alter(table, at(2), ROWS, FIRST)
    with pytest.raises(Unsupported, match="schema-on-read"):
        newest(table)
