"""Tables whose data files lie under storage paths: made, written, read, refused, dropped."""

import itertools
import json

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import Conflict, Corrupt, Invalid, Unavailable, Unsupported
from hoodie.spec import keys
from hoodie.storage import LocalStorage, MemoryStorage
from hoodie.table import as_source, write

_names = itertools.count()
KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.metadata.index.column.stats.enable": "false",
}
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])


class World:
    """A table path and two roots in memory."""

    def __init__(self):
        name = f"federated-{next(_names)}"
        self.uri, self.one, self.two = (f"memory://{name}/{part}" for part in ("table", "one", "two"))
        self.table, self.first, self.second = (
            MemoryStorage(uri.removeprefix("memory://")) for uri in (self.uri, self.one, self.two)
        )

    def options(self, roots=None, **more):
        said = {"hoodie.storage.path": roots or self.one, "hoodie.storage.strategy": "bits:4"}
        return KEYED | said | {f"hoodie.{key.replace('__', '.')}": value for key, value in more.items()}

    def created(self, roots=None, **more):
        return hoodie.Table.create(self.uri, schema=SCHEMA, options=self.options(roots, **more))

    def opened(self, **more):
        return hoodie.Table.open(self.uri, options=KEYED | more)

    def stored(self):
        return tuple({f.path: s.read(f.path) for f in s.list("")} for s in (self.table, self.first, self.second))


@pytest.fixture
def world():
    made = World()
    yield made
    for one in (made.table, made.first, made.second):
        one.forget()


def rows(*ids, v=0, partitions=3):
    return pa.table({"id": list(ids), "p": [f"p{i % partitions}" for i in ids], "v": [v for _ in ids]}, SCHEMA)


def written(data, uri, *, options, mode):
    return write(as_source(data), uri, options, mode)


def content(table):
    found = table.scan(columns=["id", "v"]).read_all().to_pydict()
    return dict(zip(found["id"], found["v"], strict=True))


def data_names(storage):
    return sorted(f.path for f in storage.list("") if f.path.endswith(".parquet") or ".log." in f.path)


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_data_lies_under_the_roots_and_all_else_at_the_table_path(world, version, kind):
    more = {"write__table__version": version, "datasource__write__table__type": kind}
    table = world.created(f"{world.one},{world.two}", **more)
    for v in range(3):
        table.upsert(rows(*range(60), v=v, partitions=20))
    assert content(world.opened()) == dict.fromkeys(range(60), 2)
    assert data_names(world.first)
    assert data_names(world.second)
    assert all(path.split("/")[1] == "table" for path in data_names(world.first) + data_names(world.second))
    home = [f.path for f in world.table.list("") if not f.path.startswith(".hoodie/")]
    assert home == sorted(f"p{n}/.hoodie_partition_metadata" for n in range(20))
    raw = world.opened().config.raw
    assert raw[keys.TYPE] == f"{kind}_FEDERATED"
    assert world.opened().config.table_type == kind
    assert not world.opened().doctor().concerns


def test_metadata_table_and_timeline_name_no_place(world):
    table = world.created()
    table.upsert(rows(1, 2, 3))
    for path, data in world.stored()[0].items():
        if path != keys.PROPERTIES_FILE:
            assert world.one.removeprefix("memory://").encode() not in data


def test_first_write_makes_such_a_table_from_options(world):
    written(rows(1, 2), world.uri, options=world.options(), mode="append")
    assert content(world.opened()) == {1: 0, 2: 0}
    assert data_names(world.first)


