"""A base file that is announced, written and told of."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie.errors import Conflict
from hoodie.records import BaseFileOptions
from hoodie.spec import NULL_COMMIT, BaseFileName
from hoodie.storage import MemoryStorage
from hoodie.testing.env import FakeEnv
from hoodie.timeline import DirectMarkers
from hoodie.view import BaseFile
from hoodie.write.new_base_file import FileTarget, NewBaseFile

ROWS = pa.table({"id": ["a", "b"]})
TARGET = ("20260102000000000", "t", BaseFileOptions(bloom=None))


def target(name: str) -> FileTarget:
    env = FakeEnv()
    storage = MemoryStorage(name, env)
    return FileTarget(storage, env, *TARGET, DirectMarkers(storage, TARGET[0]))


def test_a_new_group_has_inserts_only_and_took_time_to_create() -> None:
    into = target("new-base-file-1")
    file = NewBaseFile(into, "p", "f", "0-1-2")
    (marker,) = [one.path for one in into.storage.list("")]
    assert marker == f".hoodie/.temp/{TARGET[0]}/p/{file.name}.marker.CREATE"
    with file.open(ROWS.schema) as writer:
        writer.write(ROWS)
    into.env.sleep(1.5)
    stat = file.stat(writer.close())
    assert (stat.file_id, stat.partition_path, stat.path) == ("f", "p", f"p/{file.name}")
    assert (stat.prev_commit, stat.prev_base_file) == (NULL_COMMIT, None)
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes) == (2, 2, 0)
    assert stat.file_size_bytes == stat.total_write_bytes == into.storage.head(f"p/{file.name}").size_bytes
    assert stat.runtime is not None
    assert (stat.runtime.total_create_time_ms >= 1500, stat.runtime.total_upsert_time_ms) == (True, 0)


def test_the_next_file_of_a_group_names_the_one_before() -> None:
    into = target("new-base-file-2")
    old = BaseFile("f_0-1-1_20260101000000000.parquet", BaseFileName("f", "0-1-1", "20260101000000000"), 9)
    file = NewBaseFile(into, "", "f", "0-1-2", old)
    assert into.storage.list_dir(f".hoodie/.temp/{TARGET[0]}").files[0].path.endswith(f"/{file.name}.marker.MERGE")
    stat = file.stat(file.open(ROWS.schema).close())
    assert (stat.path, stat.prev_commit, stat.prev_base_file) == (file.name, "20260101000000000", old.path)
    assert (stat.num_writes, stat.num_inserts) == (0, 0)
    assert stat.runtime is not None
    assert stat.runtime.total_create_time_ms == 0


def test_a_name_that_was_announced_is_not_taken_again() -> None:
    into = target("new-base-file-3")
    NewBaseFile(into, "p", "f", "0-1-2")
    with pytest.raises(Conflict):
        NewBaseFile(into, "p", "f", "0-1-2")
