"""A write index of a caller's own: a Python class named by an option, and by nothing a table says."""

from __future__ import annotations

import json
import sys

import pyarrow.parquet as pq
import pytest

from hoodie.cli.app import main
from hoodie.errors import Invalid
from hoodie.spec import COMMIT
from hoodie.testing.lake import Lake, row, table_of
from hoodie.timeline import create_requested, to_inflight

CLASS = "hoodie.index.class"
LOGGED = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
SOURCE = '''
"""An index that keeps the places of keys in a dict."""

from hoodie.index import (
    LOCATIONS,
    Assignment,
    Candidate,
    HeldKeys,
    IndexTraits,
    PlainIndex,
    PlainIndexedWrite,
    located,
)
import pyarrow as pa

PLACES, SEEN = {}, []


class Places(PlainIndex):
    def __init__(self, config, table):
        self.traits = IndexTraits("PLACES", is_global=True, follows_keys=True)
        SEEN.append((table.name, config.text("hoodie.table.ordering.fields")))

    def begin(self, table, rows):
        return PlacesWrite(table, rows)


class PlacesWrite(PlainIndexedWrite):
    def __init__(self, table, rows):
        self.table, self.rows = table, rows

    def tag(self, asked):
        keys = HeldKeys(*asked.keys().load())
        known = [(key, *PLACES[key]) for key in keys.keys.to_pylist() if key in PLACES]
        columns = [pa.array(column, pa.string()) for column in zip(*known)] or [[], [], []]
        return located(keys, pa.table(columns, schema=LOCATIONS), self.table.slices, vouched=True)

    def after_commit(self, groups):
        for group in groups:
            for position in group.inserted.tolist():
                at = group.inserted[group.inserted == position]
                PLACES[self.rows.keys(group.partition, at).load()[0][0].as_py()] = (group.partition, group.file_id)


class Forgetful(Places):
    def begin(self, table, rows):
        return ForgetfulWrite(table, rows)


class ForgetfulWrite(PlacesWrite):
    def after_commit(self, groups):
        raise OSError("the store is gone")


class GivesBack(Places):
    def roll_back(self, storage, instant):
        SEEN.append(("rolled back", instant))
        if "broken" in PLACES:
            raise OSError("the store is gone")


class Nothing:
    def __init__(self, config, table):
        pass


class Rows(PlainIndexedWrite):
    """Puts new rows into the first file group of their partition, each half for itself."""

    def __init__(self, table):
        self.table = table

    def tag(self, asked):
        return [Candidate(piece, asked.keys(name)) for name in asked.partitions for piece in self.pieces(name)]

    def assign(self, inserts):
        found = []
        for name, rows in inserts.items():
            piece, half = next(iter(self.pieces(name)), None), len(rows) // 2
            parts = [rows] if piece is None else [rows[:half], rows[half:]]
            found += [Assignment(name, part, piece, None) for part in parts]
        return found

    def pieces(self, name):
        return self.table.slices_of.get(name, ())


class Halves(PlainIndex):
    def __init__(self, config, table):
        self.traits = IndexTraits("HALVES", assigns_groups=True)

    def begin(self, table, rows):
        return Rows(table)


class Loses(Halves):
    def begin(self, table, rows):
        return LosesWrite(table)


class LosesWrite(Rows):
    def assign(self, inserts):
        return super().assign(inserts)[:1]


class Mixes(Halves):
    """Names one new row twice and forgets another."""

    def begin(self, table, rows):
        return MixesWrite(table)


class MixesWrite(Rows):
    def assign(self, inserts):
        found = super().assign(inserts)
        return [found[0], *(Assignment(one.partition, found[0].positions, one.slice, None) for one in found[1:])]


class Doubts(PlainIndex):
    """Vouches for the first key of a partition only."""

    def __init__(self, config, table):
        self.traits = IndexTraits("DOUBTS", inserts_to_logs=True)

    def begin(self, table, rows):
        return DoubtsWrite(table)


class DoubtsWrite(Rows):
    def tag(self, asked):
        found = []
        for name in asked.partitions:
            keys = HeldKeys(*asked.keys(name).load())
            for piece in self.pieces(name):
                first, rest = keys.positions[:1], keys.positions[1:]
                found += [Candidate(piece, keys.at(first), first), Candidate(piece, keys.at(rest))]
        return found


class Picky(Places):
    def __init__(self, config, table):
        raise KeyError("no server")
'''


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The module of the index."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "places.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    yield lambda: sys.modules["places"]
    sys.modules.pop("places", None)


