"""Names of data files, partition metafiles and markers."""

from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from hoodie.errors import Corrupt
from hoodie.spec import (
    BaseFileName,
    LogFileName,
    Marker,
    MarkerKind,
    PartitionMetafile,
    WriteToken,
    bucket_file_id,
    encode_partition_metafile,
    encode_partition_metafile_parquet,
    is_marker_list,
    is_partition_metafile,
    marker_path,
    new_file_id,
    parse_base_file_name,
    parse_log_file_name,
    parse_marker,
    parse_marker_list,
    parse_partition_metafile,
    parse_write_token,
    partition_metafile_name,
)

UUID = "3ca348f2-c4ae-48de-a64c-d6015d3432d0"
T = "20261121053901683"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (f"{UUID}-0_0-107-131_{T}.parquet", BaseFileName(f"{UUID}-0", "0-107-131", T)),
        (f"{UUID}_1-2518-5165_00000000000001.parquet", BaseFileName(UUID, "1-2518-5165", "00000000000001")),
        (f"files-0000-0_0-5-4_{T}001.hfile", BaseFileName("files-0000-0", "0-5-4", T + "001", "hfile")),
        (f"{UUID}-0_0-1-2_{T}.orc", BaseFileName(f"{UUID}-0", "0-1-2", T, "orc")),
        (f"{UUID}-0_0-1-2_{T}_hudiext.parquet", BaseFileName(f"{UUID}-0", "0-1-2", T, "parquet", "_hudiext")),
    ],
)
def test_base_file_names(name, parts):
    assert parse_base_file_name(name) == parts
    assert parts.text == name


@pytest.mark.parametrize(
    "name",
    [
        ".hoodie_partition_metadata",
        ".hoodie_partition_metadata.parquet",
        f".{UUID}-0_0-1-2_{T}.parquet.crc",
        f"{UUID}-0_0-1-2_{T}.parquet.crc",
        f"{UUID}-0_0-1-2_{T}.txt",
        "part-00000.parquet",
        "_SUCCESS",
        f".{UUID}-0_{T}.log.1_0-1-2",
        f"a/{UUID}-0_0-1-2_{T}.parquet",
        "",
    ],
)
def test_other_files_are_no_base_files(name):
    assert parse_base_file_name(name) is None


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (f".{UUID}-0_{T}.log.1_0-204-270", LogFileName(f"{UUID}-0", T, 1, "0-204-270")),
        (f".{UUID}-0_{T}.log.12", LogFileName(f"{UUID}-0", T, 12)),
        (f".{UUID}-0_{T}.log.1_0-204-270.cdc", LogFileName(f"{UUID}-0", T, 1, "0-204-270", ".cdc")),
        (".commits_.archive.3_1-0-1", LogFileName("commits", "", 3, "1-0-1", kind="archive")),
    ],
)
def test_log_file_names(name, parts):
    assert parse_log_file_name(name) == parts
    assert parts.text == name
    assert parts.is_cdc == name.endswith(".cdc")


@pytest.mark.parametrize(
    "name", [f"{UUID}-0_0-1-2_{T}.parquet", f".{UUID}-0_{T}.log", f".{UUID}-0_{T}.log.1_0-1-2.crc", ""]
)
def test_other_files_are_no_log_files(name):
    assert parse_log_file_name(name) is None


def test_log_files_order_by_instant_number_token_and_suffix():
    ordered = [
        LogFileName("f", "1", 2),
        LogFileName("f", "1", 2, "0-1-2"),
        LogFileName("f", "1", 2, "0-1-2", ".cdc"),
        LogFileName("f", "1", 10, "0-1-2"),
        LogFileName("f", "2", 1, "0-1-2"),
    ]
    shuffled = [ordered[i] for i in (3, 1, 4, 0, 2)]
    assert sorted(shuffled, key=lambda name: name.order) == ordered


