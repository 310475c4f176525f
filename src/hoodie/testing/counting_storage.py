"""A storage that counts its calls and can fail, misbehave, stop working or kill the process at a chosen one.

1. Calls are numbered from 1 in the order they begin, over all threads. `open_output` counts at open, and each `write`,
   `close` and `abort` of its file counts too; a lock counts when it is taken ("exclusive") and given back ("release").
2. "At n" acts before call n has any effect, "after n" when it has had all of it: a lost answer.
3. From `crash_at` on, every call raises `Crash`, clean-up calls included: the process is as good as dead, but the test
   lives on. `kill_at` and `kill_after` end the process for real, by SIGKILL.
4. With `torn`, a crash leaves what a local disk would have: each data file that is being written stands under its name
   with part of its bytes. `create` and `put` are all or nothing by contract and are never torn.
5. From `full_from` on the disk is full, from `denied_from` on nothing may be changed: such calls raise what a local
   disk makes of ENOSPC and EACCES. Reads go on; on a full disk deletes do, too.
6. From `stale_from` on, listings do not show the files that came since. Reads by name do: it is a listing that lags.
7. A pickled copy goes on counting from where the original stood, by itself.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from hoodie.errors import Missing, Unavailable
from hoodie.locks import Held, LockProvider, lock_provider_of
from hoodie.locks.waiting import AT_ONCE, Patience
from hoodie.storage import FileInfo, Listing, OutputFile, Storage
from hoodie.storage.failures import os_failure
from hoodie.storage.fence import Fence, HasFences

OUTPUT: Final = frozenset({"open_output", "write", "close"})
"""Calls that make a data file."""

WRITING: Final = OUTPUT | {"create", "put"}
"""Calls that need space on the disk."""

CHANGING: Final = WRITING | {"abort", "delete", "delete_dir"}
"""Calls that change what is on storage."""


class Crash(BaseException):
    """The process "died" here. No `except Exception` may catch it."""


@dataclass(frozen=True, slots=True)
class Call:
    """The `n`-th call of a storage."""

    n: int
    op: str
    path: str


class CountingStorage:
    """`inner` with every call counted. `calls` holds them; `on_call` is told each before it takes effect."""

    def __init__(
        self,
        inner: Storage,
        fail_at: int | None = None,
        kill_at: int | None = None,
        on_call: Callable[[Call], None] | None = None,
        *,
        fail_after: int | None = None,
        kill_after: int | None = None,
        crash_at: int | None = None,
        torn: bool = False,
        full_from: int | None = None,
        denied_from: int | None = None,
        stale_from: int | None = None,
        failure: BaseException | None = None,
    ) -> None:
        self.inner = inner
        self.calls: list[Call] = []
        self._on_call = on_call
        self._fail = (fail_at, fail_after)
        self._kill = (kill_at, kill_after)
        self._crash_at = crash_at
        self._torn = torn
        self._refused = ((full_from, errno.ENOSPC, WRITING), (denied_from, errno.EACCES, CHANGING))
        self._stale_from = stale_from
        self._failure = failure or Unavailable("The storage failed because a test told it to")
        self._lock = threading.Lock()
        self._unlisted: set[str] = set()
        self._being_written: list[CountedOutput] = []

    @property
    def uri(self) -> str:
        return self.inner.uri

    @property
    def scheme(self) -> str:
        return self.inner.scheme

    @property
    def count(self) -> int:
        """Calls begun so far."""
        return len(self.calls)

    @contextmanager
    def told(self, on_call: Callable[[Call], None]) -> Iterator[None]:
        """Inside the block `on_call` is told of each call."""
        before, self._on_call = self._on_call, on_call
        try:
            yield
        finally:
            self._on_call = before

    def absolute(self, path: str) -> str:
        return self.inner.absolute(path)

    def list_dir(self, path: str) -> Listing:
        with self.counted("list_dir", path):
            found = self.inner.list_dir(path)
            if not self._unlisted:
                return found
            files = tuple(info for info in found.files if info.path not in self._unlisted)
            return Listing(files, tuple(folder for folder in found.dirs if self._is_listed(folder)))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        with self.counted("list", prefix):
            found = self.inner.list(prefix, start_after=start_after)
            return (info for info in found if info.path not in self._unlisted) if self._unlisted else found

    def head(self, path: str) -> FileInfo:
        with self.counted("head", path):
            return self.inner.head(path)

    def read(self, path: str) -> bytes:
        with self.counted("read", path):
            return self.inner.read(path)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with self.counted("read_range", path):
            return self.inner.read_range(path, start, length)

    def create(self, path: str, data: bytes) -> None:
        with self.counted("create", path) as call:
            self.arriving(call)
            self.inner.create(path, data)

    def put(self, path: str, data: bytes) -> None:
        with self.counted("put", path) as call:
            self.arriving(call)
            self.inner.put(path, data)

    def delete(self, path: str) -> bool:
        with self.counted("delete", path):
            return self.inner.delete(path)

    def delete_dir(self, path: str) -> int:
        with self.counted("delete_dir", path):
            if not self._unlisted:
                return self.inner.delete_dir(path)
            doomed = [info.path for info in self.inner.list(path) if info.path not in self._unlisted]
            return sum(self.inner.delete(one) for one in doomed)

    def open_input(self, path: str) -> Any:
        with self.counted("open_input", path):
            return self.inner.open_input(path)

    def open_output(self, path: str) -> CountedOutput:
        with self.counted("open_output", path, dying=lambda: self.inner.put(path, b"")):
            output = CountedOutput(self, path, self.inner.open_output(path), keeps=self._torn)
            if self._torn:
                self._being_written.append(output)
            return output

    @property
    def fences(self) -> tuple[Fence, ...]:
        return self.inner.fences if isinstance(self.inner, HasFences) else ()

    def with_fence(self, fence: Fence) -> CountingStorage:
        """The same storage around the fenced one inside; the calls of both are counted together."""
        return self.beside(self.inner.with_fence(fence)) if isinstance(self.inner, HasFences) else self

    def beside(self, inner: Storage) -> CountingStorage:
        """Another storage whose calls are counted together with those of this one: what happens at a call happens to
        the process that uses both.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, inner=inner)
        return other

    def lock_provider(self) -> LockProvider:
        """Locks of the storage inside, counted."""
        return _CountedLocks(self)

    @contextmanager
    def locked(self, what: str, scope: str, patience: Patience) -> Iterator[Held]:
        """The lock of the storage inside, held inside the block; taking it and giving it back are calls."""
        call = self._begin("exclusive", "")
        # Whatever strikes below, the lock is let go: a dead process holds nothing.
        with lock_provider_of(self.inner).acquire(what, scope, patience) as held:
            self._strike(call, 1)
            try:
                yield held
            finally:
                with self.counted("release", ""):
                    pass

    @contextmanager
    def counted(self, op: str, path: str, dying: Callable[[], None] | None = None) -> Iterator[Call]:
        """Count a call around the block and do what was asked for at its number. `dying` is what a torn call does."""
        call = self._begin(op, path, dying)
        yield call
        self._strike(call, 1)

    def arriving(self, call: Call) -> None:
        """Keep a new file out of listings from now on; one that was there before is listed as ever."""
        if self._stale_from is not None and call.n >= self._stale_from:
            try:
                self.inner.head(call.path)
            except Missing:
                self._unlisted.add(call.path)

    def _is_listed(self, folder: str) -> bool:
        """Whether a folder shows: not when all that is in it came since the listing went stale."""
        paths = [info.path for info in self.inner.list(folder)]
        return not paths or any(path not in self._unlisted for path in paths)

    def _begin(self, op: str, path: str, dying: Callable[[], None] | None = None) -> Call:
        with self._lock:
            call = Call(len(self.calls) + 1, op, path)
            self.calls.append(call)
        if self._on_call is not None:
            self._on_call(call)
        if self._torn and call.n == self._crash_at:
            for output in self._being_written:
                output.leave()
            if dying is not None:
                dying()
        self._strike(call, 0)
        return call

    def _strike(self, call: Call, when: int) -> None:
        if self._crash_at is not None and call.n >= self._crash_at:
            raise Crash(f"crashed at call {call.n}: {call.op} {call.path}")
        if call.n == self._kill[when]:
            os.kill(os.getpid(), signal.SIGKILL)
        if call.n == self._fail[when]:
            raise self._failure
        for first, code, ops in self._refused:
            if first is not None and call.n >= first and call.op in ops:
                error = OSError(code, os.strerror(code))
                raise os_failure(error, call.op, self.absolute(call.path), writes=True) from error

    def __repr__(self) -> str:
        return f"CountingStorage({self.inner!r})"

    def __getstate__(self) -> dict[str, Any]:
        own = {"calls": list(self.calls), "_unlisted": set(self._unlisted), "_being_written": []}
        return {name: value for name, value in self.__dict__.items() if name != "_lock"} | own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _CountedLocks:
    storage: CountingStorage

    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> AbstractContextManager[Held]:
        return self.storage.locked(what, scope, patience)


