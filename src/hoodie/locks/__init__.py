"""Who may change a table now: providers of locks, chosen by where the table lies. See docs/design/0016-locks.md."""

from hoodie.locks.lock_provider import Held, LockProvider
from hoodie.locks.options import NO_WAIT, LockOptions, options_to_wait, parse_lock_options
from hoodie.locks.providers import held_group_lock, held_lock, lock_holders, lock_provider_of

__all__ = [
    "NO_WAIT",
    "Held",
    "LockOptions",
    "LockProvider",
    "held_group_lock",
    "held_lock",
    "lock_holders",
    "lock_provider_of",
    "options_to_wait",
    "parse_lock_options",
]
