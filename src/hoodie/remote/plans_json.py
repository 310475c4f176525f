"""Pending compactions and clusterings, one object for each file group, as a timeline server writes them."""

from __future__ import annotations

from collections.abc import Iterator

from hoodie.remote.json_values import Json, elements, member, not_understood, optional, short
from hoodie.spec import CompactionOperation, Instant, State, parse_base_file_name
from hoodie.view import GroupId


def compaction_json(operation: CompactionOperation, instant: Instant) -> Json:
    """The object of one file group of a pending compaction or log compaction."""
    base = operation.base_file
    written = None if base is None else parse_base_file_name(base)
    return {
        "baseInstant": operation.base_instant,
        "compactionInstant": instant.requested,
        "dataFileInstant": None if written is None else written.instant,
        "deltaFiles": list(operation.log_files),
        "baseFile": base,
        "id": operation.file_id,
        "partition": operation.partition,
        "metrics": dict(operation.metrics),
        "bootstrapBaseFile": operation.bootstrap_file,
    }


def clustering_json(group: GroupId, instant: Instant) -> Json:
    """The object of one file group of a pending clustering."""
    partition, file_id = group
    return {
        "id": file_id,
        "partition": partition,
        "instantTime": instant.requested,
        "instantState": instant.state.name,
        "instantAction": instant.action,
    }


def parse_compaction(value: Json) -> tuple[str, CompactionOperation]:
    """The requested time of a pending compaction, and what it does to one file group.

    Raises:
        Unavailable: it is none.
    """
    operation = CompactionOperation(
        partition=member(value, "partition", str),
        file_id=member(value, "id", str),
        base_instant=optional(value, "baseInstant", str),
        log_files=tuple(_texts(member(value, "deltaFiles", list))),
        base_file=optional(value, "baseFile", str),
        metrics=dict(_numbers(optional(value, "metrics", dict) or {})),
        bootstrap_file=optional(value, "bootstrapBaseFile", str),
    )
    return member(value, "compactionInstant", str), operation


def parse_clustering(value: Json) -> tuple[GroupId, Instant]:
    """A file group of a pending clustering, and the clustering. Raises as `parse_compaction`."""
    state = member(value, "instantState", str)
    if state not in State.__members__:
        raise not_understood(f"instantState is {short(state)}")
    instant = Instant(member(value, "instantTime", str), member(value, "instantAction", str), State[state])
    return (member(value, "partition", str), member(value, "id", str)), instant


def _texts(value: Json) -> Iterator[str]:
    for one in elements(value):
        if not isinstance(one, str):
            raise not_understood(f"{short(one)} is no text")
        yield one


def _numbers(record: Json) -> Iterator[tuple[str, float]]:
    for name, number in record.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise not_understood(f"{short(name)} is {short(number)}")
        yield name, float(number)
