"""How damage of the metadata table is said: its file from the root of the table, and what mends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hoodie.errors import Corrupt
from hoodie.spec import keys

REBUILD: Final = "Make it anew from the files of the table: hoodie doctor PATH --fix, or Table.indexes.rebuild()"


@contextmanager
def naming_metadata_table() -> Iterator[None]:
    """Lets damage found below the metadata table's root name its file from the table's root."""
    try:
        yield
    except Corrupt as error:
        path = f"{keys.METADATA_TABLE_DIR}/{error.facts.get('path', '')}".rstrip("/")
        raise Corrupt(f"Metadata table: {error.cause}", remedy=REBUILD, **{**error.facts, "path": path}) from error
