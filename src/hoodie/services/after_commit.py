"""What follows a commit by itself: cleaning, archiving, compaction, by Hudi's keys and defaults.

1. Order: clean, archive, compaction (or only its plan), log compaction, time to live, upkeep of the metadata table.
2. The commit is done before any of this begins. A service that fails takes nothing from it: the failure is logged with
   its remedy, and the next commit tries again. Options may ask that it is raised, too, once the others are done.
3. The writer has given the table's exclusion back, so that another writer is not kept waiting by services; each takes
   it for itself, and leaves its work to the other writer's commit when that was faster.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.env import Env
from hoodie.errors import Conflict, HudiError
from hoodie.handle import TableHandle, held_table, load_handle
from hoodie.services.archiving.archive import archive
from hoodie.services.cleaning.clean import clean
from hoodie.services.compaction.compact import run_compaction, schedule_compaction
from hoodie.services.compaction.log_compact import run_log_compaction, schedule_log_compaction
from hoodie.services.metadata_upkeep import keep_metadata
from hoodie.services.ttl import run_ttl
from hoodie.storage import Storage

log = logging.getLogger(__name__)

INLINE_COMPACTION = "hoodie.compact.inline"
ASYNC_COMPACTION = "hoodie.datasource.compaction.async.enable"
SERVICES = "hoodie.table.services.enabled"

_FAIL = "hoodie.fail.writes.on.inline.table.service.exception"
_FAIL_ARCHIVING = "hoodie.fail.on.timeline.archiving"
_FAIL_METADATA = "hoodie.metadata.write.fail.on.table.service.failures"
_ARCHIVING = "archiving"
_METADATA = "upkeep of the metadata table"

Service = Callable[[Storage, Env, Config, Engine], object]


def run_after_commit(storage: Storage, config: Config, engine: Engine, env: Env) -> None:
    """Runs the services that are due now, the caller not holding the table's writer exclusion.

    Raises:
        HudiError: a service failed, and options ask to hear of it. The commit stands: to write again is no remedy.
    """
    if not config.flag(SERVICES):
        return
    try:
        due = list(_services(load_handle(storage, env), config))
    except HudiError as error:
        log.warning("the commit stands, but the services after it cannot begin: %s; the next commit tries again", error)
        return
    failed: list[str] = []
    for name, service in due:
        try:
            service(storage, env, config, engine)
        except Conflict as conflict:
            log.info("%s is left to the next commit: %s", name, conflict)
        except HudiError as error:
            log.warning("the commit stands, but %s after it failed: %s; the next commit tries again", name, error)
            if config.flag(_asking_key(name)):
                failed.append(f"{name} after it failed: {error}")
    if failed:
        raise HudiError(
            f"The commit stands, but {'; '.join(failed)}",
            remedy="Do not write these rows again; mend the cause, and the next commit does what was left",
        )


def compacts_inline(handle: TableHandle, config: Config) -> bool:
    """Whether a commit is followed by a compaction when one is due: asked for, or nobody else will do it."""
    if not handle.config.is_merge_on_read:
        return False
    return config.flag(INLINE_COMPACTION) or not config.flag(ASYNC_COMPACTION)


def _services(handle: TableHandle, config: Config) -> Iterator[tuple[str, Service]]:
    if config.flag("hoodie.clean.automatic"):
        yield "cleaning", _alone("clean", clean)
    if config.flag("hoodie.archive.automatic"):
        yield _ARCHIVING, _alone("archive", archive)
    if handle.config.is_merge_on_read:
        if compacts_inline(handle, config):
            yield "compaction", _compact
        elif config.flag("hoodie.compact.schedule.inline"):
            yield "planning a compaction", _alone("plan compaction", schedule_compaction)
        if config.flag("hoodie.log.compaction.inline"):
            yield "log compaction", _compact_logs
    if config.flag("hoodie.partition.ttl.inline"):
        yield "deleting expired partitions", _alone("ttl", run_ttl)
    if handle.config.metadata_partitions:
        yield _METADATA, _alone("metadata upkeep", keep_metadata)


def _asking_key(service: str) -> str:
    """The option that asks for a failure of this service to be raised."""
    return {_ARCHIVING: _FAIL_ARCHIVING, _METADATA: _FAIL_METADATA}.get(service, _FAIL)


def _alone(what: str, service: Callable[[TableHandle, Config, Engine], object]) -> Service:
    """`service` on the table as it is while its writer exclusion is held."""

    def run(storage: Storage, env: Env, config: Config, engine: Engine) -> object:
        with held_table(storage, what, env) as handle:
            return service(handle, config, engine)

    return run


def _compact(storage: Storage, env: Env, config: Config, engine: Engine) -> None:
    _alone("plan compaction", schedule_compaction)(storage, env, config, engine)
    run_compaction(load_handle(storage, env), config, engine)


def _compact_logs(storage: Storage, env: Env, config: Config, engine: Engine) -> None:
    _alone("plan log compaction", schedule_log_compaction)(storage, env, config, engine)
    run_log_compaction(load_handle(storage, env), config, engine)
