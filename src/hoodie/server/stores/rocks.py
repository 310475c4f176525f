"""Files of kept views in RocksDB: Hudi's `EMBEDDED_KV_STORE`. They are there when the service is started again.

1. One database holds all tables of a service. A key is the table (a hash of its place), a letter, and:

   | letter | rest of the key | value |
   |---|---|---|
   | `f` | partition, NUL, file id, NUL, the file's name after it; of log files with the dot before | size (int64) |
   | `p` | partition | nothing: it is loaded |
   | `s` | name of a part of what the view knows beside | its bytes |

   So the files of a partition, and those of a file group, are what begins alike.
2. An edit is one batch, with the timeline it is true at: whoever dies, and whatever the system had not written yet, the
   database is as it was after some edit.
3. The newest value of a table reads what there is; with the next one it gets an iterator, which stays at what there was
   when it was made. (Snapshots of rocksdict do not hold for its iterators.) Iterators keep buffers from being given
   back, so no value has one for long.
4. The folder is the service's own: private, made by it, no link. One that is damaged, of another format or of somebody
   else's making is emptied with one line in the log; one that another service has open is left alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import struct
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import rocksdict

from hoodie.errors import Invalid, Unavailable
from hoodie.server.stores.packed import FileChange, PackedFiles, pack
from hoodie.server.stores.store import Edit, NotNewest, StoreFailed

log = logging.getLogger(__name__)

FOLDER = "hoodie-views"
"""Below the base path that is configured: nothing else there is touched."""

_FORMAT_KEY = b"hoodie view store"
_FORMAT = b"1"
_SIZE = struct.Struct("<q")
_TABLE_BYTES = 16
_AT_END = b"\xff" * 4
"""After all texts in UTF-8."""
_MIB = 1 << 20
_PASS = "surrogatepass"

Found = TypeVar("Found")


class RocksStores:
    """The `Stores` in a database below `base_path`, with `memory_bytes` for what it reads and writes.

    Raises:
        Invalid: its folder is a link, or another user's. Unavailable: another service has it open, or it cannot be
            made.
    """

    def __init__(self, base_path: str, memory_bytes: int) -> None:
        self.folder = os.path.join(base_path, FOLDER)
        self._memory_bytes = memory_bytes
        self._newest: dict[bytes, weakref.ref[RocksStore]] = {}
        self.lock = threading.Lock()
        _ensure_private(base_path, self.folder)
        self.db = self._opened()

    def open(self, place: str) -> RocksStore:
        table = hashlib.blake2b(place.encode("utf-8", _PASS), digest_size=_TABLE_BYTES).digest()
        with self.lock:
            return self.next_value(table)

    def next_value(self, table: bytes) -> RocksStore:
        """The newest value of a table; the lock is held, and what is written later is not yet."""
        self.hold(table)
        found = RocksStore(self, table)
        self._newest[table] = weakref.ref(found)
        return found

    def hold(self, table: bytes) -> None:
        """The newest value of a table, if anybody has it, goes on reading what there is now; the lock is held."""
        before = self.newest(table)
        if before is not None and before.held is None:
            before.held = _asked(self.db.iter)

    def newest(self, table: bytes) -> RocksStore | None:
        """The newest value of a table; the lock is held."""
        found = self._newest.get(table)
        return None if found is None else found()

    def close(self) -> None:
        with self.lock:
            self.db.close()

    def distrust(self) -> None:
        with self.lock, suppress(Exception):  # a full disk takes no more, and what is there is right then
            self.db.put(_FORMAT_KEY, b"distrusted")

    def _opened(self) -> Any:
        try:
            return self._open()
        except _Strange as strange:
            log.warning("the views kept in %s are made anew: %s", self.folder, strange)
        shutil.rmtree(self.folder)  # follows no links
        _ensure_private(os.path.dirname(self.folder), self.folder)
        return self._open()

    def _open(self) -> Any:
        strangers = [one.name for one in os.scandir(self.folder) if not one.is_file(follow_symlinks=False)]
        if strangers:
            raise _Strange(f"{strangers[0]} is not of this service")
        try:
            found = rocksdict.Rdict(self.folder, _options(self._memory_bytes))
        except Exception as error:
            raise _unopened(self.folder, error) from error
        try:
            kept = found.get(_FORMAT_KEY)
            if kept is None and next(iter(found.keys()), None) is None:
                found.put(_FORMAT_KEY, _FORMAT)
            elif kept != _FORMAT:
                raise _Strange("they are of another format" if kept else "they are not of this service")
        except _Strange:
            found.close()
            raise
        except Exception as error:
            found.close()
            raise _Strange(str(error)) from error
        return found


class RocksStore:
    """A `ViewStore` in the database: what it has, or had, of one table. `held`: an iterator, once there is another."""

    outlives = True
    is_in_memory = False

    def __init__(self, stores: RocksStores, table: bytes) -> None:
        self.table = table
        self.held: Any = None
        self._stores = stores
        self._reading = threading.Lock()

    def partitions(self) -> tuple[str, ...]:
        return tuple(_asked(lambda: [_text(key) for key, _ in self._from(b"p", b"")]))

    def has(self, partition: str) -> bool:
        return any(key == b"" for key, _ in self._from(b"p" + _bytes(partition), b"", most=1))

    def files(self, partition: str) -> PackedFiles | None:
        if not self.has(partition):
            return None
        return pack(self._files(_bytes(partition) + b"\0"))

    def of_group(self, partition: str, file_id: str) -> Iterable[tuple[str, int]]:
        return self._files(_bytes(f"{partition}\0{file_id}\0"))

    def parts(self) -> Mapping[str, bytes]:
        return {_text(key): value for key, value in self._from(b"s", b"")}

    def changed(self, edit: Edit) -> RocksStore:
        batch = rocksdict.WriteBatch(raw_mode=True)
        if edit.is_emptied:
            batch.delete_range(self.table, self.table + _AT_END)
        for partition in edit.dropped:
            self._drop(batch, partition)
        for partition, change in edit.changes.items():
            self._change(batch, partition, change)
        for partition, files in edit.loaded.items():
            self._load(batch, partition, files)
        for name, value in edit.parts.items():
            batch.put(self.table + b"s" + _bytes(name), value)
        with self._stores.lock:
            if self._stores.newest(self.table) is not self:
                raise NotNewest("Another view of the table is newer", remedy="Ask again")
            self._stores.hold(self.table)
            _asked(lambda: self._stores.db.write(batch))
            return self._stores.next_value(self.table)

    def _drop(self, batch: Any, partition: str) -> None:
        """One by one: scans look at every range that was deleted."""
        for key, _ in self._from(b"f", _bytes(partition) + b"\0"):
            batch.delete(self.table + b"f" + key)
        batch.delete(self.table + b"p" + _bytes(partition))

    def _load(self, batch: Any, partition: str, files: PackedFiles) -> None:
        self._change(batch, partition, FileChange(dict(files.items())))
        batch.put(self.table + b"p" + _bytes(partition), b"")

    def _change(self, batch: Any, partition: str, change: FileChange) -> None:
        begin = self.table + b"f" + _bytes(partition) + b"\0"
        for name in change.removed:
            batch.delete(begin + _file_key(name))
        for name, size in change.added.items():
            batch.put(begin + _file_key(name), _SIZE.pack(size))

    def _files(self, begin: bytes) -> Iterator[tuple[str, int]]:
        skipped = begin.index(b"\0") + 1
        try:
            for key, value in self._from(b"f", begin):
                yield _name_of(key[skipped:]), _SIZE.unpack(value)[0]
        except (struct.error, ValueError) as error:
            raise _failed(error) from error

    def _from(self, letter: bytes, begin: bytes, most: int = -1) -> list[tuple[bytes, bytes]]:
        """Entries, at `most` so many, whose keys begin so after table and letter; the keys come without those two."""
        prefix, known = self.table + letter + begin, len(self.table) + len(letter)
        with self._stores.lock:
            own = None if self.held else _asked(self._stores.db.iter)
        if own is not None:
            return _asked(lambda: _scan(own, prefix, known, most))
        with self._reading:
            return _asked(lambda: _scan(self.held, prefix, known, most))


def _scan(found: Any, prefix: bytes, known: int, most: int) -> list[tuple[bytes, bytes]]:
    entries: list[tuple[bytes, bytes]] = []
    found.seek(prefix)
    while len(entries) != most and found.valid() and (key := found.key()).startswith(prefix):
        entries.append((key[known:], found.value()))
        found.next()
    found.status()  # it ends at what is damaged, too
    return entries


class _Strange(Exception):
    """That what lies in the folder is not what a service of this release left there."""


def _file_key(name: str) -> bytes:
    """File id, NUL, and what is left of a name without it; a dot before that is one of the name's beginning."""
    dot, plain = ("." if name.startswith(".") else ""), name.removeprefix(".")
    file_id, under, rest = plain.partition("_")
    return _bytes(f"{file_id}\0{dot}{under}{rest}")


