"""A table whose data files lie under hashed prefixes of two other folders: made, moved, broken, repaired.

    python examples/federated_demo.py

Everything happens in a temporary folder, whose two roots stand for two buckets.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.errors import HudiError

RIDES = pa.table(
    {
        "id": list(range(4_000)),
        "city": [f"city-{n % 40}" for n in range(4_000)],
        "fare": [float(n % 97) for n in range(4_000)],
    }
)
KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}


def spread(root: Path) -> str:
    """How the data files of a root are spread over its prefixes."""
    found = Counter(path.relative_to(root).parts[0] for path in root.rglob("*.parquet"))
    return f"{sum(found.values())} files under {len(found)} prefixes"


def main(folder: Path) -> None:
    table_path, one, two = folder / "rides", folder / "bucket-one", folder / "bucket-two"
    roots = {"hoodie.storage.path": f"{one},{two}", "hoodie.storage.strategy": "bits:4"}

    print("1. A table with two storage paths")
    table = hoodie.Table.create(str(table_path), schema=RIDES.schema, options=KEYED | roots)
    table.insert(RIDES)
    table.upsert(RIDES.slice(0, 400).set_column(2, "fare", pa.array([0.0] * 400)))
    print(f"   bucket-one: {spread(one)}; bucket-two: {spread(two)}")
    print(f"   at the table path: {len(list(table_path.rglob('*/*.parquet')))} data files")

    print("2. Whoever does not allow these places cannot open it")
    try:
        hoodie.Table.open(str(table_path))
    except HudiError as error:
        print(f"   {error.cause}")
    allowed = {"hoodie.storage.allowed.roots": f"{one},{two}"}
    table = hoodie.Table.open(str(table_path), options=KEYED | allowed)
    print(f"   with it: {table.scan(filter='fare = 0').read_all().num_rows} rides for nothing")

    print("3. More prefixes, without rewriting; then all files there")
    table.services.relayout("bits:6")
    done = table.services.relayout(move=True, grace_hours=0)
    assert done is not None
    print(f"   {done.steps[0]}; bucket-one: {spread(one)}; bucket-two: {spread(two)}")

    print("4. The metadata table is lost, and made anew from all prefixes")
    before = table.scan().read_all().num_rows
    for path in sorted((table_path / ".hoodie" / "metadata").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    try:
        table.scan()
    except HudiError as error:
        print(f"   {type(error).__name__}: {error.remedy}")
    table.indexes.rebuild()
    assert table.scan().read_all().num_rows == before
    print(f"   {before} rows again; concerns: {len(table.doctor().concerns)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="hoodie-federated-") as made:
        main(Path(made))
