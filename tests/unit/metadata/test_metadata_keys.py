"""Keys of metadata records: values seen in tables of Hudi, and round trips."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import Corrupt
from hoodie.metadata.keys import (
    column_stats_key,
    name_hash,
    parse_secondary_key,
    partition_hash,
    secondary_key,
    secondary_prefix,
)
from hoodie.metadata.partitions import data_partition_groups, group_of_keys


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("part", "+WGrmgkN3io="),
        ("0", "06zdpyCf3Jg="),
        ("1", "dM/upJu56bw="),
        ("sh", "0DWW0KMCc5k="),
        ("__partition_stat__", "2CMHrhWVE9w="),
    ],
)
def test_names_are_hashed_as_hudi_does(name, expected):
    assert name_hash(name) == expected


def test_key_of_statistics_is_column_partition_and_file():
    file = "1b01ecab-d06e-4d3d-8b79-04b6eb2c6db3-0_0-15058-29396_20261121060906583.parquet"
    assert column_stats_key("part", "p0", file) == "+WGrmgkN3io=Z+KNMU8CLlo=SV9nl7E1SuXQKthdu5HlYA=="


def test_root_partition_is_hashed_as_a_dot():
    assert partition_hash("") == name_hash(".")


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [("n$\\1", "a$1", "n\\$\\\\1$a\\$1"), (None, "d", "\0$d"), ("", "d", "$d"), ("\0", "d", "\\\0$d")],
)
def test_secondary_key_escapes_both_texts(value, key, expected):
    assert secondary_key(value, key) == expected
    assert parse_secondary_key(expected, "x") == (value, key)


@given(st.none() | st.text(), st.text())
def test_secondary_key_comes_back_whatever_is_in_it(value, key):
    encoded = secondary_key(value, key)
    assert encoded.startswith(secondary_prefix(value))
    assert parse_secondary_key(encoded, "x") == (value, key)


@pytest.mark.parametrize("key", ["", "no separator", "only\\$escaped"])
def test_secondary_key_without_separator_is_corrupt(key):
    with pytest.raises(Corrupt) as error:
        parse_secondary_key(key, "the/path")
    assert error.value.facts["path"] == "the/path"


def test_keys_lie_in_the_groups_hudi_puts_them_in():
    assert group_of_keys(pa.array(["n2$", "\0$", "n\\$\\\\1$"]), 10).tolist() == [6, 6, 9]


def test_least_hash_of_java_has_a_group():
    assert group_of_keys(pa.array(["polygenelubricants"]), 10).tolist() == [2**31 % 10]


def test_file_ids_of_a_record_index_tell_the_partition_they_are_for():
    ids = ["record-index-p1-0001-0", "record-index-p1-0000-0", "record-index-0-0000-0", "record-index-a-b-0000-0"]
    assert data_partition_groups(ids) == {"p1": sorted(ids[:2]), "0": [ids[2]], "a-b": [ids[3]]}
    escaped = "record-index-2024%2D01%2D01%2Fa%5Fb%2Ec-0000-0"
    assert data_partition_groups([escaped]) == {"2024-01-01/a_b.c": [escaped]}
    assert data_partition_groups(["record-index-0001-0", "record-index-0000-0"]) == {
        "": ["record-index-0000-0", "record-index-0001-0"]
    }
