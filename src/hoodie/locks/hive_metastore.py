"""Locks in a Hive metastore, as Hudi's Hive lock provider takes them, so that it and we exclude each other: an
exclusive lock on a table of a database, which need not be the table that is written, nor be there.

1. Whoever is not first gives its place up at once and comes again, as Hudi: a place in the metastore's queue would keep
   everybody out until it expires, if its waiter died.
2. The holder tells the metastore every now and then that it lives. The metastore drops a lock of which it has not heard
   for its `hive.txn.timeout` (five minutes, as it comes).
3. Who holds a lock asks the metastore, before each step that cannot be taken back, whether it still does.
4. A lock outlives its connection, and a metastore that is started again knows it. An answer that was lost may have been
   a lock: it is looked for, by what it says of its holder, and given back.

Who holds it stands in the lock's `agentInfo`, which has room for 128 characters; Hudi's says `Unknown`.
"""

from __future__ import annotations

import getpass
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, HudiError, Unavailable, Unsupported
from hoodie.locks.lock_provider import Held
from hoodie.locks.waiting import AT_ONCE, Patience, in_line
from hoodie.storage.fence import is_own_step, with_fence
from hoodie.storage.lock_holder import LockHolder, in_words, this_holder

S = TypeVar("S")
T = TypeVar("T")

log = logging.getLogger(__name__)

