"""ORC files are read by a process of its own, which a damaged file may end."""

from __future__ import annotations

import decimal
import io
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from hoodie.errors import Corrupt, Unavailable
from hoodie.records import iter_batches, orc_file, read_columns, read_footer
from hoodie.storage import MemoryStorage

ROWS = pa.table(
    {
        "id": ["a", None, "ü"],
        "amount": pa.array([decimal.Decimal("1.20"), None, decimal.Decimal("-3.45")], pa.decimal128(10, 2)),
        "tags": [["x"], [], None],
    }
)
PATH = "p/rows.orc"


@pytest.fixture(name="storage")
def _storage() -> Iterator[MemoryStorage]:
    orc_file._stop_idle()
    storage = MemoryStorage("orc-files")
    buffer = io.BytesIO()
    orc.write_table(ROWS, buffer)
    storage.put(PATH, buffer.getvalue())
    yield storage
    storage.forget()


def processes() -> list[int]:
    """The processes that wait for a file."""
    return [worker._process.pid for worker in orc_file._idle]


def test_rows_and_facts_are_those_of_arrows_reader(storage: MemoryStorage) -> None:
    footer = read_footer(storage, PATH)
    assert (footer.rows, footer.schema) == (3, ROWS.schema)
    assert read_columns(storage, PATH).equals(ROWS)
    assert read_columns(storage, PATH, ["amount"]).equals(ROWS.select(["amount"]))
    assert pa.Table.from_batches(iter_batches(storage, PATH, batch_rows=2)).equals(ROWS)


def test_one_process_reads_file_after_file(storage: MemoryStorage) -> None:
    read_footer(storage, PATH)
    first = processes()
    assert len(first) == 1
    read_columns(storage, PATH)
    assert processes() == first


def test_no_code_of_the_current_folder_runs(storage: MemoryStorage, tmp_path: Path, monkeypatch) -> None:
    for name in ("json", "pyarrow", "hoodie", "multiprocessing", "sitecustomize", "socket"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path)
    assert read_columns(storage, PATH).equals(ROWS)
    assert not (tmp_path / "ran").exists()


def test_two_files_can_be_open_at_a_time(storage: MemoryStorage) -> None:
    one, other = (iter_batches(storage, PATH, batch_rows=1) for _ in range(2))
    assert [next(one), next(other)] == [ROWS.slice(0, 1).to_batches()[0]] * 2
    one.close()
    other.close()
    assert len(processes()) == 2


def test_a_file_with_an_impossible_decimal_is_damaged(storage: MemoryStorage) -> None:
    buffer = io.BytesIO()
    orc.write_table(ROWS, buffer, compression="uncompressed")
    data = buffer.getvalue()
    kind = bytes([0x08, 14, 0x20, 0, 0x28, 10, 0x30, 2])  # Protobuf: DECIMAL, length 0, precision 10, scale 2
    assert data.count(kind) == 1
    storage.put(PATH, data.replace(kind, bytes([*kind[:5], 74, *kind[6:]])))
    with pytest.raises(Corrupt, match="died of it") as raised:
        read_footer(storage, PATH)
    assert raised.value.facts["path"] == PATH
    assert processes() == []


def test_a_damaged_file_leaves_the_process_for_the_next(storage: MemoryStorage) -> None:
    storage.put("p/text.orc", b"no file of ORC at all")
    with pytest.raises(Corrupt):
        read_footer(storage, "p/text.orc")
    waiting = processes()
    assert read_footer(storage, PATH).rows == 3
    assert processes() == waiting


def test_a_storage_that_fails_is_not_mistaken_for_damage(storage: MemoryStorage) -> None:
    with pytest.raises(Unavailable, match="gone for now"):
        read_footer(_Broken(), PATH)
    assert processes() == []
    assert read_footer(storage, PATH).rows == 3


def test_a_process_that_somebody_ended_is_no_damage(storage: MemoryStorage) -> None:
    read_footer(storage, PATH)
    (process,) = processes()
    os.kill(process, signal.SIGKILL)
    with pytest.raises(Unavailable, match="ended with -9"):
        read_footer(storage, PATH)
    assert read_footer(storage, PATH).rows == 3


def test_the_process_ends_with_its_owner(storage: MemoryStorage) -> None:
    read_footer(storage, PATH)
    (process,) = processes()
    orc_file._stop_idle()
    assert not Path(f"/proc/{process}").exists()


class _Broken:
    scheme = "memory"

    def open_input(self, path: str) -> pa.PythonFile:
        return pa.PythonFile(_Failing(path.encode()), mode="r")


class _Failing(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise Unavailable("The storage is gone for now")
