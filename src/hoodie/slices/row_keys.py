"""The key of each row of a file: its meta column, or (virtual keys) made from the key columns again.

Only what a reader needs: keys that are compared with other keys of the same table. Making keys for new rows is for the
writer's key generator, which takes more into account.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import Unsupported
from hoodie.records import KEY_FIELD
from hoodie.records.record_keys import named_keys, plain_keys
from hoodie.spec import FormatProfile, TableConfig
from hoodie.spec.table_config import USER_PROVIDED


@dataclass(frozen=True, slots=True)
class RowKeys:
    """How keys are known. Without `fields` they stand in `_hoodie_record_key`; `named` says whether the fields' names
    are part of a key.
    """

    fields: tuple[str, ...] = ()
    named: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Top-level columns that must be read to know the keys."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.fields)) or (KEY_FIELD,)

    def of(self, rows: pa.Table) -> pa.ChunkedArray:
        """The key of every row, string.

        Raises:
            Invalid: a row has no key.
        """
        if not self.fields:
            return rows.column(KEY_FIELD)
        return pa.chunked_array([self._made(batch) for batch in rows.to_batches()], pa.string())

    def of_batch(self, batch: pa.RecordBatch) -> pa.Array:
        """The same for a batch."""
        return self._made(batch) if self.fields else batch.column(KEY_FIELD)

    def _made(self, batch: pa.RecordBatch) -> pa.Array:
        return named_keys(batch, self.fields) if self.named else plain_keys(batch, self.fields[0])


def row_keys(config: TableConfig, profile: FormatProfile) -> RowKeys:
    """How the keys of a table's rows are known.

    Raises:
        Unsupported: rows do not carry keys, and the class that makes them is not known here.
    """
    if config.populate_meta_fields:
        return RowKeys()
    fields = config.record_key_fields
    if config.keygen_type == USER_PROVIDED or not fields:
        raise Unsupported(
            f"Rows of {config.name} do not carry their keys (hoodie.populate.meta.fields=false), and "
            f"{config.keygen_class or 'an automatic key'} cannot be made again from the other columns",
            remedy="Read it with query='read_optimized', or after a compaction",
            keygen=config.keygen_class,
        )
    single_named = config.keygen_type == "COMPLEX" and profile.capabilities.complex_single_key_named
    return RowKeys(fields, len(fields) > 1 or single_named)
