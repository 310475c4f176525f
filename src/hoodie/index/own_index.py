"""A write index of a caller's own: a Python class that the option `hoodie.index.class` names.

1. The name is `package.module:Class`, or with a dot for the colon. The module is imported as Python imports any, and
   the class is made with the options of the call and the table's config.
2. This runs code. The name is taken from the options of a call (or of the machine), never from what a table says of
   itself: who can write to a table cannot choose what others import.
3. Its answers are checked (`CheckedIndex`): nobody else would find out that rows are lost.
"""

from __future__ import annotations

from typing import Final

from hoodie.config import Config
from hoodie.config.own_class import made_by_own_class
from hoodie.errors import Invalid
from hoodie.index.checked_index import CheckedIndex
from hoodie.index.write_index import IndexTraits, WriteIndex
from hoodie.spec import TableConfig

INDEX_CLASS: Final = "hoodie.index.class"


def own_index(path: str, config: Config, table: TableConfig) -> CheckedIndex:
    """The index that the class at `path` makes, with its answers checked.

    Raises:
        Invalid: there is no such class, it cannot be made, or what it makes is no index.
    """
    given = "the options of the write (Config) and the table's config (TableConfig)"
    index = made_by_own_class(INDEX_CLASS, path, config, table, given=given)
    if not (isinstance(index, WriteIndex) and isinstance(index.traits, IndexTraits)):
        raise Invalid(
            f"{INDEX_CLASS}={path} makes no write index but a {type(index).__name__}",
            remedy="Give it what hoodie.index.WriteIndex has: traits, spool_order, begin; PlainIndex helps",
            key=INDEX_CLASS,
        )
    return CheckedIndex(index)
