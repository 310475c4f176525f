"""Tables of our writer, of all versions, types, key generators, operations and partition styles: all peers agree.

A model in the test (rows by key) says what must be there, so that all of us agreeing on something wrong is seen, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    Readers,
    ancient_rows,
    ensure_same_rows,
    is_meta,
    slim_rows,
    table_options,
    typed_rows,
    without_meta,
    write_rows,
)

VERSIONS = (6, 8, 9)
EPOCH_FORMAT = "hoodie.keygen.timebased.output.dateformat"
EPOCH_DAYS = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    EPOCH_FORMAT: "yyyy-MM-dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}
TEXT_HOURS = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm:ss",
    "hoodie.keygen.timebased.output.dateformat": "yyyyMMddHH",
    "hoodie.keygen.timebased.timezone": "UTC",
}
KEYGENS = "org.apache.hudi.keygen."


@dataclass(frozen=True)
class Style:
    """How a table names its keys and partitions. `from_path` columns are read from the path, not from the files."""

    name: str
    keys: str | None
    partition: str = ""
    options: dict[str, str] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    from_path: tuple[str, ...] = ()
    limits_6: tuple[str, ...] = ()


def _keygen(name: str, **more: str) -> dict[str, str]:
    return {WRITE + "keygenerator.class": KEYGENS + name, **more}


HIVE = {WRITE + "hive_style_partitioning": "true"}
ENCODED = {WRITE + "partitionpath.urlencode": "true"}
STYLES = (
    Style("no_partitions", "id"),
    Style("simple", "id", "region"),
    Style("simple_hive", "id", "region", HIVE),
    Style("simple_encoded", "id", "region", ENCODED),
    Style("simple_hive_encoded", "id", "region", HIVE | ENCODED),
    Style("date_partition", "id", "day"),
    Style("date_partition_hive", "id", "day", HIVE),
    Style("int_partition", "id", "city"),
    Style("two_partitions", "id,ts_key", "region,city"),
    Style("two_partitions_hive", "id,ts_key", "region,city", HIVE),
    Style("complex_one_key", "id", "region,city", _keygen("ComplexKeyGenerator")),
    Style("two_keys_no_partitions", "id,ts_key"),
    Style(
        "epoch_days",
        "id",
        "seen_ms",
        _keygen("TimestampBasedKeyGenerator", **EPOCH_DAYS),
        ("rs_path_values", "015_timestamp_keys"),
        ("seen_ms",),
        ("12_old_epoch_partitions",),
    ),
    Style(
        "epoch_slashes",
        "id",
        "seen_ms",
        _keygen("TimestampBasedKeyGenerator", **(EPOCH_DAYS | {EPOCH_FORMAT: "yyyy/MM/dd"})),
        ("rs_path_values", "015_timestamp_keys"),
        ("seen_ms",),
    ),
    Style(
        "text_hours",
        "id",
        "seen_text",
        _keygen("TimestampBasedKeyGenerator", **TEXT_HOURS),
        ("rs_path_values", "015_timestamp_keys"),
        ("seen_text",),
    ),
    Style(
        "custom",
        "id",
        "region:SIMPLE,seen_text:TIMESTAMP",
        _keygen("CustomKeyGenerator", **TEXT_HOURS),
        ("rs_custom_keys", "015_timestamp_keys"),
        ("seen_text",),
    ),
    Style(
        "dropped_columns",
        "id",
        "region",
        HIVE | {WRITE + "drop.partition.columns": "true"},
        ("rs_dropped_partition_columns",),
    ),
    Style("no_meta_fields", "id", "region", {"hoodie.populate.meta.fields": "false"}),
    Style("global_simple", "id", "region", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
    Style("bloom", "id", "region", {"hoodie.index.type": "BLOOM"}),
    Style("global_bloom", "id", "region", {"hoodie.index.type": "GLOBAL_BLOOM"}),
)
STYLE_CASES = [(style, version) for style in STYLES for version in VERSIONS]


def _rows(numbers: range, turn: int = 0) -> pa.Table:
    """Slim rows with a second key column."""
    rows = slim_rows(numbers, turn)
    return rows.append_column("ts_key", pc.add(rows.column("city"), 100))


def _model() -> Model:
    return Model(_rows(range(0)).schema)


@pytest.mark.parametrize(("style", "version"), STYLE_CASES, ids=lambda value: getattr(value, "name", f"v{value}"))
def test_every_peer_reads_a_table_of_each_style_after_insert_upsert_and_delete(
    style: Style, version: int, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", _model()
    options = table_options(version, style.keys, style.partition) | style.options
    for operation, rows in (
        ("insert", _rows(range(30))),
        ("upsert", _rows(range(20, 40), turn=1)),
        ("delete", _rows(range(5), turn=1)),
    ):
        write_rows(table, operation, rows, options)
        model.delete(rows) if operation == "delete" else model.upsert(rows)
    ours = readers.ensure_agree(table, version, style.limits + (style.limits_6 if version == 6 else ()))
    ensure_same_rows(without_meta(ours), model.rows, style.from_path, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert"])
@pytest.mark.parametrize("zoneless", [True, False], ids=["all_types", "without_zoneless"])
def test_every_peer_reads_every_type(
    operation: str, version: int, zoneless: bool, readers: Readers, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    options = table_options(version, "id", "region")
    first, second = typed_rows(range(12), zoneless=zoneless), typed_rows(range(8, 16), 1, zoneless=zoneless)
    model = Model(first.schema)
    for step, rows in ((operation, first), ("upsert", second)):
        write_rows(table, step, rows, options)
        model.upsert(rows)
    limits = ("rs_zoneless_timestamps", "015_zoneless_timestamps") if zoneless else ()
    ours = readers.ensure_agree(table, version, limits)
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_hudi_reads_ancient_dates_where_spark_is_told_to_trust_files(
    version: int, hudi_12: Peer, readers: Readers, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    write_rows(table, "insert", ancient_rows(), table_options(version, "id", "region"))
    ours = readers.ensure_agree(table, version, ("12_ancient_dates", "015_ancient_dates"))
    ensure_same_rows(without_meta(ours), ancient_rows(), called=("ours", "input"))
    conf = {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}
    ensure_same_rows(ours, hudi_12.read(table, conf=conf), called=("ours", "Hudi 1.2.0"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_null_elements_of_lists(version: int, readers: Readers, tmp_path: Path) -> None:
    table = tmp_path / "table"
    rows = typed_rows(range(6), zoneless=False, nulls_in_lists=True)
    write_rows(table, "bulk_insert", rows, table_options(version, "id", "region"))
    model = Model(rows.schema)
    model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "mode",
    ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"],
)
def test_every_peer_reads_a_bulk_insert_in_each_sort_mode(
    mode: str, version: int, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", _model()
    rows = _rows(range(60))
    options = table_options(version, "id", "region")
    write_rows(table, "bulk_insert", rows, options | {"hoodie.bulkinsert.sort.mode": mode})
    model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("ours", "model"))


def _overwrite_partitions(table: Path, options: dict[str, str], model: Model) -> None:
    rows = _rows(range(60, 90, 3), turn=1)  # one region only
    write_rows(table, "insert_overwrite", rows, options)
    model.remove("region", rows.column("region").to_pylist())
    model.upsert(rows)


def _overwrite_table(table: Path, options: dict[str, str], model: Model) -> None:
    rows = _rows(range(200, 220), turn=1)
    write_rows(table, "insert_overwrite_table", rows, options)
    model.clear()
    model.upsert(rows)


def _delete_partition(table: Path, options: dict[str, str], model: Model) -> None:
    more = {WRITE + "partitions.to.delete": "north"}
    write_rows(table, "delete_partition", _rows(range(1)), options | more)
    model.remove("region", ["north"])


def _soft_delete(table: Path, options: dict[str, str], model: Model) -> None:
    rows = _rows(range(6), turn=2)
    for name in ("name", "amount"):
        empty = pa.nulls(rows.num_rows, rows.schema.field(name).type)
        rows = rows.set_column(rows.column_names.index(name), name, empty)
    write_rows(table, "upsert", rows, options)
    model.upsert(rows)


def _late_rows(table: Path, options: dict[str, str], model: Model) -> None:
    rows = _rows(range(20), turn=-1)  # older than what is there: event-time ordering keeps the stored rows
    write_rows(table, "upsert", rows, options)
    model.upsert(rows)


def _repeated_keys(table: Path, options: dict[str, str], model: Model) -> None:
    rows = pa.concat_tables([_rows(range(25, 35), turn=3), _rows(range(25, 35), turn=2)])
    write_rows(table, "upsert", rows, options)
    model.upsert(rows)


def _delete_everything(table: Path, options: dict[str, str], model: Model) -> None:
    write_rows(table, "delete", _rows(range(40), turn=5), options)
    model.clear()


CHANGES: dict[str, Callable[[Path, dict[str, str], Model], None]] = {
    "insert_overwrite": _overwrite_partitions,
    "insert_overwrite_table": _overwrite_table,
    "delete_partition": _delete_partition,
    "soft_delete": _soft_delete,
    "late_rows": _late_rows,
    "repeated_keys": _repeated_keys,
    "delete_everything": _delete_everything,
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_every_peer_reads_the_table_after_each_kind_of_change(
    change: str, version: int, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", _model()
    options = table_options(version, "id", "region") | {
        WRITE + "payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    }
    first = _rows(range(40))
    write_rows(table, "insert", first, options)
    model.upsert(first)
    CHANGES[change](table, options, model)
    after = _rows(range(100, 106), turn=6)
    write_rows(table, "upsert", after, options)
    model.upsert(after)
    ours = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_rows_that_a_deletion_mark_removed(version: int, readers: Readers, tmp_path: Path) -> None:
    table, model = tmp_path / "table", Model(_marked(range(0), gone=False).schema)
    options = table_options(version, "id", "region")
    kept, gone = _marked(range(20), gone=False), _marked(range(5, 10), gone=True)
    write_rows(table, "insert", kept, options)
    write_rows(table, "upsert", gone, options)
    model.upsert(kept)
    model.delete(gone)
    ours = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_rows_with_automatic_keys(version: int, readers: Readers, tmp_path: Path) -> None:
    table = tmp_path / "table"
    options = table_options(version, None, "region", ordering="")
    for rows in (_rows(range(10)), _rows(range(10))):
        write_rows(table, "insert", rows, options)
    ours = readers.ensure_agree(table, version)
    assert ours.num_rows == 20
    assert len(set(ours.column("_hoodie_record_key").to_pylist())) == 20


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_a_table_with_many_file_groups(version: int, readers: Readers, tmp_path: Path) -> None:
    table, model = tmp_path / "table", _model()
    options = table_options(version, "id", "region") | {
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.copyonwrite.insert.split.size": "7",
        "hoodie.copyonwrite.insert.auto.split": "false",
    }
    for numbers, turn in ((range(60), 0), (range(0, 60, 7), 1), (range(60, 90), 1)):
        rows = _rows(numbers, turn)
        write_rows(table, "upsert", rows, options)
        model.upsert(rows)
    ours = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))
    assert len(set(ours.column("_hoodie_file_name").to_pylist())) > 6


@pytest.mark.parametrize("version", VERSIONS)
def test_peers_read_and_change_row_groups_that_were_copied_beside_longer_decimals(
    version: int, readers: Readers, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", Model(_priced(range(0), 16).schema)
    small = {"hoodie.parquet.block.size": "4000", "hoodie.row.group.copy.min.bytes": "1"}
    options = table_options(version, "id") | small
    for numbers, turn, digits in ((range(400), 0, 15), (range(350, 360), 1, 16)):
        write_rows(table, "upsert", _priced(numbers, digits, turn), options)
        model.upsert(_priced(numbers, 16, turn))
    ours = _ensure_changed_by_peer(readers, table, version, model, _priced([7, 352, 500], 16, 2))
    assert ours.schema.field("price").type == pa.decimal128(16, 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_peers_read_and_change_row_groups_of_which_only_some_columns_were_encoded_anew(
    version: int, readers: Readers, tmp_path: Path
) -> None:
    table, before = tmp_path / "table", typed_rows(range(300), zoneless=False)
    model = Model(before.schema)
    options = table_options(version, "id") | {
        "hoodie.parquet.block.size": "20000",
        "hoodie.row.group.copy.min.bytes": "1",
    }
    changed = before.take(pa.array([3, 4, 150]))
    for name, values in (("ts", [5000, 5001, 5002]), ("c_string", ["x", None, "z"]), ("c_double", [None, -0.0, 1.5])):
        place = changed.schema.get_field_index(name)
        changed = changed.set_column(place, before.schema.field(name), pa.array(values, before.schema.field(name).type))
    for rows in (before, changed):
        write_rows(table, "upsert", rows, options)
        model.upsert(rows)
    _ensure_changed_by_peer(readers, table, version, model, typed_rows([4, 200, 301], 9, zoneless=False))


def _ensure_changed_by_peer(readers: Readers, table: Path, version: int, model: Model, rows: pa.Table) -> pa.Table:
    """The table as ours, after a check that all read it as the model says, before and after the real Hudi upserts."""
    ours = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))
    peer: Peer = readers.hudi_015 if version == 6 else readers.hudi_12
    peer.write(table, "upsert", rows, table_options(version, "id"))
    model.upsert(rows)
    ensure_same_rows(without_meta(readers.ensure_agree(table, version)), model.rows, called=("ours", "model"))
    return ours


def _priced(numbers: Iterable[int], digits: int, turn: int = 0) -> pa.Table:
    """Slim rows with a decimal of so many digits."""
    rows = slim_rows(numbers, turn)
    prices = [Decimal(10**12 + turn) * (-1) ** at for at in range(rows.num_rows)]
    return rows.append_column("price", pa.array(prices, pa.decimal128(digits, 2)))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_a_table_whose_schema_grew(version: int, readers: Readers, tmp_path: Path) -> None:
    table = tmp_path / "table"
    options = table_options(version, "id", "region")
    first = _rows(range(20))
    wider = _rows(range(15, 25), turn=1)
    wider = wider.set_column(3, "city", wider.column("city").cast(pa.int64()))
    wider = wider.append_column("note", pa.array(["new"] * wider.num_rows))
    write_rows(table, "insert", first, options)
    write_rows(table, "upsert", wider, options)
    model = Model(wider.schema)
    model.upsert(first.set_column(3, "city", first.column("city").cast(pa.int64())))
    model.upsert(wider)
    ours = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_rows_that_moved_to_another_partition(version: int, readers: Readers, tmp_path: Path) -> None:
    table, model = tmp_path / "table", _model()
    options = table_options(version, "id", "region") | {
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "true",
    }
    first = _rows(range(20))
    moved = _rows(range(6), turn=1)
    moved = moved.set_column(1, "region", pa.array(["west"] * 6))
    for rows in (first, moved):
        write_rows(table, "upsert", rows, options)
        model.upsert(rows)
    ours = readers.ensure_agree(table, version)
    ensure_same_rows(without_meta(ours), model.rows, called=("ours", "model"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_peer_reads_special_characters_and_null_in_partition_values(
    version: int, readers: Readers, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    values = ["a b", "x=y", "50%", "p/q", "ü", "c:d", None]
    rows = _rows(range(len(values)))
    rows = rows.set_column(1, "region", pa.array(values))
    options = table_options(version, "id", "region") | HIVE | ENCODED
    write_rows(table, "insert", rows, options)
    write_rows(table, "upsert", rows, options)
    ours = readers.ensure_agree(table, version, ("rs_null_partition",))
    assert sorted(map(str, ours.column("region").to_pylist())) == sorted(map(str, values))


def _marked(numbers: range, *, gone: bool) -> pa.Table:
    rows = _rows(numbers, turn=int(gone))
    assert not any(is_meta(name) for name in rows.column_names)
    return rows.append_column("_hoodie_is_deleted", pa.array([gone] * rows.num_rows, pa.bool_()))
