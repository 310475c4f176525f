"""Which two writes no order explains, by their deeds alone."""

from __future__ import annotations

import pytest

from hoodie.spec import CommitMetadata, WriteStat
from hoodie.transaction.overwrites import LOOKED_EXTRA, Deed, deed_of, without_order

P, Q = frozenset({"p"}), frozenset({"q"})
OVER = Deed("INSERT_OVERWRITE", written=P)
OVER_Q = Deed("INSERT_OVERWRITE", written=Q, replaced=Q)
ALL_Q = Deed("INSERT_OVERWRITE_TABLE", written=Q)
GONE = Deed("DELETE_PARTITION", replaced=P)
UPSERT = Deed("UPSERT", looks_up=True, written=P | Q)
INSERT = Deed("INSERT", written=P)
DROP = Deed("INSERT", looks_up=True, written=P)
CLUSTER = Deed("CLUSTER", written=P, replaced=P)


@pytest.mark.parametrize(
    ("one", "two", "partitions"),
    [
        (OVER, OVER, P),
        (OVER, OVER_Q, frozenset()),
        (OVER, ALL_Q, P),
        (OVER, UPSERT, P),
        (ALL_Q, UPSERT, P | Q),
        (OVER, INSERT, frozenset()),
        (OVER, DROP, P),
        (OVER_Q, DROP, frozenset()),
        (OVER, CLUSTER, frozenset()),
        (OVER, GONE, frozenset()),
        (GONE, UPSERT, frozenset()),
        (GONE, INSERT, frozenset()),
        (GONE, DROP, P),
        (UPSERT, DROP, frozenset()),
    ],
)
def test_where_no_order_explains_what_is_there(one: Deed, two: Deed, partitions: frozenset[str]) -> None:
    assert without_order(one, two) == without_order(two, one) == partitions


@pytest.mark.parametrize(
    ("operation", "said", "looks_up"),
    [
        ("UPSERT", None, True),
        ("UPSERT_PREPPED", None, True),
        ("DELETE_PREPPED", None, True),
        ("INSERT", None, True),  # of somebody who does not say it: it may have been told to drop known keys
        ("INSERT", "true", True),
        ("INSERT", "false", False),
        ("", None, True),
        ("BULK_INSERT", None, False),
        ("INSERT_OVERWRITE", None, False),
        ("INSERT_OVERWRITE_TABLE", None, False),
        ("DELETE_PARTITION", None, False),
        ("CLUSTER", None, False),
        ("COMPACT", None, False),
    ],
)
def test_whether_a_commit_has_looked_keys_up(operation: str, said: str | None, looks_up: bool) -> None:
    extra = {} if said is None else {LOOKED_EXTRA: said}
    stats = {"p": (WriteStat("f", partition_path="p"),)}
    deed = deed_of(operation, CommitMetadata(stats, extra_metadata=extra, partition_to_replace_file_ids={"q": ("g",)}))
    assert deed == Deed(operation, looks_up, P, Q)
