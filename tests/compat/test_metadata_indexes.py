"""Our indexes and theirs: Hudi skips files and finds keys by indexes we keep, goes on keeping them, and makes new ones
on our tables; and we do the same with theirs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from peers import (
    WRITE,
    Model,
    Peer,
    PeerFailed,
    continue_table,
    ensure_same_rows,
    slim_rows,
    table_options,
    without_meta,
    write_rows,
)

from hoodie import Table
from hoodie.metadata import MetadataTable, open_metadata_table
from hoodie.metadata_writer import build_index, drop_index, expression_index, secondary_index
from hoodie.state.handle import open_handle, timeline_of

ON = {"hoodie.metadata.enable": "true"}
STATS = {**ON, "hoodie.metadata.index.column.stats.enable": "true"}
RECORDS = {"hoodie.metadata.record.index.enable": "true"}
EVERYTHING = {**STATS, **RECORDS, "hoodie.metadata.index.bloom.filter.enable": "true"}
NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}
COPYING = {"hoodie.parquet.block.size": "20000", "hoodie.row.group.copy.min.bytes": "1"}
SKIPPING = {**STATS, "hoodie.enable.data.skipping": "true"}
ASKED = {
    "hoodie.metadata.index.secondary.column": "name",
    "hoodie.metadata.index.expression.enable": "true",
    "hoodie.metadata.index.expression.column": "seen_ms",
    "hoodie.metadata.index.expression.options": "expr=from_unixtime,format=yyyy-MM-dd",
    "hoodie.index.name": "by_name",
}
SERVER = {"hoodie.embed.timeline.server": "true"}  # without it 1.2.0 fails to update indexes of keys
WRITERS = [(6, "hudi_015"), (6, "hudi_12"), (8, "hudi_12"), (9, "hudi_12")]
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
QUESTIONS = (
    ("name = 'name 3 of turn 0 – ü'", pc.field("name") == "name 3 of turn 0 – ü"),
    ("amount > 25.5", pc.field("amount") > 25.5),
    ("ts between 5 and 12", (pc.field("ts") >= 5) & (pc.field("ts") <= 12)),
    (
        "day = date'2024-01-02' and city = 1",
        (pc.field("day") == pa.scalar(19724, pa.date32())) & (pc.field("city") == 1),
    ),
    ("id in ('id0007', 'id0202')", pc.field("id").isin(["id0007", "id0202"])),
    ("name is null and seen_ms < 1704300000000", pc.field("name").is_null() & (pc.field("seen_ms") < 1704300000000)),
)


FUNCTIONS: dict[str, tuple[str, str, dict[str, str]]] = {
    "moment_text": ("seen_ms", "from_unixtime", {"format": "yyyy"}),
    "size": ("name", "length", {}),
    "second": ("seen_text", "unix_timestamp", {}),
    "parsed": ("seen_text", "to_timestamp", {}),
    "next_day": ("day", "date_add", {"days": "1"}),
    "name": ("name", "identity", {}),
    "city": ("city", "identity", {}),
    "amount": ("amount", "identity", {}),
    "at": ("at", "identity", {}),
    "end": ("seen_text", "substring", {"pos": "-2", "len": "2"}),
}
"""Functions with their column and options: one at least for each type of results."""
FUNCTION_QUESTIONS = (
    ("length(name) > 19", pc.utf8_length(pc.field("name")) > 19),
    ("name = 'name 8 of turn 5 – ü'", pc.field("name") == "name 8 of turn 5 – ü"),
    ("amount < 3.5", pc.field("amount") < 3.5),
    ("at < '2024-01-02 00:00:00'", pc.field("at") < dt.datetime(2024, 1, 2, tzinfo=dt.UTC)),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_hudi_skips_files_and_finds_keys_by_our_indexes_and_keeps_them(
    version: int, writer: str, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(writer)
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    options = table_options(version, "id", "region") | {WRITE + "table.type": kind, **EVERYTHING, **NO_SMALL_FILES}
    for turn in range(3):
        rows = slim_rows(sorted({*range(40 * turn, 40 * turn + 30), *range(0, 30, 7)}), turn)
        write_rows(table, "upsert", rows, options)
        model.upsert(rows)
    _ensure_answers(table, peer, model)
    rows = slim_rows([*range(0, 120, 11), *range(200, 206)], 5)
    peer.write(table, "upsert", rows, _peer_indexes(peer))
    model.upsert(rows)
    gone = slim_rows([3, 4, 45, 200], 6)
    peer.write(table, "delete", gone, _peer_indexes(peer))
    model.delete(gone)
    _ensure_answers(table, peer, model)
    rows = slim_rows([*range(0, 120, 13), *range(300, 304)], 7)
    continue_table(table, "upsert", rows, ON)
    model.upsert(rows)
    _ensure_answers(table, peer, model)
    rows = slim_rows([3, 301, 500], 8)
    peer.write(table, "upsert", rows, _peer_indexes(peer))
    model.upsert(rows)
    _ensure_answers(table, peer, model)


@pytest.mark.parametrize(("version", "writer"), WRITERS, ids=str)
def test_hudi_never_opens_a_file_our_column_stats_rule_out(
    version: int, writer: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(writer)
    table = tmp_path / "table"
    options = table_options(version, "id", "region") | STATS | NO_SMALL_FILES
    for turn in range(3):
        write_rows(table, "insert", slim_rows(range(100 * turn, 100 * turn + 20), turn), options)
    where = "ts between 1100 and 1110"
    expected = slim_rows(range(100, 111), 1)
    assert without_meta(peer.read(table, options=SKIPPING, where=where)).num_rows == expected.num_rows
    for path in table.glob("*/*.parquet"):
        rows = pq.read_table(path, columns=["ts"])["ts"]
        if not 1100 <= rows[0].as_py() < 1200:
            path.unlink()
    ensure_same_rows(
        without_meta(peer.read(table, options=SKIPPING, where=where)), expected, called=("skipped", "rows")
    )
    with pytest.raises(PeerFailed):
        peer.read(table, options={**ON, "hoodie.enable.data.skipping": "false"}, where=where)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("version", [8, 9])
def test_secondary_and_expression_indexes_are_kept_in_turns(
    version: int, first: str, kind: str, hudi_12: Peer, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    is_logged = kind == "MERGE_ON_READ"  # Hudi cannot write beside filters then: 12_filters_of_functions_in_logs
    options = table_options(version, "id", "region") | {WRITE + "table.type": kind, **EVERYTHING}
    rows = slim_rows(range(30))
    write_rows(table, "insert", rows, options)
    model.upsert(rows)
    if first == "ours":
        handle = open_handle(str(table), {})
        build_index(handle, secondary_index("by_name", "name"))
        build_index(handle, expression_index("by_hour", "seen_ms", "from_unixtime", {"format": "yyyy-MM-dd"}))
        if not is_logged:
            build_index(handle, expression_index("upper", "seen_text", "upper", using="bloom_filters"))
    else:
        lock = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
        for statement in (
            "CREATE INDEX by_name ON {t} (name)",
            "CREATE INDEX by_hour ON {t} USING column_stats(seen_ms) "
            "OPTIONS(expr='from_unixtime', format='yyyy-MM-dd')",
            *(() if is_logged else ("CREATE INDEX upper ON {t} USING bloom_filters(seen_text) OPTIONS(expr='upper')",)),
        ):
            hudi_12.ask("sql", path=str(table), statement=statement, options=lock)
    names = {"secondary_index_by_name", "expr_index_by_hour", *(() if is_logged else ("expr_index_upper",))}
    assert names <= set(_metadata(table).partitions)
    _ensure_secondary(table, hudi_12, model)
    for turn in (1, 2):
        rows, gone = slim_rows(range(turn, 40, 3), 2 * turn), slim_rows([turn + 6], 2 * turn)
        continue_table(table, "upsert", rows, ON)
        continue_table(table, "delete", gone, ON)
        model.upsert(rows)
        model.delete(gone)
        _ensure_secondary(table, hudi_12, model)
        rows = slim_rows(range(turn, 40, 4), 2 * turn + 1)
        hudi_12.write(table, "upsert", rows, {**_peer_indexes(hudi_12)})
        model.upsert(rows)
        _ensure_secondary(table, hudi_12, model)
    assert names <= set(_metadata(table).partitions)
    drop_index(open_handle(str(table), {}), "by_name")
    rows = slim_rows(range(5, 12), 9)
    hudi_12.write(table, "upsert", rows, {**_peer_indexes(hudi_12)})
    model.upsert(rows)
    ensure_same_rows(without_meta(hudi_12.read(table, options=ON)), model.rows, called=("after the drop", "model"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["ours", "theirs"])
@pytest.mark.parametrize("version", [8, 9])
def test_indexes_that_options_of_a_write_ask_for_are_kept_in_turns(
    version: int, first: str, kind: str, hudi_12: Peer, tmp_path: Path
) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    options = table_options(version, "id", "region") | {WRITE + "table.type": kind, **EVERYTHING}
    rows = slim_rows(range(30))
    write_rows(table, "insert", rows, options)
    model.upsert(rows)
    rows = slim_rows(range(0, 40, 5), 1)
    if first == "ours":
        continue_table(table, "upsert", rows, {**EVERYTHING, **ASKED})
    else:
        hudi_12.write(table, "upsert", rows, {**_peer_indexes(hudi_12), **ASKED})
        found = _metadata(table).secondary("secondary_index_by_name", set(rows.column("name").drop_null().to_pylist()))
        assert found.num_rows == 0, "an index that Hudi makes by options knows nothing of the write that makes it"
        model.upsert(rows)
        rows = slim_rows(range(0, 40, 5), 8)
        continue_table(table, "upsert", rows, {**EVERYTHING, "hoodie.metadata.index.drop": "secondary_index_by_name"})
        continue_table(table, "upsert", rows, {**EVERYTHING, **ASKED})
    model.upsert(rows)
    names = {"secondary_index_by_name", "expr_index_by_name"}
    assert names <= set(_metadata(table).partitions)
    definition = _metadata(table).definitions["expr_index_by_name"]
    assert (definition.kind, definition.function, definition.source_fields) == (
        "column_stats",
        "from_unixtime",
        ("seen_ms",),
    )
    _ensure_secondary(table, hudi_12, model)
    rows, gone = slim_rows(range(2, 40, 3), 2), slim_rows([8], 2)
    continue_table(table, "upsert", rows, {**EVERYTHING, **ASKED})
    continue_table(table, "delete", gone, ON)
    model.upsert(rows)
    model.delete(gone)
    _ensure_secondary(table, hudi_12, model)
    rows = slim_rows(range(2, 40, 4), 3)
    hudi_12.write(table, "upsert", rows, {**_peer_indexes(hudi_12), **ASKED})
    model.upsert(rows)
    _ensure_secondary(table, hudi_12, model)
    assert names <= set(_metadata(table).partitions)
    rows = slim_rows(range(1, 9), 6)
    continue_table(table, "upsert", rows, {**EVERYTHING, "hoodie.metadata.index.drop": "secondary_index_by_name"})
    model.upsert(rows)
    rows = slim_rows(range(5, 12), 7)
    hudi_12.write(table, "upsert", rows, {**_peer_indexes(hudi_12)})
    model.upsert(rows)
    assert {"expr_index_by_name"} == {one for one in _metadata(table).partitions if one.endswith("by_name")}
    ensure_same_rows(without_meta(hudi_12.read(table, options=ON)), model.rows, called=("after the drop", "model"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [8, 9])
def test_hudi_joins_the_ranges_of_functions_after_our_deletes(
    version: int, kind: str, hudi_12: Peer, tmp_path: Path
) -> None:
    table, rows = tmp_path / "table", _timed_rows(range(30))
    model = Model(rows.schema)
    options = table_options(version, "id", "region") | {WRITE + "table.type": kind, **ON}
    write_rows(table, "insert", rows, options)
    model.upsert(rows)
    for name, (column, function, given) in FUNCTIONS.items():
        build_index(open_handle(str(table), {}), expression_index(name, column, function, given))
    for turn in (1, 2):
        gone = _timed_rows(range(0, 40, 3) if turn == 1 else [4], 3 * turn - 2)  # a whole region, one row of another
        continue_table(table, "delete", gone, ON)
        model.delete(gone)
        theirs = _timed_rows(range(0, 40, 2 + turn), 3 * turn - 1)
        hudi_12.write(table, "upsert", theirs, {**ON, **SERVER, **NO_SMALL_FILES})
        model.upsert(theirs)
        ours = _timed_rows(range(1, 40, 3 + turn), 3 * turn)
        continue_table(table, "upsert", ours, ON)
        model.upsert(ours)
        ensure_same_rows(without_meta(hudi_12.read(table, options=ON)), model.rows, called=("theirs", "model"))
        for name in FUNCTIONS:
            _ensure_of_one_type(table, f"expr_index_{name}")
    for sql, expression in FUNCTION_QUESTIONS:
        expected = model.rows.filter(expression)
        found = without_meta(hudi_12.read(table, options=SKIPPING, where=sql))
        ensure_same_rows(found, expected, called=(f"theirs where {sql}", "model"))
        found = without_meta(Table.open(str(table)).scan(filter=sql).read_all())
        ensure_same_rows(found, expected, called=(f"ours where {sql}", "model"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partition", ["", "region"])
def test_hudi_finds_rows_beside_nan(kind: str, partition: str, hudi_12: Peer, tmp_path: Path) -> None:
    """It leaves out files whose bounds a filter does not meet, and takes NaN for less than all numbers."""
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    options = table_options(9, "id", partition) | {WRITE + "table.type": kind, **STATS, **NO_SMALL_FILES}
    for turn in range(2):
        rows = slim_rows(range(20 * turn, 20 * turn + 30), turn)
        amounts = rows.column("amount").to_pylist()
        amounts[::7] = [float("nan")] * len(amounts[::7])
        rows = rows.set_column(rows.column_names.index("amount"), "amount", pa.array(amounts, pa.float64()))
        write_rows(table, "upsert", rows, options)
        model.upsert(rows)
    for sql, expression in (
        ("amount > 3.5", pc.or_kleene(pc.greater(model.rows["amount"], 3.5), pc.is_nan(model.rows["amount"]))),
        ("amount = 2.25", pc.equal(model.rows["amount"], 2.25)),
        ("amount < 4", pc.less(model.rows["amount"], 4)),
    ):
        for options in ({}, SKIPPING):
            found = without_meta(hudi_12.read(table, options=options, where=sql))
            ensure_same_rows(found, model.rows.filter(expression), called=(f"theirs where {sql}", "model"))
        ours = Table.open(str(table)).scan(filter=sql).read_all()
        ensure_same_rows(without_meta(ours), model.rows.filter(expression), called=(f"ours where {sql}", "model"))


@pytest.mark.parametrize("made", ["written", "changed", "joined"])
def test_an_index_that_hudi_makes_of_our_row_groups_hides_no_floats(made: str, hudi_12: Peer, tmp_path: Path) -> None:
    """It takes row groups without bounds for ones of zeros, and without statistics for ones of NULL."""
    table = tmp_path / "table"
    options = table_options(9, "id", "region") | NO_SMALL_FILES | COPYING
    write_rows(table, "upsert", slim_rows(range(900)), options)
    if made != "written":
        rows = slim_rows(range(300, 303) if made == "changed" else range(900, 1800), 1)
        write_rows(table, "upsert", rows, options)
    if made == "joined":
        Table.open(str(table), options=options).services.compact_base_files()
    (newest, *_) = (one.base.path for one in Table.open(str(table)).files() if one.base is not None)
    assert pq.read_metadata(table / newest).num_row_groups > 2
    hudi_12.write(table, "insert", slim_rows(range(2000, 2003), 5), STATS | NO_SMALL_FILES)
    for sql in ("amount > 200", "amount < 5", "amount = 50.25", "amount is not null"):
        expected = Table.open(str(table), options={"hoodie.metadata.enable": "false"}).scan(filter=sql).read_all()
        assert expected.num_rows
        theirs = without_meta(hudi_12.read(table, options=SKIPPING, where=sql))
        ensure_same_rows(theirs, without_meta(expected), called=(f"theirs where {sql}", "without an index"))
        ours = Table.open(str(table)).scan(filter=sql).read_all()
        ensure_same_rows(without_meta(ours), without_meta(expected), called=(f"ours where {sql}", "without an index"))


@pytest.mark.parametrize("made", ["one row group", "written", "changed", "joined"])
def test_an_index_that_hudi_makes_of_our_files_hides_no_long_texts(made: str, hudi_12: Peer, tmp_path: Path) -> None:
    """It takes a row group without bounds of a text for one without rows that a filter may meet."""
    table = tmp_path / "table"
    size = {"hoodie.parquet.block.size": "1000000"} if made == "one row group" else {}
    options = table_options(9, "id", "") | NO_SMALL_FILES | COPYING | size
    write_rows(table, "upsert", _long_rows(range(300)), options)
    if made in {"changed", "joined"}:
        rows = _long_rows(range(200, 203) if made == "changed" else range(300, 600), 1)
        write_rows(table, "upsert", rows, options)
    if made == "joined":
        assert Table.open(str(table), options=options).services.compact_base_files().copied == 1
    (newest, *_) = (one.base.path for one in Table.open(str(table)).files() if one.base is not None)
    assert (pq.read_metadata(table / newest).num_row_groups == 1) == (made == "one row group")
    hudi_12.write(table, "insert", _long_rows(range(2001, 2004), 5), STATS | NO_SMALL_FILES)
    text = "xx" * 2500
    for sql in (
        f"name = '{text}50'",
        "name > 'xxy' or name like 'xxx%50'",
        "name in ('name 40 of turn 0 – ü', 'b')",
        "name < 'name 2'",
        "name is not null",
        "name is null",
    ):
        expected = Table.open(str(table), options={"hoodie.metadata.enable": "false"}).scan(filter=sql).read_all()
        assert expected.num_rows
        theirs = without_meta(hudi_12.read(table, options=SKIPPING, where=sql))
        ensure_same_rows(theirs, without_meta(expected), called=(f"theirs where {sql}", "without an index"))
        ours = Table.open(str(table)).scan(filter=sql).read_all()
        ensure_same_rows(without_meta(ours), without_meta(expected), called=(f"ours where {sql}", "without an index"))


def test_row_groups_of_hudi_with_nan_hide_no_others_where_they_are_joined(hudi_12: Peer, tmp_path: Path) -> None:
    """Hudi's writer stores NaN as a bound, and its readers take that for none."""
    table = tmp_path / "table"
    hudi_12.write(table, "bulk_insert", _with_nan(range(6)), table_options(9, "id", "") | NO_SMALL_FILES)
    hudi_12.write(table, "bulk_insert", slim_rows(range(10, 16)), NO_SMALL_FILES)
    options = COPYING | NO_SMALL_FILES
    assert Table.open(str(table), options=options).services.compact_base_files().copied == 1
    (path,) = (one.base.path for one in Table.open(str(table)).files() if one.base is not None)
    native = pq.read_metadata(table / path)
    place = native.schema.to_arrow_schema().get_field_index("amount")
    assert [native.row_group(at).column(place).statistics.has_min_max for at in range(2)] == [False, False]
    hudi_12.write(table, "insert", slim_rows(range(30, 32)), STATS | NO_SMALL_FILES)
    for sql in ("amount > 200", "amount = 500", "amount is null", "amount = 3"):
        expected = Table.open(str(table), options={"hoodie.metadata.enable": "false"}).scan(filter=sql).read_all()
        assert expected.num_rows
        ours = Table.open(str(table)).scan(filter=sql).read_all()
        ensure_same_rows(without_meta(ours), without_meta(expected), called=(f"ours where {sql}", "without an index"))