@pytest.mark.parametrize(("version", "other"), [(6, 8), (8, 9), (9, 8)])
def test_services_work_on_it(world, version, other):
    table = world.created(datasource__write__table__type="MERGE_ON_READ", write__table__version=version)
    for v in range(4):
        table.upsert(rows(*range(12), v=v))
    assert table.services.compact() is not None
    table.upsert(rows(1, v=9))
    newest = table.timeline().completed_writes()[-1].requested
    table.services.rollback(newest)
    assert content(table) == dict.fromkeys(range(12), 3)
    before = len(data_names(world.first))
    newest = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    table.services.clean(**newest)
    assert len(data_names(world.first)) < before
    assert content(table) == dict.fromkeys(range(12), 3)
    saved = table.savepoints.create().instant
    table.delete_partition(["p0"])
    table.services.restore(saved)
    assert content(table) == dict.fromkeys(range(12), 3)
    table.services.upgrade(other)
    assert content(world.opened()) == dict.fromkeys(range(12), 3)
    assert not world.opened().doctor().concerns


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_table_can_be_read_right_after_a_restore(world, version, kind):
    more = {"write.table.version": version, "datasource.write.table.type": kind}
    table = world.created(**more)
    table.upsert(rows(1, 2, 3))
    saved = table.savepoints.create()
    table.upsert(rows(2, 4, v=1))
    table.services.restore(saved.instant)
    assert content(world.opened()) == {1: 0, 2: 0, 3: 0}
    assert table.validate() == []
    table.upsert(rows(4, v=2))
    assert content(world.opened()) == {1: 0, 2: 0, 3: 0, 4: 2}


def test_drop_leaves_only_what_is_not_the_tables(world):
    table = world.created()
    table.upsert(rows(*range(12)))
    canaries = ["canary", "0000/other/p0/x_1-0-1_1.parquet", "0000/table/p0/notes.txt", ".hoodie_owners/other"]
    for path in canaries:
        world.first.put(path, b"mine")
    table.drop()
    home, first, _ = world.stored()
    assert home == {}
    assert first == dict.fromkeys(canaries, b"mine")


# The metadata table is required


def test_metadata_table_cannot_be_turned_off(world):
    with pytest.raises(Invalid, match="needs its metadata table"):
        world.created(metadata__enable="false")
    table = world.created()
    table.upsert(rows(1))
    off = hoodie.Table.open(world.uri, options=KEYED | {"hoodie.metadata.enable": "false"})
    before = world.stored()
    for act in (lambda: off.scan().read_all(), lambda: off.upsert(rows(2)), off.files):
        with pytest.raises(Invalid, match="needs its metadata table"):
            act()
    with pytest.raises(Invalid):
        table.indexes.drop("files")
    assert world.stored() == before


def test_lost_metadata_table_is_an_error_with_the_remedy_until_it_is_made_anew(world):
    table = world.created()
    table.upsert(rows(*range(9)))
    before = set(world.stored()[1])
    world.table.delete_dir(".hoodie/metadata")
    for act in (lambda: content(table), lambda: table.upsert(rows(1, v=5)), table.files):
        with pytest.raises(Corrupt, match=r"hoodie doctor .* --fix"):
            act()
    assert set(world.stored()[1]) == before
    table.indexes.rebuild()
    assert content(table) == dict.fromkeys(range(9), 0)
    table.upsert(rows(1, v=5))
    assert content(table)[1] == 5


# Who may point where


def test_roots_outside_what_the_caller_allows_are_not_touched(world, tmp_path):
    options = KEYED | {"hoodie.storage.path": f"{tmp_path}/data"}
    table = hoodie.Table.create(f"{tmp_path}/table", schema=SCHEMA, options=options)
    table.upsert(rows(1))
    stored = LocalStorage(str(tmp_path / "data"))
    before = {f.path: stored.read(f.path) for f in stored.list("")}
    with pytest.raises(Invalid, match=r"not allowed.*hoodie\.storage\.allowed\.roots"):
        hoodie.Table.open(f"{tmp_path}/table", options=KEYED)
    with pytest.raises(Invalid, match="not allowed"):
        written(rows(2), f"{tmp_path}/table", options=KEYED, mode="append")
    assert {f.path: stored.read(f.path) for f in stored.list("")} == before
    allowed = KEYED | {"hoodie.storage.allowed.roots": str(tmp_path)}
    assert content(hoodie.Table.open(f"{tmp_path}/table", options=allowed)) == {1: 0}


