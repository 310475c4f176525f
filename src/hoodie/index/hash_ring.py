"""Consistent hashing: ranges of hashes with a file group each, that can be split and merged one by one.

1. A ring has nodes, ordered by value. A hash belongs to the first node whose value is not below it, hashes above the
   last node to the first. The file id of a node is its prefix and `-0`.
2. The hash of a key is xxHash32 of its joined values, without the sign bit.
3. A ring is a JSON file `<instant>.hashing_meta` below `.hoodie/.bucket_index`, in a folder for each partition. The
   first has the instant of fourteen zeros and follows from partition and number of buckets alone: every writer would
   make the same.
4. A later one counts when its instant completed. An empty file `<instant>.commit` says so for ever; where it is
   missing, the timeline does, or the file groups of its new nodes when the timeline no longer knows.
5. A change of a ring is a list of child nodes: REPLACE puts a node in the place of the one with its value (or between),
   DELETE takes one away.

Grammar and an example: docs/format/bucket-index.md.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import uuid
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Conflict, Corrupt
from hoodie.index.buckets import Numbers
from hoodie.index.hash_values import EVERY_PART, KeyParts, value_groups
from hoodie.records import xxhash32
from hoodie.spec import InstantTime
from hoodie.spec.keys import HOODIE_DIR
from hoodie.storage import Listable, Storage

CONSISTENT_DIR: Final = f"{HOODIE_DIR}/.bucket_index/consistent_hashing_metadata"
FIRST_HASHING: Final = "00000000000000"
LAST_HASH: Final = 0x7FFF_FFFF

_HASHING_FILE: Final = re.compile(r"([0-9]+)\.hashing_meta")
_RESTORE: Final = "Restore the file from a copy"

Tag = Literal["NORMAL", "REPLACE", "DELETE"]


@dataclass(frozen=True, slots=True)
class HashNode:
    """The range of hashes that ends with `value`, and how its file id begins. A node to DELETE has no prefix."""

    value: int
    prefix: str | None
    tag: Tag = "NORMAL"


@dataclass(frozen=True, slots=True)
class HashRing:
    """The nodes of one partition, ascending by value. `first_count` is how many the first ring had; `sequence` counts
    changes.
    """

    partition: str
    instant: str
    first_count: int
    sequence: int
    nodes: tuple[HashNode, ...]
    parts: KeyParts = EVERY_PART

    @property
    def count(self) -> int:
        return len(self.nodes)

    def numbers(self, keys: pa.StringArray) -> Numbers:
        hashes = np.empty(len(keys), dtype=np.int64)
        for group in value_groups(keys, self.parts):
            texts = [pc.fill_null(column, "null") for column in group.columns]
            joined = pc.binary_join_element_wise(*texts, "") if len(texts) > 1 else texts[0]
            hashes[group.rows] = xxhash32(joined).astype(np.int64) & LAST_HASH
        ends = np.array([node.value for node in self.nodes], dtype=np.int64)
        return np.searchsorted(ends, hashes, side="left") % len(self.nodes)

    def number_of(self, file_id: str) -> int | None:
        return next((n for n in range(self.count) if self.file_id(n) == file_id), None)

    def new_file_id(self, number: int, uuid: str) -> str:
        del uuid  # the ring has named it
        return self.file_id(number)

    @property
    def file_ids(self) -> frozenset[str]:
        return frozenset(self.file_id(number) for number in range(self.count))

    def file_id(self, number: int) -> str:
        """The file id of a node."""
        return f"{self.nodes[number].prefix}-0"

    def with_children(self, children: Iterable[HashNode], instant: str) -> HashRing:
        """The ring after a change that `instant` makes."""
        found = {node.value: node for node in self.nodes}
        for child in children:
            if child.tag == "DELETE":
                found.pop(child.value, None)
            else:
                found[child.value] = HashNode(child.value, child.prefix)
        nodes = tuple(found[value] for value in sorted(found))
        return replace(self, instant=instant, sequence=self.sequence + 1, nodes=nodes)


def first_ring(partition: str, count: int, parts: KeyParts = EVERY_PART) -> HashRing:
    """The ring a partition begins with: `count` ranges of about the same width."""
    step = (LAST_HASH + count - 1) // count
    ends = [min(step * n, LAST_HASH) for n in range(count + 1)]
    nodes = tuple(HashNode(end, _prefix(partition, start, end)) for start, end in itertools.pairwise(ends))
    return HashRing(partition, FIRST_HASHING, count, 0, nodes, parts)


def encode_ring(ring: HashRing) -> bytes:
    """The bytes of a hashing metadata file."""
    nodes = ", ".join(_node_text(node, "\n    ", "\n  ") for node in ring.nodes)
    head = {
        "version": 0,
        "partitionPath": ring.partition,
        "instant": ring.instant,
        "numBuckets": ring.first_count,
        "seqNo": ring.sequence,
    }
    lines = [f"  {json.dumps(name)} : {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()]
    return ("{\n" + ",\n".join([*lines, f'  "nodes" : [ {nodes} ]']) + "\n}").encode()


def parse_ring(data: bytes, partition: str, path: str, parts: KeyParts = EVERY_PART) -> HashRing:
    """The ring of a hashing metadata file.

    Raises:
        Corrupt: it is none, or has no nodes.
    """
    try:
        found = json.loads(data)
        nodes = tuple(sorted((_node(one) for one in found["nodes"]), key=lambda node: node.value))
        instant = str(found.get("instant", FIRST_HASHING))
        ring = HashRing(
            partition, instant, int(found.get("numBuckets", len(nodes))), int(found.get("seqNo", 0)), nodes, parts
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"{path} is no hashing metadata", remedy=_RESTORE, path=path) from error
    if not nodes:
        raise Corrupt(f"{path} has no ranges", remedy=_RESTORE, path=path)
    return ring


def encode_children(nodes: Sequence[HashNode]) -> str:
    """Child nodes as a clustering plan carries them."""
    return "[ " + ", ".join(_node_text(node, "\n  ", "\n") for node in nodes) + " ]"


def parse_children(text: str, path: str) -> tuple[HashNode, ...]:
    """Child nodes out of a clustering plan.

    Raises:
        Corrupt: they are none.
    """
    try:
        found = json.loads(text)
        if not isinstance(found, list):
            raise TypeError(text)
        return tuple(_node(one) for one in found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"{path} has damaged child nodes", remedy=_RESTORE, path=path) from error


def load_ring(
    storage: Storage,
    partition: str,
    completed: Collection[InstantTime] = (),
    live: Collection[str] = (),
    parts: KeyParts = EVERY_PART,
) -> HashRing | None:
    """The newest committed ring of a partition; None for one without. A ring without its marker is committed when its
    instant is among the `completed` ones of the timeline, or when one of the `live` file groups (ids) has its name from
    it: no older ring has that group. What was left by a resize that died keeps the other groups as they are.

    Lists one folder, and reads one file for each ring it looks at; those of all older ones where such a group is asked
    for.

    Raises:
        Corrupt: a file of them is damaged.
    """
    folder = _folder(partition)
    names = {file.path.rpartition("/")[2] for file in storage.list_dir(folder).files}
    instants = sorted((match[1] for name in names if (match := _HASHING_FILE.fullmatch(name))), reverse=True)

    @cache
    def ring_of(instant: str) -> HashRing:
        path = f"{folder}/{instant}.hashing_meta"
        return parse_ring(storage.read(path), partition, path, parts)

    for place, instant in enumerate(instants):
        if instant == FIRST_HASHING or f"{instant}.commit" in names or instant in completed:
            return ring_of(instant)
        if alive := ring_of(instant).file_ids.intersection(live):
            older = (ring_of(one).file_ids for one in instants[place + 1 :])
            if alive.difference(*older):
                return ring_of(instant)
    return None


def find_ring(storage: Listable, partitions: Iterable[str]) -> str | None:
    """The first of the partitions that has a ring; None without one. Lists one folder where the table has no ring."""
    top = storage.list_dir(CONSISTENT_DIR)
    inside = {folder.rpartition("/")[2] for folder in top.dirs}
    for partition in partitions:
        if not partition:
            files = top.files
        else:
            is_there = partition.partition("/")[0] in inside
            files = storage.list_dir(_folder(partition)).files if is_there else ()
        if any(_HASHING_FILE.fullmatch(file.path.rpartition("/")[2]) for file in files):
            return partition
    return None


def may_have_rings(storage: Listable) -> bool:
    """Whether there is anything where rings are stored. Lists one folder."""
    top = storage.list_dir(CONSISTENT_DIR)
    return bool(top.files or top.dirs)


def store_ring(storage: Storage, ring: HashRing) -> None:
    """Store a ring. The first of a partition stays as it is when it is there; one of a redone instant is replaced."""
    path = f"{_folder(ring.partition)}/{ring.instant}.hashing_meta"
    if ring.instant == FIRST_HASHING:
        with suppress(Conflict):
            storage.create(path, encode_ring(ring))
    else:
        storage.put(path, encode_ring(ring))


def mark_committed(storage: Storage, partition: str, instant: str) -> None:
    """Say for ever that the ring of `instant` counts."""
    with suppress(Conflict):
        storage.create(f"{_folder(partition)}/{instant}.commit", b"")


def forget_rings(storage: Storage, instant: str) -> None:
    """Delete the rings of an instant that is undone, and their markers: file groups are the ones before it again."""
    for file in list(storage.list(CONSISTENT_DIR)):
        if file.path.rpartition("/")[2] in (f"{instant}.hashing_meta", f"{instant}.commit"):
            storage.delete(file.path)


def _folder(partition: str) -> str:
    return f"{CONSISTENT_DIR}/{partition}" if partition else CONSISTENT_DIR


def _prefix(partition: str, start: int, end: int) -> str:
    digest = hashlib.md5(start.to_bytes(8, "big") + end.to_bytes(8, "big") + partition.encode(), usedforsecurity=False)
    return str(uuid.UUID(bytes=digest.digest(), version=3))


def _node(found: Any) -> HashNode:
    tag = found.get("tag", "NORMAL")
    if tag not in ("NORMAL", "REPLACE", "DELETE"):
        raise ValueError(tag)
    prefix = found["fileIdPrefix"] if tag != "DELETE" else found.get("fileIdPrefix")
    return HashNode(int(found["value"]), None if prefix is None else str(prefix), tag)


def _node_text(node: HashNode, indent: str, end: str) -> str:
    fields = {"value": node.value, "fileIdPrefix": node.prefix, "tag": node.tag}
    return (
        "{"
        + ",".join(f"{indent}{json.dumps(name)} : {json.dumps(value)}" for name, value in fields.items())
        + end
        + "}"
    )
