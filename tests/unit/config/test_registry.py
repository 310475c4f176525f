"""The registry knows every key, and its entries fit together."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from hoodie.config import Kind, ValueType, accepted, all_keys, differences, find, lookup, nearest, resolve, spellings
from hoodie.errors import HudiError, Invalid

HUDI_KEYS = 663
QUICK_START = (
    "hoodie.table.name",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.datasource.write.partitionpath.field",
    "hoodie.datasource.write.table.name",
    "hoodie.datasource.write.operation",
    "hoodie.datasource.write.precombine.field",
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.insert.shuffle.parallelism",
    "hoodie.datasource.query.type",
    "hoodie.datasource.read.begin.instanttime",
    "hoodie.datasource.read.end.instanttime",
    "as.of.instant",
)


def test_every_key_has_a_meaning_of_its_own_and_known_kind_type_and_scope() -> None:
    for entry in all_keys():
        assert entry.meaning, entry.key
        assert entry.meaning[0].isupper(), entry.key
        assert not entry.meaning.endswith("."), entry.key
        assert entry.kind in get_args(Kind)
        assert entry.type in get_args(ValueType)
        assert entry.group


def test_keys_are_named_once() -> None:
    keys = [entry.key for entry in all_keys()]
    assert len(keys) == len(set(keys))


def test_there_are_no_fewer_keys_than_in_hudi_1_2_0() -> None:
    later_additions = {"hoodie.engine.local.max.bytes"}
    removed_before = {entry.key for entry in all_keys() if entry.removed}
    families = {entry.key for entry in all_keys() if entry.is_family}
    assert len({entry.key for entry in all_keys()} - removed_before - families - later_additions) >= HUDI_KEYS


@pytest.mark.parametrize("key", QUICK_START)
def test_keys_of_the_quick_start_are_never_refused(key: str) -> None:
    assert lookup(key).kind in ("implemented", "no_meaning_here")


def test_an_alias_has_kind_and_type_of_the_key_it_stands_for() -> None:
    for entry in all_keys():
        if entry.alias_of:
            meant = lookup(entry.alias_of)
            assert (meant.kind, meant.type, meant.alias_of) == (entry.kind, entry.type, None), entry.key


def test_older_names_lead_to_one_setting() -> None:
    for entry in all_keys():
        for alias in entry.aliases:
            found = find(alias)
            assert found is not None
            assert found.canonical == entry.canonical, alias


def test_defaults_of_all_settings_are_accepted_when_given() -> None:
    for entry in all_keys():
        if entry.default and not entry.is_family:
            resolve({entry.key: entry.default})


def test_a_difference_is_explained_and_really_differs() -> None:
    for entry in differences():
        assert entry.difference
        assert entry.our_default != entry.hudi_default
        assert entry.default == entry.our_default


def test_the_deliberate_differences_are_the_known_ones() -> None:
    assert {entry.key: entry.our_default for entry in differences()} == {
        "hoodie.index.hbase.max.qps.per.region.server": "0",
        "hoodie.parquet.compression.codec": "zstd",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.write.ignore.failed": "false",
        "hoodie.logfile.data.block.format": "parquet",
        "hoodie.fail.on.timeline.archiving": "false",
        "hoodie.fail.writes.on.inline.table.service.exception": "false",
        "hoodie.metadata.write.fail.on.table.service.failures": "false",
        "hoodie.layout.optimize.curve.build.method": "RANK",
        "hoodie.embed.timeline.server.reuse.enabled": "true",
        "hoodie.filesystem.view.remote.timeout.secs": "60",
    }


def test_a_not_yet_key_says_which_values_ask_for_it() -> None:
    for entry in all_keys():
        if entry.unless:
            assert entry.later, entry.key
        assert not set(entry.values) & set(entry.later), entry.key


def test_every_implemented_closed_set_says_what_it_accepts() -> None:
    for entry in all_keys():
        if entry.kind == "implemented" and entry.type in ("enum", "class") and not entry.alias_of:
            assert entry.values, entry.key
            assert accepted(entry)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.tabel.name", "hoodie.table.name"),
        ("hoodie.parquet.small.files.limit", "hoodie.parquet.small.file.limit"),
        ("hoodie.cleaner.commits.retain", "hoodie.cleaner.commits.retained"),
    ],
)
def test_a_misspelt_key_leads_to_the_nearest(wrong: str, right: str) -> None:
    assert nearest(wrong) == right
    with pytest.raises(Invalid, match=right):
        lookup(wrong)


def test_a_key_like_no_other_leads_to_the_list() -> None:
    with pytest.raises(Invalid, match="hoodie config"):
        lookup("hoodie.zzzzzzzzzzzzzzzzzzzz.qqqqqqqqqqqqqqq")


def test_families_and_case_are_found() -> None:
    glue = find("hoodie.meta.sync.glue.partition_index_fields")
    assert glue is not None
    assert glue.is_family
    assert lookup("HOODIE.table.NAME").key == "hoodie.table.name"


def test_spellings_lists_every_other_name() -> None:
    names = spellings(lookup("hoodie.table.ordering.fields"))
    assert "hoodie.datasource.write.precombine.field" in names
    assert "hoodie.table.precombine.field" in names
    assert "hoodie.table.ordering.fields" not in names


def test_loading_is_light() -> None:
    program = """
import sys, time
import hoodie.config
start = time.process_time()
hoodie.config.lookup("hoodie.table.name")
took = time.process_time() - start
heavy = {"pyarrow", "numpy", "pandas", "rich", "pyspark"} & set(sys.modules)
print(round(took * 1000), sorted(heavy))
"""
    best = min(_measured(program) for _ in range(8))  # the fastest: other tests run beside it
    assert best < 15


def _measured(program: str) -> int:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    milliseconds, _, heavy = done.stdout.strip().partition(" ")
    assert heavy == "[]"
    return int(milliseconds)


def test_errors_of_the_registry_are_ours() -> None:
    with pytest.raises(HudiError) as caught:
        lookup("hoodie.nonsense")
    assert caught.value.facts["key"] == "hoodie.nonsense"
