"""Processes killed by SIGKILL between two changes of the stores that a table lies in: those of `killed`, off the disk.

1. A change is a call of a storage that has an effect there, or gives a lock back; a victim dies before it. An object
   appears as a whole or not at all, so that these are all states in which a process can leave a store.
2. What the dead holds stays held: `Place.let_leases_end` does what time would do.
3. Stores cannot be copied beside each other, as the properties of a table name its storage paths: a `Place` is put back
   as it was instead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final
from unittest import mock

from hoodie.errors import Corrupt
from hoodie.storage import Storage, open_storage
from hoodie.storage.lease import LOCKS_FOLDER, encode_lease, parse_lease
from hoodie.testing import killed_services as services
from hoodie.testing.counting_storage import CHANGING, Call, CountingStorage
from hoodie.testing.killed import Action, Change, Countdown, Killer
from hoodie.testing.two_stores import Stores

_OPENERS: Final = ("hoodie.layout.opening.open_storage", "hoodie.layout.access.open_storage")
_CHANGES: Final = CHANGING - {"open_output", "abort"} | {"release"}

Snapshot = tuple[Mapping[str, bytes], ...]


def watch_stores(path: str, countdown: Countdown) -> None:
    """`Watching` of every storage that this process opens."""
    del path
    lock = threading.Lock()

    def tell(call: Call) -> None:
        if call.op in _CHANGES:
            with lock:
                countdown.struck(Change(call.op, call.path))

    def opened(uri: str, options: Mapping[str, str]) -> Storage:
        return CountingStorage(open_storage(uri, options), on_call=tell)

    for name in _OPENERS:
        mock.patch(name, opened).start()


class StoresKiller(Killer):
    """A killer of victims that open tables with more `options`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(watch_stores)
        self._options = dict(options)

    def _run(self, action: Action, folder: str, kill_at: int | str | None) -> tuple[int, str]:
        return super()._run(partial(_with_options, self._options, action), folder, kill_at)


def _with_options(options: Mapping[str, Any], action: Action, path: str) -> None:
    with mock.patch.dict(services.OPTIONS, options):
        action(path)


@dataclass(frozen=True)
class Place:
    """Where a table lies, and the stores there."""

    path: str
    stores: Stores

    def snapshot(self) -> Snapshot:
        """All that is there."""
        return tuple({file.path: one.read(file.path) for file in one.list("")} for one in self._all())

    def put_back(self, snapshot: Snapshot) -> None:
        """Makes all of it as it was."""
        for store, files in zip(self._all(), snapshot, strict=True):
            store.delete_dir("")
            for path, data in files.items():
                store.put(path, data)

    def let_leases_end(self) -> None:
        """Ends the leases that dead processes hold, as time does."""
        store = self.stores.table
        for file in list(store.list(LOCKS_FOLDER.rstrip("/"))):
            with suppress(Corrupt):
                lease = parse_lease(store.read(file.path), file.path)
                store.put(file.path, encode_lease(replace(lease, valid_until_ms=0)))

    def _all(self) -> Iterator[Storage]:
        yield self.stores.table
        yield from self.stores.roots