def test_ids_and_tokens():
    assert new_file_id(UUID, 3) == f"{UUID}-3"
    assert bucket_file_id(3, UUID) == f"00000003-{UUID[9:]}-0"
    assert parse_write_token("4-15-16") == WriteToken(4, 15, 16)
    assert WriteToken(4, 15, 16).text == "4-15-16"
    assert parse_write_token("4-15") is None


def test_partition_metafile_is_the_bytes_hudi_writes():
    saved_at = datetime(2026, 11, 21, 6, 21, 44, tzinfo=UTC)
    assert encode_partition_metafile(PartitionMetafile("20261121062144212", 1), saved_at) == (
        b"#partition metadata\n#Sat Nov 21 06:21:44 UTC 2026\ncommitTime=20261121062144212\npartitionDepth=1\n"
    )


def test_partition_metafile_in_parquet_has_no_rows_and_round_trips(tmp_path):
    data = encode_partition_metafile_parquet(PartitionMetafile(T, 2))
    name = partition_metafile_name("parquet")
    assert parse_partition_metafile(data, name) == PartitionMetafile(T, 2)
    (tmp_path / name).write_bytes(data)
    assert pq.read_metadata(tmp_path / name).num_rows == 0
    assert b"ARROW:schema" not in data


@pytest.mark.parametrize("data", [b"", b"commitTime=1\n", b"commitTime=1\npartitionDepth=x\n"])
@pytest.mark.parametrize("name", [".hoodie_partition_metadata", "p/.hoodie_partition_metadata.parquet"])
def test_damaged_partition_metafile_is_corrupt(name, data):
    with pytest.raises(Corrupt):
        parse_partition_metafile(data, name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".hoodie_partition_metadata", True),
        (".hoodie_partition_metadata.parquet", True),
        (".hoodie_partition_metadata_0fa1.parquet", False),
        ("..hoodie_partition_metadata.crc", False),
        (".hoodie", False),
    ],
)
def test_which_files_mark_partitions(name, expected):
    assert is_partition_metafile(name) is expected


@pytest.mark.parametrize("data_path", [f"a/b=c/{UUID}-0_0-1-2_{T}.parquet", f"{UUID}-0_0-1-2_{T}.parquet"])
@pytest.mark.parametrize("kind", list(MarkerKind))
def test_markers_round_trip(data_path, kind):
    path = marker_path(T, data_path, kind)
    assert path == f".hoodie/.temp/{T}/{data_path}.marker.{kind.value}"
    assert parse_marker(path, T) == Marker(data_path, kind)


@pytest.mark.parametrize("path", ["p/x.parquet", "p/x.marker.NOPE", ".marker.CREATE", "MARKERS0", "x.marker.create"])
def test_other_files_are_no_markers(path):
    assert parse_marker(path) is None


def test_lists_of_the_timeline_server():
    assert [is_marker_list(name) for name in ("MARKERS0", "MARKERS12", "MARKERS.type", "MARKERS", "x")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    data = b"p/a.parquet.marker.CREATE\nb.parquet.marker.MERGE\nc.parquet.marker.CRE"
    assert parse_marker_list(data, "x") == (
        Marker("p/a.parquet", MarkerKind.CREATE),
        Marker("b.parquet", MarkerKind.MERGE),
    )
    assert parse_marker_list(b"", "x") == ()
    with pytest.raises(Corrupt):
        parse_marker_list(b"nonsense\n", "x")


@pytest.mark.parametrize("partition", ["q.marker.CREATE,z", "a,q.marker.MERGE,", "q"])
@pytest.mark.parametrize("is_joined", [False, True])
def test_lines_of_lists_are_taken_apart_behind_data_files_only(partition: str, is_joined: bool) -> None:
    paths = [f"{partition}/{UUID}-0_0-1-2_{T}.parquet", f"{partition}/.{UUID}-0_{T}.log.1_0-1-2"]
    text = ("," if is_joined else "\n").join(f"{path}.marker.CREATE" for path in paths) + "\n"
    wanted = tuple(Marker(path, MarkerKind.CREATE) for path in paths)
    assert parse_marker_list(text.encode(), "MARKERS0") == wanted
