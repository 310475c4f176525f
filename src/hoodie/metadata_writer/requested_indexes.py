"""Indexes with names that options of a write ask for, and indexes that options say to drop.

1. `hoodie.metadata.index.secondary.column` asks for a secondary index; `.expression.column` with `.expression.options`
   asks for an expression index. It is called `hoodie.index.name`, else like its column, behind the prefix of its kind.
2. What is asked for and there is left as it is. What is there and not asked for any more stays, too:
   `hoodie.metadata.index.drop` drops it.
3. A column that the same write brings into the table cannot be indexed yet: the next write that asks makes the index.
4. A name under `hoodie.metadata.index.drop` means every index of that name, with or without prefix, and those that need
   it. It is not made by the same write either. A name that nothing has is no error: options are often given with every
   write.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.metadata import COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX, IndexDefinition
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX
from hoodie.metadata_writer.index_state import kept_definition
from hoodie.metadata_writer.indexed_columns import ensure_columns
from hoodie.metadata_writer.indexes.record_index import GLOBAL_ENABLE, is_partitioned
from hoodie.metadata_writer.indexes.secondary_index import ensure_indexable
from hoodie.metadata_writer.metadata_index import IndexContext
from hoodie.metadata_writer.new_indexes import expression_index, secondary_index
from hoodie.metadata_writer.partition_state import kept_partitions
from hoodie.metadata_writer.table_columns import columns_before
from hoodie.records import with_meta
from hoodie.records.columns import type_at

log = logging.getLogger(__name__)

DROP: Final = "hoodie.metadata.index.drop"
SECONDARY_ENABLE: Final = "hoodie.metadata.index.secondary.enable"
SECONDARY_COLUMN: Final = "hoodie.metadata.index.secondary.column"
EXPRESSION_ENABLE: Final = "hoodie.metadata.index.expression.enable"
EXPRESSION_COLUMN: Final = "hoodie.metadata.index.expression.column"
EXPRESSION_OPTIONS: Final = "hoodie.metadata.index.expression.options"
EXPRESSION_TYPE: Final = "hoodie.expression.index.type"
NAME: Final = "hoodie.index.name"

_FUNCTION: Final = "expr"
_OPTION: Final = re.compile(r"\s*([^=,\s]+)\s*=\s*(?:'(.*?)'|([^,]*))\s*(?:,|$)")


def asked_indexes(context: IndexContext, wanted: Collection[str]) -> dict[str, IndexDefinition]:
    """Definitions by name of the indexes that options ask for and the table lacks. `wanted`: what the table is to have
    besides.

    Raises:
        Invalid, Unsupported: the table cannot have such an index.
    """
    config = context.options.config
    made = []
    if config.flag(SECONDARY_ENABLE) and config.text(SECONDARY_COLUMN):
        made.append(secondary_index(_name(config, SECONDARY_COLUMN), config.text(SECONDARY_COLUMN)))
    if config.flag(EXPRESSION_ENABLE) and config.text(EXPRESSION_COLUMN):
        made.append(_expression(config))
    dropped = dropped_by_name(config, [one.name for one in made])
    lacking = [one for one in made if one.name not in dropped and not _is_there(context, one)]
    version = context.handle.profile.indexes.version
    return {one.name: replace(one, version=version) for one in lacking if _is_possible(context, one, wanted)}


def dropped_by_name(config: Config, names: Iterable[str]) -> set[str]:
    """Those of the indexes that the options say to drop, and those that need one they say to drop.

    Raises:
        Invalid: they name the list of files.
    """
    said = set(config.list(DROP))
    if FILES in said:
        raise Invalid(
            f"{DROP} cannot drop {FILES}: that is the metadata table itself",
            remedy="Set hoodie.metadata.enable=false to drop the metadata table",
            key=DROP,
        )
    said |= {prefix + one for one in said for prefix in (SECONDARY_PREFIX, EXPRESSION_PREFIX)}
    return {
        one
        for one in names
        if one in said
        or (one == PARTITION_STATS and COLUMN_STATS in said)
        or (one.startswith(SECONDARY_PREFIX) and RECORD_INDEX in said)
    }


def parse_expression_options(text: str) -> dict[str, str]:
    """The options of `expr=from_unixtime, format='yyyy-MM-dd'` by name; a value in quotes may have commas.

    Raises:
        Invalid: it is not such a list.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None:
            raise Invalid(
                f"{EXPRESSION_OPTIONS} is {text!r}, which is no list of options",
                remedy="Write for example expr=from_unixtime,format=yyyy-MM-dd",
                key=EXPRESSION_OPTIONS,
            )
        name, quoted, plain = match.groups()
        found[name] = plain.strip() if quoted is None else quoted
        at = match.end()
    return found


