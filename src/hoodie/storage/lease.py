"""Mutual exclusion on an object store: a lease object that is only ever replaced conditionally.

The object and its rules are those of Hudi's storage-based lock provider, so that such a Hudi writer and we exclude each
other: `.hoodie/.locks/table_lock.json` = `{"validUntil":<ms>,"expired":<bool>,"owner":"<uuid>"}`. Ours
say who holds it, too (`holder`), which Hudi passes over.

1. Free means: no object, `expired` is true, or `validUntil` has passed by more than the tolerated clock difference.
2. It is taken by create-if-absent, or by replacing exactly the free version that was read.
3. The holder extends it every `RENEW_SECONDS`; it is given back by writing `expired`. A dead holder blocks others for
   at most `VALIDITY_SECONDS`.
4. A lease of a `scope` (one piece of work, say) is another object beside it, and is deleted when it is given back; so
   is that of a table which was dropped. The holder extends it once more, which proves that it holds it, and no other
   can take it before the deletion.
5. An answer may be lost. A lease of our own owner id is ours, whatever was answered; giving back is repeated, in the
   end by a thread of its own until the lease has run out, so that a store that fails for a while does not block others
   for longer. What a process could not give back it knows as its own, so that it does not wait for itself.
6. A holder that cannot extend loses it without being stopped at once: it is a `Fence`, which says so before the next
   step that cannot be taken back. A stall between that look and the step is not noticed. This is why the commit itself
   does not rest on the lease: it is protected by `create`, and by looks for a rollback.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol, runtime_checkable

from hoodie.env import Env
from hoodie.errors import CommitUnknown, Conflict, Corrupt, Fenced, HudiError, Missing, Unavailable
from hoodie.storage.fence import is_own_step
from hoodie.storage.lock_holder import LockHolder, holder_of, in_words, this_holder

LOCKS_FOLDER = ".hoodie/.locks/"
LEASE_PATH = f"{LOCKS_FOLDER}table_lock.json"
_SCOPED_PATH = LOCKS_FOLDER + "{}.json"
VALIDITY_SECONDS = 300.0
RENEW_SECONDS = 30.0
CLOCK_DIFFERENCE_MS = 500
_GIVE_BACK_ATTEMPTS = 5
_LONGEST_PAUSE_SECONDS = 30.0

_LOG = logging.getLogger("hoodie.storage")

Version = Mapping[str, str]

_own_abandoned: set[str] = set()


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may write until when (milliseconds since 1970, UTC); `expired` when given back."""

    valid_until_ms: int
    expired: bool
    owner: str
    holder: LockHolder | None = None

    def is_held(self, now_ms: int) -> bool:
        return not self.expired and now_ms <= self.valid_until_ms + CLOCK_DIFFERENCE_MS


@runtime_checkable
class VersionedStorage(Protocol):
    """What a lease needs of a storage: versions of one object, and `replace_version`, which is refused (`Conflict`)
    when another version is there. Implemented by storages on object stores.
    """

    @property
    def env(self) -> Env: ...
    def absolute(self, path: str) -> str: ...
    def create(self, path: str, data: bytes) -> None: ...
    def read_version(self, path: str) -> tuple[bytes, Version]: ...
    def replace_version(self, path: str, data: bytes, version: Version) -> Version: ...
    def delete(self, path: str) -> bool: ...


def encode_lease(lease: Lease) -> bytes:
    fields: dict[str, object] = {"validUntil": lease.valid_until_ms, "expired": lease.expired, "owner": lease.owner}
    if lease.holder is not None:
        fields["holder"] = asdict(lease.holder)
    return json.dumps(fields, separators=(",", ":")).encode()


def parse_lease(data: bytes, path: str) -> Lease:
    """The lease in `data`.

    Raises:
        Corrupt: it is none.
    """
    try:
        fields = json.loads(data)
        return Lease(
            int(fields["validUntil"]), bool(fields["expired"]), str(fields["owner"]), holder_of(fields.get("holder"))
        )
    except (ValueError, TypeError, KeyError) as error:
        raise Corrupt(
            f"{path} is not a lock file", remedy="Make sure that nobody writes to the table, then delete it", path=path
        ) from error


def lease_holders(storage: VersionedStorage, env: Env, scope: str = "") -> tuple[LockHolder | None, ...]:
    """Who holds the lease now, None where it does not say; nobody: empty. What is no lease is nobody's."""
    path = _SCOPED_PATH.format(scope) if scope else LEASE_PATH
    try:
        lease = parse_lease(storage.read_version(path)[0], path)
    except (Missing, Corrupt):
        return ()
    return (lease.holder,) if lease.is_held(int(env.now().timestamp() * 1000)) else ()


@contextmanager
def held_lease(
    storage: VersionedStorage,
    what: str,
    env: Env,
    *,
    scope: str = "",
    validity_seconds: float = VALIDITY_SECONDS,
    renew_seconds: float = RENEW_SECONDS,
) -> Iterator[HeldLease]:
    """Hold the lease of a table (or of one `scope` of work on it) inside the block.

    Raises:
        Conflict: another holds it.
    """
    path = _SCOPED_PATH.format(scope) if scope else LEASE_PATH
    held = HeldLease(storage, env, path, env.uuid(), round(validity_seconds * 1000), this_holder(what, env))
    process = os.getpid()
    held.take(what)
    stop = threading.Event()
    keeper = threading.Thread(target=held.keep, args=(stop, renew_seconds), name="lease", daemon=True)
    keeper.start()
    try:
        yield held
    finally:
        if os.getpid() == process:  # a child that was forked meanwhile gives nothing back
            stop.set()
            keeper.join()
            held.is_over = True
            held.give_back()


