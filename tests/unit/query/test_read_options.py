"""Reader options in Hudi's keys, as the fields of a read."""

from __future__ import annotations

import pytest

from hoodie.config import resolve
from hoodie.errors import Invalid
from hoodie.query import ReadOptions, parse_read_options
from hoodie.query.path_glob import PathGlob
from hoodie.slices import MergeOptions

READ = "hoodie.datasource.read."
QUERY = "hoodie.datasource.query.type"


def parsed(options: dict[str, object]) -> ReadOptions:
    return parse_read_options(resolve(options, purpose="read"))


def test_no_options_ask_for_the_newest_snapshot() -> None:
    assert repr(parsed({})) == repr(ReadOptions())
    assert repr(parsed({"hoodie.table.name": "t", "fs.s3a.access.key": "x"})) == repr(ReadOptions())


def test_each_key_sets_its_field() -> None:
    found = parsed(
        {
            QUERY: "INCREMENTAL",
            READ + "begin.instanttime": 0,
            READ + "end.instanttime": "20240101000000000",
            READ + "incr.filters": "a > 1, b IN (1, 2), c = 'x,y'",
            READ + "incr.path.glob": "/2024/*",
            READ + "incr.fallback.fulltablescan.enable": False,
            "hoodie.query.timeline.holes.resolution.policy": "block",
            READ + "schema.use.end.instanttime": True,
            READ + "incr.skip_compact": True,
            READ + "incr.skip_cluster": "true",
            "hoodie.payload.delete.field": "op",
            "hoodie.payload.delete.marker": "D",
            "hoodie.memory.merge.max.size": 1000,
            "hoodie.memory.spillable.map.path": "/somewhere",
        }
    )
    expected = ReadOptions(
        query="incremental",
        begin="0",
        end="20240101000000000",
        conditions=("a > 1", "b IN (1, 2)", "c = 'x,y'"),
        path_glob="/2024/*",
        full_scan_fallback=False,
        hollow_commits="BLOCK",
        schema_at_end=True,
        skip_operations=("COMPACT", "CLUSTER"),
        merge=MergeOptions(
            properties=(("hoodie.payload.delete.field", "op"), ("hoodie.payload.delete.marker", "D")),
            memory_bytes=1000,
            spill_dir="/somewhere",
        ),
    )
    assert repr(found) == repr(expected)
    assert parsed({"as.of.instant": "2024-01-01"}).as_of == "2024-01-01"


def test_changes_are_a_format_of_incremental_queries() -> None:
    changes = {"hoodie.datasource.query.incremental.format": "cdc"}
    assert parsed({QUERY: "incremental", **changes}).query == "cdc"
    assert parsed(changes).query == "snapshot"


def test_older_names_of_keys_count() -> None:
    assert parsed({"hoodie.datasource.view.type": "read_optimized"}).query == "read_optimized"


@pytest.mark.parametrize(
    ("glob", "path", "found"),
    [
        ("", "/t/p/f.parquet", True),
        ("/2024/*", "/t/2024/f.parquet", True),
        ("/2024/*", "/t/2024/01/f.parquet", True),
        ("/2024/*", "/t/12024/f.parquet", False),
        ("/2024/*/f.parquet", "/t/2024/f.parquet", False),
        ("p=?/*", "/t/p=1/f", True),
        ("p=?/*", "/t/p=12/f", False),
        ("/[ab]/*", "/t/b/f", True),
        ("/[!ab]/*", "/b/a/f", False),
        ("/[^ab]/*", "/t/c/f", True),
        ("/{oslo,rome}/*", "/t/rome/f", True),
        ("/{oslo,rome}/*", "/t/oslo,rome/f", False),
        ("/a,b/*", "/t/a,b/f", True),
        ("/a.c+$/*", "/t/a.c+$/f", True),
        ("/a.c/*", "/t/abc/f", False),
        ("/\\*/*", "/t/*/f", True),
        ("/\\*/*", "/t/x/f", False),
    ],
)
def test_path_patterns_describe_the_end_of_a_path(glob: str, path: str, found: bool) -> None:
    assert PathGlob(glob).matches(path) is found


@pytest.mark.parametrize("glob", ["/[ab", "/{a,b", "/a\\"])
def test_unfinished_path_patterns_are_refused(glob: str) -> None:
    with pytest.raises(Invalid, match="has no end"):
        PathGlob(glob)
