"""How records of one key are merged, as tables store it: mode, payload class, strategy id, partial-update mode.

1. Version 9 stores a mode and keeps a built-in payload only as a memory (`legacy`); version 8 stores mode, payload and
   strategy, which must agree; version 6 of Hudi 0.15 stores payload and strategy for merge-on-read tables only.
2. `merge_properties(...)` gives exactly the keys Hudi writes for a new table (0.15 for version 6, 1.2 for 8 and 9).

It does not merge anything. Table of all combinations: `docs/format/properties.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hoodie.errors import Invalid
from hoodie.spec import keys

MergeMode = Literal["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM"]

EVENT_TIME: MergeMode = "EVENT_TIME_ORDERING"
COMMIT_TIME: MergeMode = "COMMIT_TIME_ORDERING"
CUSTOM: MergeMode = "CUSTOM"
MERGE_MODES: tuple[MergeMode, ...] = (EVENT_TIME, COMMIT_TIME, CUSTOM)

EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
CUSTOM_STRATEGY = "1897ef5f-18bc-4557-939c-9d6a8afd1519"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"

_MODEL = "org.apache.hudi.common.model."
OVERWRITE_WITH_LATEST = _MODEL + "OverwriteWithLatestAvroPayload"
DEFAULT_PAYLOAD = _MODEL + "DefaultHoodieRecordPayload"
EVENT_TIME_PAYLOAD = _MODEL + "EventTimeAvroPayload"
OVERWRITE_NON_DEFAULTS = _MODEL + "OverwriteNonDefaultsWithLatestAvroPayload"
PARTIAL_UPDATE = _MODEL + "PartialUpdateAvroPayload"
AWS_DMS = _MODEL + "AWSDmsAvroPayload"
POSTGRES_DEBEZIUM = _MODEL + "debezium.PostgresDebeziumAvroPayload"
MYSQL_DEBEZIUM = _MODEL + "debezium.MySqlDebeziumAvroPayload"

_STRATEGIES: dict[MergeMode, str] = {
    EVENT_TIME: EVENT_TIME_STRATEGY,
    COMMIT_TIME: COMMIT_TIME_STRATEGY,
    CUSTOM: PAYLOAD_STRATEGY,
}


@dataclass(frozen=True, slots=True)
class BuiltInPayload:
    """How version 9 expresses a payload class of Hudi's. `properties` have bare names."""

    mode: MergeMode
    partial_update: str | None = None
    ordering_fields: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


_DEBEZIUM_DELETES = {keys.DELETE_FIELD: "_change_operation_type", keys.DELETE_MARKER: "d"}

_BUILT_IN: dict[str, BuiltInPayload] = {
    OVERWRITE_WITH_LATEST: BuiltInPayload(COMMIT_TIME),
    DEFAULT_PAYLOAD: BuiltInPayload(EVENT_TIME),
    EVENT_TIME_PAYLOAD: BuiltInPayload(EVENT_TIME),
    OVERWRITE_NON_DEFAULTS: BuiltInPayload(COMMIT_TIME, "IGNORE_DEFAULTS"),
    PARTIAL_UPDATE: BuiltInPayload(EVENT_TIME, "IGNORE_DEFAULTS"),
    AWS_DMS: BuiltInPayload(COMMIT_TIME, properties={keys.DELETE_FIELD: "Op", keys.DELETE_MARKER: "D"}),
    POSTGRES_DEBEZIUM: BuiltInPayload(
        EVENT_TIME,
        "FILL_UNAVAILABLE",
        ("_event_lsn",),
        _DEBEZIUM_DELETES | {keys.UNAVAILABLE_VALUE: "__debezium_unavailable_value"},
    ),
    MYSQL_DEBEZIUM: BuiltInPayload(EVENT_TIME, None, ("_event_bin_file", "_event_pos"), _DEBEZIUM_DELETES),
}
_MODE_OF_PAYLOAD_V8: dict[str, MergeMode] = {
    OVERWRITE_WITH_LATEST: COMMIT_TIME,
    DEFAULT_PAYLOAD: EVENT_TIME,
    EVENT_TIME_PAYLOAD: EVENT_TIME,
}


@dataclass(frozen=True, slots=True)
class MergeChoice:
    """What the creator of a table asked for. None means: not asked. `properties` have bare names (no prefix)."""

    mode: MergeMode | None = None
    payload_class: str | None = None
    strategy_id: str | None = None
    ordering_fields: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