class CountedOutput(OutputFile):
    """A data file whose writes are calls of its storage. With `keeps` it remembers its bytes, to leave them behind."""

    def __init__(self, storage: CountingStorage, path: str, inner: OutputFile, *, keeps: bool) -> None:
        self._storage = storage
        self._path = path
        self._inner = inner
        self._keeps = keeps
        self._arrived = bytearray()

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def write(self, data: Any, /) -> int:
        taken = memoryview(data).cast("B")
        with self._storage.counted("write", self._path, dying=lambda: self._leave(taken[: len(taken) // 2])):
            if self._keeps:
                self._arrived += taken
            return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        if not self._inner.closed:
            with self._storage.counted("close", self._path, dying=self._leave_half) as call:
                self._storage.arriving(call)
                self._inner.close()

    def abort(self) -> None:
        if not self._inner.closed:
            with self._storage.counted("abort", self._path):
                self._inner.abort()

    def leave(self) -> None:
        """What a crash leaves of the file while it is being written: all that has arrived."""
        if not self._inner.closed:
            self._leave(b"")

    def _leave(self, more: bytes | memoryview) -> None:
        self._storage.inner.put(self._path, bytes(self._arrived) + more)

    def _leave_half(self) -> None:
        """Keeps half of the file: before it is closed any part of it may be missing."""
        self._storage.inner.put(self._path, bytes(self._arrived[: len(self._arrived) // 2]))
