"""Locks in ZooKeeper, as the recipe of Curator makes them, so that Hudi's ZooKeeper lock provider and we exclude each
other: among the nodes `_c_<uuid>-lock-<number>` below the lock's node the lowest number holds it.

1. A node is ephemeral: it ends with the session of who made it. One session for each hold, which ends with it, also
   when an answer was lost; so no node of ours is left without a holder.
2. Who waits watches the node before its own, and keeps its place: the order is that of the numbers, among processes of
   every kind.
3. All children count, by the text after their last `lock-`, as Curator sorts them. Nodes of kazoo's own lock do not:
   nobody who uses Curator sees them either.
4. A holder that was cut off may have lost its node. It asks before each step that cannot be taken back whether its
   node is there and of its session (`ensure_held`). A pause between that look and the step is not noticed, as with
   every lock that can be lost; the commit does not rest on the lock alone.

The node says who holds it (`storage.lock_holder`); Hudi's say `application_id=...`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced, Unavailable, Unsupported
from hoodie.locks.lock_provider import Held
from hoodie.locks.waiting import AT_ONCE, Patience, place_in_line
from hoodie.storage.fence import is_own_step, with_fence
from hoodie.storage.lock_holder import LockHolder, encode_holder, in_words, parse_holder, this_holder

S = TypeVar("S")
T = TypeVar("T")

_ENV = SystemEnv()
_NODE = "-lock-"
_SORTED_BY = "lock-"
_PAUSE_S = 0.01
"""A waiter looks at a flag of its own so often; ZooKeeper sets it."""


@dataclass(frozen=True, slots=True)
class ZooKeeperLocks:
    """Locks below the node `path` of a ZooKeeper at `hosts` (`host:port,...`). Times are in milliseconds."""

    hosts: str
    path: str
    session_timeout_ms: int = 60_000
    connection_timeout_ms: int = 15_000

    @contextmanager
    def acquire(self, what: str, scope: str = "", patience: Patience = AT_ONCE) -> Iterator[Held]:
        """The lock, held inside the block; see `LockProvider`.

        Raises:
            Unavailable: no ZooKeeper answers.
        """
        path = f"{self.path}.{scope}" if scope else self.path
        with ExitStack() as block:
            with place_in_line((self.hosts, path), patience) if patience.waits else nullcontext():
                client = self._connected()
                block.callback(_ended, client)
                node = _Node(client, path, _asking(lambda: _made(client, path, what), path))
                node.wait_for_turn(what, patience)
            try:
                yield node
            finally:
                node.is_over = True

    def holders(self, scope: str = "") -> tuple[LockHolder | None, ...]:
        """See `TellsHolders`. Who waits is told, too."""
        path = f"{self.path}.{scope}" if scope else self.path
        client = self._connected()
        try:
            return _asking(lambda: tuple(_told(client, path)), path)
        finally:
            _ended(client)

    def _connected(self) -> Any:
        try:
            from kazoo.client import KazooClient  # noqa: PLC0415 - optional
        except ModuleNotFoundError as error:
            raise Unsupported(
                "Locks in ZooKeeper need the package kazoo", remedy="pip install 'hoodie[zookeeper]'"
            ) from error
        client = KazooClient(self.hosts, timeout=self.session_timeout_ms / 1000)
        try:
            client.start(self.connection_timeout_ms / 1000)
        except Exception as error:
            _ended(client)
            raise _unavailable(self.hosts, error) from error
        return client


@dataclass(slots=True, eq=False)
class _Node:
    """A contender: a `Held` once its turn has come, and a `hoodie.storage.fence.Fence`."""

    client: Any
    path: str
    name: str
    is_over: bool = False
    deletes_own: bool = False
    reopens: bool = False
    session: Any = field(init=False)

    def __post_init__(self) -> None:
        self.session = self.client.client_id

    def wait_for_turn(self, what: str, patience: Patience) -> None:
        """Returns when no contender has a lower number. Raises: Conflict: one has, for too long."""
        env = patience.env
        end_s = env.monotonic() + patience.wait_ms / 1000
        while True:
            before = _asking(self._before, self.path)
            if before is None:
                return
            left_s = end_s - env.monotonic()
            if left_s <= 0:
                raise self._held_by_another(what)
            gone = threading.Event()
            if _asking(partial(self._watch, before, gone), self.path):
                while not gone.is_set() and env.monotonic() < end_s:
                    env.sleep(_PAUSE_S)

    def ensure_held(self, *, to_delete: bool = False) -> None:
        """See `Held` and `Fence`."""
        if self.is_over or is_own_step(self, to_delete=to_delete):
            return
        try:
            found = self.client.exists(f"{self.path}/{self.name}")
        except Exception:
            found = None
        if found is None or self.client.client_id != self.session or found.owner_session_id != self.session[0]:
            raise Fenced(
                f"The lock {self.path} in ZooKeeper may be lost, so another writer may be at work",
                remedy="Read the table again and repeat what you did",
                path=self.path,
            )

    def keeps(self, path: str) -> bool:
        """See `Fence`. The lock is no file."""
        del path
        return False

    def fenced(self, storage: S) -> S:
        """See `Held`."""
        return with_fence(storage, self)

    def _before(self) -> str | None:
        """The contender right before this one; None when this one holds the lock."""
        others = sorted(self.client.get_children(self.path), key=_place)
        if self.name not in others:
            raise _unavailable(self.path, ConnectionError("the session has ended"))
        at = others.index(self.name)
        return others[at - 1] if at else None

    def _watch(self, name: str, gone: threading.Event) -> bool:
        """Whether the node is there; `gone` is set when it is not any more."""
        return self.client.exists(f"{self.path}/{name}", watch=lambda event: gone.set()) is not None

    def _held_by_another(self, what: str) -> Conflict:
        holder = _asking(self._holder, self.path)
        return Conflict(
            f"Another writer holds the lock {self.path} in ZooKeeper{in_words(holder)}, so {what} cannot start",
            remedy="Retry when it has finished, or wait for longer (hoodie.write.lock.wait_time_ms)",
            path=self.path,
            holder=holder,
        )

    def _holder(self) -> Any:
        return next(_told(self.client, self.path), None)


def _asking(call: Callable[[], T], path: str) -> T:
    """What a call of the client gives. Raises: Unavailable: ZooKeeper does not answer as it should."""
    from kazoo.exceptions import KazooException  # noqa: PLC0415 - optional

    try:
        return call()
    except (KazooException, OSError) as error:
        raise _unavailable(path, error) from error


def _made(client: Any, path: str, what: str) -> str:
    """The name of a new contender's node. The one above it is made as often as it is gone: Curator makes it a
    container, which ZooKeeper removes while it is empty.
    """
    made = client.create(
        f"{path}/_c_{_ENV.uuid()}{_NODE}",
        encode_holder(this_holder(what)),
        ephemeral=True,
        sequence=True,
        makepath=True,
    )
    return str(made).rpartition("/")[2]


def _told(client: Any, path: str) -> Iterator[LockHolder | None]:
    """What contenders say of themselves, in their order."""
    from kazoo.exceptions import NoNodeError  # noqa: PLC0415 - optional

    try:
        names = sorted(client.get_children(path), key=_place)
    except NoNodeError:
        return
    for name in names:
        with suppress(NoNodeError):
            yield parse_holder(client.get(f"{path}/{name}")[0])


def _place(name: str) -> str:
    """What Curator sorts by."""
    return name.rpartition(_SORTED_BY)[2]


def _ended(client: Any) -> None:
    """Ends the session, and with it its nodes."""
    try:
        client.stop()
    finally:
        client.close()


def _unavailable(what: str, error: Exception) -> Unavailable:
    return Unavailable(
        f"ZooKeeper does not answer for {what}: {type(error).__name__} {error}".rstrip(),
        remedy="Check hoodie.write.lock.zookeeper.url, and that the server runs",
    )