def _name(config: Config, column_key: str) -> str:
    return config.text(NAME) or config.text(column_key)


def _expression(config: Config) -> IndexDefinition:
    """The expression index that the options ask for."""
    options = parse_expression_options(config.text(EXPRESSION_OPTIONS))
    if _FUNCTION not in options:
        raise Invalid(
            f"{EXPRESSION_COLUMN} asks for an index, and {EXPRESSION_OPTIONS} names no function for it",
            remedy=f"Set {EXPRESSION_OPTIONS} to the function and its options, for example expr=identity",
            key=EXPRESSION_OPTIONS,
        )
    function = options.pop(_FUNCTION)
    column, using = config.text(EXPRESSION_COLUMN), config.text(EXPRESSION_TYPE).lower()
    return expression_index(_name(config, EXPRESSION_COLUMN), column, function, options, using=using)


def _is_there(context: IndexContext, asked: IndexDefinition) -> bool:
    """Whether the table has the index already, ready or being built.

    Raises:
        Invalid: its name belongs to an index of something else.
    """
    if asked.name.startswith(SECONDARY_PREFIX):
        others = [name for name in kept_partitions(context.handle) if name.startswith(SECONDARY_PREFIX)]
        if any(_fields(context, name) == asked.source_fields for name in others):
            return True
    known = kept_definition(context, asked.name)
    if known is None:
        return False
    same = (known.kind, known.source_fields) == (asked.kind, asked.source_fields)
    if not same or not _has_options(known.options, asked.options):
        raise Invalid(
            f"There is an index {asked.name} already, and it is of something else than the options ask for",
            remedy=f"Give the new one another name with {NAME}, or drop the old one with {DROP}",
            index=asked.name,
        )
    return True


def _fields(context: IndexContext, name: str) -> tuple[str, ...]:
    known = kept_definition(context, name)
    return () if known is None else known.source_fields


def _has_options(known: Mapping[str, str], asked: Mapping[str, str]) -> bool:
    """Whether all options that are asked for are known; the name of a function in any case of letters."""
    return all(
        known.get(name, "").lower() == value.lower() if name == _FUNCTION else known.get(name) == value
        for name, value in asked.items()
    )


def _is_possible(context: IndexContext, asked: IndexDefinition, wanted: Collection[str]) -> bool:
    """Whether the index can be made now; not while its column is still to come.

    Raises:
        Invalid, Unsupported: the table can never have it as it is.
    """
    if not context.handle.profile.indexes.can_have(asked.name):
        raise Invalid(
            f"Tables of version 6 cannot have the index {asked.name}",
            remedy="Upgrade the table first, or leave the option out",
            index=asked.name,
        )
    has_keys = RECORD_INDEX in wanted or RECORD_INDEX in kept_partitions(context.handle)
    if asked.name.startswith(SECONDARY_PREFIX) and (not has_keys or is_partitioned(context)):
        raise Invalid(
            f"{SECONDARY_COLUMN} asks for a secondary index, which needs a record index of the whole table",
            remedy=f"Set {GLOBAL_ENABLE}=true, too",
            key=SECONDARY_COLUMN,
        )
    before, after = columns_before(context), context.schema
    if after is not None:
        _ensure_column(asked, after)
    if before is not None and after is not None and type_at(with_meta(before), asked.source_fields[0]) is None:
        log.info("the index %s is left to the next write: its column comes with this one", asked.name)
        return False
    if before is not None:
        _ensure_column(asked, before)
    return before is not None or after is not None


def _ensure_column(asked: IndexDefinition, schema: pa.Schema) -> None:
    column = asked.source_fields[0]
    if asked.name.startswith(SECONDARY_PREFIX):
        ensure_indexable(schema, column)
    else:
        ensure_columns(schema, (column,))
