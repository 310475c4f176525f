"""What a caller allows a table to do outside its own folder. It travels with the storage, to workers as well.

It comes from options of the call (or of the machine), never from the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hoodie.layout.roots import ALLOWED_ROOTS, STORAGE_PATH
from hoodie.layout.strategy import STRATEGY_CLASSES, StorageStrategy, load_own_strategies
from hoodie.storage import Storage, open_storage

OPTIONS: Final = (ALLOWED_ROOTS, STORAGE_PATH, STRATEGY_CLASSES)


@dataclass(frozen=True, slots=True)
class Access:
    """`allowed`: URLs below which roots may lie. `options` open their storages, and are secret. `own`: strategies of
    the caller's. `stores`: storages of roots that the caller has opened itself, by URL.
    """

    allowed: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    own: Mapping[str, StorageStrategy] = field(default_factory=dict)
    stores: Mapping[str, Storage] = field(default_factory=dict, repr=False)

    def open_root(self, uri: str) -> Storage:
        """The storage of a root. Nothing is contacted."""
        return self.stores.get(uri) or open_storage(uri, self.options)


def parse_access(options: Mapping[str, object], storage_options: Mapping[str, str]) -> Access | None:
    """What `options` of a call allow; None where they say nothing. The root a caller names itself is allowed.

    Raises:
        Invalid: a class of a strategy cannot be made.
    """
    said = {key: str(options[key]) for key in OPTIONS if options.get(key)}
    if not said:
        return None
    named = f"{said.get(ALLOWED_ROOTS, '')},{said.get(STORAGE_PATH, '')}"
    allowed = tuple(filter(None, (one.strip() for one in named.split(","))))
    return Access(allowed, dict(storage_options), load_own_strategies(said.get(STRATEGY_CLASSES, "")))