def test_storage_path_changed_by_hand_stops_writers_before_anything_changes(world):
    table = world.created()
    table.upsert(rows(1, 2))
    raw = world.table.read(keys.PROPERTIES_FILE)
    world.table.put(keys.PROPERTIES_FILE, raw.replace(b"/one", b"/two").replace(b"memory\\:", b"memory\\:"))
    before = world.stored()
    with pytest.raises(Unavailable, match="does not say whose"):
        world.opened().upsert(rows(3))
    assert world.stored()[1:] == before[1:]
    world.table.put(keys.PROPERTIES_FILE, raw)
    world.opened().upsert(rows(3))
    assert content(world.opened()) == {1: 0, 2: 0, 3: 0}


def test_second_table_of_one_name_in_a_root_is_refused_when_it_is_created(world):
    world.created()
    other = world.uri.replace("/table", "/elsewhere")
    with pytest.raises(Conflict, match=r"belongs to the table at .*hoodie\.storage\.folder"):
        hoodie.Table.create(other, schema=SCHEMA, options=world.options(table__name="table"))
    made = hoodie.Table.create(other, schema=SCHEMA, options=world.options(table__name="table", storage__folder="t2"))
    made.upsert(rows(1))
    assert [path.split("/")[1] for path in data_names(world.first)] == ["t2"]


def test_creation_that_died_after_its_claim_can_be_repeated(world):
    world.created()
    world.table.delete_dir("")
    world.created().upsert(rows(1))
    assert content(world.opened()) == {1: 0}


class Yearly:
    prefixes = None

    def location(self, partition, file_id):
        return f"by-{partition}"


def test_strategy_of_ones_own_is_never_loaded_because_a_table_says_so(world):
    classes = {"hoodie.storage.strategy.classes": f"year={__name__}:Yearly"}
    own = world.options() | {"hoodie.storage.strategy": "own:year"} | classes
    table = hoodie.Table.create(world.uri, schema=SCHEMA, options=own)
    table.upsert(rows(1, 2))
    assert {path.split("/")[0] for path in data_names(world.first)} == {"by-p1", "by-p2"}
    with pytest.raises(Unsupported, match=r"hoodie\.storage\.strategy\.classes=year"):
        world.opened()
    assert content(world.opened(**classes)) == {1: 0, 2: 0}


def test_partitions_may_have_roots_of_their_own(world):
    versions = [
        {"v": 1, "since": "0", "strategy": "bits:2", "root": 0, "folder": "t"},
        {"v": 2, "since": "0", "strategy": "map", "root": 1, "folder": "t", "partitions": "p1"},
    ]
    said = KEYED | {"hoodie.storage.path": f"{world.one},{world.two}"}
    table = hoodie.Table.create(
        world.uri, schema=SCHEMA, options=said | {"hoodie.storage.strategy.versions": json.dumps(versions)}
    )
    table.upsert(rows(*range(9)))
    assert {path.split("/")[1] for path in data_names(world.second)} == {"p1"}
    assert {path.split("/")[2] for path in data_names(world.first)} == {"p0", "p2"}
    assert content(world.opened()) == dict.fromkeys(range(9), 0)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"hoodie.storage.strategy": "bits:4"}, Invalid, "needs a storage path"),
        ({"hoodie.storage.path": "memory://x/../y"}, Invalid, "cannot be a storage path"),
        (
            {"hoodie.storage.path": "memory://x", "hoodie.storage.strategy": "magic"},
            Unsupported,
            "no storage strategy",
        ),
        ({"hoodie.storage.path": "memory://x", "hoodie.storage.folder": "../z"}, Invalid, "cannot be a folder"),
    ],
)
def test_wrong_options_make_no_table(world, options, error, match):
    with pytest.raises(error, match=match):
        hoodie.Table.create(world.uri, schema=SCHEMA, options=KEYED | options)
    assert world.stored()[0] == {}
