"""Random sequences of writes against a model: a dict of rows. The table must hold exactly what the model holds.

Versions, index kinds, ordering and spooled or in-memory input are drawn too. Earlier snapshots stay readable by time
travel, as far back as automatic cleaning leaves them.

`HOODIE_FUZZ_WALKS` (default 6) is the number of walks, `HOODIE_SOAK_COMMITS` (default 12) the length of each,
`HOODIE_FUZZ_SEED` the first seed: `make fuzz` runs many short walks, `make soak` one long one.
A failure prints the seed to repeat it.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.table import Table, as_source, write

WALKS = int(os.environ.get("HOODIE_FUZZ_WALKS", "6"))
KEPT = 9
"""States that automatic cleaning leaves at least (`hoodie.clean.commits.retained` is 10)."""
COMMITS = int(os.environ.get("HOODIE_SOAK_COMMITS", "12"))
SEED = int(os.environ.get("HOODIE_FUZZ_SEED", "20261121"))
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("text", pa.string())])
PARTS = ["a", "b", "c"]

Rows = dict[int, tuple[str, int, str]]


@dataclass
class Walk:
    """One table under test and what it should hold: id -> (partition, ordering value, text)."""

    path: str
    chance: random.Random
    version: int
    index: str
    event_time: bool
    spooled: bool
    rows: Rows = field(default_factory=dict)
    history: list[tuple[str, Rows]] = field(default_factory=list)
    clock: int = 0

    @property
    def options(self) -> dict[str, str]:
        options = {
            "hoodie.table.name": "walk",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.write.table.version": str(self.version),
            "hoodie.index.type": self.index,
            "hoodie.index.bloom.num_entries": "50",
            "hoodie.parquet.max.file.size": str(self.chance.choice([3_000, 20_000, 10_000_000])),
            "hoodie.engine.local.max.bytes": "1" if self.spooled else "268435456",
        }
        if self.event_time:
            options["hoodie.table.ordering.fields"] = "ts"
            if self.version == 6:
                options["hoodie.datasource.write.payload.class"] = (
                    "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
                )
        return options

    def step(self) -> str:
        """One write on the table and on the model; the operation that was drawn."""
        self.clock += 1
        operation = self.chance.choices(
            ["upsert", "delete", "bulk_insert", "insert_overwrite", "delete_partition", "insert_overwrite_table"],
            [10, 4, 3, 2, 1, 1],
        )[0]
        if not self.history:
            operation = "upsert"
        getattr(self, f"_{operation}")()
        newest = Table.open(self.path).timeline().completed()[-1]
        self.history.append((newest.requested, dict(self.rows)))
        return operation

    def _part_of(self, key: int) -> str:
        """Keys keep their partition, unless the index looks for them everywhere."""
        if self.index.startswith("GLOBAL") and self.chance.random() < 0.3:
            return self.chance.choice(PARTS)
        return self.rows[key][0] if key in self.rows else PARTS[key % 3]

    def _drawn(self, fresh: bool = False) -> Rows:
        wanted = self.chance.sample(range(60), self.chance.randint(0, 12))
        keys = [key for key in wanted if not fresh or key not in self.rows]
        late = self.chance.randint(-3, 1) if self.event_time else 0
        return {key: (self._part_of(key), self.clock + late, f"{self.clock}-{key}") for key in keys}

    def _upsert(self) -> None:
        given = self._drawn()
        self._write("upsert", given)
        for key, row in given.items():
            if not (self.event_time and key in self.rows and row[1] < self.rows[key][1]):
                self.rows[key] = row

    def _delete(self) -> None:
        given = {key: self.rows[key] for key in self.rows if self.chance.random() < 0.2}
        self._write("delete", given)
        for key in given:
            del self.rows[key]

    def _bulk_insert(self) -> None:
        given = self._drawn(fresh=True)
        self._write("bulk_insert", given)
        self.rows.update(given)

    def _insert_overwrite(self) -> None:
        given = {key: (PARTS[key % 3], *row[1:]) for key, row in self._drawn(fresh=True).items()}
        self._write("insert_overwrite", given)
        touched = {row[0] for row in given.values()}
        self.rows = {key: row for key, row in self.rows.items() if row[0] not in touched} | given

    def _insert_overwrite_table(self) -> None:
        self.rows = self._drawn(fresh=True)
        self._write("insert_overwrite_table", self.rows)

    def _delete_partition(self) -> None:
        part = self.chance.choice(PARTS)
        Table.open(self.path, options=self.options).delete_partition(part)
        self.rows = {key: row for key, row in self.rows.items() if row[0] != part}

    def _write(self, operation: str, rows: Rows) -> None:
        table = pa.Table.from_pylist(
            [{"id": key, "part": part, "ts": ts, "text": text} for key, (part, ts, text) in rows.items()], SCHEMA
        )
        write(as_source(table), self.path, {**self.options, "hoodie.datasource.write.operation": operation}, "append")


def held(table: pa.Table) -> Rows:
    rows = table.select(SCHEMA.names).to_pylist()
    found = {row["id"]: (row["part"], row["ts"], row["text"]) for row in rows}
    assert len(found) == len(rows), "a key occurs twice"
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(SEED, SEED + WALKS))
def test_table_holds_what_the_model_holds(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    walk = Walk(
        path=str(tmp_path / "table"),
        chance=chance,
        version=chance.choice([6, 8, 9]),
        index=chance.choice(["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"]),
        event_time=chance.random() < 0.5,
        spooled=chance.random() < 0.5,
    )
    for number in range(COMMITS):
        operation = walk.step()
        said = f"seed {seed}, commit {number} ({operation}), {walk}"
        table = Table.open(walk.path)
        assert held(table.scan().read_all()) == walk.rows, said
        assert table.validate() == [], said
    table = Table.open(walk.path)
    for instant, rows in [chance.choice(walk.history[-KEPT:]), chance.choice(walk.history)]:
        said = f"seed {seed} as of {instant}"
        try:
            found = table.scan(as_of=instant).read_all()
        except Invalid as error:
            assert instant not in {one for one, _ in walk.history[-KEPT:]}, said
            assert instant < error.facts["earliest_retained"], said
        else:
            assert held(found) == rows, said
