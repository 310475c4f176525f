"""HFiles between us and Hudi's own readers and writers: 1.2.0 (its own code) and 0.15.0 (HBase's)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peers import Peer, PeerFailed, ensure_same_rows

from hoodie.hfile import BloomMeta, Codec, HFile, HFileOptions, encode_hfile, open_hfile

SERVER = Path(__file__).parent / "peers" / "hfile_server.py"
BLOOM = BloomMeta("DYNAMIC_V0", "QUJD" * 10_000)


@pytest.fixture(scope="module", params=["1.2.0", "0.15.0"])
def peer(
    request: pytest.FixtureRequest, compat_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Peer]:
    """The HFile code of one release of Hudi."""
    scratch = tmp_path_factory.mktemp(f"hfile_{request.param}")
    server = Peer(f"HFiles of Hudi {request.param}", [str(compat_python), str(SERVER), request.param], scratch)
    yield server
    server.stop()


def entries(count: int) -> pa.Table:
    """Keys with ASCII and other letters, values of very different sizes."""
    chance = Random(7)
    keys = sorted({f"key-{number:06d}{'é€' * (number % 3)}".encode() for number in range(count)})
    values = [chance.randbytes(chance.choice([0, 1, 20, 300])) for _ in keys]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def encoded(rows: pa.Table, options: HFileOptions, bloom: BloomMeta | None = BLOOM) -> bytes:
    keys, values = (rows[name].combine_chunks() for name in ("key", "value"))
    return encode_hfile(keys, values, schema='"bytes"', bloom=bloom, options=options)


def opened(path: Path) -> HFile:
    data = path.read_bytes()
    return open_hfile(partial(_piece, data), len(data), path.name)


def _piece(data: bytes, start: int, length: int) -> bytes:
    return data[start : start + length]


@pytest.mark.parametrize("codec", [Codec.GZ, Codec.NONE])
@pytest.mark.parametrize("block_bytes", [4096, 1024 * 1024])
def test_hudi_scans_and_seeks_our_files(codec: Codec, block_bytes: int, peer: Peer, tmp_path: Path) -> None:
    rows = entries(1500)
    path = tmp_path / "ours.hfile"
    path.write_bytes(encoded(rows, HFileOptions(codec=codec, block_bytes=block_bytes)))
    answer = peer.ask("scan", path=str(path), out=str(tmp_path / "out.parquet"))
    assert answer["count"] == rows.num_rows
    assert answer["bloom"] == BLOOM.text
    assert pq.read_table(tmp_path / "out.parquet").equals(rows)
    keys = [key.decode() for key in rows["key"].to_pylist()]
    present = {*keys[::31], keys[0], keys[-1]}
    asked = sorted({*present, "a", "key-000100x", "z"}, key=str.encode)
    assert set(peer.ask("seek", path=str(path), keys=asked)["found"]) == present


def test_hudi_loses_no_entry_at_the_end_of_a_large_block_of_ours(peer: Peer, tmp_path: Path) -> None:
    # What Hudi's own files lose: small entries where the checksums' size is taken off a second time.
    chance = Random(1)
    keys = [f"key-{number:03d}" for number in range(80)]
    values = [chance.randbytes(16 * 1024) for _ in range(60)] + [b"tiny"] * 20
    rows = pa.table({"key": pa.array([key.encode() for key in keys]), "value": pa.array(values, pa.binary())})
    path = tmp_path / "ours.hfile"
    path.write_bytes(encoded(rows, HFileOptions(block_bytes=1024 * 1024)))
    assert len(opened(path)._root) == 1
    peer.ask("scan", path=str(path), out=str(tmp_path / "out.parquet"))
    assert pq.read_table(tmp_path / "out.parquet").equals(rows)


def test_hudi_opens_our_file_without_entries(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "ours.hfile"
    path.write_bytes(encoded(entries(0), HFileOptions(), bloom=None))
    assert peer.ask("scan", path=str(path), out=str(tmp_path / "out.parquet"))["count"] == 0


@pytest.mark.parametrize("codec", ["GZ", "NONE"])
def test_we_read_what_hudi_writes(codec: str, peer: Peer, tmp_path: Path) -> None:
    rows = entries(1500)
    pq.write_table(rows, tmp_path / "in.parquet")
    path = tmp_path / "theirs.hfile"
    peer.ask("write", path=str(path), input=str(tmp_path / "in.parquet"), codec=codec, block_bytes=4096)
    file = opened(path)
    parts = list(file.scan())
    assert pa.concat_arrays([part.keys for part in parts]).equals(rows["key"].combine_chunks())
    assert pa.concat_arrays([part.values for part in parts]).equals(rows["value"].combine_chunks())
    some = rows.slice(200, 100)
    found = file.lookup(some["key"].combine_chunks())
    assert found.keys.equals(some["key"].combine_chunks())
    assert found.values.equals(some["value"].combine_chunks())


@pytest.mark.parametrize(
    ("name", "reader"), [("1.2.0/mor_downgraded_9_to_6", "hudi_12"), ("0.15.0/cow_archived", "hudi_015")]
)
def test_hudi_lists_a_table_through_base_files_of_ours(
    name: str,
    reader: str,
    request: pytest.FixtureRequest,
    golden: Callable[..., tuple[Path, Path]],
    tmp_path: Path,
) -> None:
    table, expected = golden(name)
    hudi: Peer = request.getfixturevalue(reader)
    other = tmp_path / "other"
    shutil.copytree(table, other)
    rewrite_metadata_base_files(table)
    rows = hudi.read(table, options={"hoodie.metadata.enable": "true"})
    ensure_same_rows(rows, pq.read_table(expected / "snapshot.parquet"), called=("read", "recorded"))
    # That says something only if Hudi looks there. (In a copy: Hudi 0.15 remembers listings.)
    for path in (other / ".hoodie" / "metadata" / "files").glob("*.hfile*"):
        path.write_bytes(b"no HFile")
    with pytest.raises(PeerFailed, match="metadata"):
        hudi.read(other, options={"hoodie.metadata.enable": "true"})


def rewrite_metadata_base_files(table: Path) -> None:
    """Each base file of the metadata table's file listing anew, by our encoder."""
    paths = sorted((table / ".hoodie" / "metadata" / "files").glob("*.hfile"))
    assert paths
    for path in paths:
        file = opened(path)
        (entries,) = file.scan()
        bloom = BloomMeta(file.info["bloomFilterTypeCode"].decode(), (file.meta("bloomFilter") or b"").decode())
        path.write_bytes(encode_hfile(entries.keys, entries.values, schema=file.schema, bloom=bloom, created_ms=1))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
