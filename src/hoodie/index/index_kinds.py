"""The write indexes there are, and which of them a write has: what its options say, else what the table was made with.

1. `hoodie.index.class` names a class of the caller's own and goes before `hoodie.index.type`. It is code that is run:
   it is taken from options only, never from what a table says.
2. An index that keeps keys unique in the whole table is a promise about the table's rows, and one write without its
   option would break it: such a key would be stored a second time, in another partition. So a table that is made with
   one has the option among its properties, under Hudi's own key. Hudi 0.15 and 1.x keep properties they do not know
   whenever they write the file anew, and their datasource takes them as options of a write: they go on with the same
   index. A write that names another one gets it.
3. A bucket index says where keys lie: a table that is made with it remembers that as well (`remembered_buckets`), and
   no write gets another one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.index import bloom_index, bucket_index, hbase_index, in_memory_index, record_index, simple_index
from hoodie.index.index_kind import IndexKind
from hoodie.index.own_index import INDEX_CLASS, own_index
from hoodie.index.remembered_buckets import BUCKET, INDEX_TYPE, parse_remembered_buckets, planned_buckets
from hoodie.index.write_index import FollowsRewrites, IndexTraits, RollsBack, WriteIndex
from hoodie.spec import InstantTime, TableConfig
from hoodie.storage import Storage

log = logging.getLogger(__name__)

INDEX_KINDS: Final[Mapping[str, IndexKind]] = {
    kind.name: kind
    for module in (simple_index, bloom_index, bucket_index, record_index, in_memory_index, hbase_index)
    for kind in module.KINDS
}
"""By Hudi's names, the values of `hoodie.index.type`. A new kind is one more module in this list."""


def parse_write_index(config: Config, table: TableConfig) -> WriteIndex:
    """The index of a write to `table`.

    Raises:
        Invalid: no such index, or one that does not go together with the table.
    """
    named = config.text(INDEX_CLASS)
    if named and parse_remembered_buckets(table.raw) is None:
        return own_index(named, config, table)
    return _made(_chosen(config, table), config, table)


def rewrite_follower(config: Config, table: TableConfig) -> FollowsRewrites | None:
    """The index that must hear of rewritten files; None where options and table name no such index.

    Raises:
        Invalid: the table is written with one, and the options do not say where it is.
    """
    kind = None if config.text(INDEX_CLASS) else _chosen(config, table)
    index = _made(kind, config, table) if kind is not None and kind.lies_outside else None
    return index if isinstance(index, FollowsRewrites) else None


def _made(kind: IndexKind, config: Config, table: TableConfig) -> WriteIndex:
    moves = kind.moves_key is not None and _moves_partitions(kind.moves_key, config, table)
    return kind.make(IndexTraits(kind.name, is_global=kind.is_global, moves_partitions=moves), config, table)


def remembered_index(config: Config, key_fields: tuple[str, ...]) -> dict[str, str]:
    """Properties of a new table, whose key is made of `key_fields`, that say its index again to later writes; none
    unless it is a global one of Hudi's, or the bucket index.
    """
    kind = index_kind(config.text(INDEX_TYPE))
    if not config.is_set(INDEX_TYPE) or config.text(INDEX_CLASS):
        return {}
    if kind.name == BUCKET:
        return planned_buckets(config, key_fields).properties
    if not kind.is_global:
        return {}
    moves = kind.moves_key
    said = {moves: str(config.flag(moves)).lower()} if moves is not None and config.is_set(moves) else {}
    return {INDEX_TYPE: kind.name, **said}


def index_kind(text: str) -> IndexKind:
    """The kind called `text` (case does not matter).

    Raises:
        Invalid: no such index.
    """
    name = text.upper()
    for kind in INDEX_KINDS.values():
        if name == kind.name or name in kind.names:
            return kind
    raise Invalid(f"Unknown index {text!r}", remedy=f"Use one of {', '.join(INDEX_KINDS)}", key=INDEX_TYPE)


def roll_back_indexes(storage: Storage, table: TableConfig, config: Config, instant: InstantTime) -> None:
    """Takes back what indexes have stored for an instant that is being rolled back: those of any kind beside the data,
    and one that lies outside of the table, or a class of the caller's own, where the options name it.
    """
    for kind in INDEX_KINDS.values():
        if kind.roll_back is not None:
            kind.roll_back(storage, instant)
    named = config.text(INDEX_CLASS)
    if named or _chosen(config, table).lies_outside:
        try:
            index = parse_write_index(config, table)
            if isinstance(index, RollsBack):
                index.roll_back(storage, instant)
        except Exception as error:  # whatever a class raises; the table must get rid of its failed write
            log.warning("index %s could not take back %s: %s", named or "HBASE", instant, error)


def has_buckets(config: Config, table: TableConfig) -> bool:
    """Whether the index of a write to `table` is the bucket index."""
    return _chosen(config, table).name == BUCKET


def _chosen(config: Config, table: TableConfig) -> IndexKind:
    if parse_remembered_buckets(table.raw) is not None:
        return INDEX_KINDS[BUCKET]
    if not config.is_set(INDEX_TYPE) and (stored := table.raw.get(INDEX_TYPE)):
        try:
            kind = index_kind(stored)
        except Invalid:
            kind = INDEX_KINDS["SIMPLE"]  # another engine's word for another engine's index
        if kind.is_global:
            return kind
    return index_kind(config.text(INDEX_TYPE))


def _moves_partitions(key: str, config: Config, table: TableConfig) -> bool:
    """Whether a key that comes with another partition moves there."""
    if not config.is_set(key) and key in table.raw:
        return table.raw[key].strip().lower() == "true"
    return config.flag(key)
