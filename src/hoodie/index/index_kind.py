"""A kind of write index as it is registered: Hudi's name for it, and how one is made from options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoodie.config import Config
from hoodie.index.write_index import IndexTraits, WriteIndex
from hoodie.spec import InstantTime, TableConfig
from hoodie.storage import Storage


@dataclass(frozen=True, slots=True)
class IndexKind:
    """One value of `hoodie.index.type`, with other `names` for it.

    `make` gets the traits that follow from this value, the options of the call and the table they are for. The option
    `moves_key` of a global kind says whether keys move between partitions. `roll_back` takes back what indexes of this
    kind have stored for an instant; it may be asked twice, and about instants of writes with other indexes.
    `lies_outside`: what it knows is kept outside of the table, at a place that only options name. An index of such a
    kind is told of rollbacks and of rewritten files by those whose options choose it (`RollsBack`, `FollowsRewrites`).
    """

    name: str
    make: Callable[[IndexTraits, Config, TableConfig], WriteIndex]
    is_global: bool = False
    moves_key: str | None = None
    names: tuple[str, ...] = ()
    roll_back: Callable[[Storage, InstantTime], None] | None = None
    lies_outside: bool = False
