"""What only a real S3 protocol shows: uploads in parts, folder marks, missing buckets, requests per read."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Unavailable
from hoodie.storage import object_io, open_storage
from hoodie.testing.s3_server import s3_bucket, s3_server  # noqa: F401


@pytest.fixture
def storage(s3_server, s3_bucket):  # noqa: F811
    return open_storage(f"s3a://{s3_bucket}/t", s3_server.options)


def uploads(s3_server, bucket) -> list[str]:  # noqa: F811
    return [found["Key"] for found in s3_server.client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def test_an_aborted_upload_leaves_no_parts(storage, s3_server, s3_bucket) -> None:  # noqa: F811
    output = storage.open_output("big")
    for _ in range(5):
        output.write(b"x" * (5 << 20))
    output.abort()
    assert uploads(s3_server, s3_bucket) == []
    assert list(storage.list("")) == []


def test_an_upload_is_invisible_until_it_is_closed(storage) -> None:
    with storage.open_output("big") as output:
        for _ in range(5):
            output.write(b"x" * (5 << 20))
        assert list(storage.list("")) == []
    assert storage.head("big").size_bytes == 25 << 20


def test_many_open_uploads_do_not_block_each_other_or_reads(storage) -> None:
    storage.put("x", b"1")
    outputs = [storage.open_output(f"f{n}") for n in range(6)]
    for _ in range(3):
        for output in outputs:
            output.write(b"y" * (4 << 20))
        assert storage.read("x") == b"1"
    for output in outputs:
        output.close()
    assert {info.size_bytes for info in storage.list("") if info.path != "x"} == {12 << 20}


def test_an_upload_that_fails_raises_and_does_not_hang(s3_server) -> None:  # noqa: F811
    storage = open_storage("s3://no-such-bucket-here/t", s3_server.options)
    output = storage.open_output("big")

    def write_all() -> None:
        for _ in range(20):
            output.write(b"x" * (5 << 20))
        output.close()

    with pytest.raises(Unavailable, match="bucket or container does not exist"):
        write_all()
    output.abort()


def test_a_missing_bucket_is_unavailable_and_named(s3_server) -> None:  # noqa: F811
    storage = open_storage("s3://no-such-bucket-here/t", s3_server.options)
    for act in (
        lambda: storage.create("x", b""),
        lambda: storage.put("x", b""),
        lambda: storage.read("x"),
        lambda: storage.list_dir(""),
        lambda: list(storage.list("")),
    ):
        with pytest.raises(Unavailable, match=r"s3://no-such-bucket-here/t.*bucket or container does not exist"):
            act()


def test_folder_marks_of_other_tools_are_not_files(storage, s3_server, s3_bucket) -> None:  # noqa: F811
    client = s3_server.client
    for key in ("t/", "t/p/", "t/p/f", "t/q/", "t/q/r/", "t/q/r/g", "t/z"):
        client.put_object(Bucket=s3_bucket, Key=key, Body=b"")
    assert [info.path for info in storage.list("")] == ["p/f", "q/r/g", "z"]
    assert [info.path for info in storage.list("p")] == ["p/f"]
    root = storage.list_dir("")
    assert ([info.path for info in root.files], root.dirs) == (["z"], ("p", "q"))
    inner = storage.list_dir("q")
    assert ([info.path for info in inner.files], inner.dirs) == ([], ("q/r",))


@pytest.fixture
def gets(monkeypatch) -> list[int]:
    """Sizes of the ranges asked for."""
    sizes: list[int] = []
    real_get = object_io.obstore.get

    def get(store, path, **options):
        found = real_get(store, path, **options)
        sizes.append(found.range[1] - found.range[0])
        return found

    monkeypatch.setattr(object_io.obstore, "get", get)
    return sizes


def test_reading_a_column_takes_few_requests(storage, gets) -> None:
    table = pa.table({name: pa.array(range(400_000)) for name in "abcd"})
    with storage.open_output("f") as output:
        pq.write_table(table, output, compression="none", use_dictionary=False, row_group_size=100_000)
    size = storage.head("f").size_bytes
    for pre_buffer in (True, False):
        gets.clear()
        with storage.open_input("f") as source, pq.ParquetFile(source, pre_buffer=pre_buffer) as file:
            assert gets == [object_io.TAIL_BYTES]
            assert file.read(columns=["b"]).column("b").equals(table.column("b"))
        assert len(gets) <= 6
        assert sum(gets) < size / 2


def test_a_large_read_is_split_and_a_small_file_is_one_request(storage, gets) -> None:
    storage.put("small", b"s" * 1000)
    with storage.open_input("small") as file:
        assert file.read() == b"s" * 1000
    assert gets == [1000]
    gets.clear()
    data = bytes(range(256)) * (80 << 10)
    storage.put("large", data)
    with storage.open_input("large") as file:
        assert file.read() == data
    assert sorted(gets) == [object_io.TAIL_BYTES, 4 << 20, 8 << 20, 8 << 20]


def test_scattered_small_reads_share_blocks(storage, gets) -> None:
    storage.put("x", bytes(range(256)) * (12 << 10))
    with storage.open_input("x") as file:
        for start in range(0, 1 << 20, 50_000):
            assert file.read_at(100, start)[:1] == bytes([start % 256])
    assert len(gets) <= 3
