"""Commands for table services: plans, deeds, JSON, exit status."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main
from hoodie.cli.printing import progress
from hoodie.cli.shown_engine import ShownEngine
from hoodie.engine import LocalEngine
from hoodie.testing.env import FakeEnv

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "trips",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "city",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def rows(value: int) -> pa.Table:
    return pa.table({"id": [1, 2], "city": ["rome", "rome"], "value": [value, value]})


def made(folder: Path, commits: int, **more: str) -> hoodie.Table:
    table = hoodie.Table.create(str(folder / "trips"), options={**OPTIONS, **more})
    for number in range(commits):
        table.upsert(rows(number))
    return table


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def values(table: hoodie.Table) -> list[int]:
    return table.scan(columns=["value"]).read_all().column("value").to_pylist()


def listing(table: hoodie.Table) -> set[str]:
    return {str(path) for path in Path(table.uri).rglob("*")}


def test_a_dry_run_of_a_clean_names_the_files_and_touches_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, 4)
    before = listing(table)
    keep_one = ("-o", "hoodie.clean.commits.retained=1")
    plan = said(capsys, "clean", table.uri, "--dry-run", *keep_one)
    assert plan["files"] > 0
    assert listing(table) == before
    assert main(["clean", table.uri, "--dry-run", *keep_one]) == 0
    assert "would touch" in capsys.readouterr().out
    assert said(capsys, "clean", table.uri, *keep_one) is not None
    gone = {str(Path(table.uri, path)) for step in plan["steps"] for path in step["paths"]}
    assert gone == {path for path in before if path not in listing(table) and path.endswith(".parquet")}
    assert values(table) == [3, 3]


def test_archive_moves_instants_and_says_when_there_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, 6)
    assert said(capsys, "archive", table.uri) is None
    assert main(["archive", table.uri]) == 0
    assert "nothing to archive" in capsys.readouterr().out
    limits = (
        "-o",
        "hoodie.keep.min.commits=2",
        "-o",
        "hoodie.keep.max.commits=3",
        "-o",
        "hoodie.clean.commits.retained=1",
    )
    assert said(capsys, "archive", table.uri, "--dry-run", *limits)["steps"]
    assert said(capsys, "archive", table.uri, *limits) is not None
    assert len(table.timeline().completed_writes()) < 6
    assert values(table) == [5, 5]


def test_the_newest_commit_is_rolled_back_after_its_plan_was_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, 2)
    newest = table.timeline().completed_writes()[-1].requested
    assert said(capsys, "rollback", table.uri, newest, "--dry-run")["files"] == 1
    assert values(table) == [1, 1]
    assert said(capsys, "rollback", table.uri, newest)["target"] == newest
    assert values(table) == [0, 0]


def test_a_savepoint_is_made_listed_restored_to_and_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made(tmp_path, 1)
    (point,) = said(capsys, "savepoint", table.uri, "--create", "--comments", "before")
    for number in (5, 6):
        table.upsert(rows(number))
    assert [one["comments"] for one in said(capsys, "savepoint", table.uri)] == ["before"]
    assert said(capsys, "restore", table.uri, point["instant"], "--dry-run")["files"] == 2
    assert len(said(capsys, "restore", table.uri, point["instant"])["undone"]) == 2
    assert values(table) == [0, 0]
    assert main(["savepoint", table.uri, "--delete", point["instant"]]) == 0
    assert "deleted" in capsys.readouterr().out
    assert said(capsys, "savepoint", table.uri) == []


def test_log_files_are_compacted_by_plan_and_in_one_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made(tmp_path, 3, **{WRITE + "table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"})
    assert said(capsys, "compact", table.uri, "--dry-run")["files"] == 3
    planned = said(capsys, "compact", table.uri, "--schedule")["instant"]
    assert [check["problem"] for check in said(capsys, "compact", table.uri, "--validate")] == [None]
    assert said(capsys, "compact", table.uri, "--unschedule", planned)["plan_deleted"] is True
    assert said(capsys, "compact", table.uri, "--repair") == []
    done = said(capsys, "compact", table.uri)
    assert done["log_files"] == 2
    assert values(table) == [2, 2]
    assert not any(part.logs for part in table.files())
    assert said(capsys, "compact", table.uri) is None


def test_the_doctor_has_an_exit_status_and_the_report_is_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, 1)
    assert said(capsys, "doctor", table.uri)["healthy"] is True
    page = tmp_path / "page.html"
    assert main(["report", table.uri, "--out", str(page)]) == 0
    assert "trips" in page.read_text()
    newest = table.files()[0].base
    assert newest is not None
    Path(table.uri, newest.path).unlink()
    assert main(["doctor", table.uri]) == 1


@pytest.mark.parametrize("damage", ["file of the list", "whole list", "bytes"])
def test_the_doctor_makes_a_damaged_metadata_table_anew(
    tmp_path: Path, version: int, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, 2, **{"hoodie.metadata.enable": "true", "hoodie.write.table.version": str(version)})
    partitions = set(table.indexes)
    listed = Path(table.uri, ".hoodie", "metadata", "files")
    if damage == "whole list":
        shutil.rmtree(listed)
    else:
        newest = max(listed.glob(".files-*.log.*"), key=lambda path: path.stat().st_mtime_ns)
        if damage == "bytes":
            newest.write_bytes(newest.read_bytes()[:-40] + b"?" * 40)
        else:
            newest.unlink()
    assert main(["doctor", table.uri, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["concerns"]
    assert {one["kind"] for one in found if one["severity"] == "error"} == {"metadata"}
    assert f"hoodie doctor {table.uri} --fix" in {one["remedy"] for one in found}
    assert said(capsys, "doctor", table.uri, "--fix")["healthy"] is True
    assert said(capsys, "validate", table.uri) == []
    assert set(hoodie.Table.open(table.uri).indexes) == partitions
    table.upsert(rows(7))
    assert values(table) == [7, 7]
    assert said(capsys, "validate", table.uri) == []


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_the_doctor_names_and_where_it_is_sure_removes_files_that_were_never_committed(
    tmp_path: Path, version: int, metadata: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = made(tmp_path, 2, **{"hoodie.write.table.version": str(version), "hoodie.metadata.enable": metadata})
    base = table.files()[0].base
    assert base is not None
    instant = int(table.timeline().instants[0].requested) + 1
    late = Path(table.uri, base.path).with_name(base.path.rpartition("/")[2].rpartition("_")[0] + f"_{instant}.parquet")
    shutil.copy(Path(table.uri, base.path), late)
    before = {path for path in listing(table) if path.endswith(".parquet")}
    assert main(["doctor", table.uri]) == 1
    assert "orphan" in capsys.readouterr().out
    if metadata == "false":
        assert main(["doctor", table.uri, "--fix"]) == 1
        assert "--fix" not in capsys.readouterr().out
        assert late.exists()
        orphans = ["orphans", table.uri, "--older-than-hours", "0"]
        assert said(capsys, "orphans", table.uri, "--delete") is None  # too young
        assert [len(step["paths"]) for step in said(capsys, *orphans)["steps"]] == [1]
        assert late.exists()
        assert said(capsys, *orphans, "--delete")["files"] == [str(late.relative_to(table.uri))]
        assert said(capsys, "doctor", table.uri)["healthy"] is True
        return
    assert said(capsys, "doctor", table.uri, "--fix")["removed"] == [str(late.relative_to(table.uri))]
    assert before - listing(table) == {str(late)}
    assert said(capsys, "doctor", table.uri)["healthy"] is True


def test_the_doctor_makes_one_index_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made(tmp_path, 2, **{"hoodie.metadata.enable": "true"})
    said(capsys, "index", table.uri, "--create", "record_index")
    index = Path(table.uri, ".hoodie", "metadata", "record_index")
    files = Path(table.uri, ".hoodie", "metadata", "files")
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    shutil.rmtree(index)
    assert main(["doctor", table.uri]) == 1
    capsys.readouterr()
    assert said(capsys, "doctor", table.uri, "--fix", "record_index")["healthy"] is True
    assert said(capsys, "validate", table.uri) == []
    assert table.lookup([1]).read_all().num_rows == 1
    assert before.items() <= {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}.items()


def test_old_partitions_are_deleted_after_their_plan_was_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = FakeEnv(datetime(2020, 1, 1, tzinfo=UTC))
    old = hoodie.Table.create(str(tmp_path / "trips"), options=OPTIONS, env=env)
    old.upsert(rows(1))
    table = hoodie.Table.open(old.uri, options=OPTIONS)
    table.upsert(pa.table({"id": [3], "city": ["oslo"], "value": [3]}))
    assert said(capsys, "ttl", table.uri) is None
    assert main(["ttl", table.uri]) == 0
    assert "no partition has expired" in capsys.readouterr().out
    week = ("-o", "hoodie.partition.ttl.strategy.days.retain=7")
    plan = said(capsys, "ttl", table.uri, "--dry-run", *week)
    assert [step["partition"] for step in plan["steps"]] == ["rome"]
    assert values(table) == [3, 1, 1]
    assert said(capsys, "ttl", table.uri, *week)["partitions"] == ["rome"]
    assert values(table) == [3]


def test_a_terminal_is_told_what_is_under_way_and_a_pipe_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = LocalEngine(1)
    monkeypatch.setenv("TERM", "xterm")
    for seen in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda seen=seen: seen, raising=False)
        with progress("examining trips") as step:
            assert ShownEngine(engine, step).run(lambda _, task: task, [1, 2], "footers") == [1, 2]
        captured = capsys.readouterr()
        assert captured.out == ""
        assert ("footers (2 tasks)" in captured.err) is seen


def test_indexes_are_made_listed_and_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made(tmp_path, 2, **{"hoodie.metadata.enable": "true"})
    assert said(capsys, "index", table.uri, "--create", "record_index")["records"] == 2
    assert "record_index" in [one["name"] for one in said(capsys, "index", table.uri)]
    assert table.lookup([1]).read_all().num_rows == 1
    assert said(capsys, "index", table.uri, "--drop", "record_index") == ["record_index"]
    assert "record_index" not in [one["name"] for one in said(capsys, "index", table.uri)]


def test_an_index_of_a_function_is_made_with_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made(tmp_path, 2, **{"hoodie.metadata.enable": "true"})
    asked = ("index", table.uri, "--create", "begin", "--column", "city", "--function", "substring")
    assert main([*asked, "--function-option", "pos=1"]) == 2
    assert "len" in capsys.readouterr().err
    assert (
        said(capsys, *asked, "--function-option", "pos=1", "--function-option", "len=2")["name"] == "expr_index_begin"
    )
    definition = table.indexes["expr_index_begin"]
    assert definition is not None
    assert definition.options == {"expr": "substring", "pos": "1", "len": "2"}
    assert main(["index", table.uri, "--create", "x", "--column", "city", "--function-option", "pos=1"]) == 2
    assert "--function" in capsys.readouterr().err
    assert main([*asked, "--function-option", "pos"]) == 2
    assert "--function-option" in capsys.readouterr().err


def test_an_upgrade_is_planned_done_and_undone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = made(tmp_path, 2, **{"hoodie.write.table.version": "6"})
    assert said(capsys, "upgrade", table.uri, "--to", "8", "--dry-run")["steps"]
    assert hoodie.Table.open(table.uri).version == 6
    assert said(capsys, "upgrade", table.uri, "--to", "9") is not None
    assert hoodie.Table.open(table.uri).version == 9
    assert values(hoodie.Table.open(table.uri)) == [1, 1]
    assert said(capsys, "upgrade", table.uri, "--to", "6") is not None
    assert values(hoodie.Table.open(table.uri)) == [1, 1]
    assert said(capsys, "upgrade", table.uri, "--to", "6") is None


def test_large_buckets_are_split_after_their_plan_was_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "1",
        WRITE + "table.type": "MERGE_ON_READ",
    }
    table = made(tmp_path, 2, **ring)
    one, more = ("-o", "hoodie.bucket.index.num.buckets=1"), ("-o", "hoodie.bucket.index.max.num.buckets=2")
    assert said(capsys, "resize", table.uri, *one) is None
    assert main(["resize", table.uri, *one]) == 0
    assert "of a good size" in capsys.readouterr().out
    small = (*one, *more, "-o", "hoodie.parquet.max.file.size=100")
    before = listing(table)
    plan = said(capsys, "resize", table.uri, "--dry-run", *small)
    assert [(step["partition"], step["reason"]) for step in plan["steps"]] == [("rome", "split 1 of 1 buckets")]
    assert main(["resize", table.uri, "--dry-run", *small]) == 0
    assert "resize would touch 2 files" in capsys.readouterr().out
    assert listing(table) == before
    done = said(capsys, "resize", table.uri, *small)
    assert (done["splits"], done["merges"], done["rows"], done["partitions"]) == (1, 0, 2, ["rome"])
    assert values(table) == [1, 1]
    assert main(["resize", table.uri, "-o", "hoodie.index.type=SIMPLE"]) == 2
    assert "do not speak of a consistent hashing index" in capsys.readouterr().err


def test_what_has_no_target_says_so(tmp_path: Path) -> None:
    table = made(tmp_path, 1)
    with pytest.raises(hoodie.errors.Invalid, match="needs its argument to"):
        table.services.preview("restore")
