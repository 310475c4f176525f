"""What every command prints with `--json`, key by key, is what scripts have come to read: `json_output.txt` holds it.

Instants and file ids stand there as T1, T2, F1 in the order in which they appear; bytes, times and paths are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.cli import main
from hoodie.cli.app import _COMMANDS

EXPECTED = Path(__file__).with_name("json_output.txt")
WRITE = "hoodie.datasource.write."
SERVICES_OFF = ("hoodie.clean.automatic=false", "hoodie.archive.automatic=false", "hoodie.compact.inline=false")
KEPT_FEW = ("hoodie.clean.commits.retained=1", "hoodie.keep.min.commits=2", "hoodie.keep.max.commits=3")
BUCKETS = (
    "hoodie.index.type=BUCKET",
    "hoodie.index.bucket.engine=CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets=4",
    "hoodie.bucket.index.max.num.buckets=8",
    "hoodie.bucket.index.min.num.buckets=2",
    "hoodie.bucket.index.hash.field=id",
)
OURS = ("cow", "mor", "events", "buckets", "moved", "rows.parquet")
_MEASURED = re.compile(r"(_bytes|_ms|seconds|^examined)$")
_NAMES = (
    ("T", re.compile(r"(?<!\d)20\d{15}(?!\d)")),
    ("F", re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?:-\d)?")),
    ("W", re.compile(r"(?<=_)\d+-\d+-\d+(?=_|\.|\"|$)")),
)
_SIZES = re.compile(r"\d+(?:\.\d+)? (?:bytes|[KMG]iB)")


class Session:
    """Commands on one machine, and what they printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self._capsys = capsys
        self._names: dict[str, str] = {}

    def __call__(self, *arguments: str) -> Any:
        """Runs a command and keeps what it printed as JSON."""
        paths = [str(self.folder / said) if said in OURS else said for said in arguments]
        assert main([*paths, "--json"]) in (0, 1)
        printed = self._capsys.readouterr().out
        documents = (
            [json.loads(line) for line in printed.splitlines()] if arguments[0] == "query" else [json.loads(printed)]
        )
        shown = " ".join(said for said in arguments if said != "-o" and "=" not in said)
        self.lines += [f"$ hoodie {self._named(shown)}", *(self._text(document) for document in documents)]
        return documents[0] if documents else None

    def _text(self, document: Any) -> str:
        return self._named(json.dumps(_without_measures(document), indent=1).replace(str(self.folder), "FOLDER"))

    def _named(self, text: str) -> str:
        text = _SIZES.sub("SIZE", text)
        for kind, pattern in _NAMES:
            text = pattern.sub(lambda found, kind=kind: self._name(kind, found[0]), text)  # type: ignore[misc]
        return text

    def _name(self, kind: str, found: str) -> str:
        count = sum(name.startswith(kind) for name in self._names.values())
        return self._names.setdefault(found, f"{kind}{count + 1}")


