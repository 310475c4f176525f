"""The worked examples of docs/format/log-files.md are true: each is taken out of the page and read by the code."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from format_pages import block as block_of_page
from format_pages import bytes_of, ensure_lines, page, rows

from hoodie.logs import (
    BlockKind,
    HeaderKey,
    LogBlock,
    blocks_to_merge,
    encode_avro_content,
    encode_block,
    encode_deletes,
    encode_positions,
    parse_deletes,
    parse_positions,
    read_block_rows,
    read_blocks,
)
from hoodie.logs.deletes import CONTENT_VERSION
from hoodie.spec import parse_log_file
from hoodie.spec.change_schema import DATA_BEFORE_AFTER, change_schema
from hoodie.storage import open_storage

PAGE = page("log-files")
LAST = [{"price": price, "active": False, "day": date(2024, 1, 1)} for price in (108.835, -379.913)]


def table(after: str) -> bytes:
    """Bytes of the first table behind `after`, whose rows must start where they say."""
    data = b""
    for offset, cell, _ in rows(PAGE, after):
        assert len(data) == int(offset), cell
        data += bytes_of(cell)
    return data


def test_rollback_block() -> None:
    data = table("A rollback block of version 6")
    (block,) = parse_log_file(lambda start, length: data[start : start + length], len(data), "f")
    assert (block.kind, block.size_bytes) == (BlockKind.COMMAND, 105)
    assert (block.instant, block.target_instant) == ("20261121062643349", "20261121062642183")
    assert encode_block(block.kind, block.header, b"") == data


def test_delete_content() -> None:
    content = table("Content of a delete block (version 9")
    found = parse_deletes(content, "f", 0)
    assert (found.keys.to_pylist(), found.partitions.to_pylist()) == (["k0001"], ["p1"])
    assert found.ordering[0].to_pylist() == [1002001]
    assert encode_deletes(found) == content
    assert content[3] == CONTENT_VERSION


@pytest.mark.parametrize(("version", "last"), [(2, "(Integer 0)"), (1, "There is no ordering value")])
def test_delete_content_in_java_form(version: int, last: str) -> None:
    text = PAGE[PAGE.index(f"Content of a delete block of version {version}, ") :]
    shortened = re.findall(r"`([^`]*)`", text[: text.index(last)])
    model = "org.apache.hudi.common.model."
    data = b""
    for piece in shortened:
        for part in re.findall(r'"[^"]*"|[0-9a-f]{2}(?= |$)', piece.replace("…", model)):
            name = part.strip('"').encode()
            data += name[:-1] + bytes([name[-1] | 0x80]) if part.startswith('"') else bytes.fromhex(part)
    assert len(data) == int(re.findall(r"\((\d+) bytes, shortened\)", text)[0])
    assert data[3] == version
    found = parse_deletes(data, "f", 0)
    assert (found.keys.to_pylist(), found.partitions.to_pylist()) == (["k1"], ["p1"])
    assert found.is_default.all()


def test_avro_content(golden: Callable[[str], Path]) -> None:
    front, field, text = re.findall(r"6 rows starts `(.*?)`, .*; its first field is `(.*?) \"(\d+)\"`", PAGE)[0]
    storage = open_storage(str(golden("1.2.0/mor_event_time")))
    (log,) = [
        file
        for file in storage.list("")
        if text in file.path and "/metadata/" not in file.path and ".log." in file.path
    ]
    (block,) = read_blocks(storage, log.path, log.size_bytes)
    content = storage.read_range(log.path, block.content_start, block.content_bytes)
    assert content.startswith(bytes_of(front) + bytes.fromhex(field) + text.encode())
    assert read_block_rows(storage, block).num_rows == 6


def test_positions() -> None:
    text, last = re.findall(r"Positions `([^`]*)` = \{0 … (\d+)\}", PAGE)[0]
    assert parse_positions(text).tolist() == list(range(int(last) + 1))
    assert encode_positions(range(int(last) + 1)) == text


def test_positions_as_sorted_numbers(golden: Callable[[str], Path]) -> None:
    text, told = re.findall(r"Positions `([^`]*)` = \{([\d, ]+)\}", PAGE)[0]
    numbers = [int(number) for number in told.split(",")]
    assert table(f"Positions `{text}`") == base64.b64decode(text)
    assert parse_positions(text).tolist() == numbers
    assert encode_positions(numbers) == text
    storage = open_storage(str(golden("1.2.0/mor_event_time")))
    logs = [file for file in storage.list("") if "/metadata/" not in file.path and ".log." in file.path]
    blocks = [block for file in logs for block in read_blocks(storage, file.path, file.size_bytes)]
    assert text in {block.header.get(HeaderKey.RECORD_POSITIONS) for block in blocks}


def test_positions_as_bits() -> None:
    count, last = re.findall(r"Of the (\d+) numbers \{0, 2 … (\d+)\}", PAGE)[0]
    numbers = range(0, int(last) + 1, 2)
    assert len(numbers) == int(count)
    text = encode_positions(numbers)
    assert f"the text has {len(text):,} characters".replace(",", " ") in PAGE
    front = table("Of the 4097 numbers").rstrip(b"\x55")
    data = base64.b64decode(text)
    assert data == front + b"\x55" * 1024 + b"\x01" + bytes(7167)
    assert len(data) - len(front) == 8192
    assert parse_positions(text).tolist() == list(numbers)


def test_change_data_block(golden: Callable[[str], Path]) -> None:
    name = re.findall(r"`(\.b9596c37\S+\.cdc)`", PAGE)[0]
    storage = open_storage(str(golden("1.2.0/cow_cdc_data_before_after")))
    data = storage.read(f"p0/{name}")
    assert ensure_lines(data, rows(PAGE, "The first change in a file of Hudi 1.2.0")) == (0, len(data))
    (block,) = read_blocks(storage, f"p0/{name}", len(data))
    assert block.kind is BlockKind.CDC_DATA
    changes = read_block_rows(storage, block)
    first = changes.to_pylist()[0]
    assert (first["op"], first["ts_ms"]) == ("u", block.instant)
    assert first["before"] == {"id": "k0000", "part": "p0", "ts": 1001000, "name": "birch14", "qty": None} | LAST[0]
    assert first["after"] == {"id": "k0000", "part": "p0", "ts": 1002000, "name": "cédar1", "qty": -405} | LAST[1]
    ours = encode_block(block.kind, block.header, encode_avro_content(changes, block.schema))
    assert ours == data


def test_schema_of_changes() -> None:
    shown = "".join(line.strip() for line in block_of_page(PAGE, "For a table `t` with one column").splitlines())
    fields = '[{"name":"id","type":["null","string"],"default":null}]'
    record = f'{{"type":"record","name":"t_record","namespace":"hoodie.t","fields":{fields}}}'
    assert change_schema(DATA_BEFORE_AFTER, record) == shown


def test_order_of_blocks() -> None:
    blocks = []
    for name, compacts in re.findall(r"(t\d)(?:\(=([^)]*)\))?", re.findall(r"blocks in order +(.*)", PAGE)[0]):
        header = {HeaderKey.INSTANT_TIME: name}
        if compacts:
            header[HeaderKey.COMPACTED_BLOCK_TIMES] = compacts
        blocks.append(LogBlock("f", 0, 100, BlockKind.AVRO_DATA, header))
    assert len(blocks) == 5
    assert [block.instant for block in blocks_to_merge(blocks)] == re.findall(r"merged +(.*)", PAGE)[0].split()


@pytest.mark.parametrize("key", HeaderKey)
def test_header_keys(key: HeaderKey) -> None:
    assert f"| {int(key)} | `{key.name}` |" in PAGE