def test_a_partitioned_record_index_is_kept_in_turns(hudi_12: Peer, tmp_path: Path) -> None:
    table, model = tmp_path / "table", Model(slim_rows(range(0)).schema)
    by_partition = {**ON, "hoodie.metadata.record.level.index.enable": "true"}
    rows = slim_rows(range(30))
    write_rows(table, "insert", rows, table_options(9, "id", "region") | by_partition)
    model.upsert(rows)
    theirs = {**by_partition, **SERVER, "hoodie.index.type": "RECORD_LEVEL_INDEX"}
    for turn in (1, 2, 3):
        rows = slim_rows([*range(turn, 30, 4), *range(100 * turn, 100 * turn + 5)], turn)
        if turn % 2:
            hudi_12.write(table, "upsert", rows, theirs)
        else:
            continue_table(table, "upsert", rows, ON)
        model.upsert(rows)
        ensure_same_rows(without_meta(hudi_12.read(table, options=ON)), model.rows, called=("theirs", "model"))
        _ensure_located(table, model)


def _ensure_answers(table: Path, peer: Peer, model: Model) -> None:
    """Every question has the same answer from both of us, with skipping; the record index knows where each key is."""
    ensure_same_rows(without_meta(peer.read(table, options=ON)), model.rows, called=(peer.name, "model"))
    for sql, expression in QUESTIONS:
        expected = model.rows.filter(expression)
        theirs = without_meta(peer.read(table, options={**SKIPPING, **RECORDS}, where=sql))
        ensure_same_rows(theirs, expected, called=(f"{peer.name} where {sql}", "model"))
        ours = Table.open(str(table)).scan(filter=sql).read_all()
        ensure_same_rows(without_meta(ours), expected, called=(f"ours where {sql}", "model"))
    _ensure_located(table, model)


