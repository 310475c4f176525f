"""Random sequences of writes and services with random crashes, against a dictionary of rows.

1. Hypothesis draws versions, table types, indexes, operations, and for some of them a call at which the storage stops
   answering. After each step the table holds what the model holds; after a crash it holds the rows before the action or
   those after it (in a restore, those after any commit it undoes, too), and the machine goes on from there.
2. The model keeps the rows after every commit. After each step one of these states, taken in turns, is read by time
   travel, and the changes since it by an incremental query. A state that a clean gave up may be refused, never wrong.
3. Clock and ids are fakes, so that a sequence can be repeated and partitions get old.
4. At the end a write heals what died, the services it leaves that to go on, all states are read once more, and
   `validate` finds nothing.

`HOODIE_MACHINE_EXAMPLES` (default 6) is the number of sequences for each seed, `HOODIE_MACHINE_STEPS` (default 12)
their length, `HOODIE_MACHINE_SEEDS` (default 1) the number of seeds from `HOODIE_MACHINE_SEED` on. `make crash` runs
many.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.handle import load_handle
from hoodie.storage import MemoryStorage, Storage
from hoodie.table import Table, as_source, write
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import row, table_of

EXAMPLES = int(os.environ.get("HOODIE_MACHINE_EXAMPLES", "6"))
STEPS = int(os.environ.get("HOODIE_MACHINE_STEPS", "12"))
SEED = int(os.environ.get("HOODIE_MACHINE_SEED", "20261121"))
SEEDS = int(os.environ.get("HOODIE_MACHINE_SEEDS", "1"))
PHASES = (Phase.explicit, Phase.generate)
ENGINE = LocalEngine(1)
WRITE = "hoodie.datasource.write."
RINGS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "2",
}
SPLIT = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "4"}
JOIN = {"hoodie.bucket.index.min.num.buckets": "1"}
BLOCKS = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
FEW = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
PARTS = ("p0", "p1", "p2")
KEYS = st.sets(st.integers(0, 14), max_size=6)
CALLS = st.one_of(st.integers(1, 160), st.none())
"""At which storage call an action dies; no crash where it makes fewer calls."""
MANY_CALLS = st.one_of(st.integers(1, 400), st.none())
START = datetime(2050, 1, 1, tzinfo=UTC)
"""Later than the real clock, which the table is made by."""
_names = itertools.count()
COUNTS = dict.fromkeys(
    (
        "sequences",
        "steps",
        "crashes",
        "snapshots",
        "time travels",
        "refused time travels",
        "incremental pulls",
        "validations",
        "version changes",
        "resizes",
        "expired partitions",
        "partial updates",
    ),
    0,
)

Value = tuple[str, int]
Rows = dict[str, Value]


def part_of(key: int) -> str:
    return PARTS[key % 3]


def number_of(key: str) -> int:
    return int(key[1:])


def without_partitions(rows: Rows, parts: set[str]) -> Rows:
    return {key: value for key, value in rows.items() if part_of(number_of(key)) not in parts}


class TableMachine(RuleBasedStateMachine):
    """One table and what it should hold: key -> text and number. A partial update changes the text only."""

    def __init__(self) -> None:
        super().__init__()
        COUNTS["sequences"] += 1
        self.env = FakeEnv(START)
        self.storage = MemoryStorage(f"machine-{next(_names)}", self.env)
        self.rows: Rows = {}
        self.states: dict[str, Rows] = {}
        self.saved: list[tuple[str, Rows]] = []
        self.before_newest: Rows | None = None
        self.cleaned = False
        self.half_changed = False
        self.half_archived = False
        self.half_compacted: set[str] = set()
        self.clock = 0
        self.turns = itertools.count()

    @initialize(
        version=st.sampled_from([6, 8, 9]),
        kind=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ", "MERGE_ON_READ with rings"]),
        metadata=st.sampled_from([True, True, False]),
    )
    def make(self, version: int, kind: str, metadata: bool) -> None:
        self.logs = kind != "COPY_ON_WRITE"
        self.rings = kind.endswith("rings")
        self.metadata = metadata
        self.options = {
            "hoodie.table.name": "machine",
            WRITE + "recordkey.field": "id",
            WRITE + "partitionpath.field": "part",
            WRITE + "table.type": kind.partition(" ")[0],
            "hoodie.index.bloom.num_entries": "50",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.metadata.enable": str(metadata).lower(),
            **(RINGS if self.rings else {}),
        }
        made = {**self.options, "hoodie.write.table.version": str(version)}
        first = self._given(set(range(5)))
        write(as_source(self._table(first)), self.storage.uri, made, "append", engine=ENGINE, env=self.env)
        self.rows = self._with(first)
        self._note_state()

    @rule(keys=KEYS, dies_at=CALLS)
    def upsert(self, keys: set[int], dies_at: int | None) -> None:
        given = self._given(keys)
        self._write(lambda table: table.upsert(self._table(given)), self._with(given), dies_at)

    @precondition(lambda self: self.logs and not self.rings and self._version() >= 8)
    @rule(keys=KEYS, dies_at=CALLS)
    def update_texts(self, keys: set[int], dies_at: int | None) -> None:
        given = self._given(keys)
        known = {f"k{n}": (text, self.rows[f"k{n}"][1]) for n, (text, _) in given.items() if f"k{n}" in self.rows}
        changes = self._table(given).drop_columns(["ts"])
        if self._write(lambda table: table.update(changes), {**self.rows, **known}, dies_at):
            COUNTS["partial updates"] += 1

    @rule(keys=KEYS, dies_at=CALLS)
    def delete(self, keys: set[int], dies_at: int | None) -> None:
        gone = {n: ("", 0) for n in keys if f"k{n}" in self.rows}
        after = {key: value for key, value in self.rows.items() if number_of(key) not in gone}
        self._write(lambda table: table.delete(self._table(gone)), after, dies_at)

    @rule(keys=KEYS, dies_at=CALLS)
    def bulk_insert(self, keys: set[int], dies_at: int | None) -> None:
        given = self._given({n for n in keys if f"k{n}" not in self.rows})
        self._write(lambda table: table.bulk_insert(self._table(given)), self._with(given), dies_at)

    @rule(what=st.sampled_from(["partitions of rows", "table", "partition"]), keys=KEYS, dies_at=CALLS)
    def overwrite(self, what: str, keys: set[int], dies_at: int | None) -> None:
        given = self._given(keys)
        parts = {part_of(n) for n in given}
        if what == "table":
            given = given or self._given({0})
            self._write(lambda table: table.insert_overwrite_table(self._table(given)), self._with(given, {}), dies_at)
        elif what == "partitions of rows":
            after = self._with(given, without_partitions(self.rows, parts))
            self._write(lambda table: table.insert_overwrite(self._table(given)), after, dies_at)
        elif (after := without_partitions(self.rows, parts)) != self.rows:
            self._write(lambda table: table.delete_partition(sorted(parts)), after, dies_at)

    @rule(parts=st.sets(st.sampled_from(PARTS), min_size=1, max_size=2), days=st.integers(1, 90), dies_at=CALLS)
    def expire(self, parts: set[str], days: int, dies_at: int | None) -> None:
        """100 days pass: everything is older than so many days."""
        after = without_partitions(self.rows, parts)
        nothing = {"hoodie.partition.ttl.strategy.days.retain": "20000"}
        assert self._opened(self.storage).ttl(**nothing) is None
        self.env.advance(timedelta(days=100))
        rule_of_time = {
            "hoodie.partition.ttl.strategy.days.retain": str(days),
            "hoodie.partition.ttl.strategy.partition.selected": ",".join(sorted(parts)),
        }
        expected = after != self.rows
        if self._write(lambda table: table.ttl(**rule_of_time), after, dies_at) and expected:
            COUNTS["expired partitions"] += 1

    @precondition(lambda self: self.logs)
    @rule(what=st.sampled_from(["plan", "all", "blocks"]), dies_at=CALLS)
    def compact(self, what: str, dies_at: int | None) -> None:
        if what == "plan":
            self._serve(lambda table: table.schedule_compaction(), dies_at)
        elif what == "blocks" and self._version() >= 8:
            if not self._serve(lambda table: table.compact_logs(**BLOCKS), dies_at):
                self.half_compacted.add("blocks")
        elif not self._serve(lambda table: table.compact(), dies_at):
            self.half_compacted.add("all")

    @precondition(lambda self: self.rings)
    @rule(larger=st.booleans(), dies_at=CALLS)
    def resize(self, larger: bool, dies_at: int | None) -> None:
        if self._serve(lambda table: table.resize_buckets(**(SPLIT if larger else JOIN)), dies_at):
            COUNTS["resizes"] += 1

    @rule(version=st.sampled_from([6, 8, 9]), dies_at=MANY_CALLS)
    def change_version(self, version: int, dies_at: int | None) -> None:
        before = self._version()
        self.half_changed = True
        if self._serve(lambda table: table.upgrade(version), dies_at):
            assert self._version() == version
            self.half_changed = False
            COUNTS["version changes"] += before != version
        elif self.logs:
            self.half_compacted.add("all")  # every change of version begins with one, which stays if it dies

    @rule(dies_at=CALLS, kept=st.integers(1, 3), part=st.sampled_from([None, None, *PARTS]))
    def clean(self, dies_at: int | None, kept: int, part: str | None) -> None:
        options = {"hoodie.clean.commits.retained": str(kept)}
        if part is not None:
            options |= {"hoodie.clean.incremental.enabled": "false", "hoodie.clean.partition.filter.selected": part}
        self.cleaned = True
        self._serve(lambda table: table.clean(**options), dies_at)

    @rule(dies_at=CALLS)
    def archive(self, dies_at: int | None) -> None:
        self.half_archived = not self._serve(lambda table: table.archive(**FEW), dies_at)

    @rule(first_goes=st.booleans())
    def save(self, first_goes: bool) -> None:
        if first_goes and self.saved:
            self._opened(self.storage).delete_savepoint(self.saved.pop(0)[0])
        if self._newest() in (instant for instant, _ in self.saved):
            return
        try:
            instant = self._opened(self.storage).savepoint().instant
        except Invalid:
            return  # a clean may have taken files of it
        self.saved.append((instant, dict(self.rows)))
        self.before_newest = None

    @precondition(lambda self: self.saved and not self.half_changed)
    @rule(dies_at=CALLS)
    def restore(self, dies_at: int | None) -> None:
        instant, rows = self.saved[-1]
        passed = [state for at, state in self.states.items() if at > instant]  # it undoes one commit after the other
        done = self._act(lambda table: table.restore(instant), rows, dies_at, passed)
        if not done:  # a restore that died blocks writers until it is finished
            self._act(lambda table: table.restore(instant), rows, None)
        self.rows, self.before_newest = dict(rows), None
        self.states = {at: state for at, state in self.states.items() if at <= instant}

    @precondition(lambda self: self.before_newest is not None)
    @rule(dies_at=CALLS)
    def roll_back(self, dies_at: int | None) -> None:
        assert self.before_newest is not None
        newest = self._newest()
        done = self._act(lambda table: table.rollback(newest), self.before_newest, dies_at)
        if not done and self._newest() == newest:  # what was planned is carried out by whoever comes next
            self._act(lambda table: table.rollback(newest), self.before_newest, None)
        self.before_newest = None
        if all(one.requested != newest for one in self._opened(self.storage).timeline().completed_writes()):
            self.states.pop(newest, None)

    @precondition(lambda self: self.metadata)
    @rule(dies_at=CALLS)
    def make_index(self, dies_at: int | None) -> None:
        if "record_index" not in self._opened(self.storage).indexes():
            self._serve(lambda table: table.create_index("record_index"), dies_at)

    @invariant()
    def the_table_holds_what_the_model_holds(self) -> None:
        if not self.states:
            return
        COUNTS["steps"] += 1
        self._check_snapshot(self.rows)
        self._note_state()
        instants = sorted(self.states)
        chosen = instants[next(self.turns) * 7 % len(instants)]
        self._check_state(chosen)
        self._check_changes_since(chosen)

    def teardown(self) -> None:
        if self.states:
            self._opened(self.storage).upsert(self._table({99: ("last", 99)}))  # heals what died
            self._check_snapshot({**self.rows, "k99": ("last", 99)})
            if self.half_changed:
                self._opened(self.storage).upgrade(self._version())  # or given up
            if self.half_archived:
                self._opened(self.storage).archive(**FEW)  # goes on with the files of the instant it died at
            # Each goes on with the plan of its kind that died, and its files go: a write leaves them to it.
            if "blocks" in self.half_compacted and self._version() >= 8:
                self._opened(self.storage).compact_logs(**BLOCKS)
            if "all" in self.half_compacted:
                self._opened(self.storage).compact()
            for instant in self.states:
                self._check_state(instant)
            COUNTS["validations"] += 1
            assert [one for one in self._opened(self.storage).validate() if one.kind != "pending"] == []
        self.storage.forget()

    def _check_snapshot(self, rows: Rows) -> None:
        COUNTS["snapshots"] += 1
        assert self._held() == rows

    def _check_state(self, instant: str) -> None:
        """The rows as of a commit; after a clean it may be refused."""
        try:
            found = self._held(as_of=instant)
        except Invalid as error:
            assert self.cleaned, error
            COUNTS["refused time travels"] += 1
            return
        COUNTS["time travels"] += 1
        assert found == self.states[instant], f"as of {instant}"

    def _check_changes_since(self, instant: str) -> None:
        """Rows whose value is another one than after the commit, which writes never repeat."""
        timeline = self._opened(self.storage).timeline()
        begin = next((one for one in timeline.completed_writes() if one.requested == instant), None)
        if begin is None:  # archived
            return
        COUNTS["incremental pulls"] += 1
        known = self.states[instant]
        completed = begin.completed if timeline.profile.stores_completion_time else None
        found = self._held(query="incremental", begin=completed or instant)
        assert found == {key: value for key, value in self.rows.items() if known.get(key) != value}, f"since {instant}"

    def _note_state(self) -> None:
        self.states[self._newest()] = dict(self.rows)

    def _newest(self) -> str:
        return self._opened(self.storage).timeline().completed_writes()[-1].requested

    def _write(self, act: Callable[[Table], object], after: Rows, dies_at: int | None) -> bool:
        before, newest = dict(self.rows), self._newest()
        done = self._act(act, after, dies_at)
        self.before_newest = before if done and self._newest() != newest else None
        return done

    def _serve(self, act: Callable[[Table], object], dies_at: int | None) -> bool:
        done = self._act(act, self.rows, dies_at)
        self.before_newest = None
        return done

    def _act(
        self, act: Callable[[Table], object], after: Rows, dies_at: int | None, passed: Sequence[Rows] = ()
    ) -> bool:
        """Whether the action ended; otherwise it died, and the model has what the table holds. `passed`: states between
        before and after in which it may leave the table.
        """
        try:
            act(self._opened(CountingStorage(self.storage, crash_at=dies_at)))
        except Crash:
            COUNTS["crashes"] += 1
            found = self._held()
            assert found in (self.rows, after, *passed)
            self.rows = found
            return False
        self.rows = dict(after)
        return True

    def _opened(self, storage: Storage) -> Table:
        return Table(load_handle(storage, self.env), self.options, ENGINE)

    def _version(self) -> int:
        return self._opened(self.storage).version

    def _held(self, **query: Any) -> Rows:
        found = self._opened(self.storage).scan(columns=["id", "v", "ts"], **query).read_all().to_pydict()
        assert len(found["id"]) == len(set(found["id"])), "a key occurs twice"
        return dict(zip(found["id"], zip(found["v"], found["ts"], strict=True), strict=True))

    def _given(self, keys: set[int]) -> dict[int, Value]:
        self.clock += 1
        return {n: (f"{self.clock}-{n}", self.clock) for n in sorted(keys)}

    def _with(self, given: dict[int, Value], rows: Rows | None = None) -> Rows:
        return {**(self.rows if rows is None else rows), **{f"k{n}": value for n, value in given.items()}}

    def _table(self, values: dict[int, Value]) -> Any:
        return table_of([row(f"k{n}", text, ts, part_of(n)) for n, (text, ts) in values.items()])


@pytest.mark.parametrize("number", range(SEED, SEED + SEEDS))
def test_the_table_holds_what_the_model_holds_whatever_is_done_and_whoever_dies(number: int) -> None:
    machine = seed(number)(type(f"Machine{number}", (TableMachine,), {}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=PHASES,
        ),
    )


def test_the_machine_did_something() -> None:
    print(f"\nstate machine, seeds {SEED} to {SEED + SEEDS - 1}: {COUNTS}")
    assert COUNTS["steps"] > EXAMPLES * SEEDS
