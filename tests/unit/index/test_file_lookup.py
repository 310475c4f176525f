"""Finding keys in one base file: exact answers, with as little reading as the kind of index allows."""

from __future__ import annotations

import itertools
import pickle
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.engine import TaskId
from hoodie.errors import Corrupt, Missing
from hoodie.index import LookupTask, Positions, find_in_file, key_lookup
from hoodie.records import (
    BaseFileOptions,
    BaseFileWriter,
    BloomOptions,
    KeyGenerator,
    OpenInputs,
    key_options,
    opened_once,
    read_columns,
    read_footer,
    with_meta,
)
from hoodie.records.value_rows import rows_with_values
from hoodie.storage import MemoryStorage
from hoodie.testing.counting_storage import CountingStorage

HERE = TaskId(0, 0, 0)
PATH = "p/f-0_0-1-1_20260101000000000.parquet"
DATA = pa.schema([("id", pa.string()), ("n", pa.int32())])
ASKED = [{}, {"by_bloom": True}, {"by_range": True}, {"by_bloom": True, "by_range": True}]
"""What of a footer is asked before the keys are read."""
BLOOM = {"by_bloom": True, "by_range": True}
Asked = dict[str, bool]


@dataclass(frozen=True)
class Keys:
    names: tuple[str, ...]
    first: int = 0

    def load(self) -> tuple[pa.Array, Positions]:
        return pa.array(self.names, pa.string()), np.arange(self.first, self.first + len(self.names), dtype=np.int64)


_NAMES = itertools.count()
_BLOOM = BloomOptions(entries=100)


def storage_with(keys: list[str], bloom: BloomOptions | None = _BLOOM) -> MemoryStorage:
    storage = MemoryStorage(f"lookup-{next(_NAMES)}")
    text = pa.array(keys, pa.string())
    rows = pa.Table.from_arrays(
        [text, text, text, text, text, text, pa.array(range(len(keys)), pa.int32())], schema=with_meta(DATA)
    )
    with BaseFileWriter(storage, PATH, rows.schema, BaseFileOptions(bloom=bloom, row_group_bytes=500)) as writer:
        writer.write(rows)
    return storage


def found(task: LookupTask) -> list[tuple[int, int]]:
    hits = find_in_file(HERE, task)
    return list(zip(hits.rows.tolist(), hits.positions.tolist(), strict=True))


@pytest.mark.parametrize("asked", ASKED)
def test_hits_are_file_rows_in_order_with_the_positions_of_their_keys(asked: Asked) -> None:
    storage = storage_with(["a", "b", "c", "d"])
    assert found(LookupTask(storage, PATH, Keys(("d", "x", "a"), 10), **asked)) == [(0, 12), (3, 10)]


@pytest.mark.parametrize("asked", ASKED)
def test_key_that_is_stored_twice_is_found_twice(asked: Asked) -> None:
    storage = storage_with(["a", "b", "a"])
    assert found(LookupTask(storage, PATH, Keys(("a",)), **asked)) == [(0, 0), (2, 0)]


@pytest.mark.parametrize("asked", ASKED)
def test_no_keys_and_no_rows_give_no_hits(asked: Asked) -> None:
    assert found(LookupTask(storage_with(["a"]), PATH, Keys(()), **asked)) == []
    assert found(LookupTask(storage_with([]), PATH, Keys(("a",)), **asked)) == []


@pytest.mark.parametrize("asked", ASKED)
def test_keys_beyond_the_basic_plane_are_in_javas_order(asked: Asked) -> None:
    # UTF-16 puts U+10000 before U+FFFD, bytes the other way round: the file's range is [U+10000, U+FFFD].
    storage = storage_with(["\U00010000", "\ufffd"])
    task = LookupTask(storage, PATH, Keys(("\ufffd", "\U00010000", "\U0001f600", "a")), **asked)
    assert found(task) == [(0, 1), (1, 0)]


def test_bloom_kinds_read_the_key_column_only_for_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: list[str] = []

    def noted(storage: Any, path: str, column: str, *more: Any, **named: Any) -> Any:
        columns.append(column)
        return rows_with_values(storage, path, column, *more, **named)

    monkeypatch.setattr(key_lookup, "rows_with_values", noted)
    keys = [f"k{n:03d}" for n in range(100)]
    counted = CountingStorage(storage_with(keys))
    for names in (("a", "z"), ("k0505", "k0995")):  # outside the range; inside it, but not in the filter
        assert found(LookupTask(counted, PATH, Keys(names), **BLOOM)) == []
    assert columns == []
    assert found(LookupTask(counted, PATH, Keys(("k005",)), **BLOOM)) == [(5, 0)]
    assert columns == ["_hoodie_record_key"]
    assert [call.op for call in counted.calls] == ["open_input"] * 3


