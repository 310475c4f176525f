"""HTTP/1.1 whose exchanges end: `http.client` with one deadline for all steps of a question and its answer.

1. Each time bytes are waited for, it is for what is left of the time. A server that sends a byte now and then gains
   nothing by it. (Only the look-up of a name is not bounded: the system has its own limit.)
2. A body is bounded in size, packed and unpacked.
3. What follows the end of a packed body is not waited for.
"""

from __future__ import annotations

import http.client
import io
import socket
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MAX_ANSWER_BYTES = 384 << 20
"""Of an answer, as it travels and unpacked: a partition of a million files has some 300 MB."""

_CHUNK = 1 << 18


class TimedConnection(http.client.HTTPConnection):
    """A connection that is used until `until`, which is set for each exchange: a time of `clock`, in seconds."""

    def __init__(self, host: str, port: int, clock: Callable[[], float]) -> None:
        super().__init__(host, port)
        self.until = 0.0
        self._clock = clock

    def left_s(self) -> float:
        """Seconds that are left.

        Raises:
            TimeoutError: none are.
        """
        left = self.until - self._clock()
        if left <= 0:
            raise TimeoutError("its answer takes too long")
        return left

    def connect(self) -> None:
        self.timeout = self.left_s()
        super().connect()
        self.sock = _TimedSocket(self.sock, self.left_s)


def read_body(connection: TimedConnection, answer: http.client.HTTPResponse) -> bytes:
    """The body of an answer, unpacked. The connection is closed unless the next answer can follow on it.

    Raises:
        HTTPException: it is cut off, or larger than any. OSError: it takes too long. zlib.error: it is damaged.
    """
    unpack = zlib.decompressobj(31) if answer.headers.get("Content-Encoding") == "gzip" else None
    parts: list[bytes] = []
    size = packed_size = 0
    length = answer.length  # counted here: whether `read1` counts depends on the release of Python
    while packed_size != length and not (unpack and unpack.eof):
        piece = answer.read1(_CHUNK if length is None else min(_CHUNK, length - packed_size))
        if not piece:
            break
        packed_size += len(piece)
        part = unpack.decompress(piece, MAX_ANSWER_BYTES - size + 1) if unpack else piece
        size += len(part)
        parts.append(part)
        if max(size, packed_size) > MAX_ANSWER_BYTES:
            raise http.client.HTTPException("its answer is larger than any")
        connection.left_s()
    is_packed_whole = unpack is not None and unpack.eof
    if not is_packed_whole and (unpack is not None or length not in (None, packed_size)):
        raise http.client.HTTPException("its answer is cut off")
    if answer.will_close or (packed_size != length and not _has_ended(connection, answer)):
        connection.close()
    answer.close()
    return b"".join(parts)


def _has_ended(connection: TimedConnection, answer: http.client.HTTPResponse) -> bool:
    """Whether the end of the answer has come already; nothing is waited for."""
    if answer.isclosed():
        return True
    connection.until = 0.0
    try:
        return answer.length is None and not answer.read1(1)
    except (OSError, http.client.HTTPException):
        return False


class _TimedSocket:
    """What `http.client` uses of a socket. `left_s` tells how long it may wait."""

    def __init__(self, sock: socket.socket, left_s: Callable[[], float]) -> None:
        self._sock = sock
        self._left_s = left_s

    def sendall(self, data: ReadableBuffer) -> None:
        self._sock.settimeout(self._left_s())
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        del mode  # answers are read, and nothing else
        return io.BufferedReader(_TimedReader(self._sock, self._left_s), _CHUNK)

    def close(self) -> None:
        self._sock.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, sock: socket.socket, left_s: Callable[[], float]) -> None:
        self._sock = sock
        self._left_s = left_s
        self._raw = sock.makefile("rb", buffering=0)  # lives on when the socket is closed, as `http.client` needs

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        self._sock.settimeout(self._left_s())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
