"""The write indexes: how the file of an incoming key is found.

1. SIMPLE and BLOOM read base files: the key column, after footers were asked. Keys in log files only they do not see.
2. BUCKET computes the file group from the key. It is also how files are named, so a table keeps it for ever.
3. The record indexes ask the metadata table. They find nothing in a table that has no such index.
"""

from __future__ import annotations

from enum import Enum

from hoodie.errors import Invalid


class IndexKind(Enum):
    """Hudi's names (`hoodie.index.type`) of the indexes there are."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    BUCKET = "BUCKET"
    RECORD_INDEX = "RECORD_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"

    @property
    def is_global(self) -> bool:
        """True when a key is unique in the table, not only in its partition."""
        return self in (IndexKind.GLOBAL_SIMPLE, IndexKind.GLOBAL_BLOOM, IndexKind.RECORD_INDEX)

    @property
    def uses_bloom(self) -> bool:
        return self in (IndexKind.BLOOM, IndexKind.GLOBAL_BLOOM)

    @property
    def asks_metadata(self) -> bool:
        """Whether it is the record index of the metadata table."""
        return self in (IndexKind.RECORD_INDEX, IndexKind.RECORD_LEVEL_INDEX)

    @property
    def names_groups(self) -> bool:
        """Whether it knows the one file group of a key without looking into files."""
        return self is IndexKind.BUCKET or self.asks_metadata

    @property
    def sees_logs(self) -> bool:
        """Whether new rows of a merge-on-read table may go to log files.

        The record index would find them there, too. But it can be dropped, and the next writer may come with an index
        that reads base files: Hudi's default does. It would store such keys again.
        """
        return self is IndexKind.BUCKET


def parse_index_kind(text: str) -> IndexKind:
    """The index called `text` (case does not matter); the global record index has two names.

    Raises:
        Invalid: no such index.
    """
    name = text.upper()
    if name == "GLOBAL_RECORD_LEVEL_INDEX":
        return IndexKind.RECORD_INDEX
    try:
        return IndexKind(name)
    except ValueError:
        names = ", ".join(kind.value for kind in IndexKind)
        raise Invalid(f"Unknown index {text!r}", remedy=f"Use one of {names}", key="hoodie.index.type") from None