def _ensure_located(table: Path, model: Model) -> None:
    """The record index has every key of the model once, in the group that has its row, and no other."""
    metadata = _metadata(table)
    known = metadata.records("record_index")
    assert sorted(known.column("key").to_pylist()) == sorted(model.rows.column("id").to_pylist())
    rows = Table.open(str(table)).scan(columns=["_hoodie_record_key", "_hoodie_partition_path"]).read_all()
    pairs = zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True)
    found = metadata.locate(rows.column(0).to_pylist())
    places = zip(found.column("record_key").to_pylist(), found.column("partition").to_pylist(), strict=True)
    assert sorted(places) == sorted(pairs)


def _ensure_secondary(table: Path, peer: Peer, model: Model) -> None:
    """Values of the indexed column find their rows, and the index has exactly the rows there are."""
    for name in ("name 1 of turn 2 – ü", "name 5 of turn 0 – ü", "name 9 of turn 3 – ü"):
        expected = model.rows.filter(pc.field("name") == name)
        theirs = without_meta(peer.read(table, options=SKIPPING, where=f"name = '{name}'"))
        ensure_same_rows(theirs, expected, called=(f"{peer.name} by {name}", "model"))
    metadata = _metadata(table)
    names = model.rows.column("name").to_pylist()
    found = metadata.secondary("secondary_index_by_name", set(names))
    pairs = zip(found.column("value").to_pylist(), found.column("record_key").to_pylist(), strict=True)
    wanted = zip(names, model.rows.column("id").to_pylist(), strict=True)
    assert sorted(pairs, key=str) == sorted(wanted, key=str)
    assert metadata.records("secondary_index_by_name").num_rows == model.rows.num_rows
    where = "from_unixtime(seen_ms, 'yyyy-MM-dd') < '1970'"  # years of five digits begin with a sign
    ensure_same_rows(
        without_meta(peer.read(table, options=SKIPPING, where=where)), model.rows, called=("by day", "all")
    )
    upper = "upper(seen_text) = '2024-01-02 06:05:00'"
    expected = model.rows.filter(pc.field("seen_text") == "2024-01-02 06:05:00")
    ensure_same_rows(
        without_meta(peer.read(table, options=SKIPPING, where=upper)), expected, called=("by text", "rows")
    )


