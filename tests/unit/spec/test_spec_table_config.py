"""Typed views of hoodie.properties."""

import pickle
from datetime import UTC, datetime

import pytest

from hoodie.errors import Corrupt, Unsupported
from hoodie.spec import TableConfig, encode_table_config, keys, parse_table_config, profile_of, table_checksum

SAVED = datetime(2026, 11, 21, 5, 39, 2, 443404, tzinfo=UTC)


def config(**raw: str) -> TableConfig:
    return TableConfig({keys.NAME: "t", keys.VERSION: "9", **{k.replace("__", "."): v for k, v in raw.items()}})


def test_checksum_is_crc32_of_database_dot_table():
    assert table_checksum("t1") == 3609136688
    assert table_checksum("t1", "shop") != table_checksum("t1")


def test_encoding_adds_the_checksum_and_parses_back():
    data = encode_table_config(TableConfig({keys.NAME: "t1"}), SAVED)
    assert data.startswith(b"#Properties saved on 2026-11-21T05:39:02.443404Z\n#Sat Nov 21 05:39:02 UTC 2026\n")
    parsed = parse_table_config(data, "p")
    assert parsed.raw == {keys.NAME: "t1", keys.CHECKSUM: "3609136688"}
    assert encode_table_config(parsed, SAVED).startswith(b"#Updated at 2026-11-21T05:39:02.443404Z\n")


def test_a_table_without_checksum_is_accepted():
    assert parse_table_config(b"hoodie.table.name=t1\n", "p").name == "t1"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hoodie.table.name=\n",
        b"hoodie.table.name=t1\nhoodie.table.checksum=1\n",
        b"hoodie.table.name=t1\nhoodie.table.checksum=x\n",
        b"\0\0\0\0",
    ],
)
def test_damaged_properties_are_corrupt_with_a_remedy(data):
    with pytest.raises(Corrupt) as caught:
        parse_table_config(data, ".hoodie/hoodie.properties")
    assert caught.value.facts["path"] == ".hoodie/hoodie.properties"
    assert "Restore" in (caught.value.remedy or "")


def test_defaults_of_a_bare_table_are_hudis():
    bare = config()
    assert (bare.table_type, bare.base_file_format, bare.timezone) == ("COPY_ON_WRITE", "PARQUET", "LOCAL")
    assert bare.populate_meta_fields
    assert not any((bare.hive_style, bare.url_encode, bare.cdc_enabled, bare.has_metadata_table))
    assert bare.record_key_fields == bare.partition_fields == bare.ordering_fields == ()
    assert bare.keygen_type == "NON_PARTITION"
    assert bare.merge_mode == "COMMIT_TIME_ORDERING"


def test_old_spellings_are_read():
    old = config(
        hoodie__table__precombine__field="ts",
        hoodie__compaction__record__merger__strategy="x",
        hoodie__table__ro__file__format="orc",
        hoodie__deltastreamer__keygen__timebased__output__dateformat="yyyy",
    )
    assert old.ordering_fields == ("ts",)
    assert old.merge_strategy_id == "x"
    assert old.base_file_format == "ORC"
    assert old.timestamp_options == {"hoodie.keygen.timebased.output.dateformat": "yyyy"}


def test_custom_partition_fields_are_split_into_names_and_types():
    custom = config(**{keys.PARTITION_FIELDS: "part:simple,day:TIMESTAMP"})
    assert custom.partition_fields == ("part", "day")
    assert custom.partition_field_types == ("SIMPLE", "TIMESTAMP")
    assert custom.keygen_type == "CUSTOM"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({keys.KEYGEN_TYPE: "COMPLEX_AVRO"}, "COMPLEX"),
        ({keys.KEYGEN_CLASS: "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}, "TIMESTAMP"),
        ({keys.KEYGEN_CLASS: "com.example.MyKeys"}, "USER_PROVIDED"),
        ({keys.KEYGEN_TYPE: "SPARK_SQL", keys.PARTITION_FIELDS: "p", keys.RECORD_KEY_FIELDS: "a,b"}, "COMPLEX"),
        ({keys.PARTITION_FIELDS: "p", keys.RECORD_KEY_FIELDS: "a"}, "SIMPLE"),
        ({keys.PARTITION_FIELDS: "p"}, "SIMPLE"),
        ({keys.PARTITION_FIELDS: "p,q", keys.RECORD_KEY_FIELDS: "a"}, "COMPLEX"),
        ({keys.RECORD_KEY_FIELDS: "a,b"}, "NON_PARTITION"),
    ],
)
def test_key_generator_type_is_found_or_inferred(raw, kind):
    assert config(**raw).keygen_type == kind


@pytest.mark.parametrize(
    ("raw", "mode"),
    [
        ({keys.MERGE_MODE: "custom"}, "CUSTOM"),
        ({keys.PAYLOAD_CLASS: "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}, "EVENT_TIME_ORDERING"),
        ({keys.PAYLOAD_CLASS: "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"}, "COMMIT_TIME_ORDERING"),
        ({keys.PAYLOAD_CLASS: "com.example.Mine"}, "CUSTOM"),
        ({keys.PRECOMBINE_FIELD: "ts"}, "EVENT_TIME_ORDERING"),
    ],
)
def test_merge_mode_is_stored_or_inferred(raw, mode):
    assert config(**raw).merge_mode == mode


def test_partial_update_mode_and_merge_properties_are_read():
    found = config(
        hoodie__table__partial__update__mode="IGNORE_DEFAULTS",
        **{keys.MERGE_PROPERTY_PREFIX + keys.DELETE_FIELD: "op"},
    )
    assert found.partial_update_mode == "IGNORE_DEFAULTS"
    assert found.merge_properties == {keys.DELETE_FIELD: "op"}


def test_changes_give_a_new_config_and_keep_unknown_keys():
    before = config(some__key="x", hoodie__table__metadata__partitions="files")
    after = before.with_changes({keys.HIVE_STYLE: "true"}, drop=[keys.METADATA_PARTITIONS])
    assert before.has_metadata_table
    assert not after.has_metadata_table
    assert after.hive_style
    assert after.raw["some.key"] == "x"
    assert pickle.loads(pickle.dumps(after)) == after


def test_profile_takes_the_tables_own_folders():
    profile = profile_of(config(hoodie__timeline__path="tl", hoodie__timeline__history__path="past"))
    assert (profile.timeline_dir, profile.history_dir) == (".hoodie/tl", ".hoodie/tl/past")


def test_layout_one_ignores_the_timeline_path_that_downgrades_leave():
    profile = profile_of(config(hoodie__table__version="6", hoodie__timeline__path="timeline"))
    assert profile.timeline_dir == ".hoodie"


@pytest.mark.parametrize(
    ("version", "hint"), [("10", "newer release"), ("7", "half-way"), ("5", "0.15"), ("x", "0.15")]
)
def test_other_versions_are_unsupported_and_the_error_says_which_are_read(version, hint):
    with pytest.raises(Unsupported, match=hint) as caught:
        profile_of(config(hoodie__table__version=version))
    assert "6, 8 and 9" in str(caught.value)