def test_a_file_with_hits_stays_open_for_who_writes_it_anew_and_no_other_does() -> None:
    counted = CountingStorage(storage_with(["a", "b"]))
    with OpenInputs() as kept:
        assert found(LookupTask(counted, PATH, Keys(("x",)), **BLOOM, kept=kept)) == []
        assert kept.take(PATH) is None
        assert found(LookupTask(counted, PATH, Keys(("b",)), **BLOOM, kept=kept)) == [(1, 0)]
        assert len(counted.calls) == 2
        with opened_once(counted, kept) as storage:
            assert storage.footer(PATH).rows == 2
            assert read_columns(storage, PATH, ["n"]).column("n").to_pylist() == [0, 1]
        assert len(counted.calls) == 2
        assert kept.take(PATH) is None
        with opened_once(counted, kept) as storage:
            assert storage.footer(PATH).rows == 2
        assert len(counted.calls) == 3


def test_files_that_nobody_took_are_closed_at_the_end_and_not_too_many_are_kept() -> None:
    storage = storage_with(["a"])
    footer, files = read_footer(storage, PATH), [storage.open_input(PATH) for _ in range(100)]
    with OpenInputs() as kept:
        put = [kept.put(f"p/{number}", file, footer) for number, file in enumerate(files)]
        assert not any(file.closed for file in files)
    assert sum(put) == 64
    assert [file.closed for file in files] == put
    with suppress(RuntimeError), OpenInputs() as kept:
        assert kept.put(PATH, files[-1], footer)
        raise RuntimeError
    assert files[-1].closed


def test_file_without_filter_is_always_a_candidate() -> None:
    storage = storage_with(["a", "b"], bloom=None)
    assert found(LookupTask(storage, PATH, Keys(("b",)), **BLOOM)) == [(1, 0)]


@pytest.mark.parametrize("asked", ASKED)
def test_keys_are_made_where_the_file_has_none(asked: Asked) -> None:
    storage = storage_with(["a", "b"], bloom=None)
    generator = KeyGenerator(key_options("COMPLEX", record_fields=("id", "n"), partition_fields=("id",)))
    task = LookupTask(storage, PATH, Keys(("id:b,n:1", "id:b,n:0")), **asked, generator=generator)
    assert found(task) == [(1, 0)]


def test_stored_values_come_in_the_types_asked_for_and_null_where_the_file_lacks_them() -> None:
    storage = storage_with(["a", "b", "c"])
    also = pa.schema([("n", pa.int64()), ("later", pa.string())])
    hits = find_in_file(HERE, LookupTask(storage, PATH, Keys(("c", "a")), also=also))
    assert hits.stored is not None
    assert hits.stored.schema == also
    assert hits.stored.to_pylist() == [{"n": 0, "later": None}, {"n": 2, "later": None}]
    nothing = find_in_file(HERE, LookupTask(storage, PATH, Keys(("x",)), **BLOOM, also=also))
    assert nothing.stored is not None
    assert nothing.stored.num_rows == 0


@pytest.mark.parametrize("asked", ASKED)
def test_damaged_file_is_named_and_a_missing_one_is_missing(asked: Asked) -> None:
    storage = storage_with(["a"])
    storage.put(PATH, storage.read(PATH)[:-9])
    with pytest.raises(Corrupt) as caught:
        find_in_file(HERE, LookupTask(storage, PATH, Keys(("a",)), **asked))
    assert caught.value.facts["path"] == PATH
    with pytest.raises((Missing, Corrupt)):
        find_in_file(HERE, LookupTask(storage, "p/gone.parquet", Keys(("a",)), **asked))


def test_tasks_and_hits_travel() -> None:
    task = LookupTask(storage_with(["a", "b"]), PATH, Keys(("b",)), **BLOOM, also=pa.schema([("n", pa.int32())]))
    hits = pickle.loads(pickle.dumps(find_in_file(HERE, pickle.loads(pickle.dumps(task)))))
    assert (hits.rows.tolist(), hits.stored.to_pylist()) == ([1], [{"n": 1}])
