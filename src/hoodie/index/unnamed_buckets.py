"""Partitions whose rows lie in buckets of an index that nobody names: Hudi does not store which one it writes with.

1. A partition of consistent hashing has a ring below `.hoodie`.
2. File ids of simple buckets begin with the number of the bucket, eight digits wide. A random one may look like that by
   chance. So more than half of a partition's groups have to, two at least, with numbers below a million; a group that
   is alone must be in company of the table's other ones, or its number is below a thousand.
3. Who names an index is believed, in options or in the table's properties. A table without key fields has no buckets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.index.buckets import bucket_of_file
from hoodie.index.hash_ring import find_ring
from hoodie.index.index_kinds import index_kind
from hoodie.index.own_index import INDEX_CLASS
from hoodie.index.remembered_buckets import BUCKET, INDEX_TYPE, parse_remembered_buckets
from hoodie.spec import TableConfig
from hoodie.storage import Listable

NAME_THE_INDEX: Final = (
    f"name the index the table is written with ({INDEX_TYPE}; of simple buckets hoodie.bucket.index.num.buckets, too, "
    "of consistent hashing hoodie.index.bucket.engine)"
)

_MAX_NUMBER: Final = 1_000_000
_MAX_LONE_NUMBER: Final = 1_000


def is_index_named(config: Config, table: TableConfig) -> bool:
    """Whether options or properties say which index the table is written with, or it can have no buckets."""
    if not table.record_key_fields or config.is_set(INDEX_TYPE) or config.text(INDEX_CLASS):
        return True
    try:
        stored = index_kind(table.raw.get(INDEX_TYPE, "")).name
    except Invalid:
        return False  # none, or another engine's word
    return stored != BUCKET or parse_remembered_buckets(table.raw) is not None


def load_bucket_partition(
    storage: Listable, groups: Mapping[str, Collection[str]], partitions: Iterable[str]
) -> str | None:
    """The first of `partitions` whose rows lie in buckets; None without one. `groups`: the live file ids of all
    partitions that are known. Lists the folder of rings, and below it where there are any.
    """
    asked = sorted(partitions)
    simple = find_simple_buckets(groups, asked)
    return simple if simple is not None else find_ring(storage, asked)


def find_simple_buckets(groups: Mapping[str, Collection[str]], partitions: Iterable[str]) -> str | None:
    """The first of `partitions` whose file ids are those of simple buckets; None without one."""
    every = [one for ids in groups.values() for one in ids]
    has_company = _are_buckets(every)
    return next(
        (one for one in partitions if (ids := groups.get(one)) and _are_buckets(ids, has_company=has_company)), None
    )


def look_like_buckets(file_ids: Collection[str]) -> bool:
    """Whether more than half of the file ids begin like those of simple buckets, be it by chance."""
    return 2 * len(_numbers(file_ids)) > len(file_ids)


def _are_buckets(file_ids: Collection[str], *, has_company: bool = False) -> bool:
    numbers = _numbers(file_ids)
    if 2 * len(numbers) <= len(file_ids):
        return False
    return len(numbers) > 1 or has_company or numbers[0] < _MAX_LONE_NUMBER


def _numbers(file_ids: Iterable[str]) -> list[int]:
    found = (bucket_of_file(one) for one in file_ids if one[8:9] == "-")
    return [one for one in found if one is not None and one < _MAX_NUMBER]
