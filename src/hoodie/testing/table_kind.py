"""What table a test of dying writers and services puts them through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hoodie.storage import Storage
from hoodie.testing.two_stores import layout_options, two_stores

WRITE: Final = "hoodie.datasource.write."
EVENT_TIME: Final = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"


@dataclass(frozen=True)
class Kind:
    """A table of rows of `hoodie.testing.lake`, merged by event time. `metadata`: it has a metadata table. `strategy`:
    its files lie under a storage path, by this storage strategy.
    """

    version: int
    table_type: str
    metadata: bool = True
    strategy: str = ""

    def laid(self, storage: Storage) -> Storage:
        """A storage as such a table's: with a storage strategy it is that of both table path and storage path."""
        return two_stores(storage) if self.strategy else storage

    @property
    def options(self) -> dict[str, Any]:
        """What makes such a table."""
        return {
            WRITE + "recordkey.field": "id",
            WRITE + "partitionpath.field": "part",
            "hoodie.table.ordering.fields": "ts",
            WRITE + "table.type": self.table_type,
            "hoodie.write.table.version": self.version,
            "hoodie.metadata.enable": str(self.metadata).lower(),
            **({WRITE + "payload.class": EVENT_TIME} if self.version == 6 else {}),
            **(layout_options(self.strategy) if self.strategy else {}),
        }

    def __str__(self) -> str:
        more = ("" if self.metadata else "-listed") + ("-prefixes" if self.strategy else "")
        return f"v{self.version}-{'mor' if self.table_type == 'MERGE_ON_READ' else 'cow'}{more}"


COW: Final = tuple(Kind(version, "COPY_ON_WRITE") for version in (6, 8, 9))
MOR: Final = tuple(Kind(version, "MERGE_ON_READ") for version in (6, 8, 9))
