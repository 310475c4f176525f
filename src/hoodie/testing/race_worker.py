"""One process of a live race: `python -m hoodie.testing.race_worker {json}`. It ends when its stop file appears.

A writer changes its own rows, or such as all writers share, runs services now and then, and looks at its rows; a reader
looks at all rows. Each notes what it did and saw, and when, in its journal (`race_journal`, `registers`); who stops and
kills it is `live_race`.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import hoodie.locks.storage_based
from hoodie.errors import HudiError
from hoodie.storage.lease import held_lease
from hoodie.table import Table
from hoodie.testing.lake import row, table_of
from hoodie.testing.race_journal import GROUP, Journal, State, keys_of
from hoodie.testing.registers import SHARED

GROUPS: Final = 3
_FEW: Final = {
    "hoodie.clean.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "7",
}
LEASE_SECONDS: Final = 4.0
_SERVICES: Final[Mapping[str, Callable[[Table], object]]] = {
    "compact": lambda table: table.services.compact() if table.config.is_merge_on_read else None,
    "clean": lambda table: table.services.clean(**{"hoodie.clean.commits.retained": "3"}),
    "archive": lambda table: table.services.archive(**_FEW),
    "rebuild_metadata": lambda table: table.indexes.rebuild(),
    "upgrade": lambda table: table.services.upgrade(17 - table.version) if table.version > 6 else None,
}
_STRATEGIES: Final = ("bits:2", "bits:3", "bits:4")
_GRACE_HOURS: Final = (0.01, 1.0)
"""For copies in the places before: longer than a reader is stopped."""


@dataclass(frozen=True, slots=True)
class Racer:
    """Who races where."""

    name: str
    reads_only: bool
    uri: str
    options: Mapping[str, str]
    folder: str
    seed: int
    turns: str = ""
    """A file that is locked around each change, for writers beside one that sees no lock of ours."""
    shares: bool = False
    """Whether all writers change the same rows."""

    @property
    def owner(self) -> str:
        """Whose keys it writes."""
        return SHARED if self.shares else self.name

    @property
    def journal(self) -> Journal:
        return Journal(os.path.join(self.folder, f"{self.name}.journal"))

    @property
    def is_over(self) -> bool:
        return os.path.exists(os.path.join(self.folder, "stop"))

    def encode(self) -> str:
        return json.dumps(asdict(self))


def main(text: str) -> None:
    logging.disable(logging.WARNING)
    # Leases that run out while a process is stopped for some seconds, not minutes.
    hoodie.locks.storage_based.held_lease = partial(held_lease, validity_seconds=LEASE_SECONDS, renew_seconds=0.5)  # type: ignore[attr-defined]
    racer = Racer(**json.loads(text))
    if racer.reads_only:
        read_until_over(racer)
    else:
        write_until_over(racer)


def write_until_over(racer: Racer) -> None:
    """Looks first: that tells what became of the action in which it was killed."""
    chance = random.Random(f"{racer.seed}-{os.getpid()}")
    table = Table.open(racer.uri, options=racer.options)
    turns = itertools.count(len(racer.journal.notes()))
    looks = True
    while not racer.is_over:
        if looks or chance.random() < 0.1:
            look(racer, table)
            looks = False
        elif chance.random() < 0.15:
            with turn(racer.turns):
                serve(racer, table, *chance.choice(_services(racer, chance)))
        else:
            text = None if chance.random() < 0.2 else f"{racer.name}-{next(turns)}-{os.getpid()}"
            with turn(racer.turns):
                looks = change(racer, table, chance.randrange(GROUPS), text)


@contextmanager
def turn(path: str) -> Iterator[None]:
    """Nobody else has a turn by this file inside the block; one that is killed has none any more. No path, no turns."""
    with open(path, "a") if path else nullcontext() as file:
        if file is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def change(racer: Racer, table: Table, group: int, text: str | None) -> bool:
    """Write the rows of a group, or delete them; whether it must be looked what became of it."""
    keys = keys_of(racer.owner, group)
    rows = table_of([row(key, text, part=f"p{place}") for place, key in enumerate(keys)])
    racer.journal.note(what="begin", writer=racer.owner, group=group, text=text, at=time.monotonic())
    try:
        if text is None:
            table.delete(rows)
        else:
            table.upsert(rows)
    except HudiError as error:
        racer.journal.note(what="end", how=type(error).__name__, why=error.cause[:200], at=time.monotonic())
        return True
    racer.journal.note(what="end", how="done", at=time.monotonic())
    return False


def _services(racer: Racer, chance: random.Random) -> list[tuple[str, Callable[[Table], object]]]:
    """What may be run on the table, by name: one with storage paths is moved by other strategies, too."""
    found = list(_SERVICES.items())
    if "hoodie.storage.strategy" in racer.options:
        strategy, hours = chance.choice(_STRATEGIES), chance.choice(_GRACE_HOURS)
        paths = racer.options["hoodie.storage.path"]
        found += [("relayout", partial(_move, strategy=strategy, hours=hours, paths=paths))] * 2
    return found


def _move(table: Table, strategy: str, hours: float, paths: str) -> object:
    return table.services.run(
        "relayout", {"to": strategy, "move": True, "grace_hours": hours}, **{"hoodie.storage.path": paths}
    )


def serve(racer: Racer, table: Table, service: str, run: Callable[[Table], object]) -> None:
    try:
        run(table)
        racer.journal.note(what="service", name=service, how="done")
    except HudiError as error:
        racer.journal.note(what="service", name=service, how=type(error).__name__, why=error.cause[:200])


def look(racer: Racer, table: Table) -> None:
    began = time.monotonic()
    try:
        rows = state_of(table, filter=f"id LIKE '{racer.owner}-%'")
        racer.journal.note(what="saw" if racer.shares else "look", rows=rows, began=began, at=time.monotonic())
    except HudiError as error:
        note_failure(racer, "look", error)


def note_failure(racer: Racer, what: str, error: HudiError) -> None:
    """Notes a read that failed. Who was killed while it made a metadata table anew left none: a table with storage
    paths cannot be read then until somebody writes, and says so.
    """
    if error.facts.get("made_anew"):
        racer.journal.note(what="none to read by", why=error.cause[:200])
    else:
        racer.journal.note(what="fault", text=f"a {what} failed: {type(error).__name__}: {error}"[:800])


def read_until_over(racer: Racer) -> None:
    table = Table.open(racer.uri, options=racer.options)
    while not racer.is_over:
        began = time.monotonic()
        try:
            found = state_of(table)
        except HudiError as error:
            note_failure(racer, "read", error)
            continue
        for halves in half_groups(found):
            racer.journal.note(what="fault", text=f"half an action: {halves}")
        if racer.shares:
            racer.journal.note(what="saw", rows=found, began=began, at=time.monotonic())
        racer.journal.note(what="read", count=len(found))


def half_groups(state: State) -> list[dict[str, str]]:
    """Groups of which a part is there, or parts of different actions."""
    groups: dict[str, dict[str, str]] = {}
    for key, text in state.items():
        groups.setdefault(key.rpartition("-")[0], {})[key] = text
    return [found for found in groups.values() if len(found) != GROUP or len(set(found.values())) != 1]


def state_of(table: Table, **query: Any) -> State:
    """Text by key of the rows racers write; a key that occurs twice counts as one with both texts."""
    found = table.scan(columns=["id", "v"], **query).read_all().to_pydict()
    state: dict[str, str] = {}
    for key, text in sorted(zip(found["id"], found["v"], strict=True)):
        if "-" in key:
            state[key] = f"{state[key]} and {text}" if key in state else text
    return state


if __name__ == "__main__":
    main(sys.argv[1])
