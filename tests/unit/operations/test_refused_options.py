"""An option that asks for what is not there is refused by whatever is called with it, and nothing is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hoodie import Table
from hoodie.errors import Invalid, Unsupported
from hoodie.spark.reader import read_frame
from hoodie.spark.streaming import BatchSink, with_compaction
from hoodie.testing.lake import Lake, row
from hoodie.testing.session_stub import SessionWith

ASKING = {
    "parquet.encryption.footer.key": "k",
    "hoodie.compaction.plan.generator": "com.example.Plans",
    "hoodie.metadata.auto.initialize": "false",
    "hoodie.payload.update.on.same.ordering.field": "false",
}
ASKING_READS = {"parquet.crypto.factory.class": "com.example.Keys", "hoodie.datasource.merge.type": "skip_merge"}

Options = Mapping[str, str]
Call = Callable[[Lake, Options], object]


def opened(lake: Lake, options: Options) -> Table:
    return Table.open(lake.uri, options={**lake.options, **options})


WRITES: dict[str, Call] = {
    "save": lambda lake, given: lake.save([row("b")], **given),
    "save of a new table": lambda lake, given: Lake(lake.version).save([row("b")], **given),
    "create": lambda lake, given: Table.create(f"{lake.uri}-2", options={**lake.options, **given}),
    "upsert": lambda lake, given: lake.table.upsert(lake._data([row("b")]), **given),
    "delete": lambda lake, given: lake.table.delete(lake._data([row("a")]), **given),
    "table opened with it": lambda lake, given: opened(lake, given).upsert(lake._data([row("b")])),
    "stream": lambda lake, given: BatchSink(f"/{lake.uri[9:]}", {**lake.options, **given}, (), "append"),
    "compact": lambda lake, given: lake.table.services.compact(**given),
    "schedule": lambda lake, given: lake.table.services.schedule_compaction(**given),
    "clean": lambda lake, given: lake.table.services.clean(**given),
    "archive": lambda lake, given: lake.table.services.archive(**given),
    "preview": lambda lake, given: lake.table.services.preview("clean", **given),
    "upgrade": lambda lake, given: lake.table.services.upgrade(9 if lake.version != 9 else 8, **given),
    "doctor": lambda lake, given: lake.table.doctor(**given),
    "ttl": lambda lake, given: lake.table.services.ttl(**given),
    "savepoint": lambda lake, given: opened(lake, given).savepoints.create(),
    "drop index": lambda lake, given: opened(lake, given).indexes.drop("column_stats"),
    "rebuild": lambda lake, given: opened(lake, given).indexes.rebuild("files"),
}
READS: dict[str, Call] = {
    "scan": lambda lake, given: opened(lake, given).scan(),
    "files": lambda lake, given: opened(lake, given).files(),
    "lookup": lambda lake, given: opened(lake, given).lookup("a"),
    "read of Spark": lambda lake, given: read_frame(SessionWith({}), lake.uri, given),
}


@pytest.fixture(scope="module")
def lake() -> Lake:
    lake = Lake(8, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    lake.upsert(row("a"))
    return lake


@pytest.mark.parametrize("key", ASKING)
@pytest.mark.parametrize("call", WRITES)
def test_whatever_writes_refuses_it_and_changes_nothing(lake: Lake, call: str, key: str) -> None:
    before = lake.files()
    with pytest.raises(Unsupported) as caught:
        WRITES[call](lake, {key: ASKING[key]})
    assert key in caught.value.cause
    assert lake.files() == before


@pytest.mark.parametrize("key", ASKING_READS)
@pytest.mark.parametrize("call", READS)
def test_whatever_reads_refuses_it(lake: Lake, call: str, key: str) -> None:
    with pytest.raises(Unsupported) as caught:
        READS[call](lake, {key: ASKING_READS[key]})
    assert key in caught.value.cause


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.table.cdc.enabled": "true"},
        {"hoodie.table.timeline.timezone": "UTC"},
        {"hoodie.datasource.partition_extractor_class": "com.example.Other"},
    ],
)
def test_a_choice_of_a_new_table_that_contradicts_the_table_is_refused(lake: Lake, options: Options) -> None:
    before = lake.files()
    with pytest.raises(Invalid, match="contradict"):
        lake.upsert(row("b"), **options)
    assert lake.files() == before


def test_a_new_table_records_the_class_that_reads_its_partitions() -> None:
    lake = Lake(9, {"hoodie.datasource.partition_extractor_class": "com.example.Other"})
    lake.upsert(row("a"))
    assert lake.table.config.raw["hoodie.table.partition_extractor_class"] == "com.example.Other"


def test_a_stream_compacts_unless_options_say_otherwise() -> None:
    disable = "hoodie.datasource.write.streaming.disable.compaction"
    assert with_compaction({}) == {"hoodie.compact.inline": "true"}
    assert with_compaction({disable: "false"}) == {"hoodie.compact.inline": "true", disable: "false"}
    assert with_compaction({disable: "true"}) == {disable: "true"}
    for contrary in ({"hoodie.compact.inline": "true"}, {"hoodie.datasource.compaction.async.enable": "false"}):
        with pytest.raises(Invalid, match="contradicts"):
            with_compaction({disable: "true", **contrary})
