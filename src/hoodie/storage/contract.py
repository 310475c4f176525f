"""Where bytes live: the promises every storage keeps, and the path rules they share.

1. A storage is rooted at a base URI. Paths are relative POSIX paths below it, `""` is the root; no path can leave it.
2. `create` is the one primitive a commit needs: of many callers exactly one succeeds, readers see all bytes or no file,
   and when it returns the bytes survive a crash of the machine. `put` replaces with the same all-or-nothing.
3. Data files (`open_output`) have names nobody else uses; they count only once `close` has returned.
4. Listings are in path order, compared as whole paths code point by code point, and list neither folders nor a
   storage's own temporary files.
5. A storage may be pickled: the copy works on the same bytes. Messages and `repr` hold no secret.
6. Foreign errors never come out: `Missing`, `Conflict`, `Unavailable`, `Invalid`; for a lost answer `CommitUnknown`.

It does not know what Hudi is. Who may write when is the business of `hoodie.locks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from hoodie.errors import Invalid


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file: its path below the root, its size, and when it was last written (milliseconds since 1970, UTC)."""

    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Direct children of a folder, each in path order; `dirs` are paths from the root without a trailing slash."""

    files: tuple[FileInfo, ...]
    dirs: tuple[str, ...]


class OutputFile(Protocol):
    """A new data file being written. As a context manager it closes on success and aborts on an exception.

    Storages subclass it and get what is the same for all.
    """

    @property
    def closed(self) -> bool: ...

    def write(self, data: Any, /) -> int:
        """Number of bytes taken, always all of them. `data` is anything with the buffer protocol."""
        ...

    def tell(self) -> int:
        """Bytes written so far."""
        ...

    def close(self) -> None:
        """Make the file durable and visible. Nothing happens when it is already closed or aborted."""
        ...

    def abort(self) -> None:
        """Drop the file. Nothing happens when it is already closed or aborted."""
        ...

    def flush(self) -> None:
        """Does nothing: `close` is what counts."""
        return

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class Storage(Protocol):
    """Bytes below one base URI. Safe to share between threads; picklable."""

    @property
    def uri(self) -> str:
        """The base, as the caller named it, made absolute and without a trailing slash."""
        ...

    @property
    def scheme(self) -> str:
        """Kind of storage: `file`, `memory`, `s3`, `gs` or `az`."""
        ...

    def absolute(self, path: str) -> str:
        """The full name of `path` as Hudi writes it in its plans: `/base/p` for files, else `scheme://.../p`."""
        ...

    def list_dir(self, path: str) -> Listing:
        """Direct children of a folder. A folder that is not there has none."""
        ...

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        """All files below the folder `prefix` in path order, fetched page by page as the iterator advances.

        Only paths greater than `start_after` (a path from the root) are given.
        """
        ...

    def head(self, path: str) -> FileInfo:
        """Facts about one file.

        Raises:
            Missing: no such file (a folder is not a file).
        """
        ...

    def read(self, path: str) -> bytes:
        """All bytes of a file.

        Raises:
            Missing: no such file.
        """
        ...

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """The bytes `[start, start + length)`, fewer where the file ends earlier.

        Raises:
            Missing: no such file.
        """
        ...

    def create(self, path: str, data: bytes) -> None:
        """Write a new small file, all or nothing, durable. Folders are made. A stale `.<name>.crc` next to it goes.

        Raises:
            Conflict: the file exists; nothing was written.
            CommitUnknown: the answer was lost and the storage could not be asked again (object stores only).
        """
        ...

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a small file, all or nothing, durable. A stale `.<name>.crc` next to it goes."""
        ...

    def delete(self, path: str) -> bool:
        """Remove one file and its `.<name>.crc`; False when it was not there."""
        ...

    def delete_dir(self, path: str) -> int:
        """Remove a folder with all that is below it; the number of files removed, 0 when it was not there."""
        ...

    def open_input(self, path: str) -> Any:
        """Random access to one file, in the shape `pyarrow.parquet.ParquetFile` takes. The caller closes it.

        Raises:
            Missing: no such file.
        """
        ...

    def open_output(self, path: str) -> OutputFile:
        """A new data file; folders are made. See `OutputFile`."""
        ...


def checked_path(path: str, *, root_allowed: bool = False) -> str:
    """`path` itself, once it is sure to stay below the root and to mean the same file on every storage.

    Raises:
        Invalid: it is absolute, empty (unless the root is allowed), or has a NUL, or an empty, `.` or `..` part.
    """
    if path == "":
        if root_allowed:
            return path
        raise Invalid(
            "An empty path names the table's folder, not a file", remedy="Name a file below the table", path=path
        )
    if "\0" in path:
        raise Invalid(f"Path {path!r} contains a NUL character", remedy="Use a name without it", path=path)
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise Invalid(
            f"Path {path!r} is not a plain path below the table",
            remedy="Use a relative path without empty, '.' or '..' parts and without a slash at the end",
            path=path,
        )
    return path


def checked_range(path: str, start: int, length: int) -> None:
    """Checks that the range is one.

    Raises:
        Invalid: `start` or `length` is negative.
    """
    if start < 0 or length < 0:
        raise Invalid(f"Range start={start} length={length} of {path!r} is negative", path=path)


def crc_sibling(path: str) -> str:
    """Where Hadoop's local file system keeps the checksum of `path`. Left stale, it makes Hadoop refuse the file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"
