"""Bytes in a local or mounted POSIX file system.

1. A small file is written to a temporary name in its folder, synced, and then given its name in one step that cannot
   replace anything (`create`: hard link) or replaces atomically (`put`: rename). Then the folder is synced.
2. Temporary names start with `.hoodie-tmp-`: hidden, no digits in front, no data-file extension, so no reader of Hudi
   tables takes them for an instant, a base file or a log file. Listings omit them. A crash can leave one behind: a day
   later the first listing of its folder removes it, or in `.hoodie` and its hidden folders the first writer.
3. A data file is written in place under its final name and synced, with its folder, at `close`.
4. `.<name>.crc`, Hadoop's checksum of an earlier file of that name, goes *before* the new bytes appear: a file without
   checksum is read unchecked, a file with a foreign checksum is refused.
5. A deletion is not synced on its own; it is safe after the next `create` or `put` in the same folder.
6. Nothing is changed or removed behind a symbolic link below the base (`inside`); reading follows links.
7. Native readers (`open_input`) use `pread`, not `mmap`: mapped pages count as the process's own memory and a
   truncated file would end the process with SIGBUS.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import Conflict, Invalid, Missing
from hoodie.storage.contract import FileInfo, Listing, OutputFile, checked_path, checked_range, crc_sibling
from hoodie.storage.failures import os_failure, translated
from hoodie.storage.fence import Fence
from hoodie.storage.flock import held_below
from hoodie.storage.inside import ensure_inside, is_around, is_inside, remove_file, remove_tree
from hoodie.storage.posix import (
    NEW_FILE,
    TEMP_PREFIX,
    is_absent,
    make_folder,
    name_if_absent,
    remove,
    remove_if_stale,
    sync_folder,
    sync_named,
    write_all,
    write_temp,
)


@dataclass(frozen=True, slots=True)
class LocalStorage:
    """Storage below one folder, given as `/path`, `relative/path`, `file:/path` or `file:///path`."""

    uri: str
    base: str = field(init=False, repr=False, compare=False)
    fences: tuple[Fence, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        prefix, path = _split_uri(self.uri)
        if "\0" in path:
            raise Invalid(f"Path {path!r} contains a NUL character", remedy="Use a name without it")
        base = os.path.abspath(path)
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "uri", prefix + base)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.uri,)

    def with_fence(self, fence: Fence) -> LocalStorage:
        """The same storage, which asks `fence`, too, before it deletes or makes an instant."""
        same = type(self)(self.uri)
        object.__setattr__(same, "fences", (*(one for one in self.fences if not one.is_over), fence))
        return same

    @property
    def scheme(self) -> str:
        return "file"

    def absolute(self, path: str) -> str:
        return os.path.join(self.base, checked_path(path)) if path else self.base

    def list_dir(self, path: str) -> Listing:
        found = self._children(checked_path(path, root_allowed=True))
        files = (self._facts(name, entry) for name, entry in found if entry is not None)
        return Listing(
            tuple(info for info in files if info is not None),
            tuple(sorted(name.rstrip("/") for name, entry in found if entry is None)),
        )

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        return self._walk(checked_path(prefix, root_allowed=True), start_after or "")

    def head(self, path: str) -> FileInfo:
        full = self.absolute(checked_path(path))
        with translated("look at", full):
            facts = os.stat(full)
        if not stat.S_ISREG(facts.st_mode):
            raise Missing(f"{full} is not a file", path=full)
        return _info(path, facts)

    def read(self, path: str) -> bytes:
        full = self.absolute(checked_path(path))
        with translated("read", full), open(full, "rb") as file:
            return file.read()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        checked_range(path, start, length)
        full = self.absolute(checked_path(path))
        with translated("read", full), open(full, "rb", buffering=0) as file:
            file.seek(start)
            return _read_up_to(file, length)

    def create(self, path: str, data: bytes) -> None:
        full = self._own(path)
        self._ensure_held()
        with translated("create", full, writes=True):
            if os.path.lexists(full):
                raise Conflict(f"{full} exists already", path=full)
            temp = write_temp(os.path.dirname(full), data)
            try:
                remove(crc_sibling(full))
                with suppress(OSError):  # it is as old as its name: others may come while its bytes are synced
                    os.utime(temp)
                name_if_absent(temp, full)
            finally:
                with suppress(OSError):  # it means nothing to readers, and must not hide that the file is there
                    remove(temp)
        sync_named(full)

    def put(self, path: str, data: bytes) -> None:
        full = self._own(path)
        with translated("write", full, writes=True):
            temp = write_temp(os.path.dirname(full), data)
            try:
                remove(crc_sibling(full))
                os.replace(temp, full)
            except BaseException:
                with suppress(OSError):
                    remove(temp)
                raise
            sync_folder(os.path.dirname(full))

    def delete(self, path: str) -> bool:
        full = self.absolute(checked_path(path))
        self._ensure_held(to_delete=True)
        with translated("delete", full, writes=True):
            return remove_file(self.base, path)

    def delete_dir(self, path: str) -> int:
        self._ensure_held(to_delete=True)
        with translated("delete", self.absolute(checked_path(path, root_allowed=True)), writes=True):
            return remove_tree(self.base, path, held_below(self.base))

    def open_input(self, path: str) -> Any:
        full = self.absolute(checked_path(path))
        import pyarrow as pa  # noqa: PLC0415 - takes longer to load than commands that open no data file take to answer

        with translated("open", full):
            if os.path.isdir(full):
                raise Missing(f"{full} is not a file", path=full)
            return pa.OSFile(full, "rb")

    def open_output(self, path: str) -> LocalOutput:
        return LocalOutput(self._own(path))

    def ensure_own(self, path: str) -> None:
        """Checks that a file of this path would be the table's own.

        Raises:
            Invalid: it lies behind a link.
        """
        self._own(path)

    def remove_stale_temps(self, folder: str, depth: int = 1) -> None:
        """Removes temporary files that dead writers left in a folder (an absolute path) and, down to a depth, in its
        hidden ones: nobody may ever list them.
        """
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(TEMP_PREFIX):
                    remove_if_stale(entry)
                elif depth and entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                    self.remove_stale_temps(entry.path, depth - 1)

    def _ensure_held(self, *, to_delete: bool = False) -> None:
        """Asks the fences before a file is deleted, or a small one is made. Raises as they do."""
        for fence in self.fences:
            fence.ensure_held(to_delete=to_delete)

    def _own(self, path: str) -> str:
        """The absolute path of a file that is to be changed. Raises: Invalid: it lies behind a link."""
        full = self.absolute(checked_path(path))
        with translated("look at", full):
            ensure_inside(self.base, path)
        return full

    def _walk(self, folder: str, after: str) -> Iterator[FileInfo]:
        for name, entry in self._children(folder):
            if entry is None:
                if name > after or after.startswith(name):
                    yield from self._walk(name.rstrip("/"), after)
            elif name > after and (info := self._facts(name, entry)) is not None:
                yield info

    def _facts(self, path: str, entry: os.DirEntry[str]) -> FileInfo | None:
        """What a listing says of a file; None when it is gone. Asked file by file: who lists may want few of them."""
        try:
            return _info(path, entry.stat())
        except OSError as error:
            if _has_vanished(error):
                return None
            raise os_failure(error, "list", self.absolute(path), writes=False) from error

    def _children(self, folder: str) -> Sequence[tuple[str, os.DirEntry[str] | None]]:
        """Children in path order: folders with None and a slash at the end of the name."""
        full = self.absolute(folder)
        prefix = f"{folder}/" if folder else ""
        found: list[tuple[str, os.DirEntry[str] | None]] = []
        with translated("list", full):
            try:
                entries = os.scandir(full)
            except OSError as error:
                if is_absent(error, full):
                    return found
                raise
            with entries:
                for entry in entries:
                    if entry.name.startswith(TEMP_PREFIX):
                        if is_inside(self.base, folder):
                            remove_if_stale(entry)
                        continue
                    path = prefix + entry.name
                    try:
                        if entry.is_dir():
                            if entry.is_symlink() and is_around(self.base, folder, entry.stat()):
                                continue
                            found.append((path + "/", None))
                        elif entry.is_file():
                            found.append((path, entry))
                    except OSError as error:
                        if not _has_vanished(error):
                            raise
        return sorted(found, key=lambda child: child[0])


class LocalOutput(OutputFile):
    """A data file written in place. An earlier file of the same name is unlinked, so its readers keep their bytes."""

    def __init__(self, full: str) -> None:
        self._full = full
        self._file = -1
        self._size_bytes = 0
        with translated("create", full, writes=True):
            make_folder(os.path.dirname(full))
            remove(full)
            remove(crc_sibling(full))
            self._file = os.open(full, NEW_FILE, 0o666)

    @property
    def closed(self) -> bool:
        return self._file < 0

    def write(self, data: Any, /) -> int:
        if self._file < 0:
            raise ValueError("write to a closed file")
        with translated("write", self._full, writes=True):
            size = write_all(self._file, data)
        self._size_bytes += size
        return size

    def tell(self) -> int:
        return self._size_bytes

    def close(self) -> None:
        if self._file < 0:
            return
        try:
            with translated("write", self._full, writes=True):
                os.fsync(self._file)
                sync_folder(os.path.dirname(self._full))
        except BaseException:
            self.abort()
            raise
        self._release()

    def abort(self) -> None:
        if self._file >= 0:
            self._release()
            with translated("delete", self._full, writes=True):
                remove(self._full)

    def __del__(self) -> None:
        # Not `abort`: in a forked child this is a copy of a file its parent is still writing.
        self._release()

    def _release(self) -> None:
        file, self._file = getattr(self, "_file", -1), -1
        if file >= 0:
            os.close(file)


def _split_uri(uri: str) -> tuple[str, str]:
    """What to print before the absolute path, and the path. Names are literal: nothing is percent-decoded."""
    if not uri.startswith("file:"):
        if not uri:
            raise Invalid("The base path is empty", remedy="Name the table's folder")
        return "", uri
    rest = uri.removeprefix("file:")
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise Invalid(f"{uri!r} names another host", remedy="Use file:///path or /path", uri=uri)
        rest = slash + path
    if not rest.startswith("/"):
        raise Invalid(f"{uri!r} is not an absolute file URI", remedy="Use file:///path or /path", uri=uri)
    return "file://", rest


def _info(path: str, facts: os.stat_result) -> FileInfo:
    return FileInfo(path, facts.st_size, facts.st_mtime_ns // 1_000_000)


def _read_up_to(file: Any, length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0 and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _has_vanished(error: OSError) -> bool:
    """Whether an entry is no file and no folder: removed since it was listed, or a link that leads to itself."""
    return error.errno in (errno.ENOENT, errno.ELOOP)
