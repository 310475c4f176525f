"""Stores of one table that differ: a prefix that is not reached, clocks days apart, a listing that lags behind."""

import itertools
from datetime import UTC, datetime

import pytest

from hoodie.errors import Unavailable
from hoodie.layout import FederatedStorage
from hoodie.storage import MemoryStorage
from hoodie.testing.counting_storage import CountingStorage
from hoodie.testing.driven_table import DrivenTable
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import row, table_of
from hoodie.testing.two_stores import Stores

_names = itertools.count()
QUIET = {
    "hoodie.table.name": "differing",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
LATEST = {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "1"}


def memory(env=None):
    return MemoryStorage(f"differing-{next(_names)}", env or FakeEnv())


def rows(v, ts, parts=range(4)):
    return table_of([row(f"k{n}", v, ts, f"p{n}") for n in parts])


def made(roots, table=None, **options):
    driven = DrivenTable(QUIET, on_disk=False, strategy="bits:2", stores=Stores(table or memory(), tuple(roots)))
    driven.make(rows("0", 1), options)
    return driven


def values(table, **query):
    found = table.scan(columns=["id", "v"], **query).read_all().to_pydict()
    return dict(zip(found["id"], found["v"], strict=True))


def test_prefix_that_is_not_reached_is_named_and_what_does_not_need_it_goes_on():
    lost = []

    def answer(call):
        if any(call.path.startswith(f"{prefix}/") for prefix in lost):
            raise Unavailable(f"{call.path} is not reached")

    driven = made([CountingStorage(memory(), on_call=answer)])
    storage = driven.opened().storage
    assert isinstance(storage, FederatedStorage)
    places = {file.path: storage.layout.place(file.path) for file in storage.data_files()}
    there = {path.partition("/")[0]: place.key.partition("/")[0] for path, place in places.items() if place}
    lost.append(there["p0"])
    far = [int(part[1:]) for part, prefix in there.items() if prefix == there["p0"]]
    near = [int(part[1:]) for part, prefix in there.items() if prefix != there["p0"]]
    for act in (
        values,
        lambda table: table.upsert(rows("1", 2, far)),
        lambda table: table.indexes.rebuild(),
    ):
        with pytest.raises(Unavailable, match=f"{there['p0']}/"):
            act(driven.opened())
    for number in near:
        driven.opened().upsert(rows("2", 3, [number]))
        assert values(driven.opened(), filter=f"part = 'p{number}'") == {f"k{number}": "2"}
    lost.clear()
    driven.opened().upsert(rows("3", 4, far))
    assert values(driven.opened()) == {f"k{n}": "2" if n in near else "3" for n in range(4)}
    assert driven.opened().validate() == []


def test_root_that_is_not_mounted_is_named_and_no_file_of_it_is_called_lost():
    """It answers, and is empty: "gone, restore the table to an earlier instant" would be the wrong advice."""
    driven = made([memory(), memory()])
    for ts in (2, 3, 4):
        driven.opened().upsert(rows("1", ts))
    here, away = driven.opened().storage.roots
    kept = {file.path: away.read(file.path) for file in away.list("")}
    away.delete_dir("")
    for act in (
        values,
        lambda table: table.upsert(rows("2", 5)),
        lambda table: table.services.clean(**LATEST),
        lambda table: table.indexes.create("bloom_filters"),
        lambda table: table.indexes.rebuild(),
        lambda table: table.validate(),
    ):
        with pytest.raises(Unavailable, match=f"^{away.uri} does not say whose"):
            act(driven.opened())
    assert any(concern.kind == "unreachable" for concern in driven.opened().doctor().concerns)
    for path, data in kept.items():
        away.put(path, data)
    assert here.uri != away.uri
    assert set(values(driven.opened()).values()) == {"1"}
    driven.opened().upsert(rows("3", 6))
    driven.opened().services.clean(**LATEST)
    assert set(values(driven.opened()).values()) == {"3"}
    assert driven.opened().validate() == []


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_stores_whose_clocks_are_days_apart_hold_one_table(version, kind):
    clocks = [FakeEnv(datetime(2040, 1, day, tzinfo=UTC)) for day in (2, 1, 9)]
    driven = made(
        [memory(clock) for clock in clocks[1:]],
        memory(clocks[0]),
        **{"hoodie.write.table.version": version, "hoodie.datasource.write.table.type": kind},
    )
    first = driven.newest()
    for n in (1, 2, 3):
        driven.opened().upsert(rows(str(n), n + 1))
    newest = driven.newest()
    assert values(driven.opened(), as_of=first) == dict.fromkeys(("k0", "k1", "k2", "k3"), "0")
    driven.opened().services.rollback(newest)
    if kind == "MERGE_ON_READ":
        driven.opened().services.compact()
        driven.opened().upsert(rows("2", 4))
    driven.opened().services.clean(**LATEST)
    assert values(driven.opened()) == dict.fromkeys(("k0", "k1", "k2", "k3"), "2")
    driven.opened().indexes.rebuild()
    assert values(driven.opened()) == dict.fromkeys(("k0", "k1", "k2", "k3"), "2")
    assert driven.opened().validate() == []


def test_root_whose_listing_lags_is_read_right_and_not_taken_for_all_in_a_repair():
    table, root, other = memory(), memory(), memory()
    driven = made([CountingStorage(root, stale_from=1), other], table)
    for n in (1, 2):
        driven.opened().upsert(rows(str(n), n + 1))
    assert values(driven.opened()) == dict.fromkeys(("k0", "k1", "k2", "k3"), "2")
    driven.opened().services.clean(**LATEST)
    with pytest.raises(Unavailable, match="under no storage path"):
        driven.opened().indexes.rebuild()
    driven = DrivenTable(QUIET, on_disk=False, strategy="bits:2", stores=Stores(table, (root, other)))  # it caught up
    driven.opened().indexes.rebuild()
    assert values(driven.opened()) == dict.fromkeys(("k0", "k1", "k2", "k3"), "2")
    assert driven.opened().validate() == []
