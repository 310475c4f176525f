"""Scans and look-ups: what comes out of files of every writer, and what was read for it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import Corrupt, HudiError
from hoodie.hfile import Codec, HFileOptions, KeyValues, encode_hfile, open_hfile
from hoodie.storage import MemoryStorage

Pairs = list[tuple[bytes, bytes]]
OfParts = Callable[[Iterable[KeyValues]], Pairs]

FILES = {"hbase_gz_levels": 600, "hbase_none": 100, "hbase_snappy": 1500, "hbase_lz4": 1500, "native_gz": 1500}


@pytest.mark.parametrize("name", FILES)
def test_file_of_another_writer_gives_all_its_entries(
    name: str,
    golden_hfile: Callable[[str], bytes],
    golden_pairs: Callable[[int], Pairs],
    opened: Any,
    pairs: OfParts,
) -> None:
    file = opened(golden_hfile(name))
    expected = golden_pairs(FILES[name])
    assert pairs(file.scan()) == expected
    assert file.entry_count == len(expected)
    assert (file.first_key, file.last_key) == (expected[0][0], expected[-1][0])
    assert file.schema is None


@pytest.mark.parametrize("name", FILES)
def test_look_ups_in_a_file_of_another_writer_find_what_a_scan_finds(
    name: str,
    golden_hfile: Callable[[str], bytes],
    golden_pairs: Callable[[int], Pairs],
    opened: Any,
    pairs: OfParts,
) -> None:
    file = opened(golden_hfile(name))
    expected = golden_pairs(FILES[name])
    assert [pairs([file.lookup([key])]) for key, _ in expected[::23]] == [[pair] for pair in expected[::23]]
    assert pairs([file.lookup([key for key, _ in reversed(expected)])]) == expected
    assert pairs([file.with_prefixes([b"key-0001", b"key-00003"])]) == [expected[3], *expected[10:20]]
    assert not len(file.lookup([b"", b"key-", b"key-00001x", b"z"]))


def test_index_of_three_levels_is_read_where_the_keys_are(
    golden_hfile: Callable[[str], bytes], ranged: Any, pairs: OfParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the file were so large that its end did not hold everything.
    monkeypatch.setattr("hoodie.hfile.source._TAIL_BYTES", 4096)
    source = ranged(golden_hfile("hbase_gz_levels"))
    file = source.open()
    assert file.trailer.index_levels == 3
    assert len(source.reads) == 2
    source.reads.clear()
    assert pairs([file.lookup([b"key-00333"])]) == [(b"key-00333", b"value 333 " * 33)]
    assert len(source.reads) == 3
    assert sum(length for _, length in source.reads) < 4096


def test_open_file_travels_to_workers(golden_hfile: Callable[[str], bytes], pairs: OfParts) -> None:
    storage = MemoryStorage("hfile-travels")
    storage.put("a.hfile", golden_hfile("native_gz"))
    file = open_hfile(partial(storage.read_range, "a.hfile"), storage.head("a.hfile").size_bytes, "a.hfile")
    there = pickle.loads(pickle.dumps(file))
    assert pairs(there.scan()) == pairs(file.scan())
    storage.forget()


def test_small_file_is_read_once(ranged: Any, arrays: Any) -> None:
    data = encode_hfile(*arrays([(b"a", b"1"), (b"b", b"2")]), schema='"bytes"')
    source = ranged(data)
    file = source.open()
    assert len(file.lookup([b"b"])) == len(file.with_prefixes([b"a"])) == 1
    assert sum(len(part) for part in file.scan()) == 2
    assert source.reads == [(0, len(data))]


def test_look_up_reads_the_blocks_that_may_hold_the_keys_and_neighbours_in_one_go(ranged: Any, arrays: Any) -> None:
    entries = [(b"%06d" % number, bytes(1000)) for number in range(1000)]
    options = HFileOptions(codec=Codec.NONE, block_bytes=10_000)
    source = ranged(encode_hfile(*arrays(entries), options=options))
    file = source.open()
    block_bytes = file._root.sizes[0]
    source.reads.clear()
    assert len(file.lookup([b"000005", b"000012", b"000500"])) == 3
    assert source.reads == [(0, 2 * block_bytes), (file._root.offsets[55], block_bytes)]
    source.reads.clear()
    assert not len(file.lookup([b"", b"000000x", b"a"]))
    # A key above all others may be in the last block; it lies in the end of the file, which was read when opening.
    assert source.reads == [(0, block_bytes)]
    source.reads.clear()
    assert len(file.with_prefixes([b"00050"])) == 10
    assert len(source.reads) == 1


def test_end_of_the_file_is_not_read_again(ranged: Any, arrays: Any) -> None:
    entries = [(b"%06d" % number, bytes(1000)) for number in range(1000)]
    source = ranged(encode_hfile(*arrays(entries), options=HFileOptions(codec=Codec.NONE)))
    file = source.open()
    assert len(source.reads) == 1
    assert len(file.lookup([b"000999"])) == 1
    assert len(source.reads) == 1


def test_large_indexes_take_a_second_read(ranged: Any, arrays: Any) -> None:
    entries = [(b"%06d" % number + bytes(2000), b"") for number in range(200)]
    source = ranged(encode_hfile(*arrays(entries), options=HFileOptions(codec=Codec.NONE, block_bytes=1024)))
    file = source.open()
    assert len(source.reads) == 2
    assert len(file._root) == 200


def test_scan_gives_some_megabytes_at_a_time_and_reads_so(ranged: Any, arrays: Any) -> None:
    entries = [(b"%06d" % number, bytes(50_000)) for number in range(300)]
    source = ranged(encode_hfile(*arrays(entries), options=HFileOptions(codec=Codec.NONE)))
    parts = list(source.open().scan())
    assert sum(len(part) for part in parts) == 300
    assert len(parts) == 4
    assert max(length for _, length in source.reads) <= 4 * 1024 * 1024


def test_value_larger_than_all_read_sizes_is_one_block(ranged: Any, arrays: Any, pairs: OfParts) -> None:
    entries = [(b"a", b"small"), (b"b", bytes(9_000_000)), (b"c", b"small")]
    source = ranged(encode_hfile(*arrays(entries)))
    assert pairs(source.open().scan()) == entries
    assert pairs([source.open().lookup([b"b"])]) == entries[1:2]


def test_values_are_ranges_of_one_buffer_in_order(opened: Any, arrays: Any) -> None:
    entries = [(b"%03d" % number, b"v" * number) for number in range(100)]
    file = opened(encode_hfile(*arrays(entries)))
    for found in (*file.scan(), file.lookup([key for key, _ in entries[::7]])):
        data = bytes(found.data)
        cut = [data[start:end] for start, end in zip(found.starts, found.ends, strict=True)]
        assert cut == found.values.to_pylist()
        assert (found.starts[1:] >= found.ends[:-1]).all()
    assert len(file.lookup([entries[50][0]]).data) == 50


def test_keys_may_be_text_arrays_with_nulls_duplicates_and_in_any_order(opened: Any, arrays: Any) -> None:
    file = opened(encode_hfile(*arrays([(b"a", b""), (b"b", b""), ("é".encode(), b"")])))
    for kind in (pa.string(), pa.large_string()):
        found = file.lookup(pa.array(["é", "a", None, "a"], kind))
        assert found.keys.to_pylist() == [b"a", "é".encode()]
    assert not len(file.lookup(pa.array([None], pa.string())))
    assert not len(file.lookup([]))
    assert not len(file.with_prefixes([]))
    assert len(file.with_prefixes([b"", b"a"])) == 3


def test_file_without_entries_is_empty(opened: Any, arrays: Any) -> None:
    file = opened(encode_hfile(*arrays([]), schema='"bytes"'))
    assert list(file.scan()) == []
    assert not len(file.lookup([b"a"]))
    assert not len(file.with_prefixes([b"a", b""]))
    assert (file.first_key, file.last_key, file.entry_count) == (None, None, 0)


entries_and_blocks = st.tuples(
    st.lists(st.tuples(st.binary(max_size=6), st.binary(max_size=40)), max_size=200),
    st.sampled_from([1024, 2048]),
    st.sampled_from([Codec.GZ, Codec.NONE]),
)


@settings(deadline=None, max_examples=60)
@given(entries_and_blocks, st.lists(st.binary(max_size=6), max_size=20))
def test_any_entries_come_back_and_are_found(case: tuple[Pairs, int, Codec], asked: list[bytes]) -> None:
    entries, block_bytes, codec = case
    options = HFileOptions(codec=codec, block_bytes=block_bytes, allow_duplicates=True)
    keys = pa.array([key for key, _ in entries], pa.binary())
    values = pa.array([value for _, value in entries], pa.binary())
    data = encode_hfile(keys, values, options=options)
    file = open_hfile(lambda start, length: data[start : start + length], len(data), "a.hfile")
    expected = sorted(entries, key=lambda entry: entry[0])

    def pairs_of(parts: Iterable[KeyValues]) -> Pairs:
        return [pair for part in parts for pair in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True)]

    wanted = asked + [key for key, _ in entries[::5]]
    assert pairs_of(file.scan()) == expected
    assert pairs_of([file.lookup(wanted)]) == [pair for pair in expected if pair[0] in wanted]
    prefixes = [key[:2] for key in wanted]
    assert pairs_of([file.with_prefixes(prefixes)]) == [
        pair for pair in expected if any(pair[0].startswith(prefix) for prefix in prefixes)
    ]


def test_equal_keys_that_reach_over_a_block_are_all_found(opened: Any, arrays: Any, pairs: OfParts) -> None:
    # No writer we know makes such a file: here the index says that the second block starts with the key of the first.
    entries = [(b"a", bytes(2000)), (b"b", bytes(2000))]
    options = HFileOptions(codec=Codec.NONE, block_bytes=1024)
    data = encode_hfile(*arrays(entries), options=options)
    suffix = b"\0\x7f" + b"\xff" * 7 + b"\x04"
    doubled = data.replace(b"\0\x01b" + suffix, b"\0\x01a" + suffix)
    assert pairs([opened(doubled).lookup([b"a"])]) == [(b"a", bytes(2000)), (b"a", bytes(2000))]


def test_keys_in_the_order_of_java_are_found(opened: Any, pairs: OfParts) -> None:
    # Java puts U+1F600 before U+FF01, bytes the other way round. Files of ours are in the order of bytes: names that
    # sort so take the places, and get their keys afterwards.
    late = ["\U0001f600", "\uff01", "\ue000"]
    texts = sorted(
        (f"{first}{number:03d}{second}" for first in ("a", *late) for number in range(20) for second in ("", *late)),
        key=lambda text: text.encode("utf-16-be"),
    )
    assert texts != sorted(texts)
    width = max(len(text.encode()) for text in texts)
    keys = [text.encode().ljust(width, b"-") for text in texts]
    names = [f"{number:0{width}d}".encode() for number in range(len(keys))]
    values = pa.array([bytes(200)] * len(keys))
    data = encode_hfile(pa.array(names), values, options=HFileOptions(codec=Codec.NONE, block_bytes=1024))
    for name, key in zip(names, keys, strict=True):
        data = data.replace(name, key)
    file = opened(data)
    assert [key for key, _ in pairs(file.scan())] == keys
    for key in keys:
        assert file.lookup([key]).keys.to_pylist() == [key]
        assert key in file.with_prefixes([key[:-3].rstrip(b"-")]).keys.to_pylist()
    assert file.lookup(keys).keys.to_pylist() == keys
    assert len(file.with_prefixes(["\U0001f600".encode()])) == 80


@pytest.mark.parametrize("cut", [0, 100, 4095, 4096, 5000])
def test_file_that_is_cut_short_is_corrupt_with_path_and_offset(
    cut: int, golden_hfile: Callable[[str], bytes], opened: Any
) -> None:
    with pytest.raises(Corrupt, match=r"a\.hfile") as raised:
        opened(golden_hfile("native_gz")[:cut])
    assert raised.value.facts["path"] == "a.hfile"
    assert isinstance(raised.value.facts["offset"], int)


def test_offset_of_damage_counts_from_where_the_hfile_starts(golden_hfile: Callable[[str], bytes], ranged: Any) -> None:
    data = bytearray(golden_hfile("native_gz"))
    file = ranged(bytes(data)).open(start=1000)
    second = file._root.offsets[1]
    data[second + 200] ^= 0xFF
    damaged = ranged(bytes(data)).open(start=1000)
    with pytest.raises(Corrupt) as raised:
        list(damaged.scan())
    assert raised.value.facts == {"path": "a.hfile", "offset": 1000 + second}
    assert len(damaged.lookup([b"key-00000"])) == 1


def test_scan_that_gives_other_than_the_promised_count_is_corrupt(arrays: Any, opened: Any) -> None:
    data = encode_hfile(*arrays([(b"a", b"1"), (b"b", b"2")]))
    lying = data.replace(b"\x38\x02", b"\x38\x03", 1)  # field 7 of the trailer: number of entries
    assert lying != data
    with pytest.raises(Corrupt, match="2 entries are there instead of 3"):
        list(opened(lying).scan())


def test_storage_that_gives_fewer_bytes_is_corrupt(golden_hfile: Callable[[str], bytes]) -> None:
    data = golden_hfile("hbase_none")
    with pytest.raises(HudiError, match="are there"):
        open_hfile(lambda start, length: data[start : start + length - 1], len(data), "a.hfile")
