"""The properties of a table in another version, and what cannot be said there.

1. What decides about rows stays: ordering fields, merge mode, payload class. They are spelled as the target version
   spells them, and where it would infer something else from silence, they are written out.
2. Properties a version does not know are left where they harm nobody, as Hudi leaves them.
3. What the target version cannot say is a blocker with its reason; nothing is lost silently.

Pure. Key by key: `docs/format/properties.md`.
"""

from __future__ import annotations

from hoodie.config import Config
from hoodie.spec import (
    COMMIT_TIME,
    CUSTOM,
    EVENT_TIME,
    KEYGEN_CLASSES,
    FormatProfile,
    TableConfig,
    keys,
)
from hoodie.spec.merge_rules import MergeChoice, merge_properties

PARTITION_PATH = "hoodie.datasource.write.partitionpath.field"

_MERGE_KEYS = (
    keys.ORDERING_FIELDS,
    keys.PRECOMBINE_FIELD,
    keys.MERGE_MODE,
    keys.MERGE_STRATEGY_ID,
    keys.OLD_MERGE_STRATEGY,
    keys.PAYLOAD_CLASS,
    keys.LEGACY_PAYLOAD_CLASS,
    keys.PARTIAL_UPDATE_MODE,
)
_PAYLOADS = {
    EVENT_TIME: "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    COMMIT_TIME: "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
}


def plan_properties(table: TableConfig, target: FormatProfile, options: Config) -> TableConfig:
    """The table's config in the version of `target`. Only sensible without `property_blockers`."""
    changes = {
        keys.VERSION: str(target.table_version),
        keys.TIMELINE_LAYOUT_VERSION: str(target.layout_version),
        **_merging(table, target),
        **_partition_fields(table, target, options),
    }
    if target.capabilities.prev_base_file:  # since version 8
        changes[keys.INITIAL_VERSION] = table.raw.get(keys.INITIAL_VERSION) or str(table.table_version)
        changes[keys.TIMELINE_PATH] = table.raw.get(keys.TIMELINE_PATH) or "timeline"
        changes[keys.TIMELINE_HISTORY_PATH] = table.raw.get(keys.TIMELINE_HISTORY_PATH) or "history"
        if keys.KEYGEN_TYPE not in table.raw:
            changes[keys.KEYGEN_TYPE] = table.keygen_type
    elif table.keygen_class is None and (known := KEYGEN_CLASSES.get(table.keygen_type)):
        changes[keys.KEYGEN_CLASS] = known
    elif table.keygen_class is not None:
        changes[keys.KEYGEN_CLASS] = table.keygen_class
    return table.with_changes(changes, drop=[key for key in _MERGE_KEYS if key not in changes])


def property_blockers(
    table: TableConfig, target: FormatProfile, options: Config, stored_key: str | None
) -> tuple[str, ...]:
    """Why the table cannot have the version of `target`, a sentence each. `stored_key` is any key the table holds."""
    found = []
    old = target.table_version < 8 <= table.table_version
    if old and len(table.ordering_fields) > 1:
        found.append("version 6 has one ordering field only")
    if old and table.payload_class is None and table.merge_mode == CUSTOM:
        found.append("version 6 knows no merge strategy of one's own without a payload class")
    types = _given_types(table, options)
    if target.capabilities.typed_partition_fields and table.keygen_type == "CUSTOM" and not any(types):
        found.append(
            f"the types of the partition fields are not stored: give {PARTITION_PATH}, for example "
            f"{','.join(f'{name}:simple' for name in table.partition_fields)}"
        )
    settles = target.capabilities.complex_single_key_settled
    if settles and table.keygen_type == "COMPLEX" and len(table.record_key_fields) == 1 and stored_key is not None:
        (name,) = table.record_key_fields
        if not stored_key.startswith(f"{name}:"):
            found.append(
                f"keys are stored as {stored_key!r}, version {target.table_version} spells them '{name}:...': upserts "
                "would insert the rows again"
            )
    return tuple(found)


def _merging(table: TableConfig, target: FormatProfile) -> dict[str, str]:
    payload = table.payload_class
    mode = table.merge_mode
    choice = MergeChoice(
        None if payload else mode,
        payload,
        table.merge_strategy_id if mode == CUSTOM else None,
        table.ordering_fields,
        {} if payload else table.merge_properties,
    )
    merge_on_read = table.table_type == "MERGE_ON_READ"
    if target.table_version >= 8:
        return merge_properties(choice, table_version=target.table_version, merge_on_read=merge_on_read)
    found = merge_properties(choice, table_version=target.table_version, merge_on_read=merge_on_read)
    payload = payload or _PAYLOADS.get(mode)
    return {**found, keys.PAYLOAD_CLASS: payload} if payload else found


def _partition_fields(table: TableConfig, target: FormatProfile, options: Config) -> dict[str, str]:
    if table.keygen_type != "CUSTOM" or not table.partition_fields:
        return {}
    types = _given_types(table, options)
    if target.capabilities.typed_partition_fields and any(types):
        typed = zip(table.partition_fields, types, strict=True)
        return {keys.PARTITION_FIELDS: ",".join(f"{name}:{kind}" for name, kind in typed)}
    return {keys.PARTITION_FIELDS: ",".join(table.partition_fields)}


def _given_types(table: TableConfig, options: Config) -> tuple[str, ...]:
    if any(table.partition_field_types):
        return table.partition_field_types
    given = {text.partition(":")[0]: text.partition(":")[2].upper() for text in options.list(PARTITION_PATH)}
    return tuple(given.get(name, "") for name in table.partition_fields)
