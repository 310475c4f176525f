"""How long an action holds the lock of its table: a policy, which stands here and nowhere else.

1. `THROUGHOUT`: from the first look at the table to the last file that is deleted. What a writer finds pending then is
   dead. `AT_BOTH_ENDS`: to begin and to commit; other writers go on in between, so what the commit rests on is looked
   at again.
2. Who comes waits for its turn, as long as options say (`LockOptions`), to begin and to commit. What may be left to
   others (services after a commit) does not wait to begin.
3. Who carries out a plan, takes it off the timeline or rolls it back holds the plan's own lock; nobody waits for that.
   Who needs both takes the plan's lock first, or takes it without waiting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol

from hoodie.config import Config
from hoodie.env import Env
from hoodie.locks import NO_WAIT, LockOptions, held_lock
from hoodie.spec import InstantTime
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.held import held_table, load_held_handle, load_held_look
from hoodie.storage import Snapshot, Storage
from hoodie.timeline import Timeline
from hoodie.transaction.concurrency import has_several_writers


class LockPolicy(Enum):
    """How long an action holds the lock of its table."""

    THROUGHOUT = "it is held while the action runs"
    AT_BOTH_ENDS = "it is taken to begin and to commit; writers go on in between"


SINGLE_WRITER: Final = LockPolicy.THROUGHOUT
"""The policy of writes by default: one writer at a time."""


def write_policy(config: Config) -> LockPolicy:
    """The policy of a write with these options."""
    return LockPolicy.AT_BOTH_ENDS if has_several_writers(config) else SINGLE_WRITER


class Locking(Protocol):
    """The lock of a table as one action uses it. Values of one action; not for several threads at once.

    Who dies in either block leaves what the lock provider leaves: nothing, or a lease that runs out.
    """

    @property
    def below(self) -> Snapshot | None:
        """What lay in the table's own folder when the lock was taken, for who has changed nothing since; None where
        nobody has looked.
        """
        ...

    @property
    def lets_others_in(self) -> bool:
        """Whether others may have the lock between the two blocks."""
        ...

    def to_begin(self) -> AbstractContextManager[TableHandle]:
        """The table as it is now, under its lock.

        Raises:
            Conflict: another writer holds it, for too long.
        """
        ...

    def to_commit(self, handle: TableHandle) -> AbstractContextManager[tuple[TableHandle, Timeline | None]]:
        """The table of `handle` under its lock, and its timeline where others may have moved since the action began.

        Raises:
            Conflict: another writer holds it, for too long.
        """
        ...


@dataclass(frozen=True, slots=True)
class HeldThroughout:
    """The lock is held by whoever made this value, longer than the action runs. `handle` is the table under it, and
    `below` what lay in its own folder when it was taken, where somebody has looked.
    """

    handle: TableHandle
    below: Snapshot | None = None

    @property
    def lets_others_in(self) -> bool:
        """See `Locking`."""
        return False

    def to_begin(self) -> AbstractContextManager[TableHandle]:
        """See `Locking`."""
        return nullcontext(self.handle)

    def to_commit(self, handle: TableHandle) -> AbstractContextManager[tuple[TableHandle, Timeline | None]]:
        """See `Locking`."""
        return nullcontext((handle, None))


@dataclass(frozen=True, slots=True)
class TakenAtBothEnds:
    """The lock of the table in `storage` is taken for either block. `what` is being done, for the message of who has to
    give way; `options` say how long to wait for it, `to_end` how long before the commit if that differs.
    """

    storage: Storage
    env: Env
    what: str
    options: LockOptions = NO_WAIT
    to_end: LockOptions | None = None

    @property
    def below(self) -> Snapshot | None:
        """See `Locking`."""
        return None

    @property
    def lets_others_in(self) -> bool:
        """See `Locking`."""
        return True

    def to_begin(self) -> AbstractContextManager[TableHandle]:
        """See `Locking`."""
        return held_table(self.storage, self.what, self.env, self.options)

    @contextmanager
    def to_commit(self, handle: TableHandle) -> Iterator[tuple[TableHandle, Timeline]]:
        """See `Locking`. The properties are read again, too: others may have made a metadata table meanwhile."""
        options = self.options if self.to_end is None else self.to_end
        with held_lock(handle.storage, self.what, options=options, env=self.env) as held:
            locked = load_held_handle(held.fenced(handle.storage), self.env)
            yield locked, timeline_of(locked)


@contextmanager
def locking(
    storage: Storage, what: str, env: Env, policy: LockPolicy = SINGLE_WRITER, options: LockOptions = NO_WAIT
) -> Iterator[Locking]:
    """The lock of the table in `storage` as the policy wants it used inside the block; `options` say how long to wait.

    Raises:
        Conflict: another writer holds it.
    """
    if policy is LockPolicy.AT_BOTH_ENDS:
        yield TakenAtBothEnds(storage, env, what, options)
        return
    with held_lock(storage, what, options=options, env=env) as held:
        yield HeldThroughout(*load_held_look(held.fenced(storage), env))


@contextmanager
def executor_lock(handle: TableHandle, requested: InstantTime) -> Iterator[TableHandle]:
    """The handle of the one executor that works on the plan of an instant, inside the block.

    Raises:
        Conflict: another holds the plan's lock.
    """
    with held_lock(handle.storage, f"compaction {requested}", executor_scope(requested)) as held:
        yield replace(handle, storage=held.fenced(handle.storage))


def executor_scope(requested: InstantTime) -> str:
    """The scope of the lock of the plan of an instant."""
    return f"compaction_{requested}"
