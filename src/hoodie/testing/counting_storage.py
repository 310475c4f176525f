"""A storage that counts its calls and can fail, stop working or kill the process at a chosen one.

1. Calls are numbered from 1 in the order they begin, over all threads. `open_output` counts at open, and each `write`,
   `close` and `abort` of its file counts too; `exclusive` counts at entry ("exclusive") and exit ("release").
2. "At n" acts before call n has any effect, "after n" when it has had all of it: a lost answer.
3. From `crash_at` on, every call raises `Crash`, clean-up calls included: the process is as good as dead, but the test
   lives on. `kill_at` and `kill_after` end the process for real, by SIGKILL.
4. A pickled copy goes on counting from where the original stood, by itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hoodie.errors import Unavailable
from hoodie.storage import FileInfo, Listing, OutputFile, Storage


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
        failure: BaseException | None = None,
    ) -> None:
        self.inner = inner
        self.calls: list[Call] = []
        self._on_call = on_call
        self._fail = (fail_at, fail_after)
        self._kill = (kill_at, kill_after)
        self._crash_at = crash_at
        self._failure = failure or Unavailable("The storage failed because a test told it to")
        self._lock = threading.Lock()

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

    def absolute(self, path: str) -> str:
        return self.inner.absolute(path)

    def list_dir(self, path: str) -> Listing:
        with self.counted("list_dir", path):
            return self.inner.list_dir(path)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        with self.counted("list", prefix):
            return self.inner.list(prefix, start_after=start_after)

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
        with self.counted("create", path):
            self.inner.create(path, data)

    def put(self, path: str, data: bytes) -> None:
        with self.counted("put", path):
            self.inner.put(path, data)

    def delete(self, path: str) -> bool:
        with self.counted("delete", path):
            return self.inner.delete(path)

    def delete_dir(self, path: str) -> int:
        with self.counted("delete_dir", path):
            return self.inner.delete_dir(path)

    def open_input(self, path: str) -> Any:
        with self.counted("open_input", path):
            return self.inner.open_input(path)

    def open_output(self, path: str) -> CountedOutput:
        with self.counted("open_output", path):
            return CountedOutput(self, path, self.inner.open_output(path))

    @contextmanager
    def exclusive(self, what: str, scope: str = "") -> Iterator[None]:
        call = self._begin("exclusive", "")
        # Whatever strikes below, the lock is let go: a dead process holds nothing.
        with self.inner.exclusive(what, scope):
            self._strike(call, 1)
            try:
                yield
            finally:
                with self.counted("release", ""):
                    pass

    @contextmanager
    def counted(self, op: str, path: str) -> Iterator[None]:
        """Count a call around the block and do what was asked for at its number."""
        call = self._begin(op, path)
        yield
        self._strike(call, 1)

    def _begin(self, op: str, path: str) -> Call:
        with self._lock:
            call = Call(len(self.calls) + 1, op, path)
            self.calls.append(call)
        if self._on_call is not None:
            self._on_call(call)
        self._strike(call, 0)
        return call

    def _strike(self, call: Call, when: int) -> None:
        if self._crash_at is not None and call.n >= self._crash_at:
            raise Crash(f"crashed at call {call.n}: {call.op} {call.path}")
        if call.n == self._kill[when]:
            os.kill(os.getpid(), signal.SIGKILL)
        if call.n == self._fail[when]:
            raise self._failure

    def __repr__(self) -> str:
        return f"CountingStorage({self.inner!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"} | {"calls": list(self.calls)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()


class CountedOutput(OutputFile):
    """A data file whose writes are calls of its storage."""

    def __init__(self, storage: CountingStorage, path: str, inner: OutputFile) -> None:
        self._storage = storage
        self._path = path
        self._inner = inner

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def write(self, data: Any, /) -> int:
        with self._storage.counted("write", self._path):
            return self._inner.write(data)

    def tell(self) -> int:
        return self._inner.tell()

    def close(self) -> None:
        if not self._inner.closed:
            with self._storage.counted("close", self._path):
                self._inner.close()

    def abort(self) -> None:
        if not self._inner.closed:
            with self._storage.counted("abort", self._path):
                self._inner.abort()
