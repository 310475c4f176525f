"""What an index in HBase asks of it, and HBase behind its Thrift gateway, by the library happybase.

1. A row of the index is Hudi's: the row key is the record key, and family `_s` says in which write (`commit_ts`), file
   group (`file_name`) and partition (`partition_path`) the key was stored, all as text.
2. One call is one request; how many rows a request has, and how fast they follow, is the caller's affair
   (`hbase_locations`). A client is used by one thread at a time.
3. happybase gives a row as a dict of cells, so a row is touched in Python here, once; nowhere else.

It knows nothing of tables of Hudi.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from hoodie.errors import Invalid, Unavailable, Unsupported

T = TypeVar("T")

COLUMNS: Final = (b"_s:commit_ts", b"_s:file_name", b"_s:partition_path")
_SCANNED: Final = 1000
"""Rows that one request of a scan brings."""


class IndexRow(NamedTuple):
    """Where a key was stored: the write, file group and partition. `put_ms` is the time of the region server when the
    row was put, in milliseconds; that of a row to be put does not matter.
    """

    key: bytes
    commit: bytes
    file_id: bytes
    partition: bytes
    put_ms: int = 0


class HBaseClient(Protocol):
    """A table of HBase. Every call may raise Unavailable: HBase does not answer as it should."""

    def starts(self) -> Sequence[bytes]:
        """The first row key of each region, ascending; the first one is empty."""
        ...

    def servers(self) -> int:
        """How many region servers have regions of the table."""
        ...

    def get(self, keys: Sequence[bytes]) -> list[IndexRow]:
        """The rows of those keys that have one, in any order."""
        ...

    def put(self, rows: Sequence[IndexRow]) -> None:
        """Stores rows, in the place of those of the same keys."""
        ...

    def delete(self, rows: Sequence[IndexRow]) -> None:
        """Removes rows of one region, with their older versions, but none that was put after the newest of them."""
        ...

    def of_commit(self, commit: bytes) -> Iterator[tuple[list[IndexRow], list[IndexRow]]]:
        """Rows that the write `commit` has stored, and what those keys said before, as far as HBase has kept it. Looks
        at every row of the table (HBase does, and sends those rows only).
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Gateway:
    """A Thrift gateway (version 1 of its interface) and the table that is asked through it."""

    host: str
    port: int
    table: str
    timeout_ms: int = 60_000

    def connect(self) -> HBaseClient:
        """A client with a connection of its own.

        Raises:
            Unavailable: nobody listens there. Unsupported: happybase is not installed.
        """
        try:
            import happybase  # noqa: PLC0415 - optional
        except ModuleNotFoundError as error:
            raise Unsupported(
                "An index in HBase needs the package happybase", remedy="pip install 'hoodie[hbase]'"
            ) from (error)
        with _translated(self):
            return GatewayClient(self, happybase.Connection(self.host, self.port, timeout=self.timeout_ms))


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """An `HBaseClient` by a connection of happybase."""

    gateway: Gateway
    connection: Any

    def starts(self) -> Sequence[bytes]:
        """See `HBaseClient`."""
        return sorted(region["start_key"] for region in self._regions())

    def servers(self) -> int:
        """See `HBaseClient`."""
        return len({(region["server_name"], region["port"]) for region in self._regions()})

    def get(self, keys: Sequence[bytes]) -> list[IndexRow]:
        """See `HBaseClient`."""
        found = self._asked(lambda table: table.rows(list(keys), columns=COLUMNS, include_timestamp=True))
        return [row for key, cells in found if (row := _row(key, cells)) is not None]

    def put(self, rows: Sequence[IndexRow]) -> None:
        """See `HBaseClient`."""

        def put(table: Any) -> None:
            with table.batch() as batch:
                for key, *texts, _ in rows:
                    batch.put(key, dict(zip(COLUMNS, texts, strict=True)))

        self._asked(put)

    def delete(self, rows: Sequence[IndexRow]) -> None:
        """See `HBaseClient`."""
        newest = max(row.put_ms for row in rows)

        def delete(table: Any) -> None:
            with table.batch(timestamp=newest) as batch:
                for row in rows:
                    batch.delete(row.key)

        self._asked(delete)

    def of_commit(self, commit: bytes) -> Iterator[tuple[list[IndexRow], list[IndexRow]]]:
        """See `HBaseClient`."""
        newest = f"SingleColumnValueFilter('_s', 'commit_ts', =, 'binary:{commit.decode()}', true, true)"
        scan = {"columns": COLUMNS, "filter": newest, "include_timestamp": True, "batch_size": _SCANNED}
        with _translated(self.gateway):
            found: list[tuple[bytes, Any]] = []
            for key, cells in self.connection.table(self.gateway.table).scan(**scan):
                found.append((key, cells))
                if len(found) == _SCANNED:
                    yield self._with_before(found)
                    found = []
            if found:
                yield self._with_before(found)

    def close(self) -> None:
        """See `HBaseClient`."""
        self.connection.close()

    def _with_before(self, found: Sequence[tuple[bytes, Any]]) -> tuple[list[IndexRow], list[IndexRow]]:
        rows = [row for key, cells in found if (row := _row(key, cells)) is not None]
        # What is older than the first of these puts is older than the write.
        first = min(cell[1] for _, cells in found for cell in cells.values())
        table = self.connection.table(self.gateway.table)
        older = table.rows([key for key, _ in found], columns=COLUMNS, timestamp=first, include_timestamp=True)
        return rows, [row for key, cells in older if (row := _row(key, cells)) is not None]

    def _regions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._asked(lambda table: table.regions())
        if not found:
            raise _missing(self.gateway)
        return found

    def _asked(self, call: Callable[[Any], T]) -> T:
        with _translated(self.gateway):
            return call(self.connection.table(self.gateway.table))


def _row(key: bytes, cells: Any) -> IndexRow | None:
    """The row with these cells; None when it is no whole row of an index."""
    found = [cells.get(name) for name in COLUMNS]
    if None in found:
        return None
    commit, file_id, partition = found
    return IndexRow(key, commit[0], file_id[0], partition[0], max(cell[1] for cell in found))


def _missing(gateway: Gateway) -> Invalid:
    return Invalid(
        f"HBase at {gateway.host}:{gateway.port} has no table {gateway.table} with a column family _s",
        remedy=f"Make it: create '{gateway.table}', {{NAME => '_s', VERSIONS => 3}}, with SPLITS for your keys",
        key="hoodie.index.hbase.table",
    )


@contextmanager
def _translated(gateway: Gateway) -> Iterator[None]:
    """Errors of the library inside the block are ours."""
    import Hbase_thrift  # noqa: PLC0415 - optional
    from thriftpy2.thrift import TException  # noqa: PLC0415 - optional

    try:
        yield
    except (Hbase_thrift.IOError, Hbase_thrift.IllegalArgument) as error:
        said = error.message or b""
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        if "TableNotFoundException" in text or "NoSuchColumnFamily" in text:
            raise _missing(gateway) from error
        raise _unavailable(gateway, text.partition("\n")[0]) from error
    except (TException, OSError) as error:
        raise _unavailable(gateway, f"{type(error).__name__}: {error}") from error


def _unavailable(gateway: Gateway, why: str) -> Unavailable:
    return Unavailable(
        f"HBase does not answer at {gateway.host}:{gateway.port} for table {gateway.table}: {why}",
        remedy="Check that the Thrift gateway runs there (hoodie.index.hbase.thrift.address), then try again",
    )
