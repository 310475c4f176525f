"""Tables whose rows lie in buckets, though neither options nor properties say so: nobody takes rows out of them."""

from __future__ import annotations

import pytest

from hoodie import Table
from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid, Unsupported
from hoodie.index import find_simple_buckets, is_index_named
from hoodie.services.clustering import grouping
from hoodie.state.handle import load_handle
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.lake import Awake, Lake, row, table_of
from hoodie.timeline import store_table_config

INDEX = "hoodie.index.type"
REMEMBERED = (INDEX, "hoodie.index.bucket.engine", "hoodie.bucket.index.num.buckets", "hoodie.bucket.index.hash.field")
SIMPLE = {INDEX: "BUCKET", "hoodie.bucket.index.num.buckets": "4"}
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
RINGS = {**SIMPLE, **MERGE, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
KEYS = [f"k{n}" for n in range(20)]
OTHERS = [f"q{n}" for n in range(20)]
BY_CHANCE = "12345678-2dd9-4f44-9e59-0e6a27e2a9a5-0"
RANDOM = "9e1b4c0a-2dd9-4f44-9e59-0e6a27e2a9a5-0"


def bucket(number: int) -> str:
    return f"{number:08d}-2dd9-4f44-9e59-0e6a27e2a9a5-0"


def rows(keys=KEYS, v="a", ts=1, part="p"):
    return table_of([row(key, v, ts, part) for key in keys])


@pytest.fixture(params=[SIMPLE, SIMPLE | MERGE, RINGS], ids=["simple_cow", "simple_mor", "rings"])
def lake(request, version) -> Lake:
    """A table as Hudi makes it: its properties do not tell of the buckets of its two partitions."""
    found = Lake(version, request.param)
    found.write("bulk_insert", rows())
    found.write("bulk_insert", rows(OTHERS, part="q"))
    handle = found.handle()
    store_table_config(found.storage, handle.config, handle.config.with_changes({}, drop=REMEMBERED), handle.env)
    return found


def untouched(lake: Lake) -> tuple[object, ...]:
    return lake.live(), lake.values(), len(lake.table.timeline().instants)


@pytest.mark.parametrize("service", ["cluster", "compact_base_files"])
def test_clustering_does_not_take_buckets_apart(lake, service):
    before = untouched(lake)
    services = Table.open(lake.uri).services
    with pytest.raises(Unsupported, match="lie in the buckets of their keys"):
        getattr(services, service)(**{"hoodie.compact.inline": "false"})
    with pytest.raises(Unsupported, match="lie in the buckets of their keys"):
        services.preview(service)
    assert untouched(lake) == before


def test_a_plan_that_somebody_made_of_buckets_is_not_carried_out(lake, monkeypatch):
    bare = Table.open(lake.uri)
    with monkeypatch.context() as patched:
        patched.setattr(grouping, "ensure_no_buckets", lambda *_: None)
        planned = bare.services.cluster(op="schedule")
    before = untouched(lake)
    with pytest.raises(Unsupported, match="--op unschedule"):
        bare.services.cluster(op="execute")
    with pytest.raises(Unsupported, match="lie in the buckets"):
        bare.services.cluster(op="execute", **lake.options)
    assert untouched(lake) == before
    assert bare.services.cluster(instant=planned.instant, op="unschedule") is not None


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "append", "upsert", "insert_overwrite"])
@pytest.mark.parametrize("part", ["p", "new"])
def test_new_rows_are_not_stored_outside_of_buckets(lake, operation, part):
    bare = Table.open(lake.uri)
    before = untouched(lake)
    with pytest.raises(Invalid, match="buckets of an index that neither options nor properties name"):
        getattr(bare, operation)(rows(["new"], part=part))
    assert untouched(lake)[:2] == before[:2]
    lake.write("upsert", rows(["new"], part=part))
    assert len(lake.values()) == len(KEYS) + len(OTHERS) + 1


