"""The worked examples of docs/format/index-definitions.md are what Hudi wrote, and are read and written by the code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from format_pages import block, ensure_lines, page, rows

from hoodie.metadata.index_definitions import IndexDefinition, parse_index_definitions
from hoodie.metadata_writer.definitions import encode_index_definitions
from hoodie.spec.index_plan import IndexedPartition, encode_index_metadata, encode_index_plan, parse_index_plan

PAGE = page("index-definitions")
TABLE, EXPRESSIONS = "1.2.0/cow_secondary_index", "1.2.0/cow_expression_index"
INFO = IndexedPartition("secondary_index_idx_name", "20261121061836807")


def test_definitions_are_the_file_hudi_wrote(golden: Callable[[str], Path]) -> None:
    text = block(PAGE, "## Worked example: definitions").rstrip("\n").encode()
    assert f"all of its {len(text)} bytes" in PAGE
    assert text == (golden(TABLE) / ".hoodie/.index_defs/index.json").read_bytes()
    found = parse_index_definitions(text, "page")
    assert {name: (one.kind, one.version) for name, one in found.items()} == {
        "record_index": ("record_index", "V1"),
        "column_stats": ("column_stats", "V2"),
        "secondary_index_idx_name": ("secondary_index", "V2"),
    }
    assert found["secondary_index_idx_name"].source_fields == ("name",)
    assert not found["record_index"].is_partitioned
    assert json.loads(encode_index_definitions(found)) == json.loads(text)


def test_definition_of_an_expression_index(golden: Callable[[str], Path]) -> None:
    text = f'{{"indexDefinitions": {{{block(PAGE, "An expression index of")}}}}}'
    (shown,) = parse_index_definitions(text.encode(), "page").values()
    options = {"expr": "from_unixtime", "format": "yyyy-MM-dd HH"}
    assert shown == IndexDefinition(shown.name, "column_stats", "from_unixtime", ("ts",), options, "V2")
    real = (golden(EXPRESSIONS) / ".hoodie/.index_defs/index.json").read_bytes()
    assert parse_index_definitions(real, "real")["expr_index_idx_dt"] == shown


@pytest.mark.parametrize("after", ["The plan, 827 bytes", "What was done, 1147 bytes"])
def test_plan_and_metadata_have_the_bytes_of_the_tables(golden: Callable[[str], Path], after: str) -> None:
    names = block(PAGE, "The secondary index of the first table").split()
    name = names[0] if "plan" in after else names[-1]
    data = (golden(TABLE) / ".hoodie/timeline" / name).read_bytes()
    assert f"{len(data)} bytes" in after
    start, end = ensure_lines(data, rows(PAGE, after))
    assert end == len(data) - 16
    assert parse_index_plan(data, "page") == (INFO,)
    ours = (encode_index_plan if "plan" in after else encode_index_metadata)([INFO], "1.x")
    assert ours[-16 - (end - start) : -16] == data[start:end]
    if "plan" not in after:
        assert f"({len(ours)} as we write it" in PAGE


def test_the_build_is_three_files(golden: Callable[[str], Path]) -> None:
    names = block(PAGE, "The secondary index of the first table").split()
    timeline = golden(TABLE) / ".hoodie/timeline"
    assert sorted(names) == sorted(path.name for path in timeline.glob("*indexing*") if path.suffix != ".crc")
    assert (timeline / names[1]).read_bytes() == b""
