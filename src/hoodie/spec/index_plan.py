"""What is to be indexed, and what was: content of `indexing.requested` and of completed indexings.

1. Both list partitions of the metadata table, each with the newest instant of the table that its first records cover:
   what completes later is caught up with before the indexing completes.
2. The content of `indexing.inflight` is empty.

Grammar and example: docs/format/index-definitions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.instant import InstantTime
from hoodie.spec.typed_values import records_of, typed

_PLAN = "HoodieIndexPlan"
_METADATA = "HoodieIndexCommitMetadata"
_INFOS = "indexPartitionInfos"


@dataclass(frozen=True, slots=True)
class IndexedPartition:
    """A partition of the metadata table, and up to which instant of the table it was first built."""

    name: str
    upto: InstantTime


def encode_index_plan(partitions: Sequence[IndexedPartition], generation: AvroGeneration) -> bytes:
    """The bytes of `indexing.requested`."""
    return encode_container(_PLAN, {"version": 1, _INFOS: _infos(partitions, generation)}, generation)


def encode_index_metadata(partitions: Sequence[IndexedPartition], generation: AvroGeneration) -> bytes:
    """The bytes of a completed indexing."""
    record = {"version": 1, "operationType": None, _INFOS: _infos(partitions, generation)}
    return encode_container(_METADATA, record, generation)


def parse_index_plan(data: bytes, path: str) -> tuple[IndexedPartition, ...]:
    """The partitions that a plan, or a completed indexing, names.

    Raises:
        Corrupt: damaged, empty, or something else.
    """
    name, record = parse_container(data, path)
    if name not in (_PLAN, _METADATA):
        raise Corrupt(f"{path} is no plan of an indexing: it is a {name}", remedy="Delete the indexing", path=path)
    return tuple(
        IndexedPartition(
            typed(info, "metadataPartitionPath", str, path) or "", typed(info, "indexUptoInstant", str, path) or ""
        )
        for info in records_of(record, _INFOS, path)
    )


def _infos(partitions: Sequence[IndexedPartition], generation: AvroGeneration) -> list[Mapping[str, Any]]:
    more: dict[str, Any] = {"extraMetadata": {}} if generation == "1.x" else {}
    return [
        {"version": 1, "metadataPartitionPath": one.name, "indexUptoInstant": one.upto, **more} for one in partitions
    ]
