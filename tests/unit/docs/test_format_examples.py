"""The worked examples of docs/format are true: each is taken out of its page and read, or made again, by the code."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from format_pages import ROOT, block, ensure_bytes, ensure_lines, from_hexdump, hex_of, page, rows

from hoodie.engine import ArrowSource, LocalEngine
from hoodie.records import BloomFilter, KeyGenerator
from hoodie.records.keys import key_options
from hoodie.spec import (
    EMPTY_REPLACE,
    V6,
    V9,
    CommitMetadata,
    InstantInfo,
    Marker,
    MarkerKind,
    PartitionMetafile,
    PartitionWork,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    State,
    delete_partition_request,
    encode_partition_metafile,
    encode_requested_replace,
    encode_rollback_metadata,
    encode_rollback_plan,
    parse_base_file_name,
    parse_log_file_name,
    parse_marker,
    parse_marker_list,
    parse_partition_metafile,
    parse_properties_text,
    parse_rollback_metadata,
    parse_rollback_plan,
    workload_profile,
)
from hoodie.storage import MemoryStorage, open_storage
from hoodie.storage.lease import Lease, parse_lease
from hoodie.timeline import load_timeline
from hoodie.write.incoming import SpooledRows
from hoodie.write.keyed_input import KeyedForm, Spool, prepare_input
from hoodie.write.overwrite import parse_switch

SYNC = bytes(16)


def test_timeline_names_give_the_two_instants() -> None:
    storage = MemoryStorage("docs-timeline")
    for line in block(page("timeline"), "## Worked example").splitlines():
        storage.put(f".hoodie/timeline/{line.split()[0]}", b"")
    done, running = load_timeline(storage, V9).instants
    assert (done.requested, done.action, done.state) == ("20261121053901683", "commit", State.COMPLETED)
    assert done.completed == "20261121053903598"
    assert (running.requested, running.action, running.state) == ("20261121053903702", "commit", State.INFLIGHT)


def test_properties_parse_and_the_checksum_is_right() -> None:
    found = parse_properties_text(block(page("properties"), "## Worked example").encode("latin-1"), "page")
    assert found["hoodie.table.create.schema"].startswith('{"type":"record","name":"t1_record"')
    assert found["hoodie.table.checksum"] == str(zlib.crc32(f".{found['hoodie.table.name']}".encode()))


def test_file_names_have_the_parts_the_table_says() -> None:
    for name, file_id, token, instant, kind in rows(page("file-names"), "## Worked examples"):
        text = name.strip("`")
        if "…" in text:
            continue
        parsed = parse_log_file_name(text) if text.startswith(".") else parse_base_file_name(text)
        assert parsed is not None, text
        assert parsed.instant == instant.strip("`")
        assert parsed.write_token == token.strip("`")
        assert re.fullmatch(file_id.strip("`").replace("…", ".*"), parsed.file_id), kind


def test_markers_parse() -> None:
    text = page("markers")
    path = block(text, "## Worked example").strip()
    instant = path.split("/")[2]
    name = "bb12e2c4-d094-4866-b284-724121bab7b1-2_0-196-356_20261121053813780.parquet"
    assert parse_marker(path, instant) == Marker(f"p0/{name}", MarkerKind.CREATE)
    line = from_hexdump(block(text, "real bytes"))
    assert line.endswith(b".mar")
    assert parse_marker_list(line, "page") == ()  # cut off in the page, as its rule 4 says
    (marker,) = parse_marker_list(line + b"ker.APPEND\n", "page")
    assert marker.data_path.startswith("p0/.7bed39ee")


def test_partition_metafile_is_made_byte_for_byte() -> None:
    data = from_hexdump(block(page("partition-metafile"), "## Worked example"))
    parsed = parse_partition_metafile(data, "page")
    assert parsed == PartitionMetafile("20261121062144212", 1)
    assert encode_partition_metafile(parsed, datetime(2026, 11, 21, 6, 21, 44, tzinfo=UTC)) == data


def test_rollback_plan_has_the_bytes_of_the_table() -> None:
    info = InstantInfo("20261121053812961", "commit")
    doomed = ("/t/p0/a-0_0-1-2_20261121053812961.parquet",)
    plan = RollbackPlan(info, (RollbackRequest("p0", "a-0", info.commit_time, doomed),))
    data = encode_rollback_plan(plan)
    assert len(data) == 1248
    assert parse_rollback_plan(data, "page") == plan
    ensure_bytes(data, rows(page("rollback"), "Plan to undo"))


def test_rollback_metadata_has_the_bytes_of_the_table() -> None:
    info = InstantInfo("20261121053812961", "commit")
    deleted = RollbackPartition("p0", ("/t/p0/a-0_0-1-2_20261121053812961.parquet",))
    done = RollbackMetadata("20261121053815000", 12, 1, (info.commit_time,), {"p0": deleted}, (info,))
    data = encode_rollback_metadata(done)
    assert len(data) == 1590
    assert parse_rollback_metadata(data, "page") == done
    ensure_bytes(data, rows(page("rollback"), "The metadata of the rollback"))


def test_requested_partition_delete_has_the_bytes_of_the_table() -> None:
    data = encode_requested_replace(delete_partition_request("1.x"))
    told = b"".join(hex_of(cell) for cell, _ in rows(page("commit-metadata"), "A requested partition delete has"))
    assert data[: -len(SYNC)].endswith(told.replace(b"DEL", b"DELETE_PARTITION"))
    assert encode_requested_replace(EMPTY_REPLACE)[: -len(SYNC)].endswith(b"\x00\x00\x00\x02")


def test_workload_profile_is_the_one_shown() -> None:
    text = page("commit-metadata")
    shown = json.loads(block(text, "Example, as a version 6 table has it"))
    work = {"p0": PartitionWork(6, {"c35af9bf-a42c-442f-83a2-e0ce1b3843f9-0": ("20261121062144212", 2)})}
    made = json.loads(V6.commit_codec.encode(workload_profile("UPSERT", work), "commit"))["partitionToWriteStats"]
    assert [{key: stat[key] for key in told} for told, stat in zip(shown["p0"], made["p0"], strict=True)] == shown["p0"]


def test_commit_container_has_the_bytes_of_the_table() -> None:
    data = V9.commit_codec.encode(workload_profile("DELETE_PARTITION", {}), "replacecommit")
    assert len(data) == 3372
    ensure_bytes(data, rows(page("commit-metadata"), "Real bytes"))
    assert V9.commit_codec.parse(data, "page").operation_type == "DELETE_PARTITION"


def test_commit_json_is_laid_out_as_shown() -> None:
    shown = block(page("commit-metadata"), "## JSON (version 6)")
    stat = json.loads(re.sub(r"\.\.\.\n", "", shown))["partitionToWriteStats"]["p0"][0]
    parsed = V6.commit_codec.parse(shown.replace("      ...\n", "").encode(), "page")
    assert isinstance(parsed, CommitMetadata)
    ours = V6.commit_codec.encode(parsed, "commit").decode()
    kept = [line for line in shown.splitlines() if "..." not in line]
    assert [line for line in ours.splitlines() if line.rstrip(",") in {one.rstrip(",") for one in kept}] == kept
    assert stat["numWrites"] == 20


def test_completed_replacecommit_is_the_one_hudi_wrote(golden: Callable[[str], Path]) -> None:
    text = page("commit-metadata")
    shown = block(text, "A completed replacecommit has one key more").rstrip("\n").encode()
    (file,) = (golden("0.15.0/cow_delete_partition") / ".hoodie").glob("*.replacecommit")
    data = file.read_bytes()
    assert f"{len(data)} bytes, the schema shortened" in text
    assert re.sub(rb'"schema" : ".*"', '"schema" : "…"'.encode(), data) == shown
    parsed = V6.commit_codec.parse(shown, "page")
    assert parsed.partition_to_replace_file_ids == {"p1": ("89771366-ef5d-488a-a911-c26bb6e46f57-0",)}
    assert parsed.operation_type == "DELETE_PARTITION"
    assert V6.commit_codec.encode(parsed, "replacecommit").decode() == shown.decode()


def test_completed_replacecommit_in_avro_has_the_bytes_of_the_table(golden: Callable[[str], Path]) -> None:
    (file,) = (golden("1.2.0/cow_delete_partition") / ".hoodie/timeline").glob("*_*.replacecommit")
    data = file.read_bytes()
    table = rows(page("commit-metadata"), "The completed delete of a partition by Hudi 1.2.0")
    assert ensure_lines(data, table) == (3515, len(data) - len(SYNC))
    parsed = V9.commit_codec.parse(data, "page")
    assert parsed.partition_to_replace_file_ids == {"p1": ("47cef661-9f72-4830-8401-f5aefce01004-0",)}
    assert V9.commit_codec.encode(parsed, "replacecommit")[3515 : -len(SYNC)] == data[3515 : -len(SYNC)]


def test_bloom_filter_is_made_byte_for_byte() -> None:
    text = page("bloom-filter")
    shown = re.search(r"^Text: `(.*)`$", text, re.MULTILINE)
    assert shown is not None
    bloom = BloomFilter.dynamic(2, 0.01, 4)
    bloom.add(pa.array(["k1", "é", "k3"]))
    assert bloom.to_text() == shown[1]
    places = {}
    for key, raw, _, positions in rows(text, "Keys `k1`, `é`"):
        assert key.strip("`").encode() == bytes.fromhex(raw)
        places[key] = {int(position) for position in positions.split()}
    told = [set(map(int, re.findall(r"\d+", bits))) for bits in re.findall(r"\): bits (.*?) \|", text)]
    assert told == [places["`k1`"] | places["`é`"], places["`k3`"]]


def test_base_file_has_the_offsets_of_the_table() -> None:
    data = (ROOT / "tests" / "golden" / "records" / "simple_filter_1.2.0.parquet").read_bytes()
    assert len(data) == 8859
    for offset, cell, meaning in rows(page("base-file"), "## Example"):
        if not offset.isdigit():
            continue
        if "`" in cell:
            text = cell.strip("`").encode()
            assert data[int(offset) : int(offset) + len(text)] == text
        elif re.fullmatch(r"(?:[0-9a-f]{2} ?)+", cell):
            expected = bytes.fromhex(cell)
            assert data[int(offset) : int(offset) + len(expected)] == expected, meaning


def test_spool_file_is_the_one_described() -> None:
    storage = open_storage("memory://docs-spool")
    schema = pa.schema([("id", pa.int64()), ("city", pa.string())])
    incoming = pa.table({"id": [1, 2, 3, 4], "city": ["sf", "rio", "sf", "rio"]}, schema=schema)
    instant = "20261121053901683"
    folder = f".hoodie/.temp/{instant}.spool"
    keys = KeyGenerator(key_options("SIMPLE", record_fields="id", partition_fields="city"))
    kept = prepare_input(
        ArrowSource(incoming, LocalEngine(1)), KeyedForm(keys, schema, instant), Spool(storage, folder, 1)
    )
    (file,) = storage.list("")
    assert re.fullmatch(re.escape(folder) + r"/0-\d+-0\.arrow", file.path)
    told = {(part.partition, part.data.batches) for part in kept.parts if isinstance(part.data, SpooledRows)}
    assert told == {("rio", ((0, 2),)), ("sf", ((1, 2),))}
    data = storage.read(file.path)
    shown = dict(rows(page("spool"), "## Worked example"))
    assert data.startswith(hex_of(shown["magic"])[:6])
    assert data.endswith(hex_of(shown["magic"]))
    reader = pa.ipc.open_file(pa.BufferReader(data))
    assert [f"`{name}`" for name in reader.schema.names] == shown["schema"].split(", ")
    for number in (0, 1):
        keys_of = ", ".join(f"`{key}`" for key in reader.get_batch(number).column(0).to_pylist())
        assert shown[f"batch {number}"].endswith(keys_of)


@pytest.mark.parametrize("after", ["A write begins", "At the end of the write"])
def test_lease_parses(after: str) -> None:
    lease = parse_lease(block(page("writer-lock"), after).encode(), "page")
    assert lease == Lease(lease.valid_until_ms, after.startswith("At the end"), "7bed39ee-daaf-4460-94b3-dbcf39bcd0c6")
    begun = int(datetime(2026, 11, 21, 5, 39, 2, 443_000, tzinfo=UTC).timestamp() * 1000)
    assert lease.valid_until_ms - begun == (300_000 if not lease.expired else 337_677)


def test_overwrite_switch_parses() -> None:
    switch = parse_switch(block(page("overwrite-switch"), "## Worked example").encode(), "20261121053901683.overwrite")
    assert (switch.instant, switch.partitions, switch.payload) == ("20261121053901683", ("",), b"{}")
    assert switch.config.name == "rides"


def test_record_keys_and_partition_paths_of_the_tables() -> None:
    named = KeyGenerator(key_options("COMPLEX", record_fields="id,s", partition_fields="part,day"))
    batch = pa.record_batch(
        {"id": [4, 2, 3], "s": ["a:b,c", None, ""], "part": ["p0"] * 3, "day": pa.array([19724] * 3, pa.date32())}
    )
    shown = {key.strip("`") for _, _, key in rows(page("record-keys"), "| fields | row | key |")}
    assert set(named.record_keys(batch).to_pylist()) <= shown
    paths = [path.strip("`") for _, _, path in rows(page("partition-paths"), "| options | value | path |")]
    assert named.partition_paths(batch).to_pylist()[0] in paths
    encoded = KeyGenerator(key_options("SIMPLE", record_fields="id", partition_fields="p", url_encode=True))
    values = pa.record_batch({"id": [1, 2], "p": ["x/y z", "p=q%25"]})
    assert ", ".join(encoded.partition_paths(values).to_pylist()) in "; ".join(paths).replace("`", "")
