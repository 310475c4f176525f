"""Queries with the help of a metadata table: the same rows, fewer files, and damage that is not hidden."""

import pyarrow.compute as pc
import pytest

from hoodie.errors import Corrupt
from hoodie.metadata.keys import column_stats_key
from hoodie.query import ReadOptions, load_read_plan, run_read, validate_table
from hoodie.spec import NAMED_BY_WRITE, V6, V9
from hoodie.testing.hand_metadata import FIRST, HandMetadata, files_record, stats_record
from hoodie.testing.hand_table import HandTable, at
from hoodie.timeline import load_table_config

ROWS = {
    ("a", "f1"): [{"id": "1", "part": "a", "qty": 1}, {"id": "2", "part": "a", "qty": 2}],
    ("a", "f2"): [{"id": "3", "part": "a", "qty": 10}],
    ("b", "f3"): [{"id": "4", "part": "b", "qty": 20}],
}


@pytest.fixture(params=[V6, V9], ids=["v6", "v9"])
def lake(request):
    table = HandTable(request.param)
    table.commit(at(1), ROWS)
    metadata = HandMetadata(table.storage)
    records = [files_record("__all_partitions__", {"a": 0, "b": 0})]
    stats = []
    for partition in ("a", "b"):
        names = {}
        for (where, file_id), rows in ROWS.items():
            if where == partition:
                name = table.path_of(at(1), partition, file_id).rpartition("/")[2]
                names[name] = table.storage.head(f"{partition}/{name}").size_bytes
                bounds = tuple({"member2": {"value": choose(row["qty"] for row in rows)}} for choose in (min, max))
                stats.append(stats_record(column_stats_key("qty", partition, name), "qty", name, bounds))
        records.append(files_record(partition, names))
    metadata.base("files", "files-0000-0", FIRST, records)
    metadata.base("column_stats", "col-stats-0000-0", FIRST, stats)
    metadata.commit(FIRST, at(1))
    return table, metadata


def plan_of(table, **options):
    config = load_table_config(table.storage)
    return load_read_plan(table.storage, config, table.timeline(), ReadOptions(**options))


def ids(table, **options):
    return sorted(run_read(plan_of(table, **options), table.storage).read_all().column("id").to_pylist())


def test_files_that_cannot_match_are_not_in_the_plan(lake):
    table, _ = lake
    plan = plan_of(table, filter="qty > 5 AND qty < 15")
    assert [file.base.name.file_id for file in plan.files] == ["f2"]
    assert plan.skipped_files == 2
    assert ids(table, filter="qty > 5 AND qty < 15") == ["3"]


@pytest.mark.parametrize(
    ("expression", "kept"),
    [
        (pc.field("qty") == 10, ["f2"]),
        ((pc.field("qty") > 5) & (pc.field("qty") < 15), ["f2"]),
        (~(pc.field("qty") < 20) | (pc.field("qty") == 1), ["f1", "f3"]),
        (pc.field("qty").isin([2, 20]), ["f1", "f3"]),
        (pc.field("qty").is_null(), []),
        ((pc.field("qty") == 10) & (pc.field("id") != "3"), ["f2"]),
        ((pc.field("qty") == 99) & (pc.field("part") == "b"), ["f1", "f2", "f3"]),
    ],
    ids=str,
)
def test_arrow_expressions_rule_out_files_too(lake, expression, kept):
    table, _ = lake
    assert [file.base.name.file_id for file in plan_of(table, filter=expression).files] == kept
    assert ids(table, filter=expression) == ids(table, filter=expression, use_metadata=False)


@pytest.mark.parametrize("options", [{"use_metadata": False}, {"skip_data": False}])
def test_without_it_more_files_are_read_and_the_rows_are_the_same(lake, options):
    table, _ = lake
    assert len(plan_of(table, filter="qty > 5 AND qty < 15", **options).files) == 3
    assert ids(table, filter="qty > 5 AND qty < 15", **options) == ["3"]


def test_time_travel_and_ranges_of_commits_skip_by_statistics_of_files(lake):
    table, _ = lake
    assert len(plan_of(table, filter="qty = 20", as_of=at(1)).files) == 1
    assert len(plan_of(table, filter="qty = 20", query="incremental", begin="000").files) == 1


def test_damaged_metadata_table_is_an_error_unless_it_is_not_asked(lake):
    table, _ = lake
    table.storage.delete_dir(".hoodie/metadata/files")
    with pytest.raises(Corrupt) as error:
        plan_of(table)
    assert error.value.facts["path"] == ".hoodie/metadata/files"
    assert ids(table, use_metadata=False) == ["1", "2", "3", "4"]


def metadata_findings(table):
    return [(one.path, one.message) for one in validate_table(table.handle) if one.kind == "metadata"]


def test_validate_compares_it_with_storage(lake):
    table, metadata = lake
    table.config = load_table_config(table.storage)
    assert metadata_findings(table) == []
    lost = table.path_of(at(1), "b", "f3").rpartition("/")[2]
    table.commit(at(2), {("b", "f4"): [{"id": "5", "part": "b", "qty": 1}]})
    unlisted = table.path_of(at(2), "b", "f4")
    base = {} if table.profile.log_naming == NAMED_BY_WRITE else {"base_instant": FIRST}
    invented = "f9_0-1-2_20260102000001000.parquet"
    grown = table.path_of(at(1), "a", "f2").rpartition("/")[2]
    records = [files_record("b", {invented: 3}, [lost]), files_record("a", {grown: 1 << 40})]
    metadata.log("files", "files-0000-0", at(2), records, **base)
    metadata.commit(at(2))
    found = dict(metadata_findings(table))
    assert set(found) == {unlisted, f"b/{lost}", f"b/{invented}", f"a/{grown}"}
    assert "not listed" in found[unlisted]
    assert "not there" in found[f"b/{invented}"]
    assert str(1 << 40) in found[f"a/{grown}"]


def test_validate_names_damage_of_it(lake):
    table, metadata = lake
    table.config = load_table_config(table.storage)
    metadata.storage.delete_dir("column_stats")
    assert [path for path, _ in metadata_findings(table)] == [".hoodie/metadata/column_stats"]
