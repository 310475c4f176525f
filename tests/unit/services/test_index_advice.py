"""Which index to write with: each is asked for a sample of the table's keys."""

from __future__ import annotations

import json

import pytest

from hoodie.cli.app import main
from hoodie.errors import Invalid
from hoodie.index import hbase_index
from hoodie.services import index_advice
from hoodie.testing.hbase_table import HBaseTable
from hoodie.testing.lake import Lake, row

RECORDS = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def lake(request, version):
    made = Lake(version, {**RECORDS, "hoodie.datasource.write.table.type": request.param, **_small_files()})
    for part in "pqrs":
        made.upsert(*(row(f"{part}{n}", part=part) for n in range(20)))
    return made


def _small_files():
    return {"hoodie.parquet.small.file.limit": 0}


def test_each_index_is_asked_and_stores_nothing(lake):
    before = lake.files()
    advice = lake.table.indexes.advise(40)
    assert lake.files() == before
    assert {one.index for one in advice.trials} == {"SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX"}
    assert all(one.found == advice.sampled and one.problem is None for one in advice.trials)
    assert 20 <= advice.sampled <= 40
    assert 0 < advice.new <= advice.sampled
    looked = {one.index: one.looked_into for one in advice.trials}
    assert looked["SIMPLE"] == looked["GLOBAL_SIMPLE"] == advice.files == 4
    assert looked["RECORD_INDEX"] == (0 if lake.handle().config.is_merge_on_read else 4)
    assert advice.recommended == min(advice.trials, key=lambda one: one.seconds).index
    assert advice.recommended in {one.index for one in advice.trials}


def test_an_index_that_misses_keys_is_not_recommended_however_fast(version, monkeypatch):
    monkeypatch.setattr(hbase_index, "Gateway", lambda host, port, name: HBaseTable())
    lake = Lake(version)
    lake.upsert(row("a"), row("b"))
    options = {"hoodie.index.hbase.table": "places", "hoodie.index.hbase.zkquorum": "anywhere"}
    advice = lake.table.indexes.advise(2, **options)
    assert advice.trials[-1].index == "HBASE"
    assert "does not find" in advice.trials[-1].problem
    assert advice.recommended != "HBASE"


def test_an_index_that_cannot_be_asked_says_why(version):
    lake = Lake(version)
    lake.upsert(row("a"))
    advice = lake.table.indexes.advise(1, **{"hoodie.index.hbase.table": "places"})
    assert "hoodie.index.hbase.zkquorum" in advice.trials[-1].problem
    assert advice.trials[-1].seconds is None


def test_an_empty_table_has_nothing_to_ask_for(version):
    lake = Lake(version)
    lake.upsert(row("a"))
    lake.table.delete_partition(["p"])
    with pytest.raises(Invalid, match="no base files"):
        lake.table.indexes.advise()


def test_the_command_says_what_to_write_with(tmp_path, capsys):
    lake = Lake(9, uri=str(tmp_path / "table"))
    lake.upsert(row("a"), row("b"))
    assert main(["index", lake.uri, "--advise"]) == 0
    assert "write with hoodie.index.type=" in capsys.readouterr().out
    assert main(["index", lake.uri, "--advise", "--keys", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["recommended"] == said["trials"][0]["index"]
    assert index_advice.IndexAdvice.__dataclass_fields__.keys() == said.keys()
