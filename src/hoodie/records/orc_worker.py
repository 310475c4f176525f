"""The process that reads ORC files for `orc_file`: `python -m hoodie.records.orc_worker FD`.

1. It gets requests over the socket FD and answers each; it ends when the other side is gone.
2. Bytes of the file are asked for over the same socket, range by range: the storage stays on the other side.
3. Requests and answers are JSON. After an answer that is no error come bytes: a schema, or rows as an Arrow stream.
"""

from __future__ import annotations

import json
import sys
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa
from pyarrow import orc


def main(connection: Connection) -> None:
    """Answer until the other side is gone."""
    file: orc.ORCFile | None = None
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except (EOFError, ConnectionError):
            return
        try:
            if request["do"] == "open":
                file = orc.ORCFile(pa.PythonFile(_Ranges(connection, request["size_bytes"]), mode="r"))
                answer, data = _facts(file), pa.schema([], metadata=file.metadata).serialize().to_pybytes()
            else:
                assert file is not None
                answer, data = {}, _rows(file, request["stripe"], request["columns"])
        except (pa.ArrowException, OSError, ValueError) as error:
            connection.send_bytes(json.dumps({"error": str(error)}).encode())
            continue
        connection.send_bytes(json.dumps(answer).encode())
        connection.send_bytes(data)


def _facts(file: orc.ORCFile) -> dict[str, Any]:
    return {
        "stripes": file.nstripes,
        "rows": file.nrows,
        "content_bytes": file.content_length,
        "schema": file.schema.serialize().to_pybytes().hex(),
    }


def _rows(file: orc.ORCFile, stripe: int | None, columns: list[str]) -> pa.Buffer:
    found = file.read(columns=columns) if stripe is None else file.read_stripe(stripe, columns=columns)
    found.validate(full=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write(found)
    return sink.getvalue()


class _Ranges:
    """The file on the other side, as Arrow reads files."""

    closed = False

    def __init__(self, connection: Connection, size_bytes: int) -> None:
        self._connection = connection
        self._size_bytes = size_bytes
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self._size_bytes)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size_bytes

    def read(self, count: int = -1) -> bytes:
        left = max(0, self._size_bytes - self._at)
        size = left if count < 0 else min(count, left)
        self._connection.send_bytes(json.dumps({"range": [self._at, size]}).encode())
        data = self._connection.recv_bytes()
        self._at += len(data)
        return data

    def close(self) -> None:
        self.closed = True


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
