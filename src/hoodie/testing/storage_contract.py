"""What every storage must keep, as a test class: subclass it, give the fixture `storage`, and pytest runs it.

It needs a fresh, empty storage per test. Nothing here knows which storage it is; the few differences that the contract
allows are class attributes.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import Conflict, Invalid, Missing
from hoodie.storage import Listing, Storage
from hoodie.testing.process_race import content, winners_of_process_races

BAD_PATHS = ("/etc/passwd", "../outside", "a/../../b", "a/..", ".", "./a", "a//b", "a/", "a\0b")
ODD_NAMES = (
    "with space",
    "p%2Fq",
    "year=2024",
    "plus+",
    "hash#1",
    "ask?1",
    "üñï-日本",
    "tilde~",
    "quote'\"",
    "a&b<c>",
    "b\\c",
)


class StorageContract:
    """Promises of `hoodie.storage.Storage`."""

    keeps_crc_away = True
    """Whether Hadoop can have left `.crc` files here (object stores: no)."""

    refused_characters = ""
    """Characters that cannot be in a name here (Azure: a backslash)."""

    reaches_other_processes = True
    """Whether a pickled copy works in another process (memory: no)."""

    @pytest.fixture
    def storage(self) -> Storage:
        raise NotImplementedError("give a fixture named storage")

    @pytest.mark.parametrize("name", ["x" * 300, "a/" + "/".join(["x" * 200] * 25)], ids=["long", "deep"])
    def test_nothing_has_a_name_that_no_file_can_have(self, storage: Storage, name: str) -> None:
        for path in (name, f"{name}/below"):
            assert storage.delete(path) is False
            assert storage.delete_dir(path) == 0
            assert storage.list_dir(path) == Listing((), ())
            assert list(storage.list(path)) == []
            for ask in (storage.head, storage.read, lambda path: storage.read_range(path, 0, 1)):
                with pytest.raises(Missing):
                    ask(path)
            with pytest.raises(Missing):
                storage.open_input(path).read()

    # create

    def test_created_file_reads_back(self, storage: Storage) -> None:
        storage.create("a/b/c.txt", b"hello")
        assert storage.read("a/b/c.txt") == b"hello"
        assert storage.head("a/b/c.txt").size_bytes == 5

    def test_create_of_existing_file_conflicts_and_changes_nothing(self, storage: Storage) -> None:
        storage.create("x", b"first")
        with pytest.raises(Conflict):
            storage.create("x", b"second")
        assert storage.read("x") == b"first"

    @pytest.mark.parametrize("data", [b"", b"same"])
    def test_create_conflicts_even_with_the_same_content(self, storage: Storage, data: bytes) -> None:
        storage.create("x", data)
        with pytest.raises(Conflict):
            storage.create("x", data)

    def test_create_after_put_conflicts(self, storage: Storage) -> None:
        storage.put("x", b"")
        with pytest.raises(Conflict):
            storage.create("x", b"")

    def test_create_after_delete_succeeds(self, storage: Storage) -> None:
        storage.create("x", b"1")
        storage.delete("x")
        storage.create("x", b"2")
        assert storage.read("x") == b"2"

    @pytest.mark.parametrize("same", [True, False])
    def test_of_many_threads_creating_one_file_exactly_one_wins(self, storage: Storage, same: bool) -> None:
        for turn in range(5):
            bar = threading.Barrier(12)

            def contend(who: int, turn: int = turn, bar: threading.Barrier = bar) -> int | None:
                data = b"" if same else str(who).encode() * 1000
                bar.wait()
                try:
                    storage.create(f"race/{turn}", data)
                except Conflict:
                    return None
                return who

            with ThreadPoolExecutor(12) as pool:
                winners = [who for who in pool.map(contend, range(12)) if who is not None]
            assert len(winners) == 1
            assert storage.read(f"race/{turn}") == (b"" if same else str(winners[0]).encode() * 1000)
        assert len(list(storage.list("race"))) == 5

    def test_of_many_processes_creating_one_file_exactly_one_wins(self, storage: Storage) -> None:
        if not self.reaches_other_processes:
            pytest.skip("this storage lives in one process")
        paths = [f"race/{turn}" for turn in range(10)]
        for path, winners in zip(paths, winners_of_process_races(storage, paths), strict=True):
            assert len(winners) == 1
            assert storage.read(path) == content(winners[0])
        assert [info.path for info in storage.list("")] == paths

    def test_large_create_and_put_are_taken_whole(self, storage: Storage) -> None:
        data = bytes(range(256)) * (50 << 10)
        storage.create("big", data)
        assert storage.read("big") == data
        storage.put("big", data[::-1])
        assert storage.read("big") == data[::-1]

    # put

    def test_put_makes_and_replaces(self, storage: Storage) -> None:
        storage.put("p/x", b"one")
        assert storage.read("p/x") == b"one"
        storage.put("p/x", b"other")
        assert storage.read("p/x") == b"other"
        assert [info.path for info in storage.list("")] == ["p/x"]

    def test_readers_see_a_whole_version_while_it_is_replaced(self, storage: Storage) -> None:
        versions = {letter.encode() * 20_000 for letter in "ab"}
        storage.put("x", min(versions))
        stop = threading.Event()
        seen: list[bytes] = []

        def look() -> None:
            while not stop.is_set():
                seen.append(storage.read("x"))

        reader = threading.Thread(target=look)
        reader.start()
        for _ in range(10):
            for version in sorted(versions):
                storage.put("x", version)
        stop.set()
        reader.join()
        assert set(seen) <= versions

    # head, read

    def test_head_tells_size_and_time_of_writing(self, storage: Storage) -> None:
        before = time.time() * 1000
        storage.put("x", b"12345")
        info = storage.head("x")
        assert (info.path, info.size_bytes) == ("x", 5)
        assert before - 2_000 <= info.modified_ms <= time.time() * 1000 + 2_000
        assert next(iter(storage.list(""))) == info

    @pytest.mark.parametrize("path", ["none", "folder", "folder/none", "folder/file/below", "no/such/folder"])
    def test_what_is_not_a_file_is_missing(self, storage: Storage, path: str) -> None:
        storage.put("folder/file", b"1")
        for call in (storage.head, storage.read, storage.open_input, lambda p: storage.read_range(p, 0, 1)):
            with pytest.raises(Missing):
                call(path)
        assert storage.delete(path) is False
        assert storage.read("folder/file") == b"1"

    @pytest.mark.parametrize(
        ("start", "length", "expected"),
        [
            (0, 3, b"012"),
            (7, 3, b"789"),
            (8, 100, b"89"),
            (10, 5, b""),
            (99, 5, b""),
            (3, 0, b""),
            (0, 10, b"0123456789"),
        ],
    )
    def test_a_range_ends_where_the_file_ends(self, storage: Storage, start: int, length: int, expected: bytes) -> None:
        storage.put("x", b"0123456789")
        assert storage.read_range("x", start, length) == expected

    def test_a_range_of_an_empty_file_is_empty(self, storage: Storage) -> None:
        storage.put("x", b"")
        assert storage.read_range("x", 0, 8) == b""

    @pytest.mark.parametrize(("start", "length"), [(-1, 2), (0, -2)])
    def test_negative_range_is_invalid(self, storage: Storage, start: int, length: int) -> None:
        storage.put("x", b"0123456789")
        with pytest.raises(Invalid):
            storage.read_range("x", start, length)

    # listings

    def test_listing_of_a_folder_gives_direct_children(self, storage: Storage) -> None:
        for path in ("b", "a", "d/e", "d/f/g", "c/h"):
            storage.put(path, path.encode())
        root = storage.list_dir("")
        assert [info.path for info in root.files] == ["a", "b"]
        assert root.dirs == ("c", "d")
        inner = storage.list_dir("d")
        assert [(info.path, info.size_bytes) for info in inner.files] == [("d/e", 3)]
        assert inner.dirs == ("d/f",)

    def test_listing_of_a_missing_folder_is_empty(self, storage: Storage) -> None:
        storage.put("file", b"1")
        for path in ("none", "none/below", "file"):
            listing = storage.list_dir(path)
            assert (listing.files, listing.dirs) == ((), ())
            assert list(storage.list(path)) == []
        assert list(storage.list("none", start_after="none/x")) == []

    def test_recursive_listing_is_in_order_of_whole_paths(self, storage: Storage) -> None:
        paths = ["t/a-1/x", "t/a.b", "t/a/x", "t/a/y/z", "t/a0", "t/b", "t/~", "t/ä", "tt/no"]
        for path in paths:
            storage.put(path, b"")
        found = [info.path for info in storage.list("t")]
        assert found == sorted(found) == paths[:-1]
        assert [info.path for info in storage.list("")] == paths

    def test_listing_starts_after_any_path(self, storage: Storage) -> None:
        paths = ["a", "d-1/f", "d/e", "d/f/1", "d/f/2", "d/g", "e"]
        for path in paths:
            storage.put(path, b"")
        for mark in [*paths, "", "d", "d/", "d/f", "d/f/", "d/f/15", "d0", "z"]:
            assert [info.path for info in storage.list("", start_after=mark)] == [p for p in paths if p > mark]
        assert [info.path for info in storage.list("d", start_after="d/f/1")] == ["d/f/2", "d/g"]

    def test_listing_a_prefix_stays_inside_the_folder(self, storage: Storage) -> None:
        for path in ("ab/x", "a/x", "abc"):
            storage.put(path, b"")
        assert [info.path for info in storage.list("a")] == ["a/x"]
        assert [info.path for info in storage.list("ab")] == ["ab/x"]

    def test_listings_of_more_than_a_page_are_complete(self, storage: Storage) -> None:
        names = [f"many/k{n:05d}" for n in range(1_025)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: storage.put(name, b""), names))
        assert [info.path for info in storage.list("many")] == names
        assert [info.path for info in storage.list("many", start_after=names[1_019])] == names[1_020:]
        assert [info.path for info in storage.list_dir("many").files] == names
        assert storage.delete_dir("many") == len(names)
        assert list(storage.list("")) == []

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_odd_names_are_kept_as_they_are(self, storage: Storage, name: str) -> None:
        path = f"{name}/{name}.x"
        if set(self.refused_characters) & set(name):
            with pytest.raises(Invalid):
                storage.create(path, b"odd")
            return
        storage.create(path, b"odd")
        assert storage.read(path) == b"odd"
        assert storage.list_dir("").dirs == (name,)
        assert [info.path for info in storage.list_dir(name).files] == [path]
        assert [info.path for info in storage.list(name)] == [path]
        assert storage.delete(path) is True

    # delete

    def test_delete_says_whether_the_file_was_there(self, storage: Storage) -> None:
        storage.put("d/x", b"1")
        assert storage.delete("d/x") is True
        assert storage.delete("d/x") is False
        with pytest.raises(Missing):
            storage.read("d/x")

    def test_delete_dir_takes_all_below_and_nothing_beside(self, storage: Storage) -> None:
        for path in ("a/1", "a/b/2", "a/b/c/3", "ab/4", "a-"):
            storage.put(path, b"")
        assert storage.delete_dir("a") == 3
        assert [info.path for info in storage.list("")] == ["a-", "ab/4"]
        assert "a" not in storage.list_dir("").dirs
        assert storage.delete_dir("a") == 0
        assert storage.delete_dir("none/below") == 0

    def test_delete_dir_of_the_root_empties_the_storage(self, storage: Storage) -> None:
        for path in ("a/1", "b"):
            storage.put(path, b"")
        assert storage.delete_dir("") == 2
        assert list(storage.list("")) == []
        storage.put("a/1", b"again")
        assert storage.read("a/1") == b"again"

    def test_stale_checksum_files_go(self, storage: Storage) -> None:
        if not self.keeps_crc_away:
            pytest.skip("Hadoop leaves no checksum files in this storage")
        acts: tuple[Callable[[str], Any], ...] = (
            lambda path: storage.create(path, b"1"),
            lambda path: storage.put(path, b"2"),
            storage.delete,
        )
        for act in acts:
            storage.put("d/.x.crc", b"stale")
            storage.put("d/.y.crc", b"of another file")
            act("d/x")
            assert "d/.x.crc" not in [info.path for info in storage.list("d")]
            assert storage.read("d/.y.crc") == b"of another file"

    # data files

    def test_output_appears_whole_at_close(self, storage: Storage) -> None:
        output = storage.open_output("p=1/f.bin")
        assert output.write(b"abc") == 3
        assert output.write(memoryview(b"defg")) == 4
        assert output.tell() == 7
        assert not output.closed
        output.close()
        output.close()
        assert output.closed
        assert storage.read("p=1/f.bin") == b"abcdefg"
        with pytest.raises(ValueError, match="closed"):
            output.write(b"x")

    def test_aborted_output_leaves_nothing(self, storage: Storage) -> None:
        output = storage.open_output("p/f.bin")
        output.write(b"abc")
        output.abort()
        output.abort()
        output.close()
        assert list(storage.list("")) == []

    def test_output_of_many_parts_reads_back_and_can_be_aborted(self, storage: Storage) -> None:
        parts = [bytes([n]) * 3_000_001 for n in range(9)]
        with storage.open_output("big.bin") as output:
            for part in parts:
                output.write(part)
        assert storage.head("big.bin").size_bytes == sum(map(len, parts))
        assert storage.read("big.bin") == b"".join(parts)
        with storage.open_input("big.bin") as file:
            assert file.read() == b"".join(parts)
            file.seek(2_999_999)
            assert file.read(4) == b"\0\0\1\1"
        dropped = storage.open_output("dropped.bin")
        for part in parts:
            dropped.write(part)
        dropped.__exit__(RuntimeError, RuntimeError("the writer failed"), None)
        assert [info.path for info in storage.list("")] == ["big.bin"]

    def test_empty_output_is_an_empty_file(self, storage: Storage) -> None:
        storage.open_output("e").close()
        assert storage.read("e") == b""
        with storage.open_input("e") as file:
            assert file.read() == b""
            assert file.size() == 0

    def test_output_of_the_same_name_replaces(self, storage: Storage) -> None:
        for data in (b"long first", b"second"):
            with storage.open_output("x") as output:
                output.write(data)
        assert storage.read("x") == b"second"

    @pytest.mark.parametrize("pre_buffer", [True, False])
    def test_parquet_writes_to_outputs_and_reads_from_inputs(self, storage: Storage, pre_buffer: bool) -> None:
        table = pa.table({"n": range(200_000), "s": [f"text {n % 977}" for n in range(200_000)]})
        with storage.open_output("t/f.parquet") as output:
            with pq.ParquetWriter(output, table.schema, compression="none", use_dictionary=False) as writer:
                writer.write_table(table, row_group_size=50_000)
            assert not output.closed
        with storage.open_input("t/f.parquet") as source, pq.ParquetFile(source, pre_buffer=pre_buffer) as file:
            assert file.metadata.num_row_groups == 4
            assert file.read_row_group(2, columns=["s"]).column("s")[0].as_py() == f"text {100_000 % 977}"
            assert file.read().equals(table)
        with pytest.raises(Missing):
            storage.open_input("t/none.parquet")

    def test_input_reads_anywhere(self, storage: Storage) -> None:
        data = bytes(n % 251 for n in range(300_000))
        storage.put("x", data)
        with storage.open_input("x") as file:
            assert file.size() == len(data)
            for start, length in ((0, 10), (299_990, 100), (150_000, 70_000), (150_500, 10), (10, 5), (0, 300_000)):
                file.seek(start)
                assert file.tell() == start
                assert file.read(length) == data[start : start + length]
            assert file.read_at(1_000, 1_000) == data[1_000:2_000]

    # paths, identity

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_paths_that_leave_the_root_are_invalid(self, storage: Storage, path: str) -> None:
        calls: tuple[Callable[[], Any], ...] = (
            lambda: storage.absolute(path),
            lambda: storage.list_dir(path),
            lambda: list(storage.list(path)),
            lambda: storage.head(path),
            lambda: storage.read(path),
            lambda: storage.read_range(path, 0, 1),
            lambda: storage.create(path, b""),
            lambda: storage.put(path, b""),
            lambda: storage.delete(path),
            lambda: storage.delete_dir(path),
            lambda: storage.open_input(path),
            lambda: storage.open_output(path),
        )
        for call in calls:
            with pytest.raises(Invalid):
                call()

    def test_the_root_is_not_a_file(self, storage: Storage) -> None:
        for call in (storage.head, storage.read, storage.delete, storage.open_output, storage.open_input):
            with pytest.raises(Invalid):
                call("")

    def test_absolute_puts_the_base_in_front(self, storage: Storage) -> None:
        base = storage.absolute("")
        assert not base.endswith("/")
        assert storage.absolute("p/f.parquet") == f"{base}/p/f.parquet"

    def test_a_pickled_copy_works_on_the_same_bytes(self, storage: Storage) -> None:
        storage.put("x", b"1")
        copy = pickle.loads(pickle.dumps(storage))
        assert (copy.uri, copy.scheme) == (storage.uri, storage.scheme)
        assert copy.read("x") == b"1"
        copy.put("y", b"2")
        assert storage.read("y") == b"2"