def _without_measures(value: Any, key: str = "") -> Any:
    """`value` with what differs between any two runs as zero, or as an empty text."""
    if isinstance(value, dict):
        return {name: _without_measures(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_measures(part, key) for part in value]
    measured = _MEASURED.search(key)
    return type(value)() if measured and value is not None else value


def test_the_json_of_every_command_is_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Session(tmp_path, capsys)
    rows = pa.table({"id": ["a", "b"], "city": ["oslo", "oslo"], "fare": [1.5, None], "ts": [1, 1]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    for step in (_copy_on_write, _merge_on_read, _appending, _undoing, _buckets, _other_places, _configuration):
        run.lines.append(f"# {step.__name__.strip('_').replace('_', ' ')}")
        step(run)
    assert "\n".join(run.lines).splitlines() == EXPECTED.read_text(encoding="utf-8").splitlines()


def test_no_command_is_left_out() -> None:
    told = set(re.findall(r"^\$ hoodie (\S+)", EXPECTED.read_text(encoding="utf-8"), re.MULTILINE))
    assert told == set(_COMMANDS) - {"report", "serve"}  # which print a page, and answer over HTTP


def _options(*more: str) -> Iterator[str]:
    for option in (*SERVICES_OFF, *more):
        yield from ("-o", option)


def _write(run: Session, table: str, *more: str) -> str:
    said = ("hoodie.table.name=trips", f"{WRITE}recordkey.field=id", f"{WRITE}partitionpath.field=city", *more)
    committed = run("write", table, "--input", "rows.parquet", *_options(*said))
    return str(committed["instant"])


def _copy_on_write(run: Session) -> None:
    first = _write(run, "cow")
    _write(run, "cow")
    name = f"0e4e2b5a-8a4c-4f5e-9a8e-3f0f6f0f9a11-0_0-1-2_{int(first) + 1}.parquet"
    (run.folder / "cow" / "oslo" / name).write_bytes(b"PAR1")
    run("validate", "cow")
    run("doctor", "cow")
    run("orphans", "cow", "--older-than-hours", "0")
    run("orphans", "cow", "--older-than-hours", "0", "--delete")
    run("orphans", "cow", "--delete")
    run("doctor", "cow", "--fix")
    for _ in range(2):
        _write(run, "cow")
    run("query", "cow", "--columns", "id,city,fare,ts")
    run("timeline", "cow")
    run("writers", "cow")
    run("files", "cow")
    run("savepoint", "cow")
    run("index", "cow")
    run("index", "cow", "--create", "record_index")
    run("index", "cow", "--create", "by_ts", "--column", "ts")
    run("index", "cow")
    run("index", "cow", "--drop", "by_ts")
    run("metadata", "cow", "-o", "hoodie.metadata.compact.max.delta.commits=2")
    run("metadata", "cow", "-o", "hoodie.metadata.compact.max.delta.commits=2")
    for command in ("clean", "archive"):
        run(command, "cow", "-n", *_options(*KEPT_FEW))
        run(command, "cow", *_options(*KEPT_FEW))
        run(command, "cow", *_options(*KEPT_FEW))
    run("timeline", "cow", "--all")
    ttl = ("hoodie.partition.ttl.inline=true", "hoodie.partition.ttl.strategy.days.retain=1")
    run("ttl", "cow", "-n", *_options(*ttl))
    run("ttl", "cow", *_options(*ttl))
    run("upgrade", "cow", "--to", "8", "-n")
    run("upgrade", "cow", "--to", "8")
    run("upgrade", "cow", "--to", "8")


def _merge_on_read(run: Session) -> None:
    for _ in range(3):
        _write(run, "mor", f"{WRITE}table.type=MERGE_ON_READ")
    run("files", "mor")
    run("compact", "mor", "-n")
    planned = run("compact", "mor", "--schedule")
    run("compact", "mor", "--validate")
    run("compact", "mor", "--unschedule", planned["instant"])
    run("compact", "mor", "--validate")
    run("compact", "mor", "--repair")
    logs = ("hoodie.log.compaction.enable=true", "hoodie.log.compaction.blocks.threshold=2")
    run("compact-logs", "mor", *_options(*logs))
    run("compact", "mor")
    run("compact", "mor")
    run("cluster", "mor", *_options("hoodie.clustering.plan.strategy.sort.columns=id"))
    run("doctor", "mor")


def _appending(run: Session) -> None:
    _write(run, "events")
    run("append", "events", "--input", "rows.parquet", *_options())
    run("compact-base", "events", "-n")
    run("compact-base", "events", *_options())


def _undoing(run: Session) -> None:
    savepoint = run("savepoint", "mor", "--create", "--user", "me", "--comments", "before")[0]["instant"]
    for _ in range(2):
        newest = _write(run, "mor")
    run("savepoint", "mor")
    run("rollback", "mor", newest, "-n")
    run("rollback", "mor", newest)
    run("restore", "mor", savepoint, "-n")
    run("restore", "mor", savepoint)
    run("savepoint", "mor", "--delete", savepoint)


def _buckets(run: Session) -> None:
    more = ("hoodie.bucket.index.merge.threshold=2", f"{WRITE}table.type=MERGE_ON_READ")
    _write(run, "buckets", *BUCKETS, *more)
    run("resize", "buckets", "-n", *_options(*BUCKETS, *more))
    run("resize", "buckets", *_options(*BUCKETS, *more))


def _other_places(run: Session) -> None:
    _write(run, "moved")
    elsewhere = f"hoodie.storage.path={run.folder}/elsewhere"
    run("relayout", "moved", "--to", "bits:1", "--move", "-n", "-o", elsewhere)
    run("relayout", "moved", "--to", "bits:1", "--move", "-o", elsewhere)
    run("relayout", "moved", "--move", "--grace-hours", "0", "-o", elsewhere)
    run("relayout", "moved", "--move", "-o", elsewhere)


def _configuration(run: Session) -> None:
    run("config", "hoodie.table.name")
    run("config", "hoodie.clean.commits")
