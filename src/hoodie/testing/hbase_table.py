"""A table of HBase in this process's memory, for tests: versions of rows, regions, and requests that are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hoodie.errors import Unavailable
from hoodie.index.hbase_client import HBaseClient, IndexRow


@dataclass
class HBaseTable:
    """Makes clients of itself. `requests` has the kind and size of each that was sent; `fails` the kinds that are not
    answered. `begins`: where regions begin.
    """

    begins: tuple[bytes, ...] = (b"",)
    versions: dict[bytes, list[IndexRow]] = field(default_factory=dict)
    requests: list[tuple[str, int]] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)
    open_clients: int = 0
    last_put_ms: int = 0

    def connect(self) -> HBaseClient:
        """See `hoodie.index.hbase_locations.Connects`."""
        self.asked("connect", 0)
        self.open_clients += 1
        return _Client(self)

    def asked(self, kind: str, rows: int) -> None:
        """Counts a request. Raises: Unavailable: it is one that fails."""
        self.requests.append((kind, rows))
        if kind in self.fails:
            raise Unavailable("HBase does not answer", remedy="Try again")

    @property
    def rows(self) -> dict[str, tuple[str, str]]:
        """Instant and partition of each key."""
        newest = (found[-1] for found in self.versions.values())
        return {row.key.decode(): (row.commit.decode(), row.partition.decode()) for row in newest}

    def sizes(self, kind: str) -> list[int]:
        """How many rows each request of a kind had."""
        return [rows for one, rows in self.requests if one == kind]


@dataclass
class _Client:
    table: HBaseTable

    def starts(self) -> Sequence[bytes]:
        return self.table.begins

    def servers(self) -> int:
        return len(self.table.begins)

    def get(self, keys: Sequence[bytes]) -> list[IndexRow]:
        self.table.asked("get", len(keys))
        return [self.table.versions[key][-1] for key in keys if key in self.table.versions]

    def put(self, rows: Sequence[IndexRow]) -> None:
        self.table.asked("put", len(rows))
        for row in rows:
            self.table.last_put_ms += 1
            self.table.versions.setdefault(row.key, []).append(row._replace(put_ms=self.table.last_put_ms))

    def delete(self, rows: Sequence[IndexRow]) -> None:
        self.table.asked("delete", len(rows))
        newest = max(row.put_ms for row in rows)
        for row in rows:
            self.table.versions[row.key] = [one for one in self.table.versions[row.key] if one.put_ms > newest]
            if not self.table.versions[row.key]:
                del self.table.versions[row.key]

    def of_commit(self, commit: bytes) -> Iterator[tuple[list[IndexRow], list[IndexRow]]]:
        self.table.asked("scan", 0)
        found = [kept for kept in self.table.versions.values() if kept[-1].commit == commit]
        before = [[row for row in kept if row.commit != commit] for kept in found]
        yield [kept[-1] for kept in found], [kept[-1] for kept in before if kept]

    def close(self) -> None:
        self.table.open_clients -= 1
