"""The commands on real tables, with the local engine."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.cli import main

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
ROWS = pa.table({"id": ["a", "b", "c"], "city": ["oslo", "oslo", "rome"], "ts": [1, 1, 1], "fare": [1.5, 2.5, None]})


def _pairs() -> list[str]:
    return [part for key, value in OPTIONS.items() for part in ("-o", f"{key}={value}")]


@pytest.fixture
def rows_file(tmp_path: Path) -> str:
    file = tmp_path / "rows.parquet"
    pq.write_table(ROWS, file)
    return str(file)


@pytest.fixture
def table(tmp_path: Path, rows_file: str, capsys: pytest.CaptureFixture[str]) -> str:
    path = str(tmp_path / "trips")
    assert main(["write", path, "--operation", "insert", "--input", rows_file, *_pairs()]) == 0
    capsys.readouterr()
    return path


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["query", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_append_writes_new_files_and_needs_rows(table: str, rows_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = _json(capsys, "append", table, "--input", rows_file)
    assert (done["operation"], done["inserts"], done["files"]) == ("insert", 3, 2)
    assert len(_json(capsys, "files", table)) == 4
    assert main(["append", table]) == 2
    assert "--input FILE" in capsys.readouterr().err


def test_write_creates_a_table_and_sums_up_the_commit(
    tmp_path: Path, rows_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["write", str(tmp_path / "t"), "--input", rows_file, *_pairs()]) == 0
    shown = capsys.readouterr().out
    assert "upsert: committed" in shown
    assert "inserts" in shown


def test_write_prints_the_commit_as_json(table: str, rows_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    committed = _json(capsys, "write", table, "--operation", "upsert", "--input", rows_file, *_pairs())
    assert committed["operation"] == "upsert"
    assert committed["updates"] == 3
    assert committed["partitions"] == ["oslo", "rome"]


def test_write_without_rows_asks_for_them(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", table, "--operation", "delete"]) == 2
    assert "--input FILE" in capsys.readouterr().err


def test_delete_partition_needs_no_rows(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    named = "hoodie.datasource.write.partitions.to.delete=oslo"
    assert main(["write", table, "--operation", "delete_partition", "-o", named]) == 0
    capsys.readouterr()
    assert [row["id"] for row in _lines(capsys, table)] == ["c"]


def test_an_unknown_operation_is_named(table: str, rows_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", table, "--operation", "merge", "--input", rows_file]) == 2
    assert "Invalid: " in capsys.readouterr().err


def test_query_shows_rows_without_meta_columns(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", table]) == 0
    shown = capsys.readouterr().out
    assert "oslo" in shown
    assert "3 rows" in shown
    assert "_hoodie_" not in shown


def test_query_shows_the_first_rows_and_counts_all(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", table, "--limit", "2", "--columns", "id"]) == 0
    assert "first 2 of 3 rows" in capsys.readouterr().out


def test_limit_also_holds_for_json_and_files(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(_lines(capsys, table, "--limit", "2")) == 2
    assert len(_lines(capsys, table, "--limit", "0")) == 0
    assert len(_lines(capsys, table)) == 3
    out = tmp_path / "out.parquet"
    assert main(["query", table, "--limit", "1", "--out", str(out)]) == 0
    assert pq.read_table(out).num_rows == 1
    assert main(["query", table, "--limit", "-1"]) != 0
    assert "--limit -1 is no number of rows" in capsys.readouterr().err


def test_query_as_json_lines_with_condition_and_columns(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _lines(capsys, table, "--where", "fare > 2 and city = 'oslo'", "--columns", "id,fare") == [
        {"id": "b", "fare": 2.5}
    ]


def test_query_and_files_ask_a_server_and_get_along_without(
    table: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as unheard:  # bound, so that nobody else gets the port; a test before knows no silence of it
        unheard.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{unheard.getsockname()[1]}"
        there = _lines(capsys, table)
        assert _lines(capsys, table, "--server", server) == there
        assert _lines(capsys, table, "--server", server, "--key", "a") == _lines(capsys, table, "--key", "a")
        assert main(["files", table, "--server", server]) == 0
    assert len([one for one in caplog.records if server in one.getMessage()]) == 1
    assert main(["query", table, "--server", "a b"]) != 0
    assert main(["query", table, "--server", "lake", "-o", "hoodie.filesystem.view.type=MEMORY"]) != 0


def test_options_beside_a_server_say_how_long_it_may_take_and_that_it_is_asked_alone(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        command = ["query", table, "--server", server, "-o", "hoodie.filesystem.view.remote.timeout.secs=1"]
        began = time.monotonic()
        assert main(command) == 0
        assert time.monotonic() - began < 20, "a minute if nothing is said"
        assert main([*command, "-o", "hoodie.filesystem.view.type=REMOTE_ONLY"]) != 0
    assert f"The timeline server at {server} does not answer" in capsys.readouterr().err


def test_query_into_a_file(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.parquet"
    assert main(["query", table, "--out", str(out)]) == 0
    stored = pq.read_table(out)
    assert sorted(stored["id"].to_pylist()) == ["a", "b", "c"]
    assert "_hoodie_commit_time" in stored.column_names
    assert "3 rows written" in capsys.readouterr().err


def test_query_in_the_past_and_of_changes(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (first,) = _json(capsys, "timeline", table)
    newer = tmp_path / "newer.parquet"
    pq.write_table(pa.table({"id": ["b"], "city": ["oslo"], "ts": [2], "fare": [9.0]}), newer)
    assert main(["write", table, "--input", str(newer), *_pairs()]) == 0
    capsys.readouterr()
    fares = {row["id"]: row["fare"] for row in _lines(capsys, table, "--as-of", first["requested_time"])}
    assert fares == {"a": 1.5, "b": 2.5, "c": None}
    changes = _lines(capsys, table, "--type", "incremental", "--begin", first["completion_time"])
    assert [(row["id"], row["fare"]) for row in changes] == [("b", 9.0)]


def test_query_takes_reader_options_by_their_keys(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    read = "hoodie.datasource.read."
    incremental = ["-o", "hoodie.datasource.query.type=incremental", "--begin", "000"]
    found = _lines(capsys, table, *incremental, "-o", f"{read}incr.filters=fare > 2, ts IN (1, 2)")
    assert [row["id"] for row in found] == ["b"]
    found = _lines(capsys, table, *incremental, "-o", f"{read}incr.path.glob=/rome/*")
    assert [row["id"] for row in found] == ["c"]
    assert main(["query", table, "-o", f"{read}begin.instanttimes=1"]) == 2
    assert "Did you mean" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--begin", "000"],
        ["--as-of", "2013-01-01", "--type", "incremental", "--begin", "000"],
        ["--columns", "nope"],
        ["--where", "nope = 1"],
        ["--where", "fare >"],
        ["--type", "incremental"],
        ["--type", "cdc", "--begin", "000"],
    ],
)
def test_queries_that_cannot_be_answered_say_why(
    table: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", table, *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(("Invalid: ", "Unsupported: "))
    assert "Traceback" not in err


def test_timeline_and_files(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    (instant,) = _json(capsys, "timeline", table)
    assert instant.keys() == {"requested_time", "completion_time", "action", "state"}
    assert (instant["action"], instant["state"]) == ("commit", "COMPLETED")
    slices = _json(capsys, "files", table)
    assert [part["partition"] for part in slices] == ["oslo", "rome"]
    for part in slices:
        assert part.keys() == {"partition", "file_id", "base_instant", "base_file", "log_files"}
        assert (Path(table) / part["partition"] / part["base_file"]).exists()
    assert main(["timeline", table]) == 0
    assert main(["files", table]) == 0
    assert instant["requested_time"] in capsys.readouterr().out


def test_validate_finds_nothing_on_a_table_in_order(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", table]) == 0
    assert "in order" in capsys.readouterr().out
    assert _json(capsys, "validate", table) == []


def test_validate_exits_with_1_when_a_file_is_missing(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    victim = next(Path(table).glob("rome/*.parquet"))
    victim.unlink()
    assert main(["validate", table]) == 1
    assert "finding" in capsys.readouterr().out
    assert main(["validate", table, "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)
    assert any(victim.name in finding["path"] for finding in findings)


@pytest.mark.parametrize("command", ["query", "timeline", "files", "validate"])
def test_no_table_is_one_clear_message(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path / "nothing")]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("Invalid: ")
    assert "nothing" in err
    assert "Traceback" not in err


def test_archived_instants_are_shown_when_they_are_asked_for(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    history = Path(table) / ".hoodie" / "timeline" / "history"
    history.mkdir(parents=True, exist_ok=True)
    times = {"instantTime": ["20200101000000000"], "completionTime": ["20200101000000500"], "action": ["clean"]}
    pq.write_table(pa.table(times), history / "a.parquet")
    (history / "manifest_1").write_text('{"files": [{"fileName": "a.parquet", "fileLen": 1}]}')
    (active,) = _json(capsys, "timeline", table)
    (archived,) = _json(capsys, "timeline", table, "--archived")
    assert archived == {
        "requested_time": "20200101000000000",
        "completion_time": "20200101000000500",
        "action": "clean",
        "state": "COMPLETED",
    }
    assert _json(capsys, "timeline", table, "--all") == [archived, active]
    assert main(["timeline", table, "--all"]) == 0
    assert "20200101000000000" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["timeline", table, "--all", "--archived"])


@pytest.mark.parametrize("hostile", ["\x1b[2J\x1b]0;owned\x07", "\x9b2J", "\u202egnp.exe", "[/bold][red]", ":smile:"])
def test_nothing_in_a_table_steers_the_terminal_or_counts_as_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hostile: str
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    file, path = str(tmp_path / "rows.parquet"), str(tmp_path / "trips")
    pq.write_table(pa.table({"id": [hostile], "city": ["x"], "ts": [1], "nested": [{"deep": [hostile]}]}), file)
    assert main(["write", path, "--operation", "insert", "--input", file, *_pairs()]) == 0
    for command in (["query", path], ["query", path, "--json"], ["timeline", path], ["files", path]):
        assert main(command) == 0
    assert main(["query", path, "--columns", f"nobody{hostile}"]) == 2
    assert main(["query", f"{path}{hostile}"]) == 2
    shown = "".join(capsys.readouterr())
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
    assert ("\\" if hostile[0] in "\x1b\x9b\u202e" else f"nobody{hostile}") in shown


def test_a_csv_file_is_read_in_the_types_of_the_table_or_those_that_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, text = str(tmp_path / "t"), tmp_path / "rows.csv"
    text.write_text("id,city,ts,fare\n01234,007,1,2\n")
    said = ["--schema", "id string, city string, ts bigint, fare decimal(10,2)"]
    assert main(["write", path, "--input", str(text), *said, *_pairs()]) == 0
    text.write_text("fare,id,city,ts\n3,01234,007,2\n4,09,1e3,2\n")
    assert main(["write", path, "--input", str(text), *_pairs()]) == 0
    capsys.readouterr()
    rows = [(row["id"], row["city"], row["fare"]) for row in _lines(capsys, path)]
    assert sorted(rows) == [("01234", "007", "3.00"), ("09", "1e3", "4.00")]


def test_text_in_another_encoding_and_types_nobody_knows_are_named(
    tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "rows.csv"
    text.write_bytes("id,city,ts,fare\nd,oslo,1,2\ne,Malmö,1,2\n".encode("latin-1"))
    assert main(["write", table, "--input", str(text)]) == 2
    assert "rows.csv is no UTF-8 text: line 3 holds b'\\xf6'" in capsys.readouterr().err
    assert main(["write", table, "--input", str(text), "--schema", "id strang"]) == 2
    assert "does not understand 'id strang'" in capsys.readouterr().err
