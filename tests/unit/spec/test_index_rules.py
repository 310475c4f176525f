"""Which indexes tables of a version can have."""

import pytest

from hoodie.metadata import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from hoodie.metadata.partitions import EXPRESSION_PREFIX, SECONDARY_PREFIX
from hoodie.spec import V6, V8, V9

NAMED = (f"{SECONDARY_PREFIX}one", f"{EXPRESSION_PREFIX}two")
SINCE_8 = pytest.mark.parametrize("profile", [V8, V9], ids=["v8", "v9"])


@pytest.mark.parametrize("partition", [FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX])
def test_every_version_can_have_these(partition) -> None:
    assert all(profile.indexes.can_have(partition) for profile in (V6, V8, V9))


@pytest.mark.parametrize("partition", [PARTITION_STATS, *NAMED])
def test_statistics_of_partitions_and_indexes_with_names_came_with_version_8(partition) -> None:
    assert not V6.indexes.can_have(partition)
    assert V8.indexes.can_have(partition)
    assert V9.indexes.can_have(partition)


def test_version_6_covers_every_column_when_it_is_asked_for_statistics() -> None:
    rules = V6.indexes
    assert (rules.version, rules.covers_every_column, rules.covers_bytes) == ("V1", True, True)
    assert not rules.column_stats_by_default
    assert not rules.has_partitioned_record_index
    assert not rules.is_built_beside_writes


@SINCE_8
def test_since_version_8_tables_have_statistics_of_some_columns_unless_told_not_to(profile) -> None:
    rules = profile.indexes
    assert (rules.covers_every_column, rules.covers_bytes) == (False, False)
    assert rules.column_stats_by_default
    assert rules.has_partitioned_record_index
    assert rules.is_built_beside_writes


def test_statistics_name_their_types_since_version_9() -> None:
    assert (V8.indexes.version, V9.indexes.version) == ("V1", "V2")
