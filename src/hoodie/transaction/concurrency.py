"""How many may write at the same time: the mode of a writer, and what follows from it.

SINGLE_WRITER (the default): a write holds the table lock from its first look to its last deletion. With
OPTIMISTIC_CONCURRENCY_CONTROL it holds the lock to begin and to commit, other writers go on in between, and the commit
looks at what they did (`overlaps`). Then nobody can tell a pending write that runs from one whose writer died, but by
its heartbeat: the policy for failed writes is LAZY, whatever else its default is. NON_BLOCKING_CONCURRENCY_CONTROL is
the same, and log files of others beside one's own are no conflict.
"""

from __future__ import annotations

from typing import Final

from hoodie.config import Config
from hoodie.errors import Invalid

MODE: Final = "hoodie.write.concurrency.mode"
POLICY: Final = "hoodie.clean.failed.writes.policy"
LAZY: Final = "LAZY"
OPTIMISTIC: Final = "OPTIMISTIC_CONCURRENCY_CONTROL"

_SINGLE: Final = "SINGLE_WRITER"
_NON_BLOCKING: Final = "NON_BLOCKING_CONCURRENCY_CONTROL"


def has_several_writers(config: Config) -> bool:
    """Whether the options let others write at the same time."""
    return config.text(MODE) != _SINGLE


def is_non_blocking(config: Config) -> bool:
    """Whether log files of several writers in one file group are no conflict."""
    return config.text(MODE) == _NON_BLOCKING


def failed_writes_policy(config: Config) -> str:
    """When failed writes are rolled back: EAGER, LAZY or NEVER.

    Raises:
        Invalid: EAGER beside other writers, whose running writes it would undo.
    """
    policy = config.text(POLICY)
    if policy == "EAGER" and has_several_writers(config):
        if config.is_set(POLICY):
            raise Invalid(
                f"{POLICY} is EAGER, which takes every pending write for a dead one, and {MODE} is {config.text(MODE)}",
                remedy=f"Leave {POLICY} out, or set it to LAZY",
            )
        return LAZY
    return policy
