"""A table service as a value: how it is run and previewed, who holds the table meanwhile, and when it follows a commit.

1. A service is a module with a `SERVICE` and a line in `registry`. `Table.services`, the command line, dry runs, what
   follows commits and the table in docs/services.md come from these two.
2. `run` and `preview` are called with the handle of the table, the options of the call (those the table was opened with
   behind them), the engine, and the service's arguments by name. `run` gives a frozen dataclass that says what was
   done, or None when there was nothing to do; `preview` gives a `ServicePreview` and writes nothing. How a result is
   shown stands in `hoodie.present`, by its fields if nothing else is said there.
3. A service holds no state of its own: calls may come from any thread, two at a time are kept apart by the table lock.
4. One that dies leaves an instant that is pending, or nothing; the next call of it, or the next write, finishes that or
   rolls it back.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie.arguments import (
    MOST_HOURS,
    checked_flag,
    checked_mapping,
    checked_name,
    checked_number,
    checked_whole,
)
from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Invalid
from hoodie.locks import parse_lock_options
from hoodie.remote.embedding import with_embedded_server
from hoodie.services.preview import ServicePreview
from hoodie.state.handle import TableHandle, load_handle
from hoodie.state.held import held_table
from hoodie.state.table_state import TableState
from hoodie.transaction import LockPolicy

FAIL: Final = "hoodie.fail.writes.on.inline.table.service.exception"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a service beside options, in Python and on the command line, which offers the `choices`."""

    name: str
    help: str
    kind: type = str
    default: Any = None
    choices: tuple[Any, ...] = ()
    is_required: bool = False
    metavar: str | None = None

    def checked(self, service: str, value: Any) -> Any:
        """`value` in the argument's kind.

        Raises:
            Invalid: it is of another kind, or none of the choices.
        """
        name, remedy = f"{self.name} of {service}", f"It is {self.help}"
        if self.kind is bool:
            return checked_flag(name, value)
        if self.kind is float:
            return checked_number(name, value, least=0, most=MOST_HOURS, remedy=remedy)
        if self.kind is int:  # the service itself says more of a number that is none of the choices
            return checked_whole(name, value, remedy=remedy)
        found = checked_name(name, value, remedy)
        if self.choices and found not in self.choices:
            raise Invalid(f"{name} is {found!r}", remedy=f"Use one of {', '.join(map(str, self.choices))}")
        return found


@dataclass(frozen=True, slots=True)
class AfterCommit:
    """How a service follows commits by itself. `title` names it in messages.

    `is_asked` says whether options want it for this table, `may_act` whether there may be something to do: it looks at
    the state as it is after the commit, and nothing is read, and nobody is locked out, where there is not. `run` is
    what is done then, if it is not what the service does by hand; `failure_key` the option that makes its failure the
    writer's error.
    """

    title: str
    is_asked: Callable[[TableHandle, Config], bool]
    may_act: Callable[[TableState, Config], bool] = lambda state, config: True
    run: Callable[..., Any] | None = None
    lock: LockPolicy = LockPolicy.THROUGHOUT
    failure_key: str = FAIL


@dataclass(frozen=True, slots=True)
class Service:
    """What a module says of its service. `nothing` is what people read when it had nothing to do; `options` are set for
    each call unless the caller sets them. With `acts_when_told` the command line shows the preview unless that flag is
    given.
    """

    name: str
    nothing: str
    run: Callable[..., Any]
    preview: Callable[..., ServicePreview] | None = None
    lock: LockPolicy = LockPolicy.THROUGHOUT
    arguments: tuple[Argument, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    after_commit: tuple[AfterCommit, ...] = ()
    acts_when_told: str = ""

    def checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, defaults filled in.

        Raises:
            Invalid: one is missing or of the wrong kind, or the service has none of that name.
        """
        names = [one.name for one in self.arguments]
        for name in checked_mapping(f"Arguments of {self.name}", given, f"It has {', '.join(names) or 'none'}"):
            if name not in names:
                near = next(iter(difflib.get_close_matches(name, names, n=1)), None)
                known = f"Did you mean {near}?" if near else f"It has {', '.join(names) or 'none'}"
                raise Invalid(f"{self.name} has no argument {name}", remedy=known)
        found = {}
        for one in self.arguments:
            value = given.get(one.name)
            if value is None and one.is_required:
                raise Invalid(f"{self.name} needs its argument {one.name}: {one.help}", remedy="Pass it")
            found[one.name] = one.default if value is None else one.checked(self.name, value)
        return found


def run_service(  # noqa: PLR0917
    service: Service | AfterCommit,
    what: str,
    handle: TableHandle,
    config: Config,
    engine: Engine,
    arguments: Mapping[str, Any] | None = None,
    *,
    waits: bool = True,
) -> Any:
    """What the service did, on the table as it is now. `handle` names the table; `what` is being done, for messages.
    `waits`: its turn is waited for, as long as options say.

    Raises:
        Conflict: another writer is at work. Else as the service does.
    """
    run = service.run
    if run is None:
        raise TypeError(f"{what} has nothing to run")
    given = arguments or {}
    config = with_embedded_server(handle.storage, config, engine)
    if service.lock is LockPolicy.THROUGHOUT:
        options = parse_lock_options(config)
        with held_table(handle.storage, what, handle.env, options if waits else options.waiting(0)) as held:
            return run(held, config, engine, **given)
    return run(load_handle(handle.storage, handle.env), config, engine, **given)
