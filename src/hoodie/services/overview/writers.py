"""Who is at work on a table: who holds its lock or waits for it, who writes, who carries out a plan, and since when.

1. Locks say who holds them. Writers beside others have heartbeats, which say who writes; others are known by their
   lock, since they hold it while they write.
2. Nothing is changed, and no lock is taken: what is told is as it was a moment ago. Hudi's writers say little of
   themselves in a lock, and nothing in a heartbeat.
3. It reads the timeline, lists the heartbeats, and reads a lock or heartbeat for each that is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hoodie.config import Config
from hoodie.locks import LockOptions, lock_holders
from hoodie.notebook import Displayed
from hoodie.services.overview.waiting import Verdict, Waiting, load_waiting
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage.lock_holder import LockHolder
from hoodie.transaction.heartbeat import load_beater
from hoodie.transaction.locking import executor_scope

Sign = Literal["holds the table lock", "waits for the table lock", "writes", "carries out a plan"]


@dataclass(frozen=True, slots=True)
class Writer(Displayed):
    """One sign of somebody at work: `sign` says which. `operation`, `host`, `process` and `since` (ISO 8601, UTC) are
    empty where who it is does not say; `instant`, `action` and `silent_s` (seconds since its last heartbeat) where the
    sign is no pending instant, or has none. `verdict`: whether it lives, as far as anybody can tell.
    """

    sign: Sign
    operation: str
    host: str
    process: int | None
    since: str
    instant: str | None
    action: str | None
    silent_s: float | None
    verdict: Verdict


def load_writers(handle: TableHandle, config: Config, locks: LockOptions) -> tuple[Writer, ...]:
    """Everybody at work, as far as locks, heartbeats and the timeline tell: the table lock, then pending instants,
    oldest first. `locks` are the writers' options of locks. Plans that wait for somebody are left out.
    """
    pending = load_waiting(handle, config, timeline_of(handle), ())
    return (*_of_lock(handle, locks), *(found for one in pending for found in _of_instant(handle, one)))


def _of_lock(handle: TableHandle, locks: LockOptions) -> Iterator[Writer]:
    for place, holder in enumerate(lock_holders(handle.storage, options=locks)):
        yield _writer("waits for the table lock" if place else "holds the table lock", holder)


def _of_instant(handle: TableHandle, waiting: Waiting) -> Iterator[Writer]:
    instant = waiting.instant
    if not waiting.is_plan:
        beater = None if waiting.silent_s is None else load_beater(handle.storage, instant.requested)
        yield _writer("writes", beater, waiting)
    for holder in lock_holders(handle.storage, executor_scope(instant.requested)) if waiting.is_plan else ():
        yield _writer("carries out a plan", holder, waiting)


def _writer(sign: Sign, holder: LockHolder | None, waiting: Waiting | None = None) -> Writer:
    is_held = waiting is None or sign == "carries out a plan"
    return Writer(
        sign=sign,
        operation="" if holder is None else holder.operation,
        host="" if holder is None else holder.host,
        process=None if holder is None else holder.process,
        since=_began(waiting) if holder is None else holder.since,
        instant=None if waiting is None else waiting.instant.requested,
        action=None if waiting is None else waiting.instant.action,
        silent_s=None if waiting is None else waiting.silent_s,
        verdict="running" if is_held or waiting is None else waiting.verdict,
    )


def _began(waiting: Waiting | None) -> str:
    if waiting is None or waiting.began is None:
        return ""
    return waiting.began.isoformat(timespec="seconds")
