"""Whether a write gets a timeline server in its own process, and the options that name it then.

Where tasks run in other processes it does unless `hoodie.embed.timeline.server` is off; where they run in this one,
only where that is on: who writes now and then starts a server for nothing. Options that name another server go before.

That server writes the markers of those whose tasks run in other processes, unless options say which markers there are,
as in Hudi: not on HDFS, and not where others are looked for by a strategy that is about direct ones.
"""

from __future__ import annotations

import functools
import importlib
import logging
from typing import TYPE_CHECKING, Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.remote.asking import FIRST, ONLY, asked_server, options_of
from hoodie.storage import Storage

if TYPE_CHECKING:
    from hoodie.remote.connection import ServerAddress

log = logging.getLogger(__name__)

EMBEDDED: Final = "hoodie.embed.timeline.server"

_HAS_BACKUP: Final = "hoodie.filesystem.remote.backup.view.enable"
_BOOTSTRAPPED: Final = "hoodie.bootstrap.base.path"
_MARKERS: Final = "hoodie.write.markers.type"
_BY_SERVER: Final = "TIMELINE_SERVER_BASED"
_STRATEGY: Final = "hoodie.write.concurrency.early.conflict.detection.strategy"
_OF_DIRECT_ONES: Final = "DirectMarker"
"""What Hudi's classes that look at direct markers are called by."""


def with_embedded_server(storage: Storage, config: Config, engine: Engine) -> Config:
    """The options of a write, or of a service, of the table in `storage`, which name the server of this process where
    it has one. Starts it. Never fails: a write does as well without.
    """
    if config.is_set(EMBEDDED):
        is_wanted = config.flag(EMBEDDED)
    else:
        is_wanted = engine.driver_host is not None and config.flag(EMBEDDED) and asked_server(config) is None
    if not is_wanted or config.is_set(_BOOTSTRAPPED):
        return config
    # The arrow that goes up, by name and only when used: a server stands above those who write.
    found: ServerAddress | None
    found = importlib.import_module("hoodie.server.embedded").embedded_address(storage, config, engine.driver_host)
    if found is None:
        return config
    options = options_of(found, FIRST if config.flag(_HAS_BACKUP) else ONLY)
    if engine.driver_host is not None and _writes_markers(storage, config):
        options[_MARKERS] = _BY_SERVER
    return config.overridden(Config(options))


def _writes_markers(storage: Storage, config: Config) -> bool:
    """Whether the server of this process writes the markers of a write that does not say who does."""
    if config.is_set(_MARKERS) or _OF_DIRECT_ONES in (config.optional(_STRATEGY) or ""):
        return False
    if storage.scheme == "hdfs":
        _say_once("Markers are direct ones, not those of the timeline server: on HDFS nothing is gained by them")
        return False
    return True


@functools.cache
def _say_once(what: str) -> None:
    log.info(what)
