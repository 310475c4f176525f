"""Signs of life of a running write, for tables whose failed writes are rolled back lazily.

1. With failed-write policy LAZY nobody knows at once whether a pending write is alive. So its writer renews a file
   `.hoodie/.heartbeat/<instant>`; what counts is when that file was last written. Ours say in it who writes
   (`storage.lock_holder`), Hudi's say nothing; nobody decides anything by that.
2. A write is taken for dead when its file is older than the interval times (tolerable misses + 1), or is not there.
3. A writer that may have been taken for dead must not commit: it asks itself before it does (`Heartbeat.ensure_alive`).
4. The thread that renews the file ends with the `with` block, whatever happens in it; the file goes last.
5. Under the other policies there is no heartbeat and nothing here does anything.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.env import Env
from hoodie.errors import Fenced, HudiError, Missing
from hoodie.spec import InstantTime, keys
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage
from hoodie.storage.lock_holder import LockHolder, encode_holder, parse_holder, this_holder
from hoodie.transaction.concurrency import LAZY, failed_writes_policy

log = logging.getLogger(__name__)

INTERVAL = "hoodie.client.heartbeat.interval_in_ms"
MISSES = "hoodie.client.heartbeat.tolerable.misses"

_THREAD = "hoodie-heartbeat"
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class HeartbeatRule:
    """How often a write says that it lives, and how many times it may miss that. `interval_ms` is in milliseconds."""

    interval_ms: int = 60_000
    tolerable_misses: int = 2

    @property
    def limit_ms(self) -> int:
        """Silence of more than this many milliseconds means death."""
        return self.interval_ms * (self.tolerable_misses + 1)


DEFAULT_RULE: Final = HeartbeatRule()


class Heartbeat:
    """One write's own sign of life."""

    def __init__(
        self, storage: Storage, env: Env, instant: InstantTime, rule: HeartbeatRule, what: str = "write"
    ) -> None:
        self._storage = storage
        self._env = env
        self._instant = instant
        self._rule = rule
        self._who = encode_holder(this_holder(what, env))
        self._last_s = env.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=_THREAD, daemon=True)

    def ensure_alive(self) -> None:
        """Checks that no other writer can have taken this one for dead.

        Raises:
            Fenced: the last sign of life is too old.
        """
        silent_ms = (self._env.monotonic() - self._last_s) * 1000
        if silent_ms > self._rule.limit_ms:
            raise Fenced(
                f"The write {self._instant} gave no sign of life for {silent_ms:.0f} ms: it may have been rolled back",
                remedy=f"Repeat the write; raise {INTERVAL} if the machine or the storage stalls that long",
                instant=self._instant,
            )

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        """End the thread, then remove the file. A file that stays is removed by whoever rolls back or cleans."""
        self._stop.set()
        self._thread.join()
        try:
            self._storage.delete(heartbeat_path(self._instant))
        except HudiError as error:
            log.warning("could not remove the heartbeat of %s: %s", self._instant, error)

    def _beat(self) -> None:
        began_s = self._env.monotonic()
        self._storage.put(heartbeat_path(self._instant), self._who)
        self._last_s = began_s

    def _renew(self) -> None:
        while not self._stop.wait(self._rule.interval_ms / 1000):
            try:
                self._beat()
            except HudiError as error:
                log.warning("could not renew the heartbeat of %s: %s", self._instant, error)


@contextmanager
def holding_heartbeat(
    handle: TableHandle, instant: InstantTime, config: Config, what: str = "write"
) -> Iterator[Heartbeat | None]:
    """The heartbeat of the write `instant`, renewed while the block runs; None under the policies that need none. It
    says `what` is being done.
    """
    if failed_writes_policy(config) != LAZY:
        yield None
        return
    with beating(handle, instant, config, what) as beat:
        yield beat


@contextmanager
def beating(handle: TableHandle, instant: InstantTime, config: Config, what: str) -> Iterator[Heartbeat]:
    """The heartbeat of an instant, renewed while the block runs; `what` is being done."""
    beat = Heartbeat(handle.storage, handle.env, instant, heartbeat_rule(config), what)
    beat.start()
    try:
        yield beat
    finally:
        beat.stop()


def heartbeat_rule(config: Config) -> HeartbeatRule:
    """The rule the options ask for."""
    return HeartbeatRule(config.integer(INTERVAL), config.integer(MISSES))


def await_end(storage: Storage, instant: InstantTime, rule: HeartbeatRule, env: Env, wait_s: float) -> None:
    """Returns when the write has ended, or is taken for dead, or after so many seconds."""
    until_s, pause_s = env.monotonic() + wait_s, _PAUSE_S
    while env.monotonic() < until_s and not is_expired(storage, instant, rule, env):
        env.sleep(pause_s * (0.5 + env.random() / 2))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def beat_once(handle: TableHandle, instant: InstantTime, what: str) -> None:
    """Gives one sign of life for an instant that somebody else goes on with; `what` is being done."""
    handle.storage.put(heartbeat_path(instant), encode_holder(this_holder(what, handle.env)))


def end_heartbeat(storage: Storage, instant: InstantTime) -> None:
    """Removes the heartbeat of an instant that is gone, if there is one."""
    storage.delete(heartbeat_path(instant))


def heartbeat_path(instant: InstantTime) -> str:
    """Where the heartbeat of a write stands."""
    return f"{keys.HEARTBEAT_DIR}/{instant}"


def load_beater(storage: Storage, instant: InstantTime) -> LockHolder | None:
    """Who writes, as its heartbeat says it; None where it is gone, or says nothing."""
    try:
        return parse_holder(storage.read(heartbeat_path(instant)))
    except Missing:
        return None


def is_expired(storage: Storage, instant: InstantTime, rule: HeartbeatRule, env: Env) -> bool:
    """Whether the write must be taken for dead: no sign of life within the limit, or none at all."""
    try:
        beaten_ms = storage.head(heartbeat_path(instant)).modified_ms
    except Missing:
        return True
    return env.now().timestamp() * 1000 - beaten_ms > rule.limit_ms
