"""Locations of keys in a table of HBase, as columns: in requests of a size, by region, no faster than is asked.

1. Keys are sorted and cut where regions begin, so a request goes to one region; regions are asked at the same time, by
   a few connections.
2. A limit of rows per second holds for all connections together. What was not used in a second is not saved up.
3. Nothing is atomic but a row. Whoever writes rows must be right when only some of them are stored.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Protocol, TypeVar

import pyarrow as pa

from hoodie.env import Env, SystemEnv
from hoodie.index.hbase_client import HBaseClient, IndexRow
from hoodie.index.located_keys import LOCATIONS

T = TypeVar("T")
S = TypeVar("S")

INDEX_ROWS: Final = LOCATIONS.append(pa.field("commit", pa.string())).append(pa.field("put_ms", pa.int64()))
"""Columns of rows of the index: a location, the write that stored the key there, and when the row was put."""

_ENV: Final = SystemEnv()
_CONNECTIONS: Final = 4


class Connects(Protocol):
    """Whoever makes clients of one table of HBase."""

    def connect(self) -> HBaseClient:
        """A new client."""
        ...


@dataclass(frozen=True, slots=True)
class Pacing:
    """Performance: rows in a request that asks, and in one that stores; `rows_per_second` of each region server, of
    which `share` is this writer's (None: no limit); pauses after each request.
    """

    get_rows: int = 100
    put_rows: int = 100
    rows_per_second: int | None = None
    share: float = 0.5
    get_pause_ms: int = 0
    put_pause_ms: int = 0


class Limit:
    """Lets so many rows pass in a second, of all threads that ask; None: any number."""

    def __init__(self, rows_per_second: float | None, env: Env = _ENV) -> None:
        self._rate = rows_per_second
        self._env = env
        self._guard = threading.Lock()
        self._free_at_s = env.monotonic()

    def wait_for(self, rows: int) -> None:
        """Returns when `rows` more may be sent."""
        if self._rate is None:
            return
        with self._guard:
            now_s = self._env.monotonic()
            begins_s = max(self._free_at_s, now_s)
            self._free_at_s = begins_s + rows / self._rate
        if begins_s > now_s:
            self._env.sleep(begins_s - now_s)


@dataclass(frozen=True, slots=True)
class HBaseLocations:
    """The index rows of a table, as whole columns. Every call raises as `HBaseClient`."""

    table: Connects
    pacing: Pacing = Pacing()
    env: Env = _ENV

    def find(self, keys: pa.Array) -> pa.Table:
        """The rows of the keys that have one, as `INDEX_ROWS`."""
        sought = keys.cast(pa.binary()).unique().to_pylist()
        ask = _Request(self.pacing.get_rows, self.pacing.get_pause_ms)
        return _as_table(self._sent(sought, itself, ask, lambda client, some: client.get(some)))

    def put(self, rows: pa.Table) -> None:
        """Stores rows, in the place of those of the same keys; no key is there twice."""
        self._sent(_as_rows(rows), key_of, self._storing, lambda client, some: client.put(some))

    def delete(self, rows: pa.Table) -> None:
        """Removes rows that were found, unless they have been put anew since."""
        self._sent(_as_rows(rows), key_of, self._storing, lambda client, some: client.delete(some))

    def roll_back(self, commit: str) -> int:
        """How many rows the write `commit` had stored; they say again what they said before, or are gone."""
        count = 0
        with closing(self.table.connect()) as reader:
            for rows, before in reader.of_commit(commit.encode()):
                count += len(rows)
                known = {row.key for row in before}
                self.put(_as_table([before]))
                self.delete(_as_table([[row for row in rows if row.key not in known]]))
        return count

    @property
    def _storing(self) -> _Request:
        return _Request(self.pacing.put_rows, self.pacing.put_pause_ms)

    def _sent(
        self, items: list[S], key: Callable[[S], bytes], form: _Request, send: Callable[[HBaseClient, list[S]], T]
    ) -> list[T]:
        """What each request was answered."""
        if not items:
            return []
        with ExitStack() as block:
            clients = deque([block.enter_context(closing(self.table.connect()))])
            requests = list(split_by_region(items, key, clients[0].starts(), form.rows))
            limit = Limit(self._rows_per_second(clients[0]), self.env)
            for _ in range(min(_CONNECTIONS, len(requests)) - 1):
                clients.append(block.enter_context(closing(self.table.connect())))

            def sent(request: list[S]) -> T:
                client = clients.popleft()  # there are no more threads than clients
                try:
                    limit.wait_for(len(request))
                    answer = send(client, request)
                    if form.pause_ms:
                        self.env.sleep(form.pause_ms / 1000)
                    return answer
                finally:
                    clients.append(client)

            if len(clients) == 1:
                return [sent(request) for request in requests]
            with ThreadPoolExecutor(len(clients)) as pool:
                return list(pool.map(sent, requests))

    def _rows_per_second(self, client: HBaseClient) -> float | None:
        each = self.pacing.rows_per_second
        return None if each is None else each * self.pacing.share * max(1, client.servers())


@dataclass(frozen=True, slots=True)
class _Request:
    """How many rows a request has, and how long to rest after it."""

    rows: int
    pause_ms: int


def split_by_region(
    items: Sequence[S], key: Callable[[S], bytes], starts: Sequence[bytes], size: int
) -> Iterator[list[S]]:
    """The items in the order of their keys, in pieces of at most `size` that each lie in one region."""
    ordered = sorted(items, key=key)
    cuts = [0, *(bisect_left(ordered, start, key=key) for start in starts), len(ordered)]
    for begin, end in itertools.pairwise(cuts):
        for at in range(begin, end, size):
            yield ordered[at : min(at + size, end)]


def itself(key: bytes) -> bytes:
    """The key of a key."""
    return key


key_of: Final = attrgetter("key")
"""The key of a row."""


def _as_rows(rows: pa.Table) -> list[IndexRow]:
    names = ("record_key", "commit", "file_id", "partition")
    columns = [rows.column(name).cast(pa.binary()).to_pylist() for name in names]
    return [IndexRow(*row) for row in zip(*columns, rows.column("put_ms").to_pylist(), strict=True)]


def _as_table(found: Sequence[Sequence[IndexRow]]) -> pa.Table:
    rows = [row for some in found for row in some]
    *texts, last_put_ms = list(zip(*rows, strict=True)) or [()] * 5
    key, commit, file_id, partition = (pa.array(column, pa.binary()).cast(pa.string()) for column in texts)
    return pa.Table.from_arrays([key, partition, file_id, commit, pa.array(last_put_ms, pa.int64())], schema=INDEX_ROWS)
