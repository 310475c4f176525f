"""The table of many commits for cleaning and archiving: small upserts, with no service after them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa

import hoodie

COMMITS = 2_000
PARTITIONS = 50
_OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "100",
}


def make_many_commits(folder: Path) -> None:
    """Makes the table in `folder`; what an interrupted run left there is removed first."""
    unfinished = folder.with_name("unfinished")
    for left in (folder, unfinished):
        shutil.rmtree(left, ignore_errors=True)
    table = hoodie.Table.create(str(unfinished), options={**_OPTIONS, "hoodie.table.name": "many_commits"})
    table.bulk_insert(_rows(np.arange(10 * PARTITIONS)))
    for number in range(1, COMMITS):
        table.upsert(_rows(np.array([number % PARTITIONS, (7 * number) % PARTITIONS])))
    unfinished.rename(folder)


def _rows(ids: np.ndarray) -> pa.Table:
    return pa.table({"id": ids, "part": [f"p{number % PARTITIONS:02}" for number in ids], "value": ids * 3})
