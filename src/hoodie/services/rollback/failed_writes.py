"""Which pending writes count as failed, and are rolled back before somebody else begins: a policy.

EAGER (the default of a single writer): the next write rolls back all of them that give no sign of life. It holds the
table lock, so nobody else can be at work but those who work without it, and they have heartbeats. LAZY (the default of
several writers): a clean rolls back those whose heartbeat has stopped. NEVER: nobody does. Rollbacks that died are
finished under every policy but NEVER.
"""

from __future__ import annotations

from collections.abc import Collection

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.services.rollback.checks import ensure_no_restore
from hoodie.services.rollback.leftovers import remove_leftovers
from hoodie.services.rollback.rollback import finish_interrupted, roll_back
from hoodie.spec import RESTORE, InstantTime, State
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Listing
from hoodie.timeline import Timeline
from hoodie.transaction.concurrency import LAZY, failed_writes_policy
from hoodie.transaction.heartbeat import heartbeat_rule, is_expired

_DEFAULTS = Config()


def roll_back_failed_writes(
    handle: TableHandle,
    engine: Engine,
    timeline: Timeline | None = None,
    config: Config = _DEFAULTS,
    leftovers: Listing | None = None,
) -> Timeline:
    """The timeline on which a new action may begin: with policy EAGER (the default) all failed writes were rolled back,
    newest first; rollbacks and savepoints that died were finished or removed.

    Pending compactions and clusterings are plans, not failures, and stay. The caller holds the table's writer
    exclusion, and may pass the timeline and the leftovers it has loaded under it.

    Raises:
        Unavailable: a restore is pending.
    """
    timeline = timeline or timeline_of(handle)
    ensure_no_restore(timeline)
    policy = failed_writes_policy(config)
    if policy == "NEVER":
        return timeline
    timeline = finish_interrupted(handle, engine, timeline, config)
    if policy == "EAGER":
        rule = heartbeat_rule(config)
        for instant in reversed(PendingPlans(handle.storage, timeline).incomplete_writes()):
            if is_expired(handle.storage, instant.requested, rule, handle.env):
                timeline = roll_back(handle, engine, timeline, instant, config)
    remove_leftovers(handle, timeline, config, leftovers)
    return timeline


def roll_back_dead_writes(
    handle: TableHandle, engine: Engine, config: Config, lost: Collection[InstantTime] = ()
) -> None:
    """Rolls back the writes that give no sign of life, under either policy, and whatever is `lost`, plans as well: for
    who has made something anew that knows nothing of them, whose writers may only be asleep. Where a restore is
    pending, it takes them away.
    """
    timeline = timeline_of(handle)
    if any(one.action == RESTORE for one in timeline.pending()):
        return
    if failed_writes_policy(config) != "NEVER":
        for instant in reversed(timeline.pending()):
            if instant.requested in lost and instant.state is State.INFLIGHT:
                timeline = roll_back(handle, engine, timeline, instant, config)
    roll_back_failed_writes(handle, engine, timeline, config)
    roll_back_expired_writes(handle, engine, config)


def roll_back_expired_writes(handle: TableHandle, engine: Engine, config: Config) -> Timeline:
    """The timeline after the writes whose heartbeat has stopped were rolled back, newest first (policy LAZY).

    What a cleaner calls before it cleans. Under the other policies nothing happens. A write is looked at once more
    after its heartbeat was found dead: it may have completed meanwhile.
    """
    timeline = timeline_of(handle)
    ensure_no_restore(timeline)
    if failed_writes_policy(config) != LAZY:
        return timeline
    rule = heartbeat_rule(config)
    dead = [
        one.logical
        for one in PendingPlans(handle.storage, timeline).incomplete_writes()
        if is_expired(handle.storage, one.requested, rule, handle.env)
    ]
    timeline = finish_interrupted(handle, engine, timeline_of(handle), config)
    for instant in reversed(PendingPlans(handle.storage, timeline).incomplete_writes()):
        if instant.logical in dead:
            timeline = roll_back(handle, engine, timeline, instant, config)
    return timeline
