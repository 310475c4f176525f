"""What a replacing commit intends: content of `replacecommit.requested` (and of `clustering.requested`).

1. Insert-overwrite writes a record with nothing in it; version 8+ names the operation for a partition delete.
2. A clustering carries its plan (`clustering_plan`).

It does not know storage. Grammar and an example: `docs/format/commit-metadata.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.errors import Corrupt
from hoodie.spec.avro_container import encode_container, parse_container
from hoodie.spec.avro_schemas import AvroGeneration
from hoodie.spec.clustering_plan import ClusteringPlan, clustering_values, parse_clustering
from hoodie.spec.typed_values import dict_of, texts_by_text, typed

_RECORD = "HoodieRequestedReplaceMetadata"

CLUSTER = "CLUSTER"
DELETE_PARTITION = "DELETE_PARTITION"


@dataclass(frozen=True, slots=True)
class RequestedReplace:
    """The requested content of a replacecommit. All None is what Hudi writes for insert-overwrite."""

    operation_type: str | None = None
    clustering_plan: ClusteringPlan | None = None
    extra_metadata: Mapping[str, str] | None = None
    version: int | None = None

    @property
    def is_clustering(self) -> bool:
        return self.operation_type == CLUSTER or self.clustering_plan is not None

    @property
    def group_ids(self) -> tuple[tuple[str, str], ...]:
        """(partition path, file id) of every file group that a clustering will replace; none for other requests."""
        return () if self.clustering_plan is None else self.clustering_plan.group_ids


EMPTY_REPLACE = RequestedReplace()


def delete_partition_request(generation: AvroGeneration) -> RequestedReplace:
    """What is requested for a partition delete: nothing in Hudi 0.15, the operation's name in 1.x."""
    if generation == "0.15":
        return EMPTY_REPLACE
    return RequestedReplace(DELETE_PARTITION, extra_metadata={}, version=1)


def encode_requested_replace(request: RequestedReplace, generation: AvroGeneration = "1.x") -> bytes:
    """The bytes of `replacecommit.requested`."""
    plan = request.clustering_plan
    return encode_container(
        _RECORD,
        {
            "operationType": request.operation_type,
            "clusteringPlan": None if plan is None else clustering_values(plan, generation),
            "extraMetadata": dict_of(request.extra_metadata),
            "version": request.version,
        },
        generation,
    )


def parse_requested_replace(data: bytes, path: str) -> RequestedReplace:
    """The requested content of a replacecommit; zero bytes (some old writers) mean nothing was said.

    Raises:
        Corrupt: damaged, another kind of record, or a clustering plan that names no file groups of the table.
    """
    if not data:
        return EMPTY_REPLACE
    name, record = parse_container(data, path)
    if "clusteringPlan" not in record:
        raise Corrupt(f"{path} holds a {name}, not a {_RECORD}", remedy="Restore the file from a copy", path=path)
    plan = typed(record, "clusteringPlan", dict, path)
    return RequestedReplace(
        typed(record, "operationType", str, path),
        None if plan is None else parse_clustering(plan, path),
        texts_by_text(record, "extraMetadata", path),
        typed(record, "version", int, path),
    )
