"""An ORC file, read by a process of its own.

Arrow's ORC reader does not survive damaged files: it ends its process for a decimal of 74 digits, and where lengths in
the data lie it reads memory that is not its own. So it works in a process that may die of it, and who reads is told.

1. One process serves one open file at a time and then the next one; some that are idle are kept.
2. The process dies with this one: it reads from a socket that is closed then.
3. It loads code from where this process does and from nowhere else: `-P` keeps the folder it is started in out of its
   path, which may be one where strangers put files.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import Unavailable

_OF_DAMAGE: Final = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
_MAX_IDLE: Final = 4


class OrcFile:
    """What Arrow's `ORCFile` tells of an open file.

    Raises (each method): ArrowInvalid: the file is damaged. Unavailable: the process that reads it was ended.
    """

    def __init__(self, worker: _Worker, source: Any) -> None:
        self._worker = worker
        self._source = source
        facts, data = worker.ask({"do": "open", "size_bytes": int(source.size())}, source)
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(facts["schema"])))
        self.metadata: dict[bytes, bytes] = pa.ipc.read_schema(pa.py_buffer(data)).metadata or {}
        self.nstripes: int = facts["stripes"]
        self.nrows: int = facts["rows"]
        self.content_length: int = facts["content_bytes"]

    def read(self, columns: list[str]) -> pa.Table:
        """All rows, of these columns."""
        return self._stream(None, columns).read_all()

    def read_stripe(self, number: int, columns: list[str]) -> pa.RecordBatch:
        """The rows of one stripe."""
        return self._stream(number, columns).read_next_batch()

    def _stream(self, stripe: int | None, columns: list[str]) -> pa.RecordBatchReader:
        _, data = self._worker.ask({"do": "read", "stripe": stripe, "columns": columns}, self._source)
        return pa.ipc.open_stream(data)


@contextmanager
def open_orc(source: Any) -> Iterator[OrcFile]:
    """The ORC file whose bytes `source` has. Raises as `OrcFile`."""
    worker = _taken()
    try:
        yield OrcFile(worker, source)
    finally:
        worker.give_back()


class _Worker:
    def __init__(self) -> None:
        self.owner = os.getpid()
        self._is_awaited = False
        self._connection, theirs = Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "hoodie.records.orc_worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": paths},
            )

    def ask(self, request: dict[str, Any], source: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to a request and its bytes. Serves what the process asks of `source` meanwhile."""
        self._is_awaited = True
        try:
            answer, data = _answer(self._connection, request, source)
        except (EOFError, ConnectionError) as error:
            raise self._death() from error
        self._is_awaited = False
        if "error" in answer:
            raise pa.ArrowInvalid(answer["error"])
        return answer, data

    def give_back(self) -> None:
        """It may serve another file now, if it lives and is not in the middle of an answer that nobody waits for."""
        if self._is_awaited:
            self._process.kill()
            self.stop()
        elif len(_idle) < _MAX_IDLE:
            _idle.append(self)
        else:
            self.stop()

    def stop(self) -> None:
        """End the process."""
        self._connection.close()
        if self.owner == os.getpid():
            self._process.wait()

    def _death(self) -> pa.ArrowException | Unavailable:
        code = self._process.wait()
        if -code in _OF_DAMAGE:
            return pa.ArrowInvalid(f"Arrow's reader died of it ({signal.Signals(-code).name})")
        return Unavailable(
            f"The process that reads ORC files ended with {code}",
            remedy="Look whether memory is short on this machine, then read again",
        )


def _answer(connection: Connection, request: dict[str, Any], source: Any) -> tuple[dict[str, Any], bytes]:
    connection.send_bytes(json.dumps(request).encode())
    while True:
        answer = json.loads(connection.recv_bytes())
        if "range" not in answer:
            return answer, b"" if "error" in answer else connection.recv_bytes()
        start, count = answer["range"]
        source.seek(start)
        connection.send_bytes(source.read(count))


_idle: list[_Worker] = []


def _taken() -> _Worker:
    with suppress(IndexError):  # none is left
        while True:
            worker = _idle.pop()
            if worker.owner == os.getpid():
                return worker
    return _Worker()


def _stop_idle() -> None:
    while _idle:
        _idle.pop().stop()


atexit.register(_stop_idle)
