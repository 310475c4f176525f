"""Column types of Hudi 1.2 that are not known here: refused, and never read as what they are stored in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from peers import Peer, slim_rows, table_options, write_rows

from hoodie import Table
from hoodie.errors import Unsupported

REFERENCE = "struct<external_path:string,offset:bigint,length:bigint,managed:boolean>"
TYPES = {
    "VECTOR": ("VECTOR(3)", "array(float(1.5), float(2), float(3))"),
    "BLOB": (
        "BLOB",
        f"named_struct('type', 'INLINE', 'data', binary('abc'), 'reference', cast(null as {REFERENCE}))",
    ),
}


@pytest.mark.parametrize("kind", TYPES)
def test_columns_of_new_types_are_refused(kind: str, hudi_12: Peer, tmp_path: Path) -> None:
    known, typed = tmp_path / "known", tmp_path / "known_typed"
    write_rows(known, "insert", slim_rows(range(2)), table_options(9, "id", "region"))
    declared, value = TYPES[kind]

    def ask(statement: str) -> list[dict[str, object]]:
        return hudi_12.ask("sql", path=str(known), statement=statement)["rows"]

    ask(
        f"CREATE TABLE typed (id INT, v {declared}, ts BIGINT) USING hudi "
        "TBLPROPERTIES (primaryKey='id', preCombineField='ts') LOCATION '{path}_typed'"
    )
    try:
        ask(f"INSERT INTO typed SELECT 1, {value}, 1L")
        with pytest.raises(Unsupported, match=f"type {kind}"):
            Table.open(str(typed)).scan()
        with pytest.raises(Unsupported, match=f"type {kind}"):
            Table.open(str(typed)).upsert(pa.table({"id": pa.array([1], pa.int32()), "v": [None], "ts": [2]}))
        assert ask("SELECT id, ts FROM typed") == [{"id": 1, "ts": 1}]
    finally:
        ask("DROP TABLE typed")
