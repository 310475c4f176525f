"""What a client of a timeline server says about its timeline with each request: its last instant, and a hash of all.

1. They are about completed instants of all actions and pending compactions. Other pending instants are in neither, so
   what is pending beside compactions may differ though both are equal.
2. Answers depend on more than these: on the names of log files, which change with the version and by a downgrade that
   died; on plans, which may be rewritten at their instants; and on writes that were taken back and done anew at theirs.
   Our clients tell these, too: they know them without another call. Where they differ, somebody looks.
3. The hash is SHA-256 over requested time, action and state of each instant, ascending, without anything in between.
   Completion times are not in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hoodie.spec import COMPACTION, Instant, TableConfig
from hoodie.state.log_renames import renamed_at
from hoodie.timeline import Timeline

NO_INSTANT = "0"
"""What counts as the last instant of a client that names none."""
NAMES = "hoodienames"
LOOK = "hoodielook"


def told_instants(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants that client and server must agree about, in order."""
    return tuple(one for one in timeline.instants if one.is_completed or one.action == COMPACTION)


def hash_of(instants: Iterable[Instant]) -> str:
    """The hash of instants in timeline order, as Hudi computes it."""
    text = "".join(f"{one.requested}_{one.action}_{one.state.name}" for one in instants)
    return hashlib.sha256(text.encode()).hexdigest()


def names_of(config: TableConfig) -> str:
    """By what files of the table have their names: its version, and when a downgrade last gave log files others."""
    return f"{config.table_version}{renamed_at(config) or ''}"


def look_of(timeline: Timeline) -> str:
    """A hash of when instants were completed, and of the files of pending plans as they were listed; empty where nobody
    listed them.
    """
    if timeline.plan_files is None:
        return ""
    completed = (f"{one.requested}_{one.completed}" for one in timeline.instants if one.is_completed)
    plans = (f"{one.path}_{one.size_bytes}_{one.modified_ms}" for one in timeline.plan_files)
    return hashlib.sha256(";".join((*completed, *plans)).encode()).hexdigest()


def told(timeline: Timeline, config: TableConfig | None = None) -> dict[str, str]:
    """The parameters by which a client says which timeline it has, and what else it knows of the table, of which it has
    read the properties `config`. The last instant is left out of an empty timeline.
    """
    instants = told_instants(timeline)
    last = {"lastinstantts": instants[-1].requested} if instants else {}
    more = {} if config is None else {NAMES: names_of(config), LOOK: look_of(timeline)}
    return {**last, "timelinehash": hash_of(instants), **more}
