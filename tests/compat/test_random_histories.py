"""Tables that random sequences of writes, services and faults have made: the real Hudi 1.2.0 gives the rows of the
model, snapshot and changes, and a write of it goes on from them.

`HOODIE_MACHINE_HUDI` (default 3) is the number of sequences, `HOODIE_MACHINE_SEED` the seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from peers import Peer

from hoodie import Table
from hoodie.testing import table_laws as laws
from hoodie.testing.table_machine import TableMachine, run_machine
from hoodie.testing.table_model import Kept, arrow_rows

SEQUENCES = int(os.environ.get("HOODIE_MACHINE_HUDI", "3"))
SEED = int(os.environ.get("HOODIE_MACHINE_SEED", "20261123"))
# A table that remembers the record index needs its metadata table with it (test_metadata_indexes.py: and a server).
WITH_RECORDS = dict.fromkeys(
    ("hoodie.metadata.enable", "hoodie.metadata.record.index.enable", "hoodie.embed.timeline.server"), "true"
)


class HudiReadMachine(TableMachine):
    """Has Hudi read the table at the end, and write to it."""

    hudi: ClassVar[Peer]
    folders: ClassVar[Iterator[Path]]

    def at_the_end(self) -> None:
        path = next(self.folders)
        self.table.copy_to(str(path))

        def read(query: str = "snapshot", **bounds: Any) -> pa.Table:
            return self.hudi.read(path, "time_travel" if "as_of" in bounds else query, **bounds)

        table = self.table.opened()
        laws.ensure_snapshot(read, self.rows)
        begin = sorted(self.states)[len(self.states) // 2]
        laws.ensure_changes(read, table, begin, None, self.states, losers_too=self.shows_losers)
        if self.changes and not self.cleaned:
            laws.ensure_change_data(read, table, begin, self.states, may_refuse=False)
        if self.table.on_disk:
            return  # its clock stands in 2050: what Hudi writes now would come before
        if self.index == "hbase":
            return  # Hudi 1.2 has no such index (test_remembered_index.py)
        added = {"k77": Kept("p2", "Hudi's", 2_000_000)}
        self.hudi.write(path, "upsert", arrow_rows(added), WITH_RECORDS if self.index.startswith("record") else {})
        laws.ensure_snapshot(laws.local_reader(Table.open(str(path))), {**self.rows, **added})


def test_hudi_reads_and_continues_what_random_histories_left(hudi_12: Peer, tmp_path: Path) -> None:
    HudiReadMachine.hudi = hudi_12
    HudiReadMachine.folders = (tmp_path / f"table-{number}" for number in range(1_000_000))
    run_machine(HudiReadMachine, SEED, SEQUENCES, 8)
    assert next(HudiReadMachine.folders).name == f"table-{SEQUENCES}"
