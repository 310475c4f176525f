"""Counts a record index that was made just now against the rows it was made from, where the options ask for that.

1. Rows of equal keys leave one entry, and so a difference: an index of such a table finds one of them.
2. It is done before the index is announced: one that does not count right is never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from hoodie.config import Config
from hoodie.engine import LocalEngine, TaskId
from hoodie.errors import Invalid
from hoodie.hfile import open_hfile
from hoodie.metadata.store import READING_THREADS
from hoodie.spec import WriteStat
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage

VALIDATE: Final = "hoodie.metadata.record.index.enable.validation.on.initialization"


def ensure_counted(metadata: TableHandle, stats: Sequence[WriteStat], config: Config) -> None:
    """Checks that the base files of a record index hold as many keys as rows went into them. `stats` are theirs;
    `metadata` is the metadata table.

    Raises:
        Invalid: they hold fewer.
    """
    if not config.flag(VALIDATE):
        return
    engine = LocalEngine(READING_THREADS)
    keys = sum(engine.run(_entry_count, [(metadata.storage, stat) for stat in stats], "count keys"))
    rows = sum(stat.num_writes for stat in stats)
    if keys != rows:
        raise Invalid(
            f"The record index would have {keys} keys for {rows} rows: some rows have the same key",
            remedy=f"Remove the rows that are there twice, or set {VALIDATE}=false",
            keys=keys,
            rows=rows,
        )


def _entry_count(_: TaskId, task: tuple[Storage, WriteStat]) -> int:
    storage, stat = task
    path = stat.path or ""
    return open_hfile(partial(storage.read_range, path), stat.file_size_bytes, path).entry_count
