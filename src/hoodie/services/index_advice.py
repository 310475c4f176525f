"""Which write index finds the keys of a table with the least work: each that the table could be written with is asked
for a sample of its keys, and for some that it does not have, as an upsert would ask.

1. Nothing is stored. What is measured is tagging: naming the file slices, and reading key columns where that is needed.
2. The sample comes from base files all over the table, by chance; half as many keys as are found there are new.
3. Seconds are those of this machine and moment, and the first index that reads a file warms it for the others: files
   that are read tell more where the table is larger than the machine's memory.
4. An index that does not find all sampled keys (another wrote them) is not recommended, however fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie.config import Config, resolve
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import HudiError, Invalid
from hoodie.fileview import open_file_view
from hoodie.index import (
    HeldKeys,
    IndexedTable,
    KeySet,
    LookupTask,
    Positions,
    WriteIndex,
    find_in_file,
    group_by_partition,
    parse_remembered_buckets,
    parse_write_index,
)
from hoodie.index.key_lookup import KeysTask, read_keys
from hoodie.metadata import RECORD_INDEX
from hoodie.records import KeyGenerator
from hoodie.spec import TableConfig
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.view import FileSlice
from hoodie.write.key_options import key_generator

_TYPE: Final = "hoodie.index.type"
_LATER: Final = "99991231235959999"
_SAMPLED_FILES: Final = 16
_ALWAYS: Final = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")


@dataclass(frozen=True, slots=True)
class IndexTrial:
    """What asking one index took. `looked_into`: base files whose footer or key column was read for it (the index's own
    files are not counted); `found`: of the sampled keys. `problem`: why it could not be asked, or cannot be used.
    """

    index: str
    seconds: float | None
    looked_into: int
    found: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class IndexAdvice:
    """The index to write with, and why; the trials, best first. `sampled` keys were asked for, and `new` ones."""

    recommended: str
    why: str
    sampled: int
    new: int
    files: int
    trials: tuple[IndexTrial, ...]


def advise_index(handle: TableHandle, config: Config, engine: Engine | None = None, *, keys: int = 1000) -> IndexAdvice:
    """Asks each index and recommends one. HBASE is asked where the options say where it is. BUCKET is a decision for a
    table's whole life: it is asked, and nothing else, where the table was made with it.

    Raises:
        Invalid: the table has no keys to ask for.
    """
    engine = engine or LocalEngine()
    timeline = timeline_of(handle)
    view = open_file_view(handle.storage, handle.config, timeline, engine=engine).load()
    slices = view.slices_at()
    generator = None
    if not handle.config.populate_meta_fields:
        generator = key_generator(handle.config, handle.profile, config)
    sample = _sample(handle, slices, generator, engine, keys)
    table = IndexedTable(
        handle=handle,
        timeline=timeline,
        instant=_LATER,
        view=view,
        slices_of=group_by_partition(slices),
        local=engine,
        spread=engine,
        generator=generator,
    )
    trials = [_trial(name, table, sample, config) for name in _names(handle.config, config)]
    return _advice(trials, sample, len(slices))


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """`KeyedRows`: keys of each partition path; the first of all `stored` ones are in the table, at these positions."""

    held: Mapping[str, HeldKeys]
    stored: Positions
    in_memory: bool = True

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(self.held)

    def __len__(self) -> int:
        return sum(len(keys.positions) for keys in self.held.values())

    def positions(self, partition: str) -> Positions:
        return self.held[partition].positions

    def keys(self, partition: str | None = None, at: Positions | None = None) -> KeySet:
        parts = list(self.held.values()) if partition is None else [self.held[partition]]
        whole = HeldKeys(
            pa.concat_arrays([one.keys for one in parts]), np.concatenate([one.positions for one in parts])
        )
        return whole if at is None else whole.at(at)


def _sample(
    handle: TableHandle, slices: Sequence[FileSlice], generator: KeyGenerator | None, engine: Engine, wanted: int
) -> _Sample:
    """So many keys of the table, and half as many more that are like them and not there."""
    env = handle.env
    bases = [(piece, piece.base) for piece in slices if piece.base is not None]
    chosen = sorted(bases, key=lambda _: env.random())[:_SAMPLED_FILES]
    tasks = [KeysTask(handle.storage, base.path, generator) for _, base in chosen]
    read = engine.run(read_keys, tasks, "index")
    by_partition: dict[str, list[pa.Array]] = {}
    for (piece, _), found in zip(chosen, read, strict=True):
        distinct = found.unique()
        share = min(len(distinct), -(-wanted // len(chosen)))
        at = sorted({int(env.random() * len(distinct)) for _ in range(share)})
        by_partition.setdefault(piece.partition, []).append(distinct.take(pa.array(at, pa.int64())))
    held: dict[str, HeldKeys] = {}
    stored: list[Positions] = []
    begin = 0
    for partition, parts in by_partition.items():
        known = pa.concat_arrays(parts).unique()
        new = pa.array([f"{key}-new" for key in known.slice(0, len(known) // 2).to_pylist()], pa.string())
        positions = np.arange(begin, begin + len(known) + len(new), dtype=np.int64)
        held[partition] = HeldKeys(pa.concat_arrays([known, new]), positions)
        stored.append(positions[: len(known)])
        begin += len(positions)
    if not begin:
        raise Invalid(
            f"Table {handle.config.name} has no base files with keys to ask for", remedy="Write rows first", keys=0
        )
    return _Sample(held, np.concatenate(stored))


def _names(table: TableConfig, config: Config) -> tuple[str, ...]:
    """The indexes that can be asked."""
    if parse_remembered_buckets(table.raw) is not None:
        return ("BUCKET",)
    names = [*_ALWAYS]
    if RECORD_INDEX in table.metadata_partitions:
        names.append("RECORD_INDEX")
    if config.is_set("hoodie.index.hbase.table"):
        names.append("HBASE")
    return tuple(names)


def _trial(name: str, table: IndexedTable, sample: _Sample, config: Config) -> IndexTrial:
    handle = table.handle
    try:
        index = parse_write_index(resolve({**config.explicit, _TYPE: name}), handle.config)
        began_s = handle.env.monotonic()
        looked_into, found = _asked(index, table, sample)
        seconds = handle.env.monotonic() - began_s
    except HudiError as error:
        return IndexTrial(name, None, 0, 0, error.cause)
    missing = len(sample.stored) - found
    problem = f"does not find {missing} of the keys: they were written with another index" if missing else None
    return IndexTrial(name, round(seconds, 4), looked_into, found, problem)


def _asked(index: WriteIndex, table: IndexedTable, sample: _Sample) -> tuple[int, int]:
    """How many base files were looked into, and how many of the stored keys were found."""
    candidates = index.begin(table, sample).tag(sample)
    vouches = table.handle.config.is_merge_on_read and all(one.vouched is not None for one in candidates)
    if vouches:
        named = [one.vouched for one in candidates if one.vouched is not None]
        return 0, _count(named, sample)
    storage, generator = table.handle.storage, table.generator
    tasks = [
        LookupTask(
            storage,
            one.slice.base.path,
            one.keys,
            by_bloom=one.by_bloom,
            by_range=one.by_range,
            generator=generator,
            bloom=one.bloom,
        )
        for one in candidates
        if one.slice.base is not None
    ]
    hits = table.spread.run(find_in_file, tasks, "index")
    return len(tasks), _count([one.positions for one in hits], sample)


def _count(named: Sequence[Positions], sample: _Sample) -> int:
    """How many of the stored keys are among the named positions."""
    return int(np.isin(sample.stored, np.concatenate([np.empty(0, np.int64), *named])).sum())


def _advice(trials: Sequence[IndexTrial], sample: _Sample, files: int) -> IndexAdvice:
    ordered = sorted(trials, key=lambda one: (one.problem is not None, one.seconds or 0.0))
    best = ordered[0]
    if best.problem is not None:
        raise Invalid("No index finds the keys of this table", remedy="Write with the index it was made with", keys=0)
    stored = len(sample.stored)
    slower = [one for one in ordered[1:] if one.problem is None and one.seconds]
    why = f"it found {stored} keys in {best.seconds} s"
    if slower:
        why += f"; {slower[0].index} took {slower[0].seconds} s, {slower[-1].index} {slower[-1].seconds} s"
    return IndexAdvice(best.index, why, stored, len(sample) - stored, files, tuple(ordered))
