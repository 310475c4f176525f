"""Properties of new tables equal what Hudi's Spark writers stored for the same choices."""

import pytest

from hoodie.errors import Invalid
from hoodie.spec import KEYGEN_CLASSES, V6, V8, V9, keys, parse_table_config, profile_for
from hoodie.spec.new_table import NewTable, new_table_properties

WRITE = "hoodie.datasource.write."
CASES = 133


def new_table(options: dict[str, str], stored: dict[str, str]) -> NewTable:
    """The choices an option map makes. Which generator Hudi inferred is taken from the stored properties."""
    fields = [field for field in options.get(WRITE + "partitionpath.field", "").split(",") if field]
    given = {name: kind for kind, name in KEYGEN_CLASSES.items()}
    return NewTable(
        name=options["hoodie.table.name"],
        table_type=options.get(WRITE + "table.type", "COPY_ON_WRITE"),
        database=options.get("hoodie.database.name", ""),
        record_key_fields=tuple(filter(None, options.get(WRITE + "recordkey.field", "").split(","))),
        partition_fields=tuple(field.partition(":")[0] for field in fields),
        partition_field_types=tuple(field.partition(":")[2] for field in fields),
        keygen_type=stored.get(keys.KEYGEN_TYPE) or given[stored[keys.KEYGEN_CLASS]],
        ordering_fields=tuple(filter(None, options.get(WRITE + "precombine.field", "").split(","))),
        merge_mode=options.get("hoodie.write.record.merge.mode"),
        payload_class=options.get(WRITE + "payload.class"),
        merge_properties={key: options[key] for key in (keys.DELETE_FIELD, keys.DELETE_MARKER) if key in options},
        hive_style=options.get(keys.HIVE_STYLE) == "true",
        url_encode=options.get(keys.URL_ENCODE) == "true",
        slash_dates=options.get(keys.SLASH_DATES) == "true",
        drop_partition_columns=options.get(keys.DROP_PARTITION_COLUMNS) == "true",
        timestamp_options={key: value for key, value in options.items() if "timebased" in key},
        populate_meta_fields=options.get(keys.POPULATE_META_FIELDS) != "false",
        base_file_format=options.get(keys.BASE_FILE_FORMAT, "PARQUET"),
        partition_metafile_in_base_format=options.get(keys.PARTITION_METAFILE_BASE_FORMAT) == "true",
        timezone=options.get(keys.TIMELINE_TIMEZONE, "LOCAL"),
        cdc_enabled=options.get(keys.CDC_ENABLED) == "true",
    )


@pytest.mark.parametrize("number", range(CASES))
def test_same_keys_and_values_as_hudi(new_table_cases, number):
    case = new_table_cases[number]
    if case["table_version"] == 6 and case["hudi"] == "1.2.0":
        pytest.skip("version 6 follows 0.15")
    stored = case["properties"]
    for key in (keys.METADATA_PARTITIONS, keys.METADATA_PARTITIONS_INFLIGHT, keys.INDEX_DEFS_PATH):
        stored = {name: value for name, value in stored.items() if name != key}  # set later, by the metadata table
    made = new_table_properties(profile_for(case["table_version"]), new_table(case["options"], stored))
    if made.pop(keys.SLASH_DATES, None):
        assert case["options"][keys.SLASH_DATES] == "true"  # the one key stored here that Hudi's writer leaves out
    assert made == stored, case["case"]


def test_every_case_is_looked_at(new_table_cases):
    assert len(new_table_cases) == CASES


GOLDEN = {
    "0.15.0/cow_part": NewTable(
        "cow_part", record_key_fields=("id",), partition_fields=("part",), ordering_fields=("ts",)
    ),
    "1.2.0/cow_part": NewTable(
        "cow_part", record_key_fields=("id",), partition_fields=("part",), ordering_fields=("ts",)
    ),
    "1.2.0/cow_table_version_8": NewTable(
        "cow_table_version_8", record_key_fields=("id",), partition_fields=("part",), ordering_fields=("ts",)
    ),
    "0.15.0/mor_inline_compaction": NewTable(
        "mor_inline_compaction",
        "MERGE_ON_READ",
        record_key_fields=("id",),
        partition_fields=("part",),
        ordering_fields=("ts",),
    ),
    "1.2.0/mor_inline_compaction": NewTable(
        "mor_inline_compaction",
        "MERGE_ON_READ",
        record_key_fields=("id",),
        partition_fields=("part",),
        ordering_fields=("ts",),
    ),
}
LATER = {keys.METADATA_PARTITIONS, keys.METADATA_PARTITIONS_INFLIGHT, keys.INDEX_DEFS_PATH, keys.CREATE_SCHEMA}
BY_SQL = {keys.DATABASE, keys.CHECKSUM, keys.TIMELINE_TIMEZONE}  # 0.15's golden tables were registered by SQL later


@pytest.mark.parametrize("name", GOLDEN)
def test_same_keys_and_values_as_in_golden_tables(small_timelines, name):
    stored = parse_table_config((small_timelines[name].path / keys.PROPERTIES_FILE).read_bytes(), name)
    made = new_table_properties(profile_for(stored.table_version), GOLDEN[name])
    apart = LATER | (BY_SQL if name.startswith("0.15") else set())
    assert {k: v for k, v in made.items() if k not in apart} == {k: v for k, v in stored.raw.items() if k not in apart}


def test_custom_types_of_other_versions_than_6_are_kept():
    table = NewTable(
        "t", partition_fields=("a", "b"), partition_field_types=("simple", "timestamp"), keygen_type="CUSTOM"
    )
    assert new_table_properties(V6, table)[keys.PARTITION_FIELDS] == "a,b"
    assert new_table_properties(V8, table)[keys.PARTITION_FIELDS] == "a:simple,b:timestamp"


def test_slash_dates_are_stored_so_that_later_writes_know():
    table = NewTable("t", partition_fields=("day",), slash_dates=True)
    assert new_table_properties(V9, table)[keys.SLASH_DATES] == "true"


def test_user_defined_generators_are_stored_by_class():
    made = new_table_properties(V9, NewTable("t", keygen_class="com.example.Mine"))
    assert (made[keys.KEYGEN_CLASS], made[keys.KEYGEN_TYPE]) == ("com.example.Mine", "USER_PROVIDED")


@pytest.mark.parametrize(
    "table",
    [
        NewTable(""),
        NewTable("t", keygen_type="NOPE"),
        NewTable(
            "t",
            merge_mode="EVENT_TIME_ORDERING",
            payload_class="org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        ),
    ],
)
@pytest.mark.parametrize("profile", [V8, V9])
def test_contradictions_are_invalid(profile, table):
    with pytest.raises(Invalid):
        new_table_properties(profile, table)
