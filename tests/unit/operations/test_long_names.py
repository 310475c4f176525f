"""A partition value that is too long for a name fails its write, and no later one, wherever its markers are: in lists
they are there though the file can never be.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie import Table
from hoodie.errors import Invalid
from hoodie.spec import marker_dir
from hoodie.transaction import Transaction

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def rows(part: str, value: int) -> pa.Table:
    return pa.table({"id": ["a"], "part": [part], "v": [value]})


def made(path: Path, version: int, kind: str, **options: str) -> Table:
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": str(version),
    }
    Table.create(str(path), schema=rows("p", 1).schema, options=given)
    return Table.open(str(path), options=options)


def values(table: Table) -> list[int]:
    assert not table.validate(deep=True)
    return table.scan(columns=["v"]).read_all().column(0).to_pylist()


@pytest.mark.parametrize("markers", ["DIRECT", "PROCESS_LISTS", "TIMELINE_SERVER_BASED"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", [6, 9])
def test_a_long_partition_value_fails_its_own_write(version: int, kind: str, markers: str, tmp_path: Path) -> None:
    options = {"hoodie.write.markers.type": markers}
    if markers == "TIMELINE_SERVER_BASED":
        options["hoodie.embed.timeline.server"] = "true"
    table = made(tmp_path / "t", version, kind, **options)
    table.upsert(rows("p", 1))
    with pytest.raises(Invalid, match="too long for its file system"):
        table.upsert(rows("x" * 300, 2))
    assert not table.timeline().pending()
    table.upsert(rows("p", 3))
    assert values(table) == [3]


ODD = {
    "long": "p/" + "a" * 300 + "-0_0-0-0_{instant}.parquet.marker.CREATE",
    "long log": "p/." + "a" * 300 + "-0_{instant}.log.1_0-0-0.marker.CREATE",
    "long log of another": "p/." + "a" * 300 + "-0_{other}.log.1_0-0-0.marker.APPEND",
    "deep": "/".join(["d" * 200] * 25) + "/b-0_0-0-0_{instant}.parquet.marker.CREATE",
    "below a file": "{base}/b-0_0-0-0_{instant}.parquet.marker.CREATE",
    "log below a file": "{base}/.b-0_{other}.log.1_0-0-0.marker.APPEND",
    "no instant": "p/.b-0_abc.log.1_0-0-0.marker.APPEND",
    "no partition": "zz/yy/.b-0_{other}.log.1_0-0-0.marker.APPEND",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_marker_with_such_a_name_holds_up_nothing(
    version: int, kind: str, odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", version, kind)
    table.upsert(rows("p", 1))
    (part,) = table.files()
    names = {"base": part.base.path, "other": table.timeline().completed_writes()[0].requested}

    class DiedError(BaseException):
        pass

    def died(self: Transaction, *_: object, **__: object) -> None:
        listed = ODD[odd].format(instant=self.instant, **names)
        folder = marker_dir(self.instant)
        table.storage.put(f"{folder}/MARKERS.type", b"TIMELINE_SERVER_BASED")
        table.storage.put(f"{folder}/MARKERS0", f"{listed}\n".encode())
        raise DiedError

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", died)
        patched.setattr(Transaction, "_abort", lambda *_: None)
        with pytest.raises(DiedError):
            table.upsert(rows("p", 2))
    assert table.timeline().pending()
    before = {file.path for file in table.storage.list("") if ".hoodie" not in file.path}
    table.upsert(rows("p", 3))
    assert values(table) == [3]
    now = {file.path for file in table.storage.list("") if ".hoodie" not in file.path}
    assert {path.rpartition("/")[0] for path in now - before} <= {"p"}
