"""Layouts: logical path to place and back, versions by instant, properties with their limits."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import Corrupt, Unsupported
from hoodie.layout.layout import Layout, LayoutVersion
from hoodie.layout.properties import layout_properties, parse_layout, parse_versions
from hoodie.layout.strategy import parse_strategy
from hoodie.spec import keys
from hoodie.spec.table_config import TableConfig

FILE_ID = "075f3295-def8-4a42-a927-07fd2dd2976c-0"
BASE = f"{FILE_ID}_1-0-1_20240105000000000.parquet"
LOG = f".{FILE_ID}_20240105000000000.log.1_1-0-1"
CDC = f"{LOG}.cdc"
ROOTS = ("s3://one", "s3://two/deep")


def version(number=1, since="0", text="bits:8", roots=(0,), folder="orders", partitions=""):
    return LayoutVersion(number, since, text, roots, folder, partitions, parse_strategy(text, {}))


def layout(*versions, roots=ROOTS):
    return Layout(roots, versions or (version(),), str(uuid.UUID(int=1)))


def test_files_of_a_group_lie_together():
    found = layout()
    places = {found.place(f"country=usa/{name}").key.rpartition("/")[0] for name in (BASE, LOG, CDC)}
    assert places == {"00110011/orders/country=usa"}


def test_table_without_partitions_has_no_empty_folder():
    assert layout().place(BASE).key == f"10010100/orders/{BASE}"


@pytest.mark.parametrize(
    "path",
    [
        ".hoodie/hoodie.properties",
        f".hoodie/metadata/files/{BASE}",
        f".hoodie/.temp/x/{BASE}.marker.CREATE",
        "p/.hoodie_partition_metadata",
        "p/.hoodie_partition_metadata.parquet",
        "p/README.txt",
        f"p/{BASE}.crc",
    ],
)
def test_all_else_lies_at_the_table_path(path):
    assert layout().place(path) is None


def test_version_is_the_last_that_began_by_the_instant_in_the_name():
    found = layout(version(1, "20240101000000000"), version(2, "20240201000000000", "bits:4", (1,)))
    at = {
        "20231231235959999": None,
        "00000000000001": None,
        "20240101000000000": (0, 8),
        "20240131235959999": (0, 8),
        "20240201000000000": (1, 4),
        "20991231235959999": (1, 4),
    }
    for instant, expected in at.items():
        place = found.place(f"p/{FILE_ID}_1-0-1_{instant}.parquet")
        assert (place and (place.root, len(place.key.partition("/")[0]))) == expected


def test_partitions_may_have_a_root_of_their_own():
    found = layout(version(1), version(2, "0", "map", (1,), "orders", "region=eu*"))
    assert found.place(f"region=europe/{BASE}") == (1, f"orders/region=europe/{BASE}")
    assert found.place(f"region=us/{BASE}").root == 0
    whole = layout(version(1), version(2, "0", "map", (1,), "orders", "eu"))
    assert [whole.place(f"{one}/{BASE}").root for one in ("eu", "eu/de", "europe")] == [1, 1, 0]


def test_several_roots_share_the_groups():
    found = layout(version(roots=(0, 1)))
    roots = [found.place(f"p/{n:08d}-x-0_1-0-1_20240105000000000.parquet").root for n in range(1_000)]
    assert 400 < sum(roots) < 600


hostile = st.text(alphabet=st.sampled_from("orders01.%=+ ~é日\\'\"&#?*-_"), min_size=1, max_size=12).filter(
    lambda text: text not in (".", "..", ".hoodie")
)
partitions = st.lists(hostile | st.sampled_from(["orders", "00110011", "p%2Fq", "orders=orders"]), max_size=4)
file_ids = st.text(alphabet=st.sampled_from("0123456789abcdef-ü .%"), min_size=1, max_size=40).filter(
    lambda text: not text.startswith(".")
)
texts = st.sampled_from(["bits:1", "bits:8", "bits:12:hex", "rfc60", "fileid:0:2", "map", "bits:4:id64:file"])


@given(partitions, file_ids, texts, texts, st.booleans(), st.sampled_from(["20230101000000000", "20240105000000000"]))
def test_place_gives_back_its_path_whatever_values_partitions_have(folders, file_id, one, two, is_log, instant):
    found = layout(version(1, "0", one), version(2, "20240101000000000", two, (1,), "orders"))
    name = f".{file_id}_{instant}.log.1_1-0-1" if is_log else f"{file_id}_1-0-1_{instant}.parquet"
    path = "/".join([*folders, name])
    place = found.place(path)
    if place is not None:
        assert found.logical(*place) == path
        assert found.logical(1 - place.root, place.key) is None


def test_file_in_another_place_than_its_own_is_a_stranger():
    found = layout()
    root, key = found.place(f"p/{BASE}")
    for wrong in (key.replace(key[:8], "11111111"), key[9:], f"x/{key}", key.replace("orders", "order"), f"{key}.tmp"):
        assert found.logical(root, wrong) is None


def test_groups_whose_hashes_collide_share_a_prefix_and_nothing_else():
    found = layout(version(roots=(0, 1)))
    paths = (f"p1/{BASE}", f"p/1{BASE}")  # one text is hashed of both: partition and file id stand together
    places = [found.place(path) for path in paths]
    assert len({(place.root, place.key.partition("/")[0]) for place in places}) == 1
    assert len({place.key for place in places}) == 2
    assert tuple(found.logical(*place) for place in places) == paths


@given(st.lists(st.tuples(texts, st.sampled_from([(0,), (1,), (0, 1), ()])), min_size=1, max_size=4))
def test_properties_give_the_layout_back(said):
    versions = tuple(
        version(n, str(n), text if roots else "hive", roots, "orders" if roots else "")
        for n, (text, roots) in enumerate(said, 1)
    )
    found = layout(*versions)
    raw = layout_properties(found, "MERGE_ON_READ")
    assert parse_layout(raw, {}) == found
    config = TableConfig(raw)
    assert (config.table_type, config.is_federated) == ("MERGE_ON_READ", True)


def test_guard_marks_the_table_type_and_open_does_not():
    assert layout_properties(layout(), "COPY_ON_WRITE")[keys.TYPE] == "COPY_ON_WRITE_FEDERATED"
    open_to_all = Layout(ROOTS, (version(),), str(uuid.UUID(int=1)), "open")
    assert layout_properties(open_to_all, "COPY_ON_WRITE_FEDERATED")[keys.TYPE] == "COPY_ON_WRITE"


def test_suffix_without_versions_is_damage():
    with pytest.raises(Corrupt, match=r"strategy\.versions is missing"):
        parse_layout({keys.TYPE: "COPY_ON_WRITE_FEDERATED"}, {})
    assert parse_layout({keys.TYPE: "COPY_ON_WRITE"}, {}) is None


GOOD = {"v": 1, "since": "0", "strategy": "bits:8", "root": 0, "folder": "orders"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"v": 0},
        {"v": True},
        {"v": "1"},
        {"since": ""},
        {"since": "soon"},
        {"since": "9" * 18},
        {"since": 0},
        {"root": 2},
        {"root": -1},
        {"root": True},
        {"root": [0, 0]},
        {"root": []},
        {"root": "0"},
        {"folder": ""},
        {"folder": ".."},
        {"folder": "a/b"},
        {"folder": ".hoodie_owners"},
        {"folder": "x" * 300},
        {"partitions": "../x"},
        {"partitions": "/x"},
        {"partitions": 1},
        {"strategy": 8},
        {"strategy": "hive"},
        {"more": 1},
    ],
)
def test_wrong_member_of_a_version_is_damage(wrong):
    assert parse_versions(json.dumps([GOOD]), 2, {})
    with pytest.raises(Corrupt, match=r"hoodie\.storage\.strategy\.versions"):
        parse_versions(json.dumps([GOOD | wrong]), 2, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[1]",
        "[" * 5_000,
        json.dumps([GOOD] * 2),
        json.dumps([GOOD | {"since": "2"}, GOOD | {"v": 2, "since": "1"}]),
        json.dumps([GOOD | {"v": n} for n in range(1, 102)]),
    ],
)
def test_wrong_list_of_versions_is_damage(text):
    with pytest.raises(Corrupt, match=r"hoodie\.storage\.strategy\.versions"):
        parse_versions(text, 2, {})


def test_strategy_of_a_newer_version_is_unsupported():
    with pytest.raises(Unsupported, match="no storage strategy"):
        parse_versions(json.dumps([GOOD | {"strategy": "murmur:8"}]), 2, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (keys.STORAGE_PATH, ""),
        (keys.STORAGE_PATH, "s3://a,s3://a"),
        (keys.STORAGE_PATH, ",".join(f"s3://b{n}" for n in range(65))),
        (keys.STORAGE_UUID, "me"),
        (keys.STORAGE_GUARD, "loose"),
    ],
)
def test_wrong_property_is_damage(key, value):
    raw = layout_properties(layout(), "COPY_ON_WRITE")
    with pytest.raises(Corrupt, match=key.replace(".", r"\.")):
        parse_layout(raw | {key: value}, {})
