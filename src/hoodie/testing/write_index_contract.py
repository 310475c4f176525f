"""What every write index must do. Test modules subclass it with `options` that choose the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.fileview import FolderView
from hoodie.index import IndexedTable, IndexedWrite, KeySet, Positions, group_by_partition
from hoodie.state.handle import timeline_of
from hoodie.table import as_source
from hoodie.testing.lake import ROWS, Lake, Row, row, table_of
from hoodie.write import WriteOptions, parse_write_options
from hoodie.write.incoming_keys import IncomingKeys, chosen_keys, every_key, partition_map
from hoodie.write.keyed_input import KeyedForm, Spool, prepare_input

LATER = "29990101000000000"
"""The instant of a write that never completes."""
MERGE = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


@dataclass(frozen=True)
class Begun:
    """An index at work on rows that nobody writes."""

    options: WriteOptions
    table: IndexedTable
    rows: IncomingKeys
    index: IndexedWrite

    def asked(self) -> IncomingKeys:
        """All rows, as those that are looked for: each has a key of its own."""
        incoming = self.rows.incoming
        return chosen_keys(incoming, partition_map(incoming), incoming.positions())


def begun(lake: Lake, rows: Sequence[Row]) -> Begun:
    """The index of the lake's options at work on `rows`."""
    handle = lake.handle()
    timeline = timeline_of(handle)
    options = parse_write_options("upsert", resolve(lake.options), handle.config, handle.profile)
    view = FolderView(handle.storage, timeline).load()
    spool = Spool(lake.storage, ".hoodie/.temp/contract.spool", 1_000_000)
    form = KeyedForm(options.keys, ROWS, LATER)
    incoming = every_key(prepare_input(as_source(table_of(rows)), form, spool))
    slices = group_by_partition(view.slices_at())
    table = IndexedTable(handle, timeline, LATER, view, slices, LocalEngine(), LocalEngine())
    return Begun(options, table, incoming, options.index.begin(table, incoming))


def pairs(keys: KeySet) -> list[tuple[str, int]]:
    """Keys with the positions of their rows."""
    texts, positions = keys.load()
    return list(zip(texts.to_pylist(), positions.tolist(), strict=True))