def _long_rows(numbers: Iterable[int], turn: int = 0) -> pa.Table:
    """Rows of which one in 50 has a text that is longer than bounds are."""
    rows = slim_rows(numbers, turn)
    place = rows.column_names.index("name")
    names = ["xx" * 2500 + str(row["ts"] % 1000) if row["ts"] % 50 == 0 else row["name"] for row in rows.to_pylist()]
    return rows.set_column(place, "name", pa.array(names, pa.string()))


def _with_nan(numbers: Iterable[int]) -> pa.Table:
    """Six rows of which one has NaN."""
    rows = slim_rows(numbers)
    amounts = pa.array([100.0, float("nan"), 500.0, 7.0, None, 300.0], pa.float64())
    return rows.set_column(rows.column_names.index("amount"), "amount", amounts)


def _timed_rows(numbers: Iterable[int], turn: int = 0) -> pa.Table:
    """Rows of the slim table with a timestamp."""
    rows = slim_rows(numbers, turn)
    return rows.append_column("at", pc.multiply(rows["seen_ms"], 1000).cast(pa.timestamp("us", "UTC")))


def _ensure_of_one_type(table: Path, index: str) -> None:
    """The ranges of an index stand in one wrapper and are said to be of one type, whoever wrote them."""
    stats = _metadata(table).records(index).column("ColumnStatsMetadata").to_pylist()
    types = {tuple((one["valueType"] or {}).values()) for one in stats}
    wrappers = {name for one in stats for name, value in (one["minValue"] or {}).items() if value is not None}
    assert (len(types), len(wrappers)) == (1, 1), (index, types, wrappers)


def _metadata(table: Path) -> MetadataTable:
    handle = open_handle(str(table), {})
    found = open_metadata_table(handle.storage, handle.config, timeline_of(handle))
    assert found is not None
    return found


def _peer_indexes(peer: Peer) -> Mapping[str, Any]:
    """Options of a peer that keeps and uses every index of the table."""
    return {**EVERYTHING, **SERVER, "hoodie.index.type": "RECORD_INDEX", **NO_SMALL_FILES}
