"""What the parts of a `Table` share: where it lies, the options it was opened with, who does the work.

It keeps no picture of the table: every call loads one, so that threads may share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from hoodie.arguments import kind_of
from hoodie.config import Config, option_text
from hoodie.engine import Engine
from hoodie.env import Env
from hoodie.errors import HudiError, Invalid
from hoodie.given_options import resolve_given
from hoodie.locks import parse_lock_options
from hoodie.remote import AskedServer, asked_server
from hoodie.state.handle import TableHandle, load_handle
from hoodie.state.held import held_table
from hoodie.storage import Storage
from hoodie.table.keywords import call_options, checked_options
from hoodie.timeline import load_table_config

T = TypeVar("T")

LOOKS: Final = 4


@dataclass(slots=True)
class OpenedTable:
    """`handle` is the one of the last look: its storage knows where files lay then, its environment never changes."""

    handle: TableHandle
    options: dict[str, str]
    engine: Engine

    @property
    def storage(self) -> Storage:
        return self.handle.storage

    @property
    def env(self) -> Env:
        return self.handle.env

    def config(self, options: Mapping[str, Any]) -> Config:
        """Options of a call, over those of the table.

        Raises:
            Invalid, Unsupported: one of them cannot be.
        """
        return resolve_given(call_options(options), self.options)

    @property
    def server(self) -> AskedServer | None:
        """The timeline server that options name for the files of the table."""
        return asked_server(resolve_given(self.options, purpose="read"))

    def fresh(self) -> TableHandle:
        """The table as it is now."""
        handle = load_handle(self.storage, self.env)
        self.handle = handle
        return handle

    def looked_at(self, look: Callable[[TableHandle], T], is_well: Callable[[T], bool]) -> T:
        """What a look of many steps finds. Where all is not well it is taken again, at most `LOOKS` times, as long as
        the properties of the table became others meanwhile: files that moved would be called lost.
        """
        for _ in range(LOOKS - 1):
            handle = self.fresh()
            try:
                found = look(handle)
            except HudiError:
                if self._is_as(handle):
                    raise
                continue
            if is_well(found) or self._is_as(handle):
                return found
        return look(self.fresh())

    def _is_as(self, handle: TableHandle) -> bool:
        """Whether the properties still are those of an earlier look; also where they cannot be read any more."""
        try:
            return load_table_config(handle.storage, self.env).raw == handle.config.raw
        except HudiError:
            return True

    @contextmanager
    def held(self, what: str, options: Mapping[str, Any] | None = None) -> Iterator[TableHandle]:
        """The table as it is now, its lock held inside the block; its options, and those of the call before them, are
        checked, whatever looks at them.

        Raises:
            Conflict: another writer holds it. Unsupported: an option asks for what is not there yet.
        """
        lock_options = parse_lock_options(self.config(options or {}))
        with held_table(self.storage, what, self.env, lock_options) as handle:
            self.handle = handle
            yield handle  # not `self.handle`, which other threads set too


def checked_engine(engine: Any) -> Engine:
    """`engine`, which runs tasks. Raises: Invalid: it cannot."""
    if isinstance(engine, type) or not all(hasattr(engine, name) for name in ("run", "parallelism", "driver_host")):
        raise Invalid(f"engine runs tasks, which {kind_of(engine)} cannot", remedy="Pass hoodie.engine.LocalEngine(…)")
    made: Engine = engine
    return made


def option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as the text they are stored and parsed as; those of value None are left out.

    Raises:
        Invalid: this is no mapping, or one of its values cannot be that of an option.
    """
    given = checked_options({} if options is None else options)
    return {key: option_text(key, value) for key, value in given.items() if value is not None}