class WriteIndexContract:
    """Subclass it with `options`; `table_types` and `versions` are those of tables that the index is for."""

    options: ClassVar[Mapping[str, Any]] = {}
    table_types: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, MERGE)
    versions: ClassVar[tuple[int, ...]] = (6, 8, 9)

    @pytest.fixture(params=[(version, kind) for version in (6, 8, 9) for kind in ("cow", "mor")], ids=str)
    def lake(self, request: pytest.FixtureRequest) -> Lake:
        version, kind = request.param
        given = MERGE if kind == "mor" else {}
        if version not in self.versions or given not in self.table_types:
            pytest.skip("the index is not for such tables")
        made = Lake(version, {**self.options, **given, "hoodie.parquet.small.file.limit": 0})
        made.upsert(*(row(f"k{n}", part="p") for n in range(6)))
        made.upsert(*(row(f"k{n}", "b", 2, "p") for n in range(3)), *(row(f"q{n}", part="q") for n in range(3)))
        return made

    def stored(self, lake: Lake) -> dict[str, tuple[str, str]]:
        """Partition and file id of every key."""
        columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
        rows = lake.table.scan(columns=columns).read_all().to_pylist()
        files = {
            path.rpartition("/")[2]: (piece.partition, piece.file_id)
            for piece in begun(lake, [row("any")]).table.slices
            for path in piece.paths
        }
        ids = {piece[1] for piece in files.values()}
        named = {one[columns[0]]: (one[columns[1]], one[columns[2]]) for one in rows}
        return {key: (part, next(name for name in ids if file.startswith(name))) for key, (part, file) in named.items()}

    def test_what_is_stored_is_tagged_where_it_is(self, lake: Lake) -> None:
        stored = self.stored(lake)
        work = begun(
            lake, [row(key, part=place[0]) for key, place in stored.items()] + [row("new"), row("new2", part="r")]
        )
        named: dict[str, set[tuple[str, str]]] = {}
        for candidate in work.index.tag(work.asked()):
            assert candidate.slice in work.table.slices
            for key, _ in pairs(candidate.keys):
                named.setdefault(key, set()).add(candidate.slice.group_id)
        assert {key: place for key, place in stored.items() if place not in named.get(key, set())} == {}

    def test_candidates_speak_of_rows_by_their_positions(self, lake: Lake) -> None:
        work = begun(lake, [row(f"k{n}") for n in range(8)] + [row("q1", part="q"), row("r1", part="r")])
        expected = dict(pairs(work.rows.keys()))
        for candidate in work.index.tag(work.asked()):
            found = pairs(candidate.keys)
            assert dict(found).items() <= expected.items()
            assert len(dict(found)) == len(found)
            if candidate.vouched is not None:
                assert candidate.vouched.tolist() == sorted(dict(found).values())

    def test_only_a_global_index_looks_into_other_partitions(self, lake: Lake) -> None:
        work = begun(lake, [row("k1", part="q")])
        partitions = {candidate.slice.partition for candidate in work.index.tag(work.asked())}
        assert ("p" in partitions) == work.options.index.traits.is_global

    def test_every_new_row_is_assigned_once(self, lake: Lake) -> None:
        work = begun(lake, [row(f"n{n}", part=part) for n in range(9) for part in "pqr"])
        inserts: dict[str, Positions] = {part: work.rows.positions(part) for part in "pqr"}
        assigned = work.index.assign(inserts)
        assert (assigned is not None) == work.options.index.traits.assigns_groups
        if assigned is None:
            return
        for part, positions in inserts.items():
            mine = [one for one in assigned if one.partition == part]
            assert sorted(n for one in mine for n in one.positions.tolist()) == positions.tolist()
            assert all((one.slice is None) != (one.new_file_id is None) for one in mine)
            assert all(one.slice is None or one.slice.partition == part for one in mine)
            places = [one.new_file_id if one.slice is None else one.slice.file_id for one in mine]
            assert len(set(places)) == len(places)

    def test_being_asked_stores_nothing(self, lake: Lake) -> None:
        before = lake.files()
        work = begun(lake, [row("k1", "c", 3), row("new", part="r")])
        work.index.tag(work.asked())
        work.index.assign({"r": work.rows.positions("r")})
        assert lake.files() == before

    def test_a_write_that_dies_after_its_index_was_prepared_changes_no_row(self, lake: Lake) -> None:
        before = lake.values()
        work = begun(lake, [row("k1", "c", 3), row("new", part="r")])
        work.index.tag(work.asked())
        work.index.before_write()
        assert lake.values() == before
        lake.upsert(row("k1", "d", 4), row("new", "d", 4, "r"))
        lake.upsert(row("new", "e", 5, "r"))
        assert lake.values() == {**before, "k1": "d", "new": "e"}
        lake.ensure_sound()

    def test_a_key_has_one_row_whatever_is_written(self, lake: Lake) -> None:
        expected = lake.values()
        lake.write("delete", [row("k0", ts=9), row("q0", ts=9, part="q")])
        lake.upsert(row("k0", "again", 10), row("k1", "again", 10), row("n", "again", 10, "r"))
        lake.write("bulk_insert", [row("bulk", part="r")])
        lake.upsert(row("bulk", "again", 10, "r"), row("n", "once more", 11, "r"))
        del expected["q0"]
        more = {"k0": "again", "k1": "again", "n": "once more", "bulk": "again"}
        assert lake.values() == {**expected, **more}
        lake.ensure_sound()

    def test_what_replaces_rows_leaves_an_index_that_finds_the_new_ones(self, lake: Lake) -> None:
        lake.write("insert_overwrite", [row("k1", "new"), row("other", "new")])
        lake.upsert(row("k1", "newer", 9), row("other", "newer", 9), row("k5", "newer", 9))
        assert {key: value for key, value in lake.values().items() if not key.startswith("q")} == {
            "k1": "newer",
            "other": "newer",
            "k5": "newer",
        }
        lake.table.delete_partition(["p"])
        lake.upsert(row("k1", "newest", 10))
        assert lake.rows(columns=("id", "v", "part"))[0] == ("k1", "newest", "p")
        lake.ensure_sound()

    def test_after_a_rollback_keys_are_where_they_were(self, lake: Lake) -> None:
        before = lake.values()
        done = lake.upsert(row("k1", "c", 3), row("new", "c", 3), row("far", "c", 3, "r"))
        lake.table.services.rollback(done.instant)
        assert lake.values() == before
        lake.upsert(row("k1", "d", 4), row("new", "d", 4), row("far", "d", 4, "r"))
        lake.upsert(row("new", "e", 5), row("far", "e", 5, "r"))
        assert lake.values() == {**before, "k1": "d", "new": "e", "far": "e"}
        lake.ensure_sound()

    def test_rows_that_were_spooled_are_found_alike(self, lake: Lake) -> None:
        keys = [f"k{n}" for n in range(40)]
        for text in ("c", "d"):
            many = [row(key, text, 5, "p") for key in keys]
            lake.write("upsert", many, {"hoodie.engine.local.max.bytes": 1})
        assert {key: value for key, value in lake.values().items() if key in keys} == dict.fromkeys(keys, "d")
        lake.ensure_sound()
