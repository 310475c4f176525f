"""What options say of the table lock, parsed once: how long to wait for it, and who keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hoodie.arguments import MOST_HOURS, checked_number
from hoodie.config import Config
from hoodie.env import Env
from hoodie.locks.waiting import Patience


@dataclass(frozen=True, slots=True)
class LockOptions:
    """Behaviour: `wait_ms` is how long who finds another at work waits for its turn; `provider` names who keeps writers
    apart, `settings` are its own options (`hoodie.locks.registry`).
    """

    wait_ms: int = 0
    provider: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def waiting(self, wait_ms: int) -> LockOptions:
        """The same lock, waited for so long."""
        return replace(self, wait_ms=wait_ms)

    def patience(self, env: Env) -> Patience:
        """The same with a clock."""
        return Patience(env, self.wait_ms)


NO_WAIT: Final = LockOptions()

_WAIT: Final = "hoodie.write.lock.wait_time_ms"
_RETRIES: Final = "hoodie.write.lock.client.num_retries"
_PROVIDER: Final = "hoodie.write.lock.provider"
_HAVE_DEFAULTS: Final = (
    "hoodie.write.lock.zookeeper.session_timeout_ms",
    "hoodie.write.lock.zookeeper.connection_timeout_ms",
    "hoodie.write.lock.dynamodb.region",
    "hoodie.write.lock.heartbeat_interval_ms",
    "hoodie.write.lock.filesystem.expire",
)
_SETTINGS: Final = (
    "hoodie.table.name",
    "hoodie.write.lock.zookeeper.url",
    "hoodie.write.lock.zookeeper.base_path",
    "hoodie.write.lock.zookeeper.lock_key",
    "hoodie.write.lock.filesystem.path",
    "hoodie.write.lock.hivemetastore.uris",
    "hoodie.write.lock.hivemetastore.database",
    "hoodie.write.lock.hivemetastore.table",
    "hoodie.write.lock.dynamodb.table",
    "hoodie.write.lock.dynamodb.partition_key",
    "hoodie.write.lock.dynamodb.endpoint_url",
    *_HAVE_DEFAULTS,
)


def parse_lock_options(config: Config) -> LockOptions:
    """The options of a writer or service. Hudi's writer tries so many times, so long each, with pauses in between; here
    that is one wait of the same length, in which nobody loses the place in the line.
    """
    attempt_ms = config.integer(_WAIT)
    retries = config.integer(_RETRIES)
    pause_ms = config.integer("hoodie.write.lock.client.wait_time_ms_between_retry")
    provider = config.text(_PROVIDER) if config.is_set(_PROVIDER) else ""
    settings = {key: config.text(key) for key in _SETTINGS if config.is_set(key) or key in _HAVE_DEFAULTS}
    return LockOptions(attempt_ms * (retries + 1) + pause_ms * retries, provider, settings if provider else {})


def options_to_wait(seconds: float) -> dict[str, str]:
    """The options that make a writer wait so long, and no longer; 0: not at all.

    Raises:
        Invalid: this is no time to wait.
    """
    waits = checked_number("wait", seconds, least=0, most=MOST_HOURS * 3600, remedy="Pass seconds, 0 or more")
    return {_WAIT: str(round(waits * 1000)), _RETRIES: "0"}
