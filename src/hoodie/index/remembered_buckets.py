"""What a table that was made with the bucket index remembers of it, among its properties and under Hudi's own keys.

1. Where a row lies follows from its key, the engine, the fields that are hashed and the number of simple buckets. With
   another one of them a write would look in the wrong places and store keys a second time. They are stored when the
   table is made, and never change.
2. The number of buckets of consistent hashing is no part of it: rings say it, and it changes.
3. It is believed only where all of it is there: of a table that names nothing but BUCKET, another engine says so.

Hudi keeps properties it does not know, and its datasource takes them as options of a write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config, lookup, takes
from hoodie.index.own_index import INDEX_CLASS
from hoodie.spec import TableConfig

INDEX_TYPE: Final = "hoodie.index.type"
ENGINE: Final = "hoodie.index.bucket.engine"
BUCKET_COUNT: Final = "hoodie.bucket.index.num.buckets"
HASH_FIELD: Final = "hoodie.bucket.index.hash.field"
BUCKET: Final = "BUCKET"
SIMPLE_ENGINE: Final = "SIMPLE"
CONSISTENT_ENGINE: Final = "CONSISTENT_HASHING"


@dataclass(frozen=True, slots=True)
class RememberedBuckets:
    """The bucket index of a table: its engine, the key fields that are hashed, and how many simple buckets a partition
    has (None: consistent hashing).
    """

    engine: str
    hash_fields: tuple[str, ...]
    count: int | None

    @property
    def properties(self) -> dict[str, str]:
        """How a table's properties say it."""
        said = {INDEX_TYPE: BUCKET, ENGINE: self.engine, HASH_FIELD: ",".join(self.hash_fields)}
        return said if self.count is None else {**said, BUCKET_COUNT: str(self.count)}


def planned_buckets(config: Config, key_fields: tuple[str, ...]) -> RememberedBuckets:
    """What a new table whose key is made of `key_fields` is to remember of the bucket index that options ask for."""
    engine = config.text(ENGINE)
    count = config.integer(BUCKET_COUNT) if engine == SIMPLE_ENGINE else None
    return RememberedBuckets(engine, config.list(HASH_FIELD) or key_fields, count)


def parse_remembered_buckets(properties: Mapping[str, str]) -> RememberedBuckets | None:
    """The bucket index that a table's properties remember; None where they remember none, or not all of it."""
    engine = properties.get(ENGINE, "").strip().upper()
    hashed = tuple(name for part in properties.get(HASH_FIELD, "").split(",") if (name := part.strip()))
    if properties.get(INDEX_TYPE, "").strip().upper() != BUCKET or not hashed:
        return None
    if engine == CONSISTENT_ENGINE:
        return RememberedBuckets(engine, hashed, None)
    count = properties.get(BUCKET_COUNT, "").strip()
    is_known = engine == SIMPLE_ENGINE and count.isascii() and count.isdigit() and takes(lookup(BUCKET_COUNT), count)
    return RememberedBuckets(engine, hashed, int(count)) if is_known else None


def bucket_differences(config: Config, table: TableConfig) -> list[tuple[str, object, object]]:
    """(key, value asked for, value of the table) for every option that contradicts the table's remembered buckets."""
    known = parse_remembered_buckets(table.raw)
    if known is None:
        return []
    stored: dict[str, object] = {INDEX_TYPE: BUCKET, ENGINE: known.engine}
    if known.count is not None:
        stored[BUCKET_COUNT] = known.count
    found = [(key, config.value(key), value) for key, value in stored.items() if config.is_set(key)]
    if config.text(INDEX_CLASS):
        found.append((INDEX_CLASS, config.text(INDEX_CLASS), BUCKET))
    hashed = config.list(HASH_FIELD)
    if hashed and frozenset(hashed) != frozenset(known.hash_fields):
        found.append((HASH_FIELD, hashed, known.hash_fields))
    return [difference for difference in found if difference[1] != difference[2]]