@pytest.mark.parametrize("name", ["places:Places", "places.Places"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_class_of_the_callers_says_where_keys_are(version, places, name, table_type):
    lake = Lake(version, {CLASS: name, "hoodie.datasource.write.table.type": table_type})
    lake.upsert(row("a", part="p"), row("b", part="q"))
    lake.upsert(row("a", "new", 2, part="q"), row("c", part="q"))  # a is unique in the table, and stays where it is
    assert lake.values() == {"a": "new", "b": "a", "c": "a"}
    assert {key: place[0] for key, place in places().PLACES.items()} == {"a": "p", "b": "q", "c": "q"}
    assert set(places().SEEN) == {("lake", "ts")}
    assert "hoodie.index.type" not in lake.table.config.raw
    lake.ensure_sound()


def test_it_goes_before_the_type_and_before_what_the_table_was_made_with(version, places):
    lake = Lake(version, {"hoodie.index.type": "GLOBAL_SIMPLE"})
    lake.upsert(row("a"))
    lake.upsert(row("a", "new", 2), **{CLASS: "places:Places"})  # the class knows of no key
    assert lake.rows() == [("a", "a"), ("a", "new")]


def test_the_command_line_takes_it(tmp_path, places, capsys):
    rows, base = str(tmp_path / "rows.parquet"), str(tmp_path / "lake")
    pq.write_table(table_of([row("a"), row("b")]), rows)
    options = {
        CLASS: "places:Places",
        "hoodie.table.name": "lake",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "ts",
    }
    pairs = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
    for _ in range(2):
        assert main(["write", base, "--input", rows, *pairs, "--json"]) == 0
        done = json.loads(capsys.readouterr().out)
    assert (done["inserts"], done["updates"]) == (0, 2)
    assert sorted(places().PLACES) == ["a", "b"]


def test_a_table_that_names_one_has_nothing_imported(version, places):
    lake = Lake(version)
    lake.upsert(row("a"))
    properties = lake.storage.read(".hoodie/hoodie.properties")
    lake.storage.put(".hoodie/hoodie.properties", properties + f"{CLASS}=places:Places\n".encode())
    lake.upsert(row("a", "new", 2), row("b"), **{"hoodie.datasource.write.commitmeta.key.prefix": "none"})
    assert lake.table.config.raw[CLASS] == "places:Places"
    assert lake.values() == {"a": "new", "b": "a"}
    lake.table.services.clean()
    lake.table.lookup(["a"])
    assert "places" not in sys.modules


def test_a_write_stands_when_its_index_cannot_be_told(version, places, caplog):
    lake = Lake(version, {CLASS: "places:Forgetful"})
    done = lake.upsert(row("a"))
    assert lake.values() == {"a": "a"}
    assert f"index PLACES could not be told of the commit {done.instant}: the store is gone" in caplog.text
    lake.ensure_sound()


def told(places) -> list[str]:
    return [instant for what, instant in places().SEEN if what == "rolled back"]


def test_rollbacks_whose_options_name_it_ask_it_to_give_back(version, places):
    lake = Lake(version, {CLASS: "places:GivesBack"})
    first = lake.upsert(row("a")).instant
    later = [lake.upsert(row(key)).instant for key in "bc"]
    assert told(places) == []
    lake.table.services.rollback(later[1])
    assert told(places) == [later[1]]
    lake.table.services.restore(first)
    assert told(places) == [later[1], later[0]]
    dead = f"{int(first) + 1:017}"
    handle = lake.handle()
    to_inflight(handle.storage, handle.profile, create_requested(handle.storage, handle.profile, dead, COMMIT, b""))
    lake.upsert(row("d"))
    assert told(places)[2:] == [dead]
    lake.ensure_sound()


def test_one_that_cannot_give_back_hinders_no_rollback(version, places, caplog):
    lake = Lake(version, {CLASS: "places:GivesBack"})
    lake.upsert(row("a"))
    done = lake.upsert(row("b"))
    places().PLACES["broken"] = ()
    lake.table.services.rollback(done.instant)
    assert f"could not take back {done.instant}: the store is gone" in caplog.text
    del places().PLACES["broken"]
    lake.table.services.rollback(lake.upsert(row("c")).instant, **{CLASS: "places:Missing"})
    assert "cannot be imported" in caplog.text
    assert lake.values() == {"a": "a"}
    lake.ensure_sound()


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("Places", "cannot be imported"),
        ("places:", "cannot be imported"),
        ("places:Missing", "cannot be imported: AttributeError"),
        ("org.apache.hudi.index.Mine", "cannot be imported: ModuleNotFoundError"),
        ("places:PLACES", "cannot be made: TypeError"),
        ("places:Picky", "cannot be made: KeyError"),
        ("places:Nothing", "makes no write index but a Nothing"),
    ],
)
def test_what_is_no_index_is_refused_before_anything_is_written(places, name, match):
    lake = Lake()
    lake.upsert(row("a"))
    before = lake.files()
    with pytest.raises(Invalid, match=match) as caught:
        lake.upsert(row("b"), **{CLASS: name})
    assert caught.value.facts["key"] == CLASS
    assert lake.files() == before


