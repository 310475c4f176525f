"""Random sequences of writes and services with random crashes, against a dictionary of rows.

Hypothesis draws versions, table types, operations, and for some of them a call at which the storage stops answering.
After each step the table holds what the model holds; after a crash it holds the rows before the action or those after
it, and the machine goes on from there. At the end `validate` finds nothing.

`HOODIE_MACHINE_EXAMPLES` (default 6) is the number of sequences, `HOODIE_MACHINE_STEPS` (default 12) their length.
`make crash` runs many.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.handle import load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table, as_source, write
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.lake import Awake, row, table_of

EXAMPLES = int(os.environ.get("HOODIE_MACHINE_EXAMPLES", "6"))
STEPS = int(os.environ.get("HOODIE_MACHINE_STEPS", "12"))
ENGINE = LocalEngine(1)
WRITE = "hoodie.datasource.write."
PARTS = ("p0", "p1", "p2")
KEYS = st.sets(st.integers(0, 14), max_size=6)
CALLS = st.one_of(st.none(), st.none(), st.integers(1, 160))
"""At which storage call an action dies; None for most, and no crash where an action makes fewer calls."""
_names = itertools.count()
COUNTS = {"sequences": 0, "steps": 0, "crashes": 0}

Rows = dict[str, str]


def part_of(key: int) -> str:
    return PARTS[key % 3]


class TableMachine(RuleBasedStateMachine):
    """One table and what it should hold: key -> text."""

    def __init__(self) -> None:
        super().__init__()
        COUNTS["sequences"] += 1
        self.storage = MemoryStorage(f"machine-{next(_names)}", Awake())
        self.rows: Rows = {}
        self.saved: list[tuple[str, Rows]] = []
        self.before_newest: Rows | None = None
        self.clock = 0

    @initialize(version=st.sampled_from([6, 8, 9]), kind=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]))
    def make(self, version: int, kind: str) -> None:
        self.kind = kind
        self.options = {
            "hoodie.table.name": "machine",
            WRITE + "recordkey.field": "id",
            WRITE + "partitionpath.field": "part",
            WRITE + "table.type": kind,
            "hoodie.index.bloom.num_entries": "50",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
        }
        made = {**self.options, "hoodie.write.table.version": str(version)}
        first = {n: f"0-{n}" for n in range(5)}
        write(as_source(self._table(first)), self.storage.uri, made, "append", engine=ENGINE, env=Awake())
        self.rows = {f"k{n}": text for n, text in first.items()}

    @rule(keys=KEYS, dies_at=CALLS)
    def upsert(self, keys: set[int], dies_at: int | None) -> None:
        given = self._given(keys)
        after = {**self.rows, **{f"k{n}": text for n, text in given.items()}}
        self._write(lambda table: table.upsert(self._table(given)), after, dies_at)

    @rule(keys=KEYS, dies_at=CALLS)
    def delete(self, keys: set[int], dies_at: int | None) -> None:
        gone = {n for n in keys if f"k{n}" in self.rows}
        after = {key: text for key, text in self.rows.items() if int(key[1:]) not in gone}
        self._write(lambda table: table.delete(self._table(dict.fromkeys(gone, ""))), after, dies_at)

    @rule(keys=KEYS, dies_at=CALLS)
    def bulk_insert(self, keys: set[int], dies_at: int | None) -> None:
        given = self._given({n for n in keys if f"k{n}" not in self.rows})
        after = {**self.rows, **{f"k{n}": text for n, text in given.items()}}
        self._write(lambda table: table.bulk_insert(self._table(given)), after, dies_at)

    @rule(keys=KEYS, dies_at=CALLS)
    def insert_overwrite(self, keys: set[int], dies_at: int | None) -> None:
        given = self._given(keys)
        touched = {part_of(n) for n in given}
        kept = {key: text for key, text in self.rows.items() if part_of(int(key[1:])) not in touched}
        after = {**kept, **{f"k{n}": text for n, text in given.items()}}
        self._write(lambda table: table.insert_overwrite(self._table(given)), after, dies_at)

    @precondition(lambda self: self.kind == "MERGE_ON_READ")
    @rule(dies_at=CALLS)
    def plan_compaction(self, dies_at: int | None) -> None:
        self._serve(lambda table: table.schedule_compaction(), dies_at)

    @precondition(lambda self: self.kind == "MERGE_ON_READ")
    @rule(dies_at=CALLS)
    def compact(self, dies_at: int | None) -> None:
        self._serve(lambda table: table.compact(), dies_at)

    @rule(dies_at=CALLS, kept=st.integers(1, 3))
    def clean(self, dies_at: int | None, kept: int) -> None:
        self._serve(lambda table: table.clean(**{"hoodie.clean.commits.retained": str(kept)}), dies_at)

    @rule(dies_at=CALLS)
    def archive(self, dies_at: int | None) -> None:
        limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
        self._serve(lambda table: table.archive(**limits), dies_at)

    @rule()
    def make_savepoint(self) -> None:
        table = self._opened(self.storage)
        newest = table.timeline().completed_writes()[-1].requested
        if any(instant == newest for instant, _ in self.saved):
            return
        try:
            instant = table.savepoint().instant
        except Invalid:
            return  # a clean may have taken files of it
        self.saved.append((instant, dict(self.rows)))
        self.before_newest = None

    @precondition(lambda self: self.saved)
    @rule(dies_at=CALLS)
    def restore(self, dies_at: int | None) -> None:
        instant, rows = self.saved[-1]
        done = self._act(lambda table: table.restore(instant), rows, dies_at)
        if not done:  # a restore that died blocks writers until it is finished
            self._act(lambda table: table.restore(instant), rows, None)
        self.rows, self.before_newest = dict(rows), None

    @precondition(lambda self: self.before_newest is not None)
    @rule(dies_at=CALLS)
    def roll_back(self, dies_at: int | None) -> None:
        assert self.before_newest is not None
        newest = self._opened(self.storage).timeline().completed_writes()[-1].requested
        self._act(lambda table: table.rollback(newest), self.before_newest, dies_at)
        self.before_newest = None

    @rule(dies_at=CALLS)
    def make_index(self, dies_at: int | None) -> None:
        if "record_index" not in self._opened(self.storage).indexes():
            self._serve(lambda table: table.create_index("record_index"), dies_at)

    @invariant()
    def the_table_holds_what_the_model_holds(self) -> None:
        if self.storage.uri and self.rows:
            COUNTS["steps"] += 1
            assert self._held() == self.rows

    def teardown(self) -> None:
        if self.rows:
            table = self._opened(self.storage)
            table.upsert(self._table({99: "last"}))  # heals what died
            assert self._held() == {**self.rows, "k99": "last"}
            assert [one for one in table.validate() if one.kind != "pending"] == []
        self.storage.forget()

    def _write(self, act: Callable[[Table], object], after: Rows, dies_at: int | None) -> None:
        before = dict(self.rows)
        done = self._act(act, after, dies_at)
        self.before_newest = before if done else None

    def _serve(self, act: Callable[[Table], object], dies_at: int | None) -> None:
        self._act(act, self.rows, dies_at)
        self.before_newest = None

    def _act(self, act: Callable[[Table], object], after: Rows, dies_at: int | None) -> bool:
        """Whether the action ended; otherwise it died, and the model has what the table holds."""
        try:
            act(self._opened(CountingStorage(self.storage, crash_at=dies_at)))
        except Crash:
            COUNTS["crashes"] += 1
            found = self._held()
            assert found in (self.rows, after)
            self.rows = found
            return False
        self.rows = dict(after)
        return True

    def _opened(self, storage: Storage) -> Table:
        return Table(load_handle(storage, Awake()), self.options, ENGINE)

    def _held(self) -> Rows:
        found = self._opened(self.storage).scan(columns=["id", "v"]).read_all().to_pydict()
        assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
        return dict(zip(found["id"], found["v"], strict=True))

    def _given(self, keys: set[int]) -> dict[int, str]:
        self.clock += 1
        return {n: f"{self.clock}-{n}" for n in sorted(keys)}

    def _table(self, texts: dict[int, str]) -> Any:
        return table_of([row(f"k{n}", text, self.clock, part_of(n)) for n, text in texts.items()])


TableMachine.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
TestTableMachine = TableMachine.TestCase


def test_the_machine_did_something() -> None:
    print(f"\nstate machine: {COUNTS}")
    assert COUNTS["steps"] > EXAMPLES
