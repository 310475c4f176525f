"""Rides of the quick start: what Hudi's guides ask the JVM for."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hoodie.config import lookup
from hoodie.quickstart import PARTITIONS, DataGenerator, convertToStringList, getQuickstartWriteConfigs
from hoodie.testing.lake import Lake


def test_rides_are_made_changed_and_deleted_by_key():
    rides = DataGenerator()
    made = rides.generateInserts(50)
    keys = {ride["uuid"] for ride in made}
    assert len(keys) == 50
    assert {ride["partitionpath"] for ride in made} == set(PARTITIONS)
    assert {ride["uuid"] for ride in rides.generateUpdates(30)} <= keys
    assert len({ride["uuid"] for ride in rides.generateUniqueUpdates(50)}) == 50
    gone = rides.generateDeletes(made[:20])
    assert [(ride["uuid"], ride["partitionpath"]) for ride in gone] == [
        (ride["uuid"], ride["partitionpath"]) for ride in made[:20]
    ]
    assert not {ride["uuid"] for ride in rides.generateUpdates(100)} & {ride["uuid"] for ride in gone}


def test_the_same_seed_gives_the_same_rides_and_lines_are_json():
    first, again = (DataGenerator(["a"], seed=3).generateInserts(3) for _ in range(2))
    assert first == again != DataGenerator(["a"], seed=4).generateInserts(3)
    assert [json.loads(line) for line in convertToStringList(first)] == first
    with pytest.raises(ValueError, match="generateInserts first"):
        DataGenerator().generateUpdates(1)


def test_options_are_accepted_and_rides_make_a_table():
    assert all(lookup(key).kind == "no_meaning_here" for key in getQuickstartWriteConfigs())
    rides = DataGenerator()
    lake = Lake(
        9,
        {
            **getQuickstartWriteConfigs(),
            "hoodie.datasource.write.recordkey.field": "uuid",
            "hoodie.datasource.write.partitionpath.field": "partitionpath",
        },
    )
    lake.write("insert", pa.Table.from_pylist(rides.generateInserts(20)))
    lake.write("upsert", pa.Table.from_pylist(rides.generateUniqueUpdates(10)))
    assert len(lake.rows(("uuid", "fare"))) == 20