@dataclass(slots=True, eq=False)
class HeldLease:
    """A lease and who holds it: a `hoodie.storage.fence.Fence`. `before`: whose it was; `goes`: its object is deleted
    when it is given back.
    """

    storage: VersionedStorage
    env: Env
    path: str
    owner: str
    validity_ms: int
    holder: LockHolder | None = None
    version: Version | None = field(default=None)
    valid_until_ms: int = 0
    has_asked: bool = False
    goes: bool = False
    deletes_own: bool = False
    reopens: bool = False
    is_over: bool = False
    before: str = ""

    def ensure_held(self, *, to_delete: bool = False) -> None:
        """See `Fence`."""
        if not (self.is_over or self._is_sure() or is_own_step(self, to_delete=to_delete)):
            path = self.storage.absolute(self.path)
            raise Fenced(
                f"The lease {path} could not be extended, so another writer may be at work",
                remedy="Read the table again and repeat what you did",
                path=path,
            )

    def keeps(self, path: str) -> bool:
        """See `Fence`. Another could take a table's lease, and make a table, while its holder is still deleting."""
        if self.is_over or path != self.path:
            return False
        self.goes = True
        return True

    def _is_sure(self) -> bool:
        """Whether nobody else can have it now."""
        return self.version is not None and self._now_ms() <= self.valid_until_ms

    def take(self, what: str) -> None:
        try:
            self._take(what)
        except (Unavailable, CommitUnknown):
            if self.has_asked:
                self._abandon()  # it may be ours, or come to be
            raise

    def _take(self, what: str) -> None:
        while not self._has_taken(what):
            continue

    def _has_taken(self, what: str) -> bool:
        """Whether it is held now. If not, a thread of this process gave back one that it could not give back before."""
        path = self.storage.absolute(self.path)
        lease = self._lease()
        try:
            data, version = self.storage.read_version(self.path)
        except Missing:
            self.has_asked = True
            self.storage.create(self.path, encode_lease(lease))
            data, version = self.storage.read_version(self.path)
        found = parse_lease(data, path)
        if found.owner != self.owner:
            if found.is_held(self._now_ms()) and found.owner not in _own_abandoned:
                who, left_ms = in_words(found.holder) or f" ({found.owner})", found.valid_until_ms - self._now_ms()
                raise Conflict(
                    f"Another writer{who} holds {path}, so {what} cannot start",
                    remedy="Retry when it has finished, or wait for longer (hoodie.write.lock.wait_time_ms); if it "
                    f"died, in {left_ms} ms",
                    path=path,
                    owner=found.owner,
                    holder=found.holder,
                )
            self.has_asked = True
            try:
                version = self._stored(lease, version)
            except Conflict:
                if found.owner in _own_abandoned and not found.expired:
                    return False
                raise
            self.before = found.owner
        self.version, self.valid_until_ms = version, lease.valid_until_ms
        return True

    def keep(self, stop: threading.Event, renew_seconds: float) -> None:
        """Extend until told to stop. Waits on the event, not on `Env`: giving back must not wait for a nap to end."""
        while not stop.wait(renew_seconds):
            lease, version = self._lease(), self.version
            if version is None:
                return
            try:
                self.version = self._stored(lease, version)
                self.valid_until_ms = lease.valid_until_ms
            except Conflict:
                _LOG.warning("the lease %s was taken by another writer", self.storage.absolute(self.path))
                self.version = None
            except HudiError as error:
                _LOG.warning("the lease %s was not extended: %s", self.storage.absolute(self.path), error.cause)

    def give_back(self) -> None:
        for attempt in range(_GIVE_BACK_ATTEMPTS):
            if self.version is None:
                return
            try:
                self._give_back(self.version)
                return
            except Unavailable as error:
                _LOG.warning("the lease %s was not given back: %s", self.storage.absolute(self.path), error.cause)
                self.env.sleep(0.1 * 2**attempt)
            except HudiError as error:
                _LOG.warning("the lease %s was not given back: %s", self.storage.absolute(self.path), error.cause)
                return
        self._abandon()

    def _abandon(self) -> None:
        """Leave it to a thread to give back what may be held."""
        _own_abandoned.add(self.owner)
        threading.Thread(target=self._give_back_later, name="lease to give back", daemon=True).start()

    def _give_back_later(self) -> None:
        """Try until the lease has run out. Waits by the real clock, as `keep` does."""
        never, pause, end_ms = threading.Event(), 1.0, self._now_ms() + self.validity_ms
        while self._now_ms() < end_ms:
            never.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            try:
                data, version = self.storage.read_version(self.path)
                if parse_lease(data, self.path).owner != self.owner:
                    return
                self._give_back(version)
                return
            except (Missing, Unavailable):
                continue  # also when it is not there: a request may still be on its way
            except HudiError:
                return

    def _give_back(self, version: Version) -> None:
        goes = self.goes or self.path != LEASE_PATH
        self._stored(replace(self._lease(), expired=not goes, holder=None), version)
        if goes:
            self.storage.delete(self.path)

    def _stored(self, lease: Lease, version: Version) -> Version:
        """The version of `lease` on storage, which has taken the place of `version`.

        Raises:
            Conflict: another has taken it meanwhile.
        """
        try:
            return self.storage.replace_version(self.path, encode_lease(lease), version)
        except (Conflict, Unavailable):
            # The request may have succeeded all the same, or an earlier one may have: what is there tells.
            data, now = self.storage.read_version(self.path)
            if data == encode_lease(lease):
                return now
            if parse_lease(data, self.path).owner != self.owner or now == version:
                raise
            return self.storage.replace_version(self.path, encode_lease(lease), now)

    def _lease(self) -> Lease:
        return Lease(self._now_ms() + self.validity_ms, False, self.owner, self.holder)

    def _now_ms(self) -> int:
        return int(self.env.now().timestamp() * 1000)
