"""A worker that outlives its write: its file comes when the write has been taken back, and later writes are archived
past it. What it wrote was never committed, and stays so.
"""

from __future__ import annotations

from typing import Any

import pytest

from hoodie.config import resolve
from hoodie.engine import LocalEngine
from hoodie.services.ingest import Request
from hoodie.services.save import write_table
from hoodie.table import Table, as_source
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import Awake, Lake, logged_lake, row, table_of

ARCHIVING = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.compact.inline": True,
    "hoodie.compact.inline.max.delta.commits": 2,
    "hoodie.metadata.compact.max.delta.commits": 2,
}
KINDS = [(6, Lake), (8, Lake), (9, Lake), (6, logged_lake), (8, logged_lake), (9, logged_lake)]
IDS = [f"{'cow' if made is Lake else 'mor'}{version}" for version, made in KINDS]


def lake_of(kind: tuple[int, Any], **options: Any) -> Lake:
    version, made = kind
    given = {**ARCHIVING, **options}
    lake: Lake = made(version, given) if made is Lake else made(version, **given)
    for number in range(8):
        lake.upsert(row(f"old{number}", part="q"))
    return lake


def write_interrupted(lake: Lake, *rows: Any) -> dict[str, bytes]:
    """The data files of a write that was interrupted right before its commit, and took itself back."""
    before = set(lake.files())
    late: dict[str, bytes] = {}

    def interrupt(call: Call) -> None:
        if call.op == "create" and call.path.endswith("commit") and "/metadata/" not in call.path and not late:
            late.update({p: d for p, d in lake.files().items() if p not in before and not p.startswith(".hoodie")})
            raise KeyboardInterrupt

    request = Request("upsert", as_source(table_of(rows)), resolve(lake.options), LocalEngine(1))
    with pytest.raises(KeyboardInterrupt):
        write_table(CountingStorage(lake.storage, on_call=interrupt), request, Awake())
    assert late
    assert not set(late) & set(lake.files())
    return {path: data for path, data in late.items() if ".hoodie_partition" not in path}


def archive_past(lake: Lake) -> None:
    """More writes, until all that came before is archived."""
    start = lake.table.timeline().last_time() or ""
    for number in range(8):
        lake.upsert(row(f"new{number}", part="q"))
    first = lake.table.timeline().first_write_instant
    assert first is not None
    assert first.requested > start


def rows_listed(lake: Lake) -> dict[str, Any]:
    """`v` by `id`, of files that are found in folders."""
    found = Table.open(lake.uri, options={**lake.options, "hoodie.metadata.enable": False}).scan(["id", "v"]).read_all()
    return dict(zip(*found.to_pydict().values(), strict=True))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kept", [False, True], ids=["listed", "metadata"])
@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_file_that_comes_after_its_write_was_taken_back_is_never_committed(kind: tuple[int, Any], kept: bool) -> None:
    lake = lake_of(kind, **{"hoodie.metadata.enable": kept})
    lake.upsert(row("a"), row("b"))
    late = write_interrupted(lake, row("a", "late", 2), row("c", "late"), row("d", "late", part="q"))
    for path, data in late.items():
        lake.storage.put(path, data)
    archive_past(lake)
    expected = {"a": "a", "b": "a", **{f"{age}{n}": "a" for age in ("old", "new") for n in range(8)}}
    assert lake.values() == expected
    assert rows_listed(lake) == expected
    ensure_named_and_removed(lake, sorted(path for path in late if is_by_name(lake, path)))
    assert lake.values() == rows_listed(lake) == expected
    lake.upsert(row("b", "next", 3))
    assert lake.values() == rows_listed(lake) == {**expected, "b": "next"}
    assert lake.table.validate() == []


def is_by_name(lake: Lake, path: str) -> bool:
    """Whether the name tells who wrote a file; those of log files do not before version 8."""
    return lake.version > 6 or ".log." not in path


def ensure_named_and_removed(lake: Lake, late: list[str]) -> None:
    """`validate` and the doctor name the late files, remaking the metadata table makes nothing of them, and the doctor
    takes them away.
    """
    there = set(lake.files())
    late = [path for path in late if path in there]  # a clean may have been there before
    assert [(one.kind, one.path) for one in lake.table.validate()] == [("orphan", path) for path in late]
    remedies = {one.subject: one.remedy for one in lake.table.doctor().concerns if one.kind == "orphan"}
    is_confirmed = "files" in lake.table.indexes
    fix = f"hoodie doctor {lake.uri} --fix" if is_confirmed else f"hoodie orphans {lake.uri} --delete"
    assert set(remedies) == set(late)
    assert all(one.startswith("no reader takes it") and one.endswith(fix) for one in remedies.values())
    rows = lake.values()
    lake.table.indexes.rebuild()
    assert lake.values() == rows_listed(lake) == rows
    lake.upsert(row("after", part="r"))
    lake.write("delete", [row("after", part="r")])
    before = set(lake.files())
    removed = lake.table.services.orphans(0)
    assert (removed.files if removed else ()) == tuple(late)
    assert {path for path in before - set(lake.files()) if ".locks" not in path} == set(late)
