"""What docs/compat.md calls refused is refused: every such row has calls that end in an error here, or names a test.

A row is known by how its first cell begins. Calls are made with a table of each version that refuses them; a test is
`file::function`, in a file that the row names, and expects an error of ours.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from compat_page import ROOT, compat_tables

from hoodie.config import Purpose, resolve
from hoodie.errors import Conflict, Invalid, Unsupported
from hoodie.storage import open_storage
from hoodie.table import Table
from hoodie.testing.lake import Lake, logged_lake, row

Probe = Callable[[int], object]
REFUSALS = (Unsupported, Invalid, Conflict)
WRITE = "hoodie.datasource.write."
VERSIONS = (6, 8, 9)


def first_write(*options: Mapping[str, str]) -> tuple[Probe, ...]:
    """A first write with each of these options."""

    def writing(given: Mapping[str, str]) -> Probe:
        return lambda version: Lake(version, given).upsert(row("a"))

    return tuple(writing(one) for one in options)


def later_write(*options: Mapping[str, str]) -> tuple[Probe, ...]:
    """A write with each of these options into a table that is there, which stays as it was."""

    def writing(given: Mapping[str, str]) -> Probe:
        def probe(version: int) -> None:
            lake = Lake(version)
            lake.upsert(row("a"))
            before = lake.files()
            try:
                lake.write("upsert", [row("a", "b", 2)], given)
            finally:
                assert lake.files() == before

        return probe

    return tuple(writing(one) for one in options)


def options(*given: Mapping[str, str], purpose: Purpose = "write") -> tuple[Probe, ...]:
    """Each of these options, of a write or a read of any table."""

    def asking(one: Mapping[str, str]) -> Probe:
        return lambda version: resolve({**one, "hoodie.write.table.version": str(version)}, purpose=purpose)

    return tuple(asking(one) for one in given)


def values(key: str, *texts: str) -> tuple[dict[str, str], ...]:
    return tuple({key: text} for text in texts)


def without_keys(version: int) -> object:
    lake = Lake(version, {WRITE + "recordkey.field": None})
    lake.write("insert", [row("a")])
    return Table.open(lake.uri).upsert(pa.table({"id": ["a"], "part": ["p"], "ts": [1], "v": ["b"]}))


def without_meta_columns(version: int) -> object:
    return Lake(version, {"hoodie.table.cdc.enabled": "true", "hoodie.populate.meta.fields": "false"}).upsert(row("a"))


def other_buckets(given: Mapping[str, str]) -> Probe:
    """A write with this option into a table that was made with the bucket index."""

    def probe(version: int) -> object:
        lake = Lake(version, {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"})
        lake.upsert(row("a"))
        return lake.write("upsert", [row("a", "b", 2)], given)

    return probe


def clustering_of_buckets(version: int) -> object:
    lake = Lake(version, {"hoodie.index.type": "BUCKET"})
    lake.upsert(row("a"))
    return lake.table.services.cluster()


def several_ordering_fields(version: int) -> object:
    return logged_lake(version, **{"hoodie.table.ordering.fields": "ts,v"}).upsert(row("a"))


def some_columns(version: int) -> object:
    lake = logged_lake(version)
    lake.upsert(row("a"))
    return lake.table.update(pa.table({"id": ["a"], "part": ["p"], "ts": [5], "v": ["x"]}))


def second_kind_of_strategy(version: int) -> object:
    lake = logged_lake(version)
    lake.upsert(row("a"))
    lake.upsert(row("a", "b", 2))
    return lake.table.services.compact(**{"hoodie.compaction.strategy": "com.example.Mine"})


def expiring(version: int) -> object:
    lake = Lake(version)
    lake.upsert(row("a"))
    return lake.table.services.ttl(**{"hoodie.partition.ttl.strategy.class": "com.example.Mine"})


INDEXES = (
    {
        "hoodie.metadata.index.secondary.column": "v",
        "hoodie.metadata.global.record.level.index.enable": "true",
    },
    {
        "hoodie.metadata.index.expression.enable": "true",
        "hoodie.metadata.index.expression.column": "v",
        "hoodie.metadata.index.expression.options": "expr=upper",
    },
)
HUDIS_OWN = (
    "upsert_prepped",
    "insert_prepped",
    "bulk_insert_prepped",
    "bootstrap",
    "cluster",
    "compact",
    "alter_schema",
)
OFF = ("hoodie.datasource.hive_sync.enable", "hoodie.datasource.meta.sync.enable", "hoodie.write.commit.callback.on")
CHECKS = ("hoodie.precommit.validators", "hoodie.prewrite.validators")

REFUSED: Mapping[str, tuple[Probe | str, ...]] = {
    "other payload classes, merge mode CUSTOM": first_write(
        {WRITE + "payload.class": "com.example.Mine"},
        {"hoodie.write.record.merge.mode": "CUSTOM"},
        {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
    ),
    "the same of rows without `_hoodie_record_key`": (without_keys,),
    "key generators of one's own": first_write({WRITE + "keygenerator.class": "com.example.Mine"}),
    "reads by such a class": options(
        {"hoodie.datasource.read.partition.value.extractor.enabled": "true"}, purpose="read"
    ),
    "bucket counts of a partition's own": first_write({"hoodie.bucket.index.partition.expressions": "2026.*,16"}),
    "the same stored in the table": (
        "tests/unit/operations/test_bucket_writes.py::test_bucket_counts_that_partitions_have_of_their_own_are_refused",
        "tests/unit/query/test_key_lookup.py::test_buckets_leave_other_file_groups_alone",
    ),
    "a write with another engine, number": tuple(
        other_buckets({key: value})
        for key, value in {
            "hoodie.index.type": "SIMPLE",
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.num.buckets": "8",
            "hoodie.bucket.index.hash.field": "v",
        }.items()
    ),
    "index FLINK_STATE": later_write(*values("hoodie.index.type", "FLINK_STATE")),
    "operations that Hudi keeps for itself": options(*values(WRITE + "operation", *HUDIS_OWN)),
    "partitioners of one's own": later_write({"hoodie.bulkinsert.user.defined.partitioner.class": "com.example.Mine"}),
    "tables with columns of the types VECTOR": (
        "tests/unit/records/test_avro_rows.py::test_types_of_hudi_1_2_that_are_not_known_are_refused",
    ),
    "schema: rename, reorder, drop": (
        *later_write({"hoodie.schema.on.read.enable": "true"}),
        "tests/unit/state/test_table_schema.py::test_a_writer_is_told_that_it_cannot_continue_the_history",
    ),
    "writers that do not wait for each other (`NON": (
        *later_write(*values("hoodie.write.concurrency.mode", "non_blocking_concurrency_control")),
        "tests/unit/operations/test_non_blocking_writers.py::test_what_the_mode_is_not_for_is_refused",
    ),
    "changing file groups that a pending clustering": (
        "tests/unit/operations/test_recovery.py::test_pending_clustering_keeps_its_input_and_is_no_failed_write",
        "tests/unit/services/test_clustering.py::test_writers_beside_a_plan_go_on_but_for_those_that_want_its_groups",
    ),
    "secondary and expression indexes asked for": later_write(*INDEXES),
    "cleaning before a write": later_write({"hoodie.prewrite.cleaner.policy": "CLEAN"}),
    "services left to another process": later_write({"hoodie.table.service.manager.enabled": "true"}),
    "a Java class that says which partitions expire": (expiring,),
    "change data of tables without meta columns": (without_meta_columns,),
    "clustering and base-file compaction of tables whose rows lie in hash buckets": (
        clustering_of_buckets,
        "tests/unit/operations/test_unnamed_buckets.py::test_clustering_does_not_take_buckets_apart",
    ),
    "a write that names no index into a table of Hudi": (
        "tests/unit/operations/test_unnamed_buckets.py::test_new_rows_are_not_stored_outside_of_buckets",
        "tests/unit/operations/test_unnamed_buckets.py::test_rings_are_not_emptied_without_their_index",
    ),
    "catalog sync, validators before a commit": later_write(
        *({key: "true"} for key in (*OFF, "hoodie.errortable.enable")),
        *({key: "com.example.Mine"} for key in CHECKS),
    ),
    "base files ORC, HFile, Lance": (
        *first_write(
            *values("hoodie.base.file.format", "ORC", "HFILE", "LANCE"),
            {"hoodie.table.multiple.base.file.formats.enable": "true"},
        ),
        "tests/unit/operations/test_bad_input.py::test_tables_of_kinds_to_come",
        "tests/unit/query/test_lance_tables.py::test_writes_are_refused_before_anything_changes",
    ),
    "writes beside a pending resize": (
        "tests/unit/services/test_resize.py"
        "::test_groups_of_hudis_pending_resize_are_refused_to_writers_until_it_is_carried_out",
    ),
    "several ordering fields": (several_ordering_fields,),
    "updates of some columns": (some_columns,),
    "strategies of one's own in Java": (second_kind_of_strategy,),
    "unschedule once log files carry": (
        "tests/unit/services/test_compact_admin.py::test_version_6_keeps_a_plan_that_log_files_are_named_by",
    ),
    "base files Lance": ("tests/unit/query/test_lance_tables.py::test_writes_are_refused_before_anything_changes",),
    "several folders in one read": options(
        {"hoodie.datasource.read.paths": "/lake/a,/lake/b"},
        {"hoodie.datasource.read.extract.partition.values.from.path": "true"},
        purpose="read",
    ),
    "settings of parquet files by Hadoop's names": later_write(
        {"parquet.block.size": "1048576"}, {"parquet.encryption.footer.key": "k"}
    ),
    "HDFS and other schemes": (lambda version: open_storage(f"hdfs://host:8020/lake/{version}"),),
    "`INSERT`, `DELETE`, `UPDATE`, `MERGE`, `insertInto`": (
        "tests/spark/test_spark_view_writes.py::test_a_write_to_a_view_is_refused",
    ),
    "`saveAsTable`, `insertInto`, `writeTo`, SQL": (
        "tests/spark/test_spark_surface.py::test_what_is_not_there_yet_says_so",
    ),
}


def refused_rows() -> dict[str, tuple[tuple[int, ...], str]]:
    """By the beginning it is known by, the versions in which a row is refused, and its last cell."""
    found = {}
    for cells in compat_tables():
        answers = cells[1:-1]
        if "refused" not in answers:
            continue
        (begin,) = [one for one in REFUSED if cells[0].startswith(one)] or [cells[0]]
        versions = (
            VERSIONS
            if len(answers) == 1
            else [v for v, said in zip(VERSIONS, answers, strict=True) if said == "refused"]
        )
        found[begin] = (tuple(versions), cells[-1])
    return found


ROWS = refused_rows()
PROBES = [
    pytest.param(probe, version, id=f"{begin}-{n}-v{version}")
    for begin, probes in REFUSED.items()
    for n, probe in enumerate(probes)
    for version in ROWS.get(begin, ((), ""))[0]
    if not isinstance(probe, str)
]


def test_every_row_that_is_refused_has_a_call_or_a_test() -> None:
    assert set(ROWS) == set(REFUSED)


@pytest.mark.parametrize(("probe", "version"), PROBES)
def test_what_the_row_says_is_refused(probe: Probe, version: int) -> None:
    with pytest.raises(REFUSALS) as caught:
        probe(version)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("begin", "named"),
    [(begin, one) for begin, probes in REFUSED.items() for one in probes if isinstance(one, str)],
)
def test_the_test_of_a_row_expects_an_error(begin: str, named: str) -> None:
    path, _, name = named.partition("::")
    assert path in ROWS[begin][1]
    text = Path(ROOT, path).read_text(encoding="utf-8")
    (found,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and node.name == name]
    body = ast.get_source_segment(text, found) or ""
    assert any(
        f"{how}{error.__name__}" in body for how in ("raises(", "raises((", "refused(lake, ") for error in REFUSALS
    )
