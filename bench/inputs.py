"""The inputs of the benchmark: TPC-H lineitem with an ordering column, and the changes that are upserted into it.

Files in the data folder, all parquet: `base` (lineitem), `change_1pct`, `change_10pct`, `change_100` (updates spread
over the whole table), `small` (10 000 rows), `small_change_0` … `small_change_9` (100 rows each) and, for the memory
test, `wide` (a folder of rows that do not compress) with `wide_change`. The same scale gives the same rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SMALL_ROWS = 10_000
CHANGED_ROWS = 100
WIDE_PAYLOAD_BYTES = 1000
EVENTS = 10_000_000
"""At scale 1."""
BATCH_EVENTS = 36_000
WIDE_BATCH_ROWS = 20_000
WIDE_CHANGED_ROWS = 1000
SPREAD = "hash(l_orderkey * 8 + l_linenumber + {salt})"
CHANGED = """
SELECT * REPLACE (l_quantity + 1 AS l_quantity, 'changed ' || l_comment AS l_comment, {seq}::BIGINT AS change_seq)
FROM '{source}' {rows}
"""


def prepare_inputs(folder: Path, scale: float) -> dict[str, Any]:
    """Makes the lineitem inputs below `folder` once; answers their row counts and the key of the point query."""
    facts = folder / "facts.json"
    if facts.exists() and json.loads(facts.read_text())["scale"] == scale:
        known: dict[str, Any] = json.loads(facts.read_text())
        return known
    folder.mkdir(parents=True, exist_ok=True)
    generator = Path(sys.executable).parent / "tpchgen-cli"
    command = [generator, "parquet", "-s", str(scale), "--tables=lineitem", "--overwrite", f"--output-dir={folder}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    db = duckdb.connect()
    db.execute("SET preserve_insertion_order = true")
    raw = folder / "lineitem.parquet"
    _store(db, f"SELECT *, 0::BIGINT AS change_seq FROM '{raw}'", folder / "base.parquet")
    raw.unlink()
    base = folder / "base.parquet"
    parts = {
        "change_1pct": (1, f"WHERE {SPREAD.format(salt=1)} % 100 = 0"),
        "change_10pct": (2, f"WHERE {SPREAD.format(salt=2)} % 10 = 0"),
        "change_100": (3, f"ORDER BY {SPREAD.format(salt=3)} LIMIT {CHANGED_ROWS}"),
    }
    for name, (seq, rows) in parts.items():
        _store(db, CHANGED.format(seq=seq, source=base, rows=rows), folder / f"{name}.parquet")
    small = folder / "small.parquet"
    _store(db, f"SELECT * FROM '{base}' ORDER BY {SPREAD.format(salt=4)} LIMIT {SMALL_ROWS}", small)
    for number in range(10):
        rows = f"ORDER BY {SPREAD.format(salt=10 + number)} LIMIT {CHANGED_ROWS}"
        _store(db, CHANGED.format(seq=number + 1, source=small, rows=rows), folder / f"small_change_{number}.parquet")
    names = ("base", *parts, "small")
    counts = {name: pq.ParquetFile(folder / f"{name}.parquet").metadata.num_rows for name in names}
    key = (
        pq.read_table(folder / "change_100.parquet", columns=["l_orderkey", "l_linenumber"]).slice(0, 1).to_pylist()[0]
    )
    made = {"scale": scale, "rows": counts, "bytes": base.stat().st_size, "point": list(key.values())}
    facts.write_text(json.dumps(made))
    return made


def prepare_layout(folder: Path, scale: float) -> dict[str, Any]:
    """Makes events, ten batches of them of about a megabyte, and lineitem in the order of a key with changes of its
    newest tenth, once; answers how many events there are, and the session that is asked for.
    """
    made, events = folder / "event_batch_9.parquet", round(scale * EVENTS)
    db = duckdb.connect()
    if not made.exists():
        base, ordered = folder / "base.parquet", folder / "sorted.parquet"
        key = "lpad((l_orderkey * 8 + l_linenumber)::VARCHAR, 12, '0')"
        _store(db, f"SELECT *, {key} AS line_key FROM '{base}' ORDER BY line_key", ordered)
        newest = f"WHERE line_key > (SELECT quantile_disc(line_key, 0.9) FROM '{ordered}')"
        for seq, (name, rows) in enumerate(
            {
                "newest_100": f"{newest} ORDER BY hash(line_key) LIMIT {CHANGED_ROWS}",
                "newest_1pct": f"{newest} AND hash(line_key) % 10 = 0",
            }.items(),
            1,
        ):
            _store(db, CHANGED.format(seq=seq, source=ordered, rows=rows), folder / f"{name}.parquet")
        _store(db, _events(0, events, events), folder / "events.parquet")
        for number in range(10):
            first = events + number * BATCH_EVENTS
            _store(db, _events(first, first + BATCH_EVENTS, events), folder / f"event_batch_{number}.parquet")
    row = db.execute(f"SELECT session FROM '{folder / 'events.parquet'}' ORDER BY hash(id) LIMIT 1").fetchone()
    assert row is not None
    return {"events": events, "session": row[0]}


def _events(begin: int, end: int, all_events: int) -> str:
    """Events with these ids. Of a session there are ten in so many, far from each other."""
    return f"""
    SELECT range AS id, right('000000000000000' || to_hex(hash(range * 7919 % {all_events // 10})), 16) AS session,
           (hash(range + 1) % 1000000)::BIGINT AS visitor, 1700000000000 + range * 17 AS started,
           'country-' || hash(range + 2) % 40 AS country, '/page/' || hash(range + 3) % 5000 AS page,
           (hash(range + 4) % 60000)::INTEGER AS took_ms
    FROM range({begin}, {end})
    """


def prepare_wide(folder: Path, gigabytes: float) -> dict[str, Any]:
    """Makes the input of the memory test: about `gigabytes` of rows that do not compress, and 1 000 changes to them."""
    rows = int(gigabytes * 1e9 / (WIDE_PAYLOAD_BYTES + 40))
    wide, change = folder / "wide.parquet", folder / "wide_change.parquet"
    if not change.exists() or pq.read_table(change).num_rows != min(rows, WIDE_CHANGED_ROWS):
        wide.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(7)
        half = -(-rows // 2)
        for number, start in enumerate(range(0, rows, half)):
            with pq.ParquetWriter(wide / f"part-{number}.parquet", _wide(random, 0, 0).schema) as writer:
                for first in range(start, min(start + half, rows), WIDE_BATCH_ROWS):
                    writer.write_batch(_wide(random, first, min(WIDE_BATCH_ROWS, start + half - first, rows - first)))
        picked = np.sort(random.choice(rows, min(rows, WIDE_CHANGED_ROWS), replace=False))
        changed = _wide(random, 0, len(picked)).set_column(0, "id", pa.array(picked, pa.int64()))
        pq.write_table(
            pa.Table.from_batches([changed.set_column(1, "seq", pa.array([1] * len(picked), pa.int64()))]), change
        )
    return {"rows": rows}


def _wide(random: np.random.Generator, first: int, count: int) -> pa.RecordBatch:
    payload = random.integers(0, 256, count * WIDE_PAYLOAD_BYTES, dtype=np.uint8)
    offsets = np.arange(count + 1, dtype=np.int32) * WIDE_PAYLOAD_BYTES
    binary = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(payload)])
    ids = pa.array(np.arange(first, first + count), pa.int64())
    return pa.record_batch({"id": ids, "seq": pa.array(np.zeros(count), pa.int64()), "payload": binary})


def _store(db: duckdb.DuckDBPyConnection, query: str, file: Path) -> None:
    db.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 122880)")