def test_stored_rows_may_be_changed_and_deleted_without_the_index(lake):
    groups = lake.live()
    bare = Table.open(lake.uri)
    bare.upsert(rows(KEYS[:5], "b", 2))
    bare.delete(rows(KEYS[5:7], None, 3))
    lake.upsert(row("k0", "c", 4))
    assert lake.values() == {
        **dict.fromkeys(OTHERS + KEYS[7:], "a"),
        **dict.fromkeys(KEYS[1:5], "b"),
        "k0": "c",
    }
    assert lake.live() == groups


def test_rings_are_not_emptied_without_their_index(version):
    lake = Lake(version, RINGS)
    lake.write("bulk_insert", rows())
    handle = lake.handle()
    store_table_config(lake.storage, handle.config, handle.config.with_changes({}, drop=REMEMBERED), handle.env)
    with pytest.raises(Invalid, match="buckets"):
        Table.open(lake.uri).delete_partition("p")
    assert len(lake.values()) == len(KEYS)


def test_who_names_another_index_is_believed(version):
    lake = Lake(version, SIMPLE)
    lake.write("bulk_insert", rows())
    handle = lake.handle()
    store_table_config(lake.storage, handle.config, handle.config.with_changes({}, drop=REMEMBERED), handle.env)
    bare = Table.open(lake.uri)
    bare.bulk_insert(rows(["new"]), **{INDEX: "BLOOM"})
    assert bare.services.cluster(**{INDEX: "BLOOM"}).files == 1
    assert len(lake.values()) == len(KEYS) + 1


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ({"p": [bucket(0), bucket(1)]}, "p"),
        ({"p": [bucket(7)]}, "p"),
        ({"p": [bucket(1234)]}, None),
        ({"p": [bucket(1234)], "q": [bucket(7)]}, "p"),
        ({"p": [bucket(1234), RANDOM], "q": [RANDOM]}, None),
        ({"p": [bucket(0), bucket(1), RANDOM]}, "p"),
        ({"p": [BY_CHANCE], "q": [BY_CHANCE]}, None),
        ({"p": [RANDOM, RANDOM, bucket(0)]}, None),
        ({"q": [bucket(0), bucket(1)]}, None),
    ],
)
def test_file_ids_tell_buckets_from_what_looks_like_them_by_chance(groups, found):
    assert find_simple_buckets(groups, ["p"]) == found


def test_an_index_is_named_by_options_and_by_properties(version):
    lake = Lake(version)
    lake.write("insert", rows())
    config = lake.handle().config
    assert not is_index_named(resolve({}), config)
    assert is_index_named(resolve({INDEX: "SIMPLE"}), config)
    assert not is_index_named(resolve({}), config.with_changes({INDEX: "BUCKET"}))
    assert not is_index_named(resolve({}), config.with_changes({INDEX: "FLINK_STATE_OF_ANOTHER"}))
    assert is_index_named(resolve({}), config.with_changes({INDEX: "RECORD_INDEX"}))
    assert is_index_named(resolve({}), config.with_changes({}, drop=("hoodie.table.recordkey.fields",)))


@pytest.mark.parametrize(("options", "calls"), [({}, 1), ({INDEX: "BLOOM"}, 0)])
def test_rings_are_looked_for_only_where_nobody_names_the_index(version, monkeypatch, options, calls):
    lake = Lake(version, {"hoodie.parquet.small.file.limit": "0"})
    for n in range(2):
        lake.write("insert", rows([f"k{n}"]))
    counting = CountingStorage(lake.storage)
    found = []
    real = grouping.ensure_no_buckets

    def counted(*given):
        before = counting.count
        real(*given)
        found.append(counting.count - before)

    monkeypatch.setattr(grouping, "ensure_no_buckets", counted)
    bare = Table(load_handle(counting, Awake()), options, LocalEngine(1))
    assert bare.services.cluster(op="schedule") is not None
    assert bare.services.cluster(op="schedule") is None  # of what is taken already nothing is planned
    assert found == [calls]
