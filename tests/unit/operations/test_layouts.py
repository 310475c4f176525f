"""Tables of every layout: meta and partition columns, path styles, key generators. Upsert finds its rows again."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records import read_columns, read_footer
from hoodie.table import Table
from hoodie.testing.lake import ROWS, Lake, row, table_of

KEY = "hoodie.datasource.write.recordkey.field"
PARTITIONS = "hoodie.datasource.write.partitionpath.field"
KEYGEN = "hoodie.datasource.write.keygenerator.class"
TIME = "hoodie.keygen.timebased"
PACKAGE = "org.apache.hudi.keygen."


def paths(lake: Lake) -> list[str]:
    return sorted({partition for partition, _ in lake.live()})


def keys(lake: Lake) -> list[str]:
    return [key for (key,) in lake.rows(("_hoodie_record_key",))]


def updated(lake: Lake, *rows: dict[str, object]) -> None:
    """The rows, written twice: the second time they must be found."""
    lake.upsert(*rows)
    done = lake.upsert(*({**one, "v": "new", "ts": 2} for one in rows))
    assert (done.inserts, done.updates) == (0, len(rows))
    assert [v for _, v in lake.rows()] == ["new"] * len(rows)
    lake.ensure_sound()


# --- meta columns


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_table_without_meta_columns_finds_its_rows_by_their_columns(version: int, index: str) -> None:
    lake = Lake(version, {"hoodie.populate.meta.fields": "false", "hoodie.index.type": index})
    updated(lake, row("a"), row("b", part="q"))
    lake.write("bulk_insert", [row("c", part="r")])
    lake.write("delete", [row("a")])
    assert lake.values() == {"b": "new", "c": "a"}
    footer = read_footer(lake.storage, lake.table.files()[0].base.path)
    assert (footer.bloom_text, footer.min_key) == (None, None)


def test_unfilled_meta_columns_hold_what_hudi_leaves_in_them() -> None:
    lake = Lake(9, {"hoodie.populate.meta.fields": "false"})
    lake.upsert(row("a"))
    lake.write("bulk_insert", [row("b", part="q")])
    found = [
        read_columns(lake.storage, one.base.path, ["_hoodie_record_key"]).to_pylist() for one in lake.table.files()
    ]
    assert found == [[{"_hoodie_record_key": None}], [{"_hoodie_record_key": ""}]]


# --- partition columns and paths


def test_dropped_partition_columns_come_back_from_the_path(version: int) -> None:
    lake = Lake(version, {"hoodie.datasource.write.drop.partition.columns": "true"})
    updated(lake, row("a"), row("b", part="q"))
    assert lake.rows(("id", "part")) == [("a", "p"), ("b", "q")]
    (one, _) = lake.table.files()
    assert "part" not in read_footer(lake.storage, one.base.path).schema.names
    lake.write("bulk_insert", [row("c", part="r")])
    lake.write("delete", [row("a")])
    lake.save(lake.table.scan(), "append")  # rows that were read can be written back
    assert lake.rows(("id", "part")) == [("b", "q"), ("c", "r")]


@pytest.mark.parametrize(
    "more", [{"hoodie.table.ordering.fields": "part"}, {"hoodie.populate.meta.fields": "false", KEY: "part"}]
)
def test_columns_that_updates_need_must_be_stored(more: dict[str, str]) -> None:
    lake = Lake(9, {"hoodie.datasource.write.drop.partition.columns": "true", **more})
    with pytest.raises(Invalid, match="'part' would not be stored"):
        lake.upsert(row("a"))
    assert lake.files() == {}


@pytest.mark.parametrize(
    ("options", "folder"),
    [
        ({}, "x y"),
        ({"hoodie.datasource.write.hive_style_partitioning": "true"}, "part=x y"),
        ({"hoodie.datasource.write.partitionpath.urlencode": "true"}, "x y"),
    ],
)
def test_partition_folders_in_each_style(version: int, options: dict[str, str], folder: str) -> None:
    lake = Lake(version, options)
    updated(lake, row("a", part="x y"), row("n", part=None))
    lake.upsert(row("e", part=""))  # only where the table has such a partition already
    default = folder.replace("x y", "__HIVE_DEFAULT_PARTITION__")
    assert paths(lake) == sorted([folder, default])


def test_encoded_partition_values_may_hold_slashes(version: int) -> None:
    lake = Lake(version, {"hoodie.datasource.write.partitionpath.urlencode": "true"})
    updated(lake, row("a", part="x/y"), row("b", part="../up"), row("c", part="50%"))
    assert paths(lake) == ["..%2Fup", "50%25", "x%2Fy"]
    assert lake.rows(("part",)) == [("../up",), ("50%",), ("x/y",)]


@pytest.mark.parametrize("value", ["a=b", "x%20y", "", "__HIVE_DEFAULT_PARTITION__"])
def test_a_partition_value_that_would_be_read_as_another_is_refused_unless_the_table_has_it(
    version: int, value: str
) -> None:
    lake = Lake(version)
    updated(lake, row("a", part="q"))
    before = lake.files()
    for act in (lake.table.upsert, lake.table.insert, lake.table.bulk_insert):
        with pytest.raises(Invalid, match="would (not )?be read as"):
            act(table_of([row("b", part=value)]))
    assert lake.files() == before
    lake.storage.put(f"{value or '__HIVE_DEFAULT_PARTITION__'}/.hoodie_partition_metadata", b"")
    lake.upsert(row("b", part=value))
    assert len(lake.rows()) == 2


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_partition_values_that_begin_with_a_dot_or_end_with_a_blank_come_back(version: int, metadata: str) -> None:
    lake = Lake(version, {"hoodie.metadata.enable": metadata})
    values = [".x", "x ", " x", "_x", "..x", "x.", "~", "50%"]
    updated(lake, *(row(f"k{number}", part=value) for number, value in enumerate(values)))
    assert [part for (part,) in lake.rows(("part",))] == sorted(values)


def test_plain_slashes_make_folders_in_folders(version: int) -> None:
    lake = Lake(version)
    updated(lake, row("a", part="2024/01"), row("b", part="2024/02"))
    assert paths(lake) == ["2024/01", "2024/02"]
    assert lake.files()["2024/01/.hoodie_partition_metadata"].rstrip().endswith(b"partitionDepth=2")


def test_slash_separated_dates(version: int) -> None:
    schema = ROWS.set(1, pa.field("part", pa.date32()))
    lake = Lake(version, {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}, schema=schema)
    updated(lake, row("a", part=dt.date(2024, 5, 6)), row("b", part=dt.date(2025, 1, 2)))
    assert paths(lake) == ["2024/05/06", "2025/01/02"]


def test_no_partitions(version: int) -> None:
    lake = Lake(version, {PARTITIONS: None})
    updated(lake, row("a"), row("b", part="q"))
    assert paths(lake) == [""]
    lake.write("bulk_insert", [row("c")])
    assert len(lake.live()) == 2


# --- key generators


def test_complex_keys(version: int) -> None:
    lake = Lake(
        version, {KEY: "id,n", PARTITIONS: "part,v2"}, schema=pa.schema([*ROWS, ("n", pa.int32()), ("v2", pa.string())])
    )
    updated(lake, row("a", n=1, v2="x"), row("a", n=2, v2="x"), row("a", n=None, v2=None))
    assert keys(lake) == ["id:a,n:1", "id:a,n:2", "id:a,n:__null__"]
    assert paths(lake) == ["p/__HIVE_DEFAULT_PARTITION__", "p/x"]


@pytest.mark.parametrize(("version", "named"), [(6, False), (8, True), (9, True)])
def test_complex_key_of_one_field_follows_the_version(version: int, named: bool) -> None:
    lake = Lake(version, {KEYGEN: f"{PACKAGE}ComplexKeyGenerator"})
    updated(lake, row("a"))
    assert keys(lake) == ["id:a" if named else "a"]


@pytest.mark.parametrize("version", [6, 8])
@pytest.mark.parametrize("bare", ["true", "false"])
def test_stored_keys_decide_how_a_complex_key_of_one_field_is_spelled(version: int, bare: str) -> None:
    option = "hoodie.write.complex.keygen.new.encoding"
    lake = Lake(version, {KEYGEN: f"{PACKAGE}ComplexKeyGenerator"})
    lake.upsert(row("a"), **{option: bare})
    done = lake.upsert(row("a", "new", 2))
    assert (done.updates, keys(lake)) == (1, ["a" if bare == "true" else "id:a"])


def test_timestamp_partitions(version: int) -> None:
    options = {
        KEYGEN: f"{PACKAGE}TimestampBasedKeyGenerator",
        PARTITIONS: "ts",
        f"{TIME}.timestamp.type": "EPOCHMILLISECONDS",
        f"{TIME}.output.dateformat": "yyyy/MM",
        "hoodie.table.ordering.fields": "n",
    }
    lake = Lake(version, options, schema=ROWS.append(pa.field("n", pa.int32())))
    time = 1_700_000_000_000
    lake.upsert(row("a", ts=time, n=1), row("b", ts=0, n=1))
    done = lake.upsert(row("a", "new", time + 5, n=2), row("b", "new", 1, n=2))
    assert (done.updates, done.inserts, paths(lake)) == (2, 0, ["1970/01", "2023/11"])
    lake.ensure_sound()


def test_custom_partitions(version: int) -> None:
    options = {
        KEYGEN: f"{PACKAGE}CustomKeyGenerator",
        PARTITIONS: "part:simple,day:timestamp",
        f"{TIME}.timestamp.type": "DATE_STRING",
        f"{TIME}.input.dateformat": "yyyy-MM-dd",
        f"{TIME}.output.dateformat": "yyyyMM",
    }
    lake = Lake(version, options, schema=ROWS.append(pa.field("day", pa.string())))
    updated(lake, row("a", day="2024-05-06"), row("b", day="2024-06-01"))
    assert paths(lake) == ["p/202405", "p/202406"]
    if version > 6:
        assert lake.table.config.raw["hoodie.table.partition.fields"] == "part:simple,day:timestamp"


@pytest.mark.parametrize("name", ["NonpartitionedKeyGenerator", "GlobalDeleteKeyGenerator"])
def test_generators_without_partitions(version: int, name: str) -> None:
    lake = Lake(version, {KEYGEN: PACKAGE + name, PARTITIONS: None})
    updated(lake, row("a"), row("b", part="q"))
    assert paths(lake) == [""]
    assert keys(lake) == (["id:a", "id:b"] if name.startswith("Global") else ["a", "b"])


def test_key_and_partition_inside_structs(version: int) -> None:
    nested = pa.field("k", pa.struct([pa.field("id", pa.string()), pa.field("day", pa.int32())]))
    lake = Lake(version, {KEY: "k.id", PARTITIONS: "k.day"}, schema=ROWS.append(nested))
    updated(lake, row("1", k={"id": "a", "day": 1}), row("2", k={"id": "b", "day": 2}))
    assert (keys(lake), paths(lake)) == (["a", "b"], ["1", "2"])


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.int64(), pa.date32(), pa.bool_(), pa.timestamp("us", "UTC"), pa.decimal128(12, 2)]
)
def test_keys_and_partitions_of_any_flat_type(kind: pa.DataType) -> None:
    schema = ROWS.set(0, pa.field("id", kind)).set(1, pa.field("part", kind))
    number = pa.array([1], pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
    (value,) = [True] if pa.types.is_boolean(kind) else number.cast(kind).to_pylist()
    lake = Lake(9, schema=schema)
    lake.upsert(row(value, part=value))
    done = lake.upsert(row(value, "new", 2, value))
    assert (done.updates, done.inserts) == (1, 0)
    assert lake.rows(("id", "part", "v")) == [(value, value, "new")]


def test_timestamp_keys_follow_the_spelling_that_is_stored() -> None:
    schema = ROWS.set(0, pa.field("id", pa.timestamp("us", "UTC")))
    when = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    consistent = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    lake = Lake(9, schema=schema)
    lake.upsert(row(when), **{consistent: "true"})  # type: ignore[arg-type]
    assert keys(lake) == ["2024-01-02 03:04:05.0"]
    done = lake.upsert(row(when, "new", 2))  # type: ignore[arg-type]
    assert (done.updates, done.inserts) == (1, 0)


def test_extra_commit_metadata_and_its_prefix(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"), _origin="here")
    lake.upsert(row("b"), **{"hoodie.datasource.write.commitmeta.key.prefix": "my.", "my.note": "x", "_not": "y"})
    assert [{k: v for k, v in one.extra_metadata.items() if k != "schema"} for one in lake.commits()] == [
        {"_origin": "here"},
        {"my.note": "x"},
    ]


def test_unknown_partition_of_an_upsert_gets_its_metafile_before_it_is_visible(version: int) -> None:
    lake = Lake(version)
    lake.upsert(row("a"))
    lake.upsert(row("b", part="new"))
    assert "new/.hoodie_partition_metadata" in lake.files()
    assert lake.table.scan(columns=["id"]).read_all().num_rows == 2
    lake.write("insert", table_of([row("c", part="new")]))
    lake.ensure_sound()


def test_a_custom_key_generator_whose_times_nobody_names_is_refused() -> None:
    """Version 6 does not store them: a time would be stored as its number, and its key a second time."""
    write = "hoodie.datasource.write."
    typed = {
        write + "partitionpath.field": "ts:TIMESTAMP",
        write + "keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    lake = Lake(6, typed)
    lake.upsert(row("a", ts=1_700_000_000))
    for said in ({}, {write + "partitionpath.field": "ts"}):
        table = Table.open(lake.uri, options=said)
        for change in (table.upsert, table.delete):
            with pytest.raises(Invalid, match="which partition fields are times"):
                change(table_of([row("a", "new", 1_700_000_000)]))
    lake.upsert(row("a", "new", ts=1_700_000_000))
    assert lake.rows(("_hoodie_partition_path", "id", "v")) == [("2023-11-14", "a", "new")]
