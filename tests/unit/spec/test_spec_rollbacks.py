"""Rollback plans, rollback metadata, format profiles."""

import json
import pickle

import fastavro
import pytest

from hoodie.errors import Corrupt
from hoodie.spec import (
    EMPTY_REPLACE,
    PROFILES,
    InstantInfo,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    encode_container,
    encode_requested_replace,
    encode_rollback_metadata,
    encode_rollback_plan,
    parse_rollback_metadata,
    parse_rollback_plan,
    schema,
    schema_names,
)

PLANS = [
    RollbackPlan(InstantInfo("1", "commit")),
    RollbackPlan(
        InstantInfo("1", "deltacommit"),
        (
            RollbackRequest("p", "f-0", "1", ("/b/p/x.parquet",)),
            RollbackRequest("", log_blocks_to_delete={".f.log.1": 12}),
            RollbackRequest("q", None, None, (), None),
        ),
    ),
]
DONE = RollbackMetadata(
    "2",
    15,
    1,
    ("1",),
    {
        "p": RollbackPartition("p", ("/b/p/x.parquet",), (), {"file:/b/p/.f.log.3_1-0-1": 105}, {"l": 1}),
        "q": RollbackPartition("q", (), ("/b/q/y",), None, None),
    },
    (InstantInfo("1", "commit"),),
)


@pytest.mark.parametrize("plan", PLANS)
def test_plans_round_trip(plan):
    assert parse_rollback_plan(encode_rollback_plan(plan), "x") == plan


def test_metadata_round_trips():
    assert parse_rollback_metadata(encode_rollback_metadata(DONE), "x") == DONE


@pytest.mark.parametrize("parse", [parse_rollback_plan, parse_rollback_metadata])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        encode_requested_replace(EMPTY_REPLACE),
        encode_rollback_plan(PLANS[1])[:-17],
        encode_container("HoodieRollbackPlan", {"instantToRollback": None}),
    ],
)
def test_damaged_or_other_content_is_corrupt(parse, data):
    with pytest.raises(Corrupt, match="some/file"):
        parse(data, "some/file")


def test_profiles_are_values_that_travel():
    for profile in PROFILES.values():
        assert pickle.loads(pickle.dumps(profile)) == profile


@pytest.mark.parametrize("generation", ["0.15", "1.x"])
def test_every_schema_is_valid_avro_and_names_a_type_once(generation):
    for name in schema_names(generation):
        found = json.loads(schema(name, generation).text)
        assert found["namespace"] == "org.apache.hudi.avro.model"
        fastavro.parse_schema(found)
