"""A table's health, and the page about it."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.app import main
from hoodie.config import resolve
from hoodie.present import as_json
from hoodie.services.health import _TROUBLE, Concern, TableHealth, examine
from hoodie.services.remedies import told
from hoodie.state.handle import load_handle
from hoodie.storage import LocalStorage
from hoodie.testing.env import FakeEnv
from hoodie.testing.page_reader import ensure_harmless
from hoodie.timeline import create_requested, to_inflight

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


def rows(*ids: int, city: str = "<b>rome") -> pa.Table:
    return pa.table({"id": list(ids), "city": [city] * len(ids)})


@pytest.fixture
def every_byte_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes of logs and old versions are a concern, too."""
    monkeypatch.setattr("hoodie.services.health.CHEAP_LOGS", 0)
    monkeypatch.setattr("hoodie.services.health.FEW_BYTES", 0)


def made(folder: Path, env: FakeEnv, commits: int = 2) -> str:
    path = str(folder / "trips")
    table = hoodie.Table.create(path, options=OPTIONS, env=env)
    for number in range(commits):
        table.upsert(rows(1, 2, number))
    return path


def logged(folder: Path, env: FakeEnv, commits: int) -> str:
    """The path of a merge-on-read table, all of whose commits but the first have written log files."""
    path = str(folder / "trips")
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}
    table = hoodie.Table.create(path, options={**OPTIONS, **kind}, env=env)
    for _ in range(commits):
        table.upsert(rows(1, 2))
    return path


def health_of(path: str, env: FakeEnv, **options: object) -> TableHealth:
    return examine(load_handle(LocalStorage(path), env), resolve(options))


def test_a_table_in_order_has_no_concerns_and_sizes_of_live_and_old_files(tmp_path: Path) -> None:
    env = FakeEnv()
    health = health_of(made(tmp_path, env), env)
    assert health.is_healthy
    assert health.concerns == ()
    (city,) = health.partitions
    assert (city.file_groups, city.base_files, city.old_files, city.log_files) == (1, 1, 1, 0)
    assert health.base_sizes == (city.base_bytes,)


def test_an_instant_that_hangs_for_hours_is_a_concern_with_a_remedy(tmp_path: Path) -> None:
    env = FakeEnv()
    path = made(tmp_path, env)
    handle = load_handle(LocalStorage(path), env)
    env.advance(timedelta(seconds=1))
    instant = create_requested(handle.storage, handle.profile, "20260102040000000", "commit")
    to_inflight(handle.storage, handle.profile, instant)
    assert "stuck" not in {one.kind for one in health_of(path, env).concerns}
    env.advance(timedelta(days=1))
    (stuck,) = (one for one in health_of(path, env).concerns if one.kind == "stuck")
    assert stuck.subject == "20260102040000000.commit"
    assert stuck.remedy == f"hoodie rollback {path} 20260102040000000"


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    env = FakeEnv()
    path = made(tmp_path, env)
    newest = hoodie.Table.open(path).files()[0].base
    assert newest is not None
    Path(path, newest.path).unlink()
    health = health_of(path, env)
    assert not health.is_healthy
    assert health.concerns[0].severity == "error"


@pytest.mark.usefixtures("every_byte_counts")
def test_a_timeline_twice_as_long_as_archiving_allows_is_a_concern(tmp_path: Path) -> None:
    env = FakeEnv()
    path = made(tmp_path, env, commits=5)
    concerns = health_of(path, env, **{"hoodie.keep.min.commits": 1, "hoodie.keep.max.commits": 2}).concerns
    assert "long timeline" in {one.kind for one in concerns}
    assert "old versions" in {one.kind for one in concerns}


def test_the_page_stands_alone_and_escapes_what_the_table_says(tmp_path: Path) -> None:
    env = FakeEnv()
    page = hoodie.Table.open(made(tmp_path, env), env=env).report()
    assert "<b>rome" not in page
    assert "<b>rome" in ensure_harmless(page).text()
    assert ensure_harmless(page).count("svg", "timeline") == 1


@pytest.mark.usefixtures("every_byte_counts")
def test_remedies_quote_what_a_shell_would_run(tmp_path: Path) -> None:
    env = FakeEnv()
    folder = tmp_path / "a; touch b"
    folder.mkdir()
    path = made(folder, env, commits=5)
    remedy = concern(path, "old versions", env).remedy
    assert shlex.split(remedy) == ["hoodie", "clean", path]


def test_the_json_of_a_health_says_what_its_fields_say(tmp_path: Path) -> None:
    env = FakeEnv()
    health = health_of(made(tmp_path, env), env)
    said = as_json(health)
    assert said["healthy"] is True
    assert said["partitions"][0]["base_bytes"] == health.partitions[0].base_bytes
    assert "healthy" in health._repr_html_()


def concern(path: str, kind: str, env: FakeEnv, **options: object) -> Concern:
    (one,) = (one for one in health_of(path, env, **options).concerns if one.kind == kind)
    return one


