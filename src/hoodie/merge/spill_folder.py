"""A folder of Arrow streams for rows that do not fit in memory, compressed, for as long as they are needed.

The folder goes when it is closed, also after an error, and at the latest when the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie.errors import Unavailable


class SpillFolder:
    """A folder in `parent` (None: the system's temporary folder). `what` is kept there, and `limit` the option that
    lets more of it stay in memory, for messages.
    """

    def __init__(self, parent: str | None, what: str, limit: str) -> None:
        self._parent = parent
        self._what = what
        self._limit = limit
        codec = "lz4" if pa.Codec.is_available("lz4") else None
        self._options = pa.ipc.IpcWriteOptions(compression=codec)
        with self.disk():
            self._folder = tempfile.TemporaryDirectory(prefix="hoodie-spill-", dir=parent)

    def path(self, name: object) -> str:
        """Where the stream of that name lies."""
        return str(Path(self._folder.name) / f"{name}.arrow")

    def writer(self, name: object, schema: pa.Schema) -> Any:
        """The writer of a new stream, a context manager."""
        return pa.ipc.new_stream(self.path(name), schema, options=self._options)

    def close(self) -> None:
        """Removes the folder. Twice is once."""
        self._folder.cleanup()

    @contextmanager
    def disk(self) -> Iterator[None]:
        """Inside the block what the disk refuses is `Unavailable`."""
        try:
            yield
        except OSError as error:
            where = self._parent or tempfile.gettempdir()
            raise Unavailable(
                f"{self._what} that do not fit in memory cannot be kept below {where}: {error}",
                remedy="Free disk space there, name another folder (hoodie.memory.spillable.map.path), or raise "
                f"{self._limit}",
                path=where,
            ) from error
