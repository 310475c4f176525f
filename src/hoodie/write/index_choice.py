"""The write index of a table: what the options say, else what the table was made with.

An index that keeps keys unique in the whole table is a promise about the table's rows, and one write without its option
would break it: such a key would be stored a second time, in another partition. So a table that is made with one has
the option among its properties, under Hudi's own key. Hudi 0.15 and 1.x keep properties they do not know whenever they
write the file anew, and their datasource takes them as options of a write: they go on with the same index.
"""

from __future__ import annotations

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.index import IndexKind, parse_index_kind
from hoodie.spec import TableConfig

INDEX_TYPE = "hoodie.index.type"
_MOVES = {
    IndexKind.RECORD_INDEX: "hoodie.record.index.update.partition.path",
    IndexKind.GLOBAL_SIMPLE: "hoodie.simple.index.update.partition.path",
    IndexKind.GLOBAL_BLOOM: "hoodie.bloom.index.update.partition.path",
}


def remembered_index(config: Config) -> dict[str, str]:
    """Properties of a new table that say its index again to later writes; none unless it is a global one."""
    kind = parse_index_kind(config.text(INDEX_TYPE))
    if not kind.is_global or not config.is_set(INDEX_TYPE):
        return {}
    moves = _MOVES[kind]
    said = {moves: str(config.flag(moves)).lower()} if config.is_set(moves) else {}
    return {INDEX_TYPE: kind.value, **said}


def chosen_index(config: Config, table: TableConfig) -> IndexKind:
    """The index of a write to `table`.

    Raises:
        Invalid: no such index.
    """
    if not config.is_set(INDEX_TYPE) and (stored := table.raw.get(INDEX_TYPE)):
        try:
            kind = parse_index_kind(stored)
        except Invalid:
            kind = IndexKind.SIMPLE  # another engine's word for another engine's index
        if kind.is_global:
            return kind
    return parse_index_kind(config.text(INDEX_TYPE))


def moves_partitions(kind: IndexKind, config: Config, table: TableConfig) -> bool:
    """Whether a key that comes with another partition moves there."""
    moves = _MOVES.get(kind)
    if moves is None:
        return False
    if not config.is_set(moves) and moves in table.raw:
        return table.raw[moves].strip().lower() == "true"
    return config.flag(moves)
