"""Large objects as files: ranged reading with read-ahead, and writing in parts.

1. An answer that is cut short is asked for again, a few times; obstore repeats only requests without an answer.
2. Reading: opening fetches the end of the object together with its size, in one request: a small object as a whole,
   of a large one the footer, which is half a megabyte in a base file with a Bloom filter of Hudi's default size. A
   small read fetches a whole block; a large one is split into parts fetched side by side.
3. Writing: a file below `PART_BYTES` is one PUT at `close`. A larger one is uploaded in parts by a thread of its own
   while it is being written; at most about `PARTS_AHEAD` + `PARTS_AT_ONCE` parts are in memory. Nothing is visible
   before `close` has returned; `abort` tells the store to drop the parts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import obstore
from obstore import exceptions as foreign

from hoodie.storage.contract import OutputFile
from hoodie.storage.range_input import RangeInput

TAIL_BYTES = 1 << 20
BLOCK_BYTES = 1 << 20
PART_BYTES = 8 << 20
PARTS_AT_ONCE = 4
PARTS_AHEAD = 2

_ANSWER_ATTEMPTS = 4

Calling = Callable[[str], AbstractContextManager[None]]
T = TypeVar("T")


def until_whole(call: Callable[[], T], sleep: Callable[[float], None]) -> T:
    """What `call` gives, a request that may be repeated: so it is when its answer was cut short.

    Raises:
        foreign.GenericError: it was, each time.
    """
    for attempt in range(1, _ANSWER_ATTEMPTS):
        try:
            return call()
        except foreign.BaseError as error:
            if not is_cut(error):
                raise
        sleep(0.1 * 2**attempt)
    return call()


def is_cut(error: Exception) -> bool:
    """Whether an answer arrived in part; a request whose answer did not come at all was repeated by obstore."""
    return "response body" in str(error)


def get_whole(store: Any, path: str, sleep: Callable[[float], None], options: Any = None) -> tuple[bytes, Any]:
    """The bytes of an object, or of the range that `options` name, and what obstore says of them; all of them.

    Raises:
        foreign.GenericError: the body was cut short each time.
    """

    def get() -> tuple[bytes, Any]:
        found = obstore.get(store, path, options=options)
        start, end = found.range
        try:
            data = bytes(found.bytes())
        except (foreign.BaseError, OSError) as cut:
            raise foreign.GenericError(f"the response body was cut short: {cut}") from cut
        if len(data) != end - start:
            raise foreign.GenericError(f"the response body was cut short: {len(data)} bytes of {end - start} arrived")
        return data, found

    return until_whole(get, sleep)


class ObjectInput(RangeInput):
    """Random access to one object; wrapped in `pa.PythonFile`, which serialises calls."""

    def __init__(self, store: Any, path: str, calling: Calling, sleep: Callable[[float], None]) -> None:
        super().__init__()
        self._sleep = sleep
        self._store = store
        self._path = path
        self._calling = calling
        self._block = (0, b"")
        with calling("open"):
            self._size, self._tail = self._open()

    def _open(self) -> tuple[int, tuple[int, bytes]]:
        try:
            data, found = get_whole(self._store, self._path, self._sleep, {"range": {"suffix": TAIL_BYTES}})
            return found.meta["size"], (found.range[0], data)
        except (foreign.GenericError, foreign.NotSupportedError):
            # Azure has no suffix ranges, and no store has the end of an empty object.
            size = until_whole(lambda: obstore.head(self._store, self._path)["size"], self._sleep)
            start = max(0, size - TAIL_BYTES)
            return size, (start, self._get(start, size) if size else b"")

    def _range(self, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        for first, data in (self._tail, self._block):
            if first <= start and end <= first + len(data):
                return data[start - first : end - first]
        with self._calling("read"):
            if end - start >= BLOCK_BYTES:
                return self._large(start, end)
            block = self._get(start, min(start + BLOCK_BYTES, self._size))
        self._block = (start, block)
        return block[: end - start]

    def _large(self, start: int, end: int) -> bytes:
        edges = [*range(start, end, PART_BYTES), end]
        if len(edges) == 2:
            return self._get(start, end)
        with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
            return b"".join(pool.map(self._get, edges[:-1], edges[1:]))

    def _get(self, start: int, end: int) -> bytes:
        return get_whole(self._store, self._path, self._sleep, {"range": (start, end)})[0]


class _Aborted(Exception):
    """Ends an upload from inside its source of parts."""


class _Ended(Exception):
    """An upload failed, for the cause of this, and cannot begin again."""


class ObjectOutput(OutputFile):
    """One object being written."""

    closed = True  # until there is something to close

    def __init__(self, store: Any, path: str, calling: Calling, sleep: Callable[[float], None]) -> None:
        self._store = store
        self._path = path
        self._calling = calling
        self._sleep = sleep
        self._buffer = bytearray()
        self._size_bytes = 0
        self._upload: _Upload | None = None
        self.closed = False

    def write(self, data: Any, /) -> int:
        if self.closed:
            raise ValueError("write to a closed file")
        part = memoryview(data).cast("B")
        self._buffer += part
        self._size_bytes += len(part)
        if len(self._buffer) >= PART_BYTES:
            self._send()
        return len(part)

    def tell(self) -> int:
        return self._size_bytes

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        with self._calling("write"):
            if self._upload is None:
                data = bytes(self._buffer)
                until_whole(lambda: obstore.put(self._store, self._path, data, use_multipart=False), self._sleep)
            else:
                self._upload.add(bytes(self._buffer))
                self._finish(self._upload)

    def _finish(self, upload: _Upload) -> None:
        """Complete an upload. When the answer was cut short the object tells: its name is nobody else's."""
        try:
            upload.finish()
        except (foreign.BaseError, OSError):
            with suppress(foreign.BaseError, OSError):
                if obstore.head(self._store, self._path)["size"] == self._size_bytes:
                    return
            raise

    def abort(self) -> None:
        self.closed = True
        if self._upload is not None:
            self._upload.drop()

    def __del__(self) -> None:
        if not self.closed:
            self.abort()

    def _send(self) -> None:
        with self._calling("write"):
            if self._upload is None:
                self._upload = _Upload(self._store, self._path, self._sleep)
            self._upload.add(bytes(self._buffer))
        self._buffer.clear()