def merge_properties(choice: MergeChoice, *, table_version: int, merge_on_read: bool) -> dict[str, str]:
    """The properties about ordering and merging that Hudi stores for a new table.

    Raises:
        Invalid: the payload class and the mode contradict each other.
    """
    if table_version <= 6:
        return _version_6(choice, merge_on_read)
    return _version_8(choice) if table_version == 8 else _version_9(choice)


def built_in_payload(payload_class: str | None) -> BuiltInPayload | None:
    """What version 9 says instead of this payload class; None for a class that is not Hudi's own."""
    return _BUILT_IN.get(payload_class or "")


def inferred_mode(payload_class: str | None, *, has_ordering: bool) -> MergeMode:
    """The mode of a table that stores none (before version 8)."""
    if not payload_class:
        return EVENT_TIME if has_ordering else COMMIT_TIME
    return _MODE_OF_PAYLOAD_V8.get(payload_class, CUSTOM)


def _version_6(choice: MergeChoice, merge_on_read: bool) -> dict[str, str]:
    found = {keys.PRECOMBINE_FIELD: ",".join(choice.ordering_fields)} if choice.ordering_fields else {}
    if merge_on_read:
        # 0.15 writes the event-time strategy whatever the payload is, and its default payload even with an ordering.
        found[keys.PAYLOAD_CLASS] = choice.payload_class or OVERWRITE_WITH_LATEST
        found[keys.OLD_MERGE_STRATEGY] = EVENT_TIME_STRATEGY
    return found


def _version_8(choice: MergeChoice) -> dict[str, str]:
    found = _ordering(choice.ordering_fields)
    if choice.payload_class:
        mode = _MODE_OF_PAYLOAD_V8.get(choice.payload_class, CUSTOM)
        _ensure_agree(choice, mode)
    else:
        mode = choice.mode or inferred_mode(None, has_ordering=bool(choice.ordering_fields))
    payload = choice.payload_class or {EVENT_TIME: DEFAULT_PAYLOAD, COMMIT_TIME: OVERWRITE_WITH_LATEST}.get(mode)
    if payload:
        found[keys.PAYLOAD_CLASS] = payload
    found[keys.MERGE_MODE] = mode
    found[keys.MERGE_STRATEGY_ID] = _strategy(choice, mode)
    return found | _prefixed(choice.properties)


def _version_9(choice: MergeChoice) -> dict[str, str]:
    built_in = built_in_payload(choice.payload_class)
    if built_in is not None:
        _ensure_agree(choice, built_in.mode)
        found = _ordering(built_in.ordering_fields or choice.ordering_fields)
        found |= {keys.MERGE_MODE: built_in.mode, keys.LEGACY_PAYLOAD_CLASS: choice.payload_class or ""}
        if built_in.partial_update:
            found[keys.PARTIAL_UPDATE_MODE] = built_in.partial_update
        return found | _prefixed({**built_in.properties, **choice.properties})
    found = _ordering(choice.ordering_fields) | _prefixed(choice.properties)
    if choice.payload_class:
        _ensure_agree(choice, CUSTOM)
        return found | {
            keys.MERGE_MODE: CUSTOM,
            keys.PAYLOAD_CLASS: choice.payload_class,
            keys.MERGE_STRATEGY_ID: _strategy(choice, CUSTOM),
        }
    mode = choice.mode or inferred_mode(None, has_ordering=bool(choice.ordering_fields))
    found[keys.MERGE_MODE] = mode
    return found | ({keys.MERGE_STRATEGY_ID: choice.strategy_id or CUSTOM_STRATEGY} if mode == CUSTOM else {})


def _strategy(choice: MergeChoice, mode: MergeMode) -> str:
    if mode != CUSTOM:
        return _STRATEGIES[mode]
    return choice.strategy_id or (PAYLOAD_STRATEGY if choice.payload_class else CUSTOM_STRATEGY)


def _ordering(fields: tuple[str, ...]) -> dict[str, str]:
    return {keys.ORDERING_FIELDS: ",".join(fields)} if fields else {}


def _prefixed(properties: Mapping[str, str]) -> dict[str, str]:
    return {keys.MERGE_PROPERTY_PREFIX + name: value for name, value in properties.items()}


def _ensure_agree(choice: MergeChoice, mode: MergeMode) -> None:
    if choice.mode is not None and choice.mode != mode:
        raise Invalid(
            f"Merge mode {choice.mode} contradicts payload class {choice.payload_class}, which means {mode}",
            remedy="Give only one of the two",
            mode=choice.mode,
            payload_class=choice.payload_class,
        )