@pytest.mark.parametrize("version", [6, 9])
def test_new_rows_may_be_assigned_to_a_group_in_parts(places, version):
    lake = Lake(version, {CLASS: "places:Halves"})
    lake.upsert(row("a"))
    lake.upsert(*[row(f"n{n}") for n in range(4)])
    assert [key for key, _ in lake.rows()] == ["a", "n0", "n1", "n2", "n3"]


@pytest.mark.parametrize("version", [6, 9])
def test_an_index_that_forgets_new_rows_is_refused(places, version):
    lake = Lake(version, {CLASS: "places:Loses"})
    lake.upsert(row("a"))
    with pytest.raises(Invalid, match="assigns 2 rows to file groups, but 4 are new"):
        lake.upsert(*[row(f"n{n}") for n in range(4)])
    assert [key for key, _ in lake.rows()] == ["a"]


@pytest.mark.parametrize("version", [6, 9])
def test_an_index_that_names_a_new_row_twice_is_refused(places, version):
    lake = Lake(version, {CLASS: "places:Mixes"})
    lake.upsert(row("a"))
    with pytest.raises(Invalid, match="other rows to file groups than those that are new"):
        lake.upsert(*[row(f"n{n}") for n in range(4)])
    assert [key for key, _ in lake.rows()] == ["a"]


@pytest.mark.parametrize("version", [6, 9])
def test_an_index_that_puts_new_rows_where_it_does_not_find_them_is_refused(places, version):
    lake = Lake(version, {**LOGGED, CLASS: "places:Halves"})
    lake.upsert(row("a"))
    with pytest.raises(Invalid, match="in which the index finds no keys"):
        lake.upsert(row("n"))
    assert [key for key, _ in lake.rows()] == ["a"]


@pytest.mark.parametrize("version", [6, 9])
def test_an_index_that_vouches_for_some_slices_only_is_refused_where_rows_lie_in_logs(places, version):
    lake = Lake(version, {**LOGGED, CLASS: "places:Doubts"})
    lake.upsert(row("a"))
    with pytest.raises(Invalid, match="vouches for 1 of 2 file slices"):
        lake.upsert(row("a", "x", 2), row("b"))
    assert lake.rows() == [("a", "a")]