def _name_of(key: bytes) -> str:
    file_id, _, rest = _text(key).partition("\0")
    return f".{file_id}{rest[1:]}" if rest.startswith(".") else f"{file_id}{rest}"


def _options(memory_bytes: int) -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(max(memory_bytes // 4, _MIB))
    options.set_max_write_buffer_number(2)
    options.set_max_background_jobs(2)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(2)
    options.set_max_total_wal_size(memory_bytes)
    tables = rocksdict.BlockBasedOptions()
    tables.set_block_cache(rocksdict.Cache(max(memory_bytes // 2, _MIB)))
    tables.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(tables)
    return options


def _asked(ask: Callable[[], Found]) -> Found:
    """What the database answers. Its errors are plain `Exception`s."""
    try:
        return ask()
    except StoreFailed:
        raise
    except Exception as error:
        raise _failed(error) from error


def _failed(error: Exception) -> StoreFailed:
    return StoreFailed(
        f"The view kept in RocksDB cannot be used: {error}",
        remedy="See hoodie.filesystem.view.rocksdb.base.path; the view is kept in memory until the next start",
    )


def _unopened(folder: str, error: Exception) -> Exception:
    """What becomes of a database that cannot be opened: what is damaged is made anew, what is in the way is said."""
    text = str(error)
    if "lock file" in text or "lock hold" in text:
        return Unavailable(
            f"The views in {folder} are open in another process",
            remedy="Stop that, or set hoodie.filesystem.view.rocksdb.base.path to another folder",
        )
    if "No space left" in text or "Permission denied" in text or "Too many open files" in text:
        return _unusable(folder, text)
    return _Strange(text)


def _unusable(folder: str, text: str | None) -> Unavailable:
    return Unavailable(
        f"The folder {folder} cannot be used: {text}",
        remedy="Set hoodie.filesystem.view.rocksdb.base.path to a folder of this user with room",
    )


def _ensure_private(base_path: str, folder: str) -> None:
    """Makes the folder where it is not there.

    Raises:
        Invalid: it is a link, no folder, or somebody else's. Unavailable: it cannot be made.
    """
    try:
        os.makedirs(base_path, mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        for path, owners in ((base_path, (os.getuid(), 0)), (folder, (os.getuid(),))):
            found = os.lstat(path)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
                raise Invalid(
                    f"{path} is a link, no folder or another user's",
                    remedy="Set hoodie.filesystem.view.rocksdb.base.path to another folder",
                )
        os.chmod(folder, 0o700)
    except OSError as error:
        raise _unusable(folder, error.strerror) from error


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", _PASS)


def _text(data: bytes) -> str:
    return data.decode("utf-8", _PASS)
