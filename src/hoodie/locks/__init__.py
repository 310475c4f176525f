"""Who may change a table now: providers of locks, chosen by where the table lies. See docs/design/0016-locks.md."""

from hoodie.locks.lock_provider import Held, LockProvider
from hoodie.locks.providers import held_lock, lock_provider_of
from hoodie.locks.waiting import held_within

__all__ = ["Held", "LockProvider", "held_lock", "held_within", "lock_provider_of"]