def test_a_few_bytes_of_logs_are_no_debt_even_on_smaller_base_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = FakeEnv()
    path = logged(tmp_path, env, commits=9)
    often = {"hoodie.compact.inline.max.delta.commits": 9}
    assert health_of(path, env, **often).concerns == ()
    monkeypatch.setattr("hoodie.services.health.CHEAP_LOGS", 0)
    assert "file groups have" in concern(path, "log debt", env, **often).message


def test_log_debt_is_a_concern_with_a_remedy(tmp_path: Path) -> None:
    env = FakeEnv()
    path = logged(tmp_path, env, commits=4)
    assert "log debt" not in {one.kind for one in health_of(path, env).concerns if one.severity == "error"}
    found = concern(path, "log debt", env, **{"hoodie.compact.inline.max.delta.commits": 1})
    assert "after 4 delta commits (compaction is due after 1)" in found.message
    assert found.remedy == f"hoodie compact {path}"
    hoodie.Table.open(path, env=env).services.compact()
    assert "log debt" not in {one.kind for one in health_of(path, env).concerns}


def test_many_small_files_are_a_note_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = FakeEnv()
    path = made(tmp_path, env)
    monkeypatch.setattr("hoodie.services.health.SMALL_FILES", 1)
    found = concern(path, "small files", env)
    assert found.severity == "note"
    assert "1 of 1 base files" in found.message
    assert "hoodie.parquet.small.file.limit" in found.remedy
    assert found.commands == (f"hoodie compact-base {path}", f"hoodie cluster {path}")
    assert health_of(path, env).is_healthy


@pytest.mark.parametrize("template", _TROUBLE.values())
def test_commands_of_remedies_can_be_run(template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = shlex.quote(str(tmp_path / "`no` table"))
    remedy = told(template, uri=uri, instant="20260102040000000", version=9)
    for command in remedy.commands:
        assert uri in command
        assert command in remedy.text
        assert main(shlex.split(command)[1:]) == 2  # a usage that is wrong leaves by `SystemExit`
        assert "usage" not in capsys.readouterr().err


def test_old_versions_are_a_concern_with_the_command_that_removes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = FakeEnv()
    path = made(tmp_path, env, commits=5)
    assert health_of(path, env).concerns == ()  # a few kilobytes
    monkeypatch.setattr("hoodie.services.health.FEW_BYTES", 0)
    found = concern(path, "old versions", env)
    assert (found.severity, found.remedy) == ("warning", f"hoodie clean {path}")
    hoodie.Table.open(path, env=env).services.clean(**{"hoodie.clean.commits.retained": 1})
    assert "old versions" not in {one.kind for one in health_of(path, env).concerns}


def test_what_validate_finds_is_a_concern_with_a_remedy(tmp_path: Path) -> None:
    env = FakeEnv()
    path = made(tmp_path, env)
    newest = hoodie.Table.open(path).files()[0].base
    assert newest is not None
    Path(path, newest.path).unlink()
    found = health_of(path, env).concerns[0]
    assert (found.severity, found.kind) == ("error", "missing")
    assert "restore" in found.remedy


def test_overlap_is_told_by_column_and_is_a_concern_where_a_clustering_has_fallen_behind(tmp_path: Path) -> None:
    env, path = FakeEnv(), str(tmp_path / "trips")
    options = {**OPTIONS, "hoodie.parquet.small.file.limit": "0"}
    table = hoodie.Table.create(path, options=options, env=env)

    def add(first: int, count: int) -> None:
        for number in range(first, first + count):
            table.insert(pa.table({"id": [number, number + 1000], "city": ["rome", "rome"], "n": [number, number]}))

    add(0, 2)
    table.services.cluster(**{"hoodie.clustering.plan.strategy.sort.columns": "id"})
    add(10, 9)
    health = health_of(path, env)
    found = {one.column: one for one in health.overlaps}
    assert (found["n"].files, found["n"].reads, found["n"].is_clustered) == (10, 1.0, False)
    assert (found["id"].files, found["id"].is_clustered) == (10, True)
    assert found["id"].reads > 5
    assert (found["n"].reads_before, found["n"].files_before) == (1.0, 11)
    assert found["id"].reads_before is not None
    assert found["id"].reads_before > found["id"].reads
    behind = concern(path, "overlap", env)
    assert (behind.severity, behind.subject) == ("note", "id")
    assert f"hoodie cluster {path} -o hoodie.clustering.plan.strategy.sort.columns=id" == behind.remedy
    assert [one["column"] for one in as_json(health)["overlaps"]] == ["id", "city", "n"]
    page = hoodie.Table.open(path, options=options, env=env).report()
    ensure_harmless(page)
    assert "Files that a look-up reads" in page
    assert "id (sorted by)" in page
    assert "before the newest clustering" in page
    assert "1.0 of 11" in page
    table.services.clean(
        **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    )
    assert {one.reads_before for one in health_of(path, env).overlaps} == {None}