class _Upload:
    """A thread that feeds parts to the store as they come."""

    def __init__(self, store: Any, path: str, sleep: Callable[[float], None]) -> None:
        self._store = store
        self._path = path
        self._sleep = sleep
        self._has_begun = False
        self._parts: queue.Queue[bytes | None] = queue.Queue(PARTS_AHEAD)
        self._failure: BaseException | None = None
        self._is_dropped = False
        self._thread = threading.Thread(target=self._run, name=f"upload {path}", daemon=True)
        self._thread.start()

    def add(self, part: bytes) -> None:
        """Hand over a part; waits while too many are ahead. Raises what ended the upload, if it has ended."""
        while self._thread.is_alive():
            try:
                if part:
                    self._parts.put(part, timeout=0.2)
                return
            except queue.Full:
                continue
        self._ensure_sound()

    def finish(self) -> None:
        """Complete the upload and wait for the store's answer."""
        self._end()
        self._ensure_sound()

    def drop(self) -> None:
        """Have the store forget the parts; errors do not matter any more."""
        self._is_dropped = True
        self._end()

    def _end(self) -> None:
        while self._thread.is_alive():
            try:
                self._parts.put(None, timeout=0.2)
                break
            except queue.Full:
                continue
        self._thread.join()

    def _ensure_sound(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            until_whole(self._put, self._sleep)
        except _Ended as ended:
            self._failure = ended.__cause__
        except BaseException as failure:
            self._failure = failure

    def _put(self) -> None:
        try:
            obstore.put(
                self._store,
                self._path,
                self._source(),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE,
            )
        except foreign.BaseError as failure:
            if self._has_begun:  # the parts are gone, so this cannot be repeated
                raise _Ended from failure
            raise

    def _source(self) -> Iterator[bytes]:
        self._has_begun = True
        while (part := self._parts.get()) is not None:
            yield part
        if self._is_dropped:
            raise _Aborted
