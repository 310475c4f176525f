"""Random sequences of writes and services on one table, with crashes and interrupts, against a model of its rows.

1. Hypothesis draws version, table type, write index, merge rule, change data and where the table lies; then operations,
   and for some of them a call at which the storage stops answering or the user presses Ctrl-C. After each step the
   table holds what the model holds; after a fault it holds the rows before the action or those after it (in a restore,
   those after any commit it undoes, too), and the machine goes on from there.
2. The model keeps the rows after every commit. After each step the laws (`table_laws`) are checked, those about an
   earlier commit for one of them in turns.
3. Clock and ids are fakes, so that a sequence can be repeated and partitions get old.
4. Tables on a disk get symbolic links planted; what these lead to never changes.
5. At the end a write heals what died, the services it leaves that to go on, all states are read once more, and
   `validate` finds nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from unittest.mock import patch

import pyarrow as pa
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

from hoodie.errors import Invalid, Unsupported
from hoodie.index import hbase_index
from hoodie.services.clustering.cluster import CLUSTERINGS
from hoodie.services.upgrading.timeline import keeps_times
from hoodie.spec import Curve
from hoodie.spec.sort_order import CURVE, SORT_COLUMNS
from hoodie.state.pending_plans import PendingPlans
from hoodie.table import Table
from hoodie.testing import table_laws as laws
from hoodie.testing.driven_table import Act, DrivenTable, Fault
from hoodie.testing.hbase_table import HBaseTable
from hoodie.testing.table_model import (
    PARTS,
    Kept,
    Rows,
    arrow_rows,
    given_rows,
    key_of,
    part_of,
    upserted,
    with_texts,
    without,
    without_parts,
)
from hoodie.testing.two_stores import Stores

WRITE: Final = "hoodie.datasource.write."
BUCKETS: Final = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
INDEXES: Final[Mapping[str, Mapping[str, str]]] = {
    "simple": {"hoodie.index.type": "SIMPLE"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "global simple": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "global bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "in memory": {"hoodie.index.type": "INMEMORY"},
    "hbase": {
        "hoodie.index.type": "HBASE",
        "hoodie.index.hbase.table": "places",
        "hoodie.index.hbase.zkquorum": "nowhere",
        "hoodie.hbase.index.update.partition.path": "true",
    },
    "buckets": BUCKETS,
    "rings": {**BUCKETS, "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
    "record": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.record.index.update.partition.path": "true",
    },
    "record of partitions": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}
"""Every write index, each with options under which it moves rows between partitions where it can."""

MOVING: Final = frozenset({"global simple", "global bloom", "hbase", "record"})
METADATA_INDEXES: Final = ("record_index", "column_stats", "partition_stats", "bloom_filters", "by_text", "days")
SPLIT: Final = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.max.num.buckets": "4"}
JOIN: Final = {"hoodie.bucket.index.min.num.buckets": "1"}
BLOCKS: Final = {"hoodie.log.compaction.enable": "true", "hoodie.log.compaction.blocks.threshold": "2"}
FEW: Final = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
POLICIES: Final = (
    {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "1"},
    {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": "3"},
    {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"},
    {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"},
    {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "1"},
)
LINKS: Final = (".hoodie/.temp/20200101000000000", ".hoodie/notes.spool", "p0/old", "elsewhere")
LEFT_BY_THE_DEAD: Final = ("orphan", "uncommitted", "properties", "timeline", "partition", "version")
"""Findings until the next action. Never among them: rows that are lost or wrong, indexes that say what is not so."""

KEYS: Final = st.sets(st.integers(0, 14), max_size=6)
SOME_KEYS: Final = st.sets(st.integers(0, 14), min_size=2, max_size=6)


def faults(calls: int) -> st.SearchStrategy[Fault]:
    kinds = st.sampled_from(["stopped", "stopped", "interrupted", "interrupted after"])
    return st.one_of(st.tuples(kinds, st.integers(1, calls)), st.none())


COPIED: Final = {"hoodie.row.group.copy.min.bytes": "0"}
FAULTS: Final = faults(160)
LATER_FAULTS: Final = faults(400)
COUNTS: Final = dict.fromkeys(
    (
        "sequences",
        "steps",
        "late rows",
        "moved rows",
        "version changes",
        "resizes",
        "clusterings",
        "expired partitions",
        "partial updates",
        "indexes made",
        "indexes dropped",
    ),
    0,
)


class TableMachine(RuleBasedStateMachine):
    """One table and what it should hold. `strategy`: its files lie under a storage path, by this storage strategy.
    `partitioned`: by the column `part`, which else is one like others.
    """

    strategy = ""
    partitioned = True

    def __init__(self) -> None:
        super().__init__()
        COUNTS["sequences"] += 1
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
        self.table: DrivenTable
        places = HBaseTable()
        self.hbase = patch.object(hbase_index, "Gateway", lambda host, port, name: places)
        self.hbase.start()

    @initialize(
        version=st.sampled_from([6, 8, 9]),
        logs=st.booleans(),
        index=st.sampled_from(sorted(INDEXES)),
        by_event_time=st.booleans(),
        changes=st.sampled_from([False, False, True]),
        metadata=st.sampled_from([True, True, False]),
        indexes=st.sets(st.sampled_from(METADATA_INDEXES)),
        on_disk=st.sampled_from([False, False, False, True]),
    )
    def make(
        self,
        *,
        version: int,
        logs: bool,
        index: str,
        by_event_time: bool,
        changes: bool,
        metadata: bool,
        indexes: set[str],
        on_disk: bool,
    ) -> None:
        logs = logs or index == "rings"
        if index == "record of partitions" and version < 8:
            index = "record"
        self.index, self.logs, self.by_event_time, self.changes = index, logs, by_event_time, changes
        self.metadata = metadata or index.startswith("record") or bool(self.strategy)
        options = {
            "hoodie.table.name": "machine",
            WRITE + "recordkey.field": "id",
            WRITE + "partitionpath.field": "part" if self.partitioned else "",
            WRITE + "table.type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE",
            "hoodie.index.bloom.num_entries": "50",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.metadata.enable": str(self.metadata).lower(),
            "hoodie.table.cdc.enabled": str(changes).lower(),
            **INDEXES[index],
        }
        if by_event_time:
            options["hoodie.table.ordering.fields"] = "ts"
            if version == 6:
                payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
                options[WRITE + "payload.class"] = payload
        on_disk = on_disk and not self.strategy
        self.table = DrivenTable(options, on_disk=on_disk, strategy=self.strategy, stores=self.new_stores())
        first = self._given(set(range(5)))
        self.table.make(arrow_rows(first), {"hoodie.write.table.version": str(version)})
        self.rows = first
        self._note_state()
        for name in sorted(indexes, key=METADATA_INDEXES.index) if self.metadata else ():
            self.make_index(name, None)

    @rule(keys=KEYS, fault=FAULTS)
    def upsert(self, keys: set[int], fault: Fault) -> None:
        given = self._given(keys)
        self._write(lambda table: table.upsert(arrow_rows(given)), self._with(given), fault)

    @precondition(lambda self: self.index in MOVING)
    @rule(keys=SOME_KEYS, shift=st.sampled_from([1, 2, 0]), fault=FAULTS)
    def move(self, keys: set[int], shift: int, fault: Fault) -> None:
        """Rows come with another partition than they have, beside new ones."""
        given = self._given(keys, shift)
        moved = sum(key in self.rows and self.rows[key].part != row.part for key, row in given.items())
        if self._write(lambda table: table.upsert(arrow_rows(given)), self._with(given), fault):
            COUNTS["moved rows"] += moved

    @precondition(lambda self: self.by_event_time)
    @rule(keys=KEYS, fault=FAULTS)
    def upsert_late(self, keys: set[int], fault: Fault) -> None:
        """Rows that were overtaken: alone, so that a commit may change nothing, or beside one row that is new."""
        late = self._given({n for n in keys if key_of(n) in self.rows}, late=True)
        newer = self._given({min(keys)}) if len(keys) > 2 else {}
        given = {**late, **newer}
        if self._write(lambda table: table.upsert(arrow_rows(given)), self._with(given), fault):
            COUNTS["late rows"] += len(late)

    @precondition(lambda self: self.logs and self._updates_columns())
    @rule(keys=KEYS, fault=FAULTS)
    def update_texts(self, keys: set[int], fault: Fault) -> None:
        given = self._given(keys)
        changes = arrow_rows(given).drop_columns(["ts"])
        if self._write(lambda table: table.update(changes), with_texts(self.rows, given), fault):
            COUNTS["partial updates"] += 1

    @rule(keys=KEYS, fault=FAULTS)
    def delete(self, keys: set[int], fault: Fault) -> None:
        """Known keys and such as were never there."""
        given = self._given(keys)
        self._write(lambda table: table.delete(arrow_rows(given)), without(self.rows, given), fault)

    @rule(keys=KEYS, appends=st.booleans(), fault=FAULTS)
    def bulk_insert(self, keys: set[int], appends: bool, fault: Fault) -> None:
        given = self._given({n for n in keys if key_of(n) not in self.rows})

        def add(table: Table) -> object:
            return (table.append if appends else table.bulk_insert)(arrow_rows(given))

        self._write(add, self._with(given), fault)

    @rule(what=st.sampled_from(["partitions of rows", "table", "partition"]), keys=KEYS, fault=FAULTS)
    def overwrite(self, what: str, keys: set[int], fault: Fault) -> None:
        given = self._given(keys)
        after: Rows
        parts = {row.part for row in given.values()}
        if what == "table" or not self.partitioned:
            alone, whole = given or self._given({0}), what == "table"
            self._write(lambda table: _overwrite_all(table, arrow_rows(alone), whole=whole), alone, fault)
        elif what == "partitions of rows":
            after = {**without_parts(self.rows, parts), **given}
            self._write(lambda table: table.insert_overwrite(arrow_rows(given)), after, fault)
        elif (after := without_parts(self.rows, parts)) != self.rows:
            self._write(lambda table: table.delete_partition(sorted(parts)), after, fault)

    @precondition(lambda self: self.partitioned)
    @rule(parts=st.sets(st.sampled_from(PARTS), min_size=1, max_size=2), days=st.integers(1, 90), fault=FAULTS)
    def expire(self, parts: set[str], days: int, fault: Fault) -> None:
        """100 days pass: everything is older than so many days."""
        after = without_parts(self.rows, parts)
        nothing = {"hoodie.partition.ttl.strategy.days.retain": "20000"}
        assert self.table.opened().services.ttl(**nothing) is None
        self.table.env.advance(timedelta(days=100))
        rule_of_time = {
            "hoodie.partition.ttl.strategy.days.retain": str(days),
            "hoodie.partition.ttl.strategy.partition.selected": ",".join(sorted(parts)),
        }
        expected = after != self.rows
        if self._write(lambda table: table.services.ttl(**rule_of_time), after, fault) and expected:
            COUNTS["expired partitions"] += 1

    @precondition(lambda self: self.logs)
    @rule(what=st.sampled_from(["plan", "all", "blocks"]), fault=FAULTS)
    def compact(self, what: str, fault: Fault) -> None:
        if what == "plan":
            self._serve(lambda table: table.services.schedule_compaction(), fault)
        elif what == "blocks" and self.table.version >= 8:
            if not self._serve(lambda table: table.services.compact_logs(**BLOCKS), fault):
                self.half_compacted.add("blocks")
        elif not self._serve(lambda table: table.services.compact(), fault):
            self.half_compacted.add("all")

    @precondition(lambda self: self.index not in ("buckets", "rings"))
    @rule(
        how=st.sampled_from(["copy", "base files", *Curve]),
        meanwhile=st.sampled_from([None, None, "save", "archive"]),
        gives_up=st.booleans(),
        fault=FAULTS,
    )
    def cluster(self, how: str, meanwhile: str | None, gives_up: bool, fault: Fault) -> None:
        """What died is carried out or taken off: until then writers of its file groups are refused. `meanwhile`: what
        is done between plan and execution.
        """
        options = COPIED if how in ("copy", "base files") else {SORT_COLUMNS: "v,ts", CURVE: how}
        name = "compact_base_files" if how == "base files" else "cluster"
        if meanwhile is not None:
            self._serve(lambda table: table.services.run(name, {"op": "schedule"}, **options), None)
            self.save(first_goes=False) if meanwhile == "save" else self.archive(fault=None)
        if self._serve(lambda table: table.services.run(name, None, **options), fault):
            COUNTS["clusterings"] += 1
        else:
            self._serve(_give_up_clusterings if gives_up else lambda table: table.services.cluster(op="execute"), None)

    @precondition(lambda self: self.index == "rings")
    @rule(larger=st.booleans(), fault=FAULTS)
    def resize(self, larger: bool, fault: Fault) -> None:
        if self._serve(lambda table: table.services.resize(**(SPLIT if larger else JOIN)), fault):
            COUNTS["resizes"] += 1

    @rule(version=st.sampled_from([6, 8, 9]), fault=LATER_FAULTS)
    def change_version(self, version: int, fault: Fault) -> None:
        before = self.table.version
        if self.index == "record of partitions" and version == 6:
            return
        self.half_changed = True
        try:
            done = self._serve(lambda table: table.services.upgrade(version), fault)
        except Invalid:  # log files of older slices are not renamed on an object store
            assert version == 6
            assert self.logs
            assert not keeps_times(self.table.storage)
            done = False
        if done:
            assert self.table.version == version
            self.half_changed = False
            COUNTS["version changes"] += before != version
        elif self.logs:
            self.half_compacted.add("all")  # every change of version begins with one, which stays if it dies

    @rule(
        policy=st.sampled_from(POLICIES),
        hours=st.integers(0, 2),
        part=st.sampled_from([None, None, *PARTS]),
        fault=FAULTS,
    )
    def clean(self, policy: Mapping[str, str], hours: int, part: str | None, fault: Fault) -> None:
        self.table.env.advance(timedelta(hours=hours))
        options = dict(policy)
        part = part if self.partitioned else None
        if part is not None:
            options |= {"hoodie.clean.incremental.enabled": "false", "hoodie.clean.partition.filter.selected": part}
        self.cleaned = True
        try:
            self._serve(lambda table: table.services.clean(**options), fault)
        except Invalid:  # groups of other partitions were replaced: they cannot be told from cleaned ones
            assert part is not None
            assert "hoodie.clean.fileversions.retained" in options

    @rule(fault=FAULTS)
    def archive(self, fault: Fault) -> None:
        self.half_archived = not self._serve(lambda table: table.services.archive(**FEW), fault)

    @rule(first_goes=st.booleans())
    def save(self, first_goes: bool) -> None:
        if first_goes and self.saved:
            self.table.opened().savepoints.delete(self.saved.pop(0)[0])
        if self.table.newest() in (instant for instant, _ in self.saved):
            return
        try:
            instant = self.table.opened().savepoints.create().instant
        except Invalid:
            return  # a clean may have taken files of it
        self.saved.append((instant, dict(self.rows)))
        self.before_newest = None

    @precondition(lambda self: self.saved and not self.half_changed)
    @rule(fault=FAULTS)
    def restore(self, fault: Fault) -> None:
        instant, rows = self.saved[-1]
        passed = [state for at, state in self.states.items() if at > instant]  # it undoes one commit after the other
        done = self._act(lambda table: table.services.restore(instant), rows, fault, passed)
        if not done:  # a restore that died blocks writers until it is finished
            self._act(lambda table: table.services.restore(instant), rows, None)
        self.rows, self.before_newest = dict(rows), None
        self.states = {at: state for at, state in self.states.items() if at <= instant}

    @precondition(lambda self: self.before_newest is not None)
    @rule(fault=FAULTS)
    def roll_back(self, fault: Fault) -> None:
        assert self.before_newest is not None
        newest = self.table.newest()
        try:
            done = self._act(lambda table: table.services.rollback(newest), self.before_newest, fault)
        except Invalid:  # a downgrade that died has to be finished or given up first
            assert self.half_changed
            return
        if not done and self.table.newest() == newest:  # what was planned is carried out by whoever comes next
            self._act(lambda table: table.services.rollback(newest), self.before_newest, None)
        self.before_newest = None
        if not self.table.has_write(newest):
            self.states.pop(newest, None)

    @precondition(lambda self: self.metadata)
    @rule(name=st.sampled_from(METADATA_INDEXES), fault=FAULTS)
    def make_index(self, name: str, fault: Fault) -> None:
        if name in self._indexes():
            return
        try:
            done = self._serve(lambda table: _make_index(table, name), fault)
        except (Invalid, Unsupported):
            return  # older versions have fewer kinds, and some need another
        COUNTS["indexes made"] += done

    @precondition(lambda self: self.metadata)
    @rule(name=st.sampled_from(METADATA_INDEXES), fault=FAULTS)
    def drop_index(self, name: str, fault: Fault) -> None:
        found = [index for index in self._indexes() if index.endswith(name)]
        if not found or (name == "record_index" and self.index.startswith("record")):
            return
        COUNTS["indexes dropped"] += self._serve(lambda table: table.indexes.drop(found[0]), fault)

    @precondition(lambda self: self.table.on_disk)
    @rule(place=st.sampled_from(LINKS))
    def plant_link(self, place: str) -> None:
        self.table.plant_link(place)

    @invariant()
    def the_table_holds_what_the_model_holds(self) -> None:
        if not self.states:
            return
        COUNTS["steps"] += 1
        table = self.table.opened()
        read = laws.local_reader(table)
        laws.ensure_snapshot(read, self.rows)
        self._note_state()
        turn = next(self.turns)
        instants = sorted(self.states)
        chosen = instants[turn * 7 % len(instants)]
        laws.ensure_state(read, chosen, self.states[chosen], may_refuse=self.cleaned)
        laws.ensure_changes(read, table, chosen, None, self.states, losers_too=self.shows_losers)
        if later := [at for at in instants if at > chosen]:
            end = later[turn % len(later)]
            laws.ensure_changes(read, table, chosen, end, self.states, losers_too=self.shows_losers)
        if self.changes:
            laws.ensure_change_data(read, table, chosen, self.states, may_refuse=self.cleaned)
        laws.ensure_look_ups(table, {key_of((turn + n) % 16) for n in range(4)}, self.rows)
        laws.ensure_valid(table, left=LEFT_BY_THE_DEAD)
        self.table.ensure_nothing_outside_changed()

    def teardown(self) -> None:
        try:
            self._end()
        finally:
            self.hbase.stop()

    def _end(self) -> None:
        if not self.states:
            return
        self._heal()
        table = self.table.opened()
        for instant, rows in self.states.items():
            laws.ensure_state(laws.local_reader(table), instant, rows, may_refuse=self.cleaned)
        self.table.remove_links(LINKS)
        laws.ensure_valid(table)
        self.table.ensure_nothing_outside_changed()
        self.at_the_end()
        self.table.forget()

    def new_stores(self) -> Stores | None:
        """Where the next table lies, if a test has stores for it."""
        return None

    def at_the_end(self) -> None:
        """What a test asks of the healed table beside that."""

    def _heal(self) -> None:
        """A write and the services it leaves it to end what died."""
        last = {"k99": Kept(part_of(99), "last", 1_000_000)}
        self.table.opened().upsert(arrow_rows(last))
        self.rows = {**self.rows, **last}
        laws.ensure_snapshot(laws.local_reader(self.table.opened()), self.rows)
        self._note_state()
        if self.half_changed:
            self.table.opened().services.upgrade(self.table.version)  # or given up
        if self.half_archived:
            self.table.opened().services.archive(**FEW)  # goes on with the files of the instant it died at
        # Each goes on with the plan of its kind that died, and its files go: a write leaves them to it.
        if "blocks" in self.half_compacted and self.table.version >= 8:
            self.table.opened().services.compact_logs(**BLOCKS)
        if "all" in self.half_compacted:
            self.table.opened().services.compact()

    @property
    def shows_losers(self) -> bool:
        """Whether incremental queries give late rows that lost, too."""
        return self.by_event_time and self.logs

    def _updates_columns(self) -> bool:
        """Whether rows with some of the columns can be written: without ordering columns, and with an index that knows
        whether a key is stored.
        """
        return self.table.version >= 8 and not self.by_event_time and self.index not in ("buckets", "rings", "hbase")

    def _indexes(self) -> tuple[str, ...]:
        return tuple(self.table.opened().indexes)

    def _note_state(self) -> None:
        self.states[self.table.newest()] = dict(self.rows)

    def _write(self, act: Act, after: Rows, fault: Fault) -> bool:
        before, newest = self.rows, self.table.newest()
        done = self._act(act, after, fault)
        self.before_newest = before if done and self.table.newest() != newest else None
        return done

    def _serve(self, act: Act, fault: Fault) -> bool:
        done = self._act(act, self.rows, fault)
        self.before_newest = None
        return done

    def _act(self, act: Act, after: Rows, fault: Fault, passed: Sequence[Rows] = ()) -> bool:
        left = self.table.act(act, self.rows, after, fault, passed)
        self.rows = after if left is None else left
        return left is None

    def _given(self, keys: set[int], shift: int | None = None, *, late: bool = False) -> dict[str, Kept]:
        self.clock += 1
        return given_rows(keys, self.rows, self.clock, shift=shift, late=late)

    def _with(self, given: Rows) -> Rows:
        return upserted(self.rows, given, by_event_time=self.by_event_time)


def _make_index(table: Table, name: str) -> None:
    match name:
        case "by_text":
            table.indexes.create(name, "v")
        case "days":
            table.indexes.create(name, "ts", function="from_unixtime")
        case _:
            table.indexes.create(name)


def _overwrite_all(table: Table, rows: pa.Table, *, whole: bool) -> object:
    """Of a table without partitions both operations replace all rows."""
    return (table.insert_overwrite_table if whole else table.insert_overwrite)(rows)


def _give_up_clusterings(table: Table) -> None:
    for one in CLUSTERINGS.pending(PendingPlans(table.storage, table.timeline())):
        table.services.cluster(one.requested, "unschedule")


def run_machine(machine: type[TableMachine], number: int, sequences: int, steps: int) -> None:
    """Run so many sequences of the seed `number`. A failure prints what repeats it; nothing is made smaller."""
    run_state_machine_as_test(
        seed(number)(type(f"{machine.__name__}{number}", (machine,), {})),
        settings=settings(
            max_examples=sequences,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=(Phase.explicit, Phase.generate),
            database=None,
        ),
    )