_ENV = SystemEnv()
_LONGEST_PAUSE_S = 1.0
_TIMEOUT_MS = 60_000
_AGENT_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class HiveMetastoreLocks:
    """The lock on `database.table` of a metastore at one of `uris` (`thrift://host:port,...`), which hears of its
    holder every `heartbeat_ms`.
    """

    uris: str
    database: str
    table: str
    heartbeat_ms: int = 60_000

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`.

        Raises:
            Unavailable: no metastore answers.
        """
        _ensure_installed()
        table = f"{self.table}.{scope}" if scope else self.table
        lock = _MetastoreLock(_Metastore(self.uris), self.database, table)
        try:
            in_line(("metastore", self.uris, self.database, table), patience, _LONGEST_PAUSE_S, lambda: lock.take(what))
            stop = threading.Event()
            keeper = threading.Thread(
                target=lock.keep, args=(stop, self.heartbeat_ms / 1000), name="lock in the metastore", daemon=True
            )
            keeper.start()
            try:
                yield lock
            finally:
                stop.set()
                keeper.join()
                lock.give_back()
        finally:
            lock.metastore.close()

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`."""
        _ensure_installed()
        metastore = _Metastore(self.uris)
        try:
            shown = _MetastoreLock(metastore, self.database, f"{self.table}.{scope}" if scope else self.table).shown()
            return tuple(_parse_agent(one.agentInfo, one.hostname) for one in shown)
        finally:
            metastore.close()


@dataclass(slots=True, eq=False)
class _MetastoreLock:
    """One hold: a `Held`, and a `hoodie.storage.fence.Fence`."""

    metastore: _Metastore
    database: str
    table: str
    number: int | None = None
    is_over: bool = False
    deletes_own: bool = False
    reopens: bool = False

    def take(self, what: str) -> None:
        """The lock is this one's now. Raises: Conflict: it is another's."""
        from pymetastore.hive_metastore import ttypes as hive  # noqa: PLC0415 - optional

        holder = this_holder(what)
        agent = _as_agent(holder)
        wanted = hive.LockComponent(
            type=hive.LockType.EXCLUSIVE,
            level=hive.LockLevel.TABLE,
            dbname=self.database,
            tablename=self.table,
            operationType=hive.DataOperationType.NO_TXN,
        )
        request = hive.LockRequest(component=[wanted], user=getpass.getuser(), hostname=holder.host, agentInfo=agent)
        try:
            answer = self.metastore.ask(lambda client: client.lock(request))
        except Unavailable:
            self._forget(agent)
            raise
        if answer.state == hive.LockState.ACQUIRED:
            self.number = answer.lockid
            return
        held_by = self._in_words(answer.lockid)
        self._unlock(answer.lockid)
        raise Conflict(
            f"Another writer{held_by[0]} holds the lock {self._name} in the metastore, so {what} cannot start",
            remedy="Retry when it has finished, or wait for longer (hoodie.write.lock.wait_time_ms); one that died "
            "lets go when the metastore has not heard of it for its hive.txn.timeout",
            table=self._name,
            holder=held_by[1],
        )

    def keep(self, stop: threading.Event, every_s: float) -> None:
        """Tells the metastore that the holder lives, until told to stop."""
        from pymetastore.hive_metastore import ttypes as hive  # noqa: PLC0415 - optional

        wait_s, beat = every_s / 2, hive.HeartbeatRequest(lockid=self.number)
        while not stop.wait(wait_s):
            wait_s = every_s
            try:
                self.metastore.ask_again(lambda client: client.heartbeat(beat))
            except HudiError as error:
                log.warning("the metastore was not told that the lock %s is held: %s", self._name, error.cause)

    def give_back(self) -> None:
        """Gives the lock back. A failure blocks others until the metastore drops it, so it is logged."""
        self.is_over = True
        try:
            self._unlock(self.number)
        except HudiError as error:
            log.warning("the lock %s was not given back: %s", self._name, error.cause)

    def ensure_held(self, *, to_delete: bool = False) -> None:
        """See `Held` and `Fence`."""
        from pymetastore.hive_metastore import ttypes as hive  # noqa: PLC0415 - optional

        if self.is_over or is_own_step(self, to_delete=to_delete):
            return
        asked = hive.CheckLockRequest(lockid=self.number)
        with suppress(HudiError):
            if self.metastore.ask_again(lambda client: client.check_lock(asked)).state == hive.LockState.ACQUIRED:
                return
        raise Fenced(
            f"The lock {self._name} in the metastore may be lost, so another writer may be at work",
            remedy="Read the table again and repeat what you did",
            table=self._name,
        )

    def keeps(self, path: str) -> bool:
        """See `Fence`. The lock is no file."""
        del path
        return False

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return with_fence(storage, self)

    @property
    def _name(self) -> str:
        return f"{self.database}.{self.table}"

    def _unlock(self, number: int | None) -> None:
        from pymetastore.hive_metastore import ttypes as hive  # noqa: PLC0415 - optional

        gone = hive.UnlockRequest(lockid=number)
        self.metastore.ask_again(lambda client: client.unlock(gone))

    def shown(self) -> list[Any]:
        """All locks on the table, as the metastore shows them: the one that is held, then those that wait."""
        from pymetastore.hive_metastore import ttypes as hive  # noqa: PLC0415 - optional

        shown = hive.ShowLocksRequest(dbname=self.database, tablename=self.table)
        found = self.metastore.ask_again(lambda client: client.show_locks(shown)).locks or ()
        return sorted(found, key=lambda one: (one.state != hive.LockState.ACQUIRED, one.lockid))

    def _in_words(self, own: int) -> tuple[str, LockHolder | None]:
        """Who holds the lock that `own` was refused for, in a message and as a value."""
        with suppress(HudiError):
            for one in self.shown():
                if one.lockid != own:
                    holder = _parse_agent(one.agentInfo, one.hostname)
                    return in_words(holder) or f" ({one.user} on {one.hostname})", holder
        return "", None

    def _forget(self, agent: str) -> None:
        """Gives back what a lost answer may have granted."""
        with suppress(HudiError):
            for number in [one.lockid for one in self.shown() if one.agentInfo == agent]:
                self._unlock(number)


@dataclass(slots=True, eq=False)
class _Metastore:
    """A connection to the first metastore that takes one; used by one thread at a time."""

    uris: str
    client: Any = None
    transport: Any = None
    guard: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, call: Callable[[Any], T]) -> T:
        """What the metastore answers. Raises: Unavailable: nothing, or an error."""
        from thrift.Thrift import TException  # noqa: PLC0415 - optional

        with self.guard:
            try:
                return call(self._connected())
            except (TException, OSError) as error:
                self.close()
                raise self._unavailable(error) from error

    def ask_again(self, call: Callable[[Any], T]) -> T:
        """The same of a question that may be asked twice: the metastore may have been started anew."""
        try:
            return self.ask(call)
        except Unavailable:
            return self.ask(call)

    def close(self) -> None:
        transport, self.transport, self.client = self.transport, None, None
        if transport is not None:
            transport.close()

    def _connected(self) -> Any:
        if self.client is not None:
            return self.client
        from pymetastore.hive_metastore import ThriftHiveMetastore  # noqa: PLC0415 - optional
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol  # noqa: PLC0415 - optional
        from thrift.transport import TSocket, TTransport  # noqa: PLC0415 - optional

        places = [urlsplit(uri.strip()) for uri in self.uris.split(",")]
        for number, place in enumerate(places):
            socket = TSocket.TSocket(place.hostname, place.port or 9083)
            socket.setTimeout(_TIMEOUT_MS)
            transport = TTransport.TBufferedTransport(socket)
            try:
                transport.open()
            except TTransport.TTransportException:
                if number == len(places) - 1:
                    raise
                continue
            self.transport, self.client = transport, ThriftHiveMetastore.Client(TBinaryProtocol(transport))
            break
        return self.client

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"The metastore {self.uris} does not answer: {type(error).__name__} {error}".rstrip(),
            remedy="Check hoodie.write.lock.hivemetastore.uris, and that the metastore runs; then try again",
        )


def _ensure_installed() -> None:
    try:
        import pymetastore  # noqa: F401, PLC0415 - optional
    except ModuleNotFoundError as error:
        raise Unsupported(
            "Locks in a Hive metastore need the package pymetastore", remedy="pip install 'hoodie[hive]'"
        ) from error


def _as_agent(holder: LockHolder) -> str:
    """The holder, with a number that no other hold has, as the metastore has room for it."""
    return f"{_ENV.uuid()[:8]}|{holder.process}|{holder.since}|{holder.operation}"[:_AGENT_CHARACTERS]


def _parse_agent(text: str | None, host: str) -> LockHolder | None:
    parts = (text or "").split("|", 3)
    if len(parts) != 4 or not parts[1].isdigit():
        return None
    return LockHolder(host, int(parts[1]), parts[3], parts[2])
