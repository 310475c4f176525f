"""A table that random histories drive: actions under faults, on memory, on a disk with links planted in it, or over
several stores.

1. An action that ended has happened; one that was stopped has happened or not, and the rows say which.
2. A stopped process answers nothing any more. An interrupted one (Ctrl-C) lives and may tidy up.
3. What links lead to is never changed.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt
from hoodie.services.ingest import Request
from hoodie.services.save import save_rows
from hoodie.state.handle import load_handle
from hoodie.storage import LocalStorage, MemoryStorage, Storage
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.env import FakeEnv
from hoodie.testing.table_model import Rows, rows_of
from hoodie.testing.two_stores import Stores, layout_options, two_stores

ENGINE: Final = LocalEngine(1)
START: Final = datetime(2020, 1, 1, tzinfo=UTC)
"""Long before the real clock: whoever goes on with the table by that one comes later."""

START_ON_DISK: Final = datetime(2050, 1, 1, tzinfo=UTC)
"""After the real clock, by which disks and stores stamp files: version 6 takes these times for completion times."""

COUNTS: Final = dict.fromkeys(("crashes", "interrupts", "planted links", "repairs"), 0)

Fault = tuple[str, int] | None
"""What happens at which storage call of an action: "stopped", "interrupted", "interrupted after"."""

Act = Callable[[Table], object]
_names = itertools.count()
_CANARY: Final = {"p0/a.parquet": b"none", "20200101000000000": b"of", ".hoodie/b.commit": b"yours"}


class DrivenTable:
    """The table in its place, opened anew for every action with `options`. `strategy`: its files lie under a storage
    path, by this storage strategy; in these `stores`, or beside the table path.
    """

    def __init__(
        self, options: Mapping[str, str], *, on_disk: bool, strategy: str = "", stores: Stores | None = None
    ) -> None:
        self.options = dict(options)
        self._strategy = strategy
        self._stores = stores
        self.env = FakeEnv(START if stores is None and not on_disk else START_ON_DISK)
        self._folder = tempfile.mkdtemp(prefix="hoodie-machine-") if on_disk else None
        self.storage = self._place()
        if self._folder is not None:
            for path, data in _CANARY.items():
                full = os.path.join(self._folder, "outside", path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "wb") as file:
                    file.write(data)

    def _place(self) -> Storage:
        if self._stores is not None:
            return self._stores.table
        if self._folder is not None:
            return LocalStorage(os.path.join(self._folder, "table"))
        return MemoryStorage(f"machine-{next(_names)}", self.env)

    def make(self, rows: pa.Table, options: Mapping[str, str]) -> None:
        """The table with its first rows. `options` are said once, at its making."""
        config = resolve({**self.options, **options, **self._layout()})
        request = Request("upsert", as_source(rows), config, ENGINE)
        save_rows(self._laid(self.storage), request, "append", self.env)

    @property
    def on_disk(self) -> bool:
        return self._folder is not None

    @property
    def version(self) -> int:
        return self.opened().version

    def opened(self, storage: Storage | None = None) -> Table:
        return Table(load_handle(self._laid(storage or self.storage), self.env), self.options, ENGINE)

    def _layout(self) -> Mapping[str, str]:
        if self._stores is not None:
            return self._stores.options(self._strategy)
        return layout_options(self._strategy) if self._strategy else {}

    def _laid(self, storage: Storage) -> Storage:
        """The storage as the table's; with a storage strategy it is that of both table path and storage path."""
        if self._stores is not None:
            return self._stores.laid(storage)
        return two_stores(storage) if self._strategy else storage

    def newest(self) -> str:
        """The requested time of the newest completed write."""
        return self.opened().timeline().completed_writes()[-1].requested

    def has_write(self, instant: str) -> bool:
        """Whether the active timeline has it, completed."""
        return any(one.requested == instant for one in self.opened().timeline().completed_writes())

    def act(self, act: Act, before: Rows, after: Rows, fault: Fault, passed: Sequence[Rows] = ()) -> Rows | None:
        """None when the action ended; otherwise it was stopped, and these are the rows it left: those before, after,
        or of one of the states `passed` between them.
        """
        kind, call = fault or ("none", 0)
        stopped_at = call if kind == "stopped" else None
        fail_at, fail_after = (call if kind == name else None for name in ("interrupted", "interrupted after"))
        storage = CountingStorage(
            self.storage, crash_at=stopped_at, fail_at=fail_at, fail_after=fail_after, failure=KeyboardInterrupt()
        )
        try:
            act(self.opened(storage))
        except Crash:
            COUNTS["crashes"] += 1
        except KeyboardInterrupt:
            COUNTS["interrupts"] += 1
        else:
            return None
        self._repair()
        found = rows_of(self.opened().scan().read_all())
        assert found in (before, after, *passed)
        return found

    def _repair(self) -> None:
        """What a user does whose table with storage paths lost its metadata table to an action that was stopped."""
        if not self._strategy:
            return
        table = self.opened()
        if not table.config.is_metadata_table_ready:
            with pytest.raises(Corrupt, match="hoodie doctor"):
                table.scan()
            table.indexes.rebuild()
            COUNTS["repairs"] += 1

    def plant_link(self, place: str) -> None:
        """A symbolic link in the table to a folder that is none of its business."""
        assert self._folder is not None
        path = self.storage.absolute(place)
        if os.path.isdir(os.path.dirname(path)) and not os.path.lexists(path):
            os.symlink(os.path.join(self._folder, "outside"), path)
            COUNTS["planted links"] += 1

    def remove_links(self, places: Sequence[str]) -> None:
        for place in places if self.on_disk else ():
            if os.path.islink(path := self.storage.absolute(place)):
                os.unlink(path)

    def ensure_nothing_outside_changed(self) -> None:
        if self._folder is not None:
            outside = LocalStorage(os.path.join(self._folder, "outside"))
            assert {info.path: outside.read(info.path) for info in outside.list("")} == _CANARY

    def copy_to(self, folder: str) -> None:
        """Everything on storage as files below `folder`, for readers that cannot read memory."""
        copy = LocalStorage(folder)
        for info in self.storage.list(""):
            copy.put(info.path, self.storage.read(info.path))

    def forget(self) -> None:
        """Delete the table and all around it."""
        if self._stores is not None:
            self._stores.forget()
        elif isinstance(self.storage, MemoryStorage):
            self.storage.forget()
        elif self._folder is not None:
            shutil.rmtree(self._folder)
