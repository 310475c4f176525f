"""What follows a commit by itself: the services that say so (`AfterCommit`), by Hudi's keys and defaults.

1. Order: that of the registry.
2. The commit is done before any of this begins. A service that fails takes nothing from it: the failure is logged with
   its remedy, and the next commit tries again. Options may ask that it is raised, too, once the others are done.
3. The writer has given the table lock back, so that another writer is not kept waiting by services; each takes it for
   itself, and leaves its work to the other writer's commit when that was faster.
4. The state of the table is the one that the commit saw last, or is loaded once, and again after a service that did
   something. What finds there that it has nothing to do reads nothing more. Who commits after that look does the
   services that are due then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.env import Env
from hoodie.errors import Conflict, HudiError
from hoodie.services.registry import REGISTERED, load_service
from hoodie.services.service import AfterCommit, Service, run_service
from hoodie.state.table_state import TableState, load_state
from hoodie.storage import Storage

log = logging.getLogger(__name__)

SERVICES = "hoodie.table.services.enabled"


def run_after_commit(
    storage: Storage, config: Config, engine: Engine, env: Env, state: TableState | None = None
) -> None:
    """Runs the services that are due now, the caller not holding the table lock. `state`: the table as the commit saw
    it last, right after it completed; loaded when it is not given.

    Raises:
        HudiError: a service failed, and options ask to hear of it. The commit stands: to write again is no remedy.
    """
    if not config.flag(SERVICES):
        return
    try:
        # The commit's storage belongs to its lock, which is given back.
        state = load_state(storage, env) if state is None else state.of(storage)
    except Exception as error:  # also what is no error of ours: the commit stands
        log.warning(
            "the commit stands, but the services after it cannot begin: %s; the next commit tries again",
            _why(error),
            exc_info=not isinstance(error, HudiError),
        )
        return
    failed: list[str] = []
    for service, following in _asked(state, config):
        title = following.title
        try:
            if following.may_act(state, config):
                run = service if following.run is None else following
                if run_service(run, title, state.handle, config, engine, waits=False) is not None:
                    state = load_state(storage, env)
        except Conflict as conflict:
            log.info("%s is left to the next commit: %s", title, conflict)
        except Exception as error:  # also what is no error of ours, of a library or of a class of the caller's own
            log.warning(
                "the commit stands, but %s after it failed: %s; the next commit tries again",
                title,
                _why(error),
                exc_info=not isinstance(error, HudiError),
            )
            if config.flag(following.failure_key):
                failed.append(f"{title} after it failed: {_why(error)}")
    if failed:
        raise HudiError(
            f"The commit stands, but {'; '.join(failed)}",
            remedy="Do not write these rows again; mend the cause, and the next commit does what was left",
        )


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, HudiError) else f"{type(error).__name__}: {error}"


def _asked(state: TableState, config: Config) -> Iterator[tuple[Service, AfterCommit]]:
    for name in REGISTERED:
        service = load_service(name)
        for following in service.after_commit:
            if following.is_asked(state.handle, config):
                yield service, following
