import pickle

import pyarrow as pa
import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.merge import MergeRules, MergeStep, collect_log, columns_needed, merge_rules_of, register_merger
from hoodie.merge.mergers import merged_by
from hoodie.records.deletion import DeleteMarker
from hoodie.spec import TableConfig

MODEL = "org.apache.hudi.common.model."
EVENT_TIME, COMMIT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"
PAYLOAD = "hoodie.compaction.payload.class"
OLD_STRATEGY = "hoodie.compaction.record.merger.strategy"
STRATEGY = "hoodie.record.merge.strategy.id"
MODE = "hoodie.record.merge.mode"
SCHEMA = pa.schema({"_hoodie_record_key": pa.string(), "ts": pa.int64(), "n": pa.int32()})


def rules_of(properties: dict[str, str]) -> MergeRules:
    return merge_rules_of(TableConfig({"hoodie.table.name": "t", "hoodie.table.ordering.fields": "ts", **properties}))


def steps_of(properties: dict[str, str]) -> tuple[MergeStep, MergeStep]:
    rules = rules_of(properties)
    return rules.in_log, rules.against_base


def both(ordered: bool, fill: str | None = None) -> tuple[MergeStep, MergeStep]:
    step = MergeStep(ordered, fill)  # type: ignore[arg-type]
    return step, step


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({MODE: "EVENT_TIME_ORDERING"}, both(True)),
        ({MODE: "COMMIT_TIME_ORDERING"}, both(False)),
        (
            {MODE: "COMMIT_TIME_ORDERING", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
            both(False, "IGNORE_DEFAULTS"),
        ),
        (
            {MODE: "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": "FILL_UNAVAILABLE"},
            both(True, "FILL_UNAVAILABLE"),
        ),
        ({MODE: "EVENT_TIME_ORDERING", "hoodie.table.legacy.payload.class": MODEL + "AWSDmsAvroPayload"}, both(True)),
        # A stored mode is all that counts, whatever else version 8 stores.
        ({MODE: "COMMIT_TIME_ORDERING", PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload"}, both(False)),
        # Version 6: nothing stored goes by the ordering field, a strategy alone by the strategy.
        ({}, both(True)),
        ({"hoodie.table.ordering.fields": ""}, both(False)),
        ({OLD_STRATEGY: EVENT_TIME}, both(True)),
        ({STRATEGY: COMMIT_TIME}, both(False)),
        ({PAYLOAD: MODEL + "DefaultHoodieRecordPayload", OLD_STRATEGY: EVENT_TIME}, both(True)),
        ({PAYLOAD: MODEL + "EventTimeAvroPayload"}, both(True)),
        (
            {PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload", OLD_STRATEGY: EVENT_TIME},
            (MergeStep(True), MergeStep(False)),
        ),
        ({PAYLOAD: MODEL + "OverwriteWithLatestAvroPayload", STRATEGY: COMMIT_TIME}, both(False)),
        ({PAYLOAD: MODEL + "PartialUpdateAvroPayload", OLD_STRATEGY: EVENT_TIME}, both(True, "IGNORE_DEFAULTS")),
        (
            {PAYLOAD: MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"},
            (MergeStep(True), MergeStep(False, "IGNORE_DEFAULTS")),
        ),
        ({PAYLOAD: MODEL + "AWSDmsAvroPayload", MODE: "CUSTOM"}, (MergeStep(True), MergeStep(False))),
        ({PAYLOAD: MODEL + "debezium.PostgresDebeziumAvroPayload", MODE: "CUSTOM"}, both(True, "FILL_UNAVAILABLE")),
        ({PAYLOAD: MODEL + "debezium.MySqlDebeziumAvroPayload", MODE: "CUSTOM"}, both(True)),
    ],
    ids=lambda value: str(value)[-60:],
)
def test_properties_say_how_versions_merge(properties: dict[str, str], expected: tuple[MergeStep, MergeStep]) -> None:
    assert steps_of(properties) == expected
    assert rules_of(properties).custom is None


def test_debezium_payloads_of_old_tables_bring_their_own_fields_and_markers() -> None:
    postgres = rules_of({PAYLOAD: MODEL + "debezium.PostgresDebeziumAvroPayload", MODE: "CUSTOM"})
    assert postgres.ordering_fields == ("_event_lsn",)
    assert postgres.marker == DeleteMarker("_change_operation_type", "d")
    assert postgres.unavailable_value == "__debezium_unavailable_value"
    assert rules_of({PAYLOAD: MODEL + "debezium.MySqlDebeziumAvroPayload"}).ordering_fields == (
        "_event_bin_file",
        "_event_pos",
    )
    assert rules_of({PAYLOAD: MODEL + "AWSDmsAvroPayload"}).marker == DeleteMarker("Op", "D")


def test_delete_marker_comes_from_the_table_or_else_from_options() -> None:
    prefix = "hoodie.record.merge.property."
    field, marker = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
    stored = {prefix + field: "op", prefix + marker: "D"}
    assert rules_of(stored).marker == DeleteMarker("op", "D")
    options = {field: "kind", marker: "x"}
    assert merge_rules_of(TableConfig({}), options).marker == DeleteMarker("kind", "x")
    assert merge_rules_of(TableConfig(stored), options).marker == DeleteMarker("op", "D")
    with pytest.raises(Invalid, match="Only one of"):
        merge_rules_of(TableConfig({}), {field: "kind"})


def test_an_unknown_partial_update_mode_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="KEEP_ALL"):
        rules_of({MODE: "EVENT_TIME_ORDERING", "hoodie.table.partial.update.mode": "KEEP_ALL"})


class Newer:
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer


class Fewer:
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer.slice(1)


class OtherKeys:
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer.set_column(0, "_hoodie_record_key", pa.array(["?"] * len(newer)))


def test_a_custom_rule_needs_a_registered_merger_and_names_what_it_looked_for() -> None:
    properties = {MODE: "CUSTOM", STRATEGY: "11111111-2222-3333-4444-555555555555"}
    with pytest.raises(Unsupported, match="strategy id 11111111.*register_merger") as error:
        rules_of(properties)
    assert error.value.facts["strategy_id"] == properties[STRATEGY]
    register_merger(properties[STRATEGY], Newer())
    assert isinstance(rules_of(properties).custom, Newer)
    assert isinstance(pickle.loads(pickle.dumps(rules_of(properties))).custom, Newer)


def test_a_payload_class_is_a_name_that_a_merger_can_be_registered_for() -> None:
    properties = {PAYLOAD: "com.example.MyPayload", MODE: "CUSTOM", STRATEGY: "00000000-0000-0000-0000-000000000000"}
    with pytest.raises(Unsupported, match="payload class com.example.MyPayload"):
        rules_of(properties)
    register_merger("com.example.MyPayload", Newer())
    assert isinstance(rules_of(properties).custom, Newer)


def test_a_merger_that_drops_rows_or_changes_keys_is_told_so() -> None:
    rows = pa.table({"_hoodie_record_key": ["a", "b"], "ts": [1, 2], "n": [1, 2]}).cast(SCHEMA)
    assert merged_by(Newer(), rows, rows.select(["n", "ts", "_hoodie_record_key"]), "_hoodie_record_key").num_rows == 2
    with pytest.raises(Invalid, match="Fewer made 1 rows of 2 pairs"):
        merged_by(Fewer(), rows, rows, "_hoodie_record_key")
    with pytest.raises(Invalid, match="OtherKeys changed values of the key column"):
        merged_by(OtherKeys(), rows, rows, "_hoodie_record_key")


def test_needed_columns_are_those_asked_for_and_those_the_rules_look_at() -> None:
    schema = pa.schema(
        {
            "_hoodie_record_key": pa.string(),
            "_hoodie_operation": pa.string(),
            "n": pa.int32(),
            "src": pa.struct([pa.field("ts", pa.int64())]),
            "op": pa.string(),
            "_hoodie_is_deleted": pa.bool_(),
            "wide": pa.string(),
        }
    )
    fixed = ("_hoodie_is_deleted", "_hoodie_operation")
    event = MergeRules(*both(True), ordering_fields=("src.ts", "gone"), marker=DeleteMarker("op", "D"))
    assert columns_needed(event, ("n",), schema) == (
        "n",
        "_hoodie_record_key",
        "src",
        "_hoodie_is_deleted",
        "op",
        "_hoodie_operation",
    )
    latest = MergeRules(*both(False), ordering_fields=("src.ts",))
    assert columns_needed(latest, ("op", "_hoodie_record_key"), schema) == ("op", "_hoodie_record_key", *fixed)
    custom = MergeRules(*both(True), custom=Newer())
    assert columns_needed(custom, ("wide",), schema)[:2] == ("wide", "_hoodie_record_key")
    assert set(columns_needed(custom, ("wide",), schema)) == set(schema.names)


@pytest.mark.parametrize(
    ("rules", "ignores"),
    [
        (MergeRules(*both(False)), True),
        (MergeRules(MergeStep(True), MergeStep(False), ("ts",)), True),
        (MergeRules(*both(True), ordering_fields=("ts",)), False),
        (MergeRules(*both(True), ordering_fields=("not there",)), True),
        (MergeRules(*both(False, "IGNORE_DEFAULTS")), False),
        (MergeRules(*both(False), custom=Newer()), False),
    ],
)
def test_a_map_knows_whether_base_rows_matter(rules: MergeRules, ignores: bool) -> None:
    with collect_log([], rules, SCHEMA) as log:
        assert log.ignores_base == ignores
