"""The worked examples of docs/format/log-files.md are true: each is taken out of the page and read by the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoodie.logs import (
    BlockKind,
    HeaderKey,
    LogBlock,
    blocks_to_merge,
    encode_block,
    encode_deletes,
    encode_positions,
    parse_deletes,
    parse_positions,
)
from hoodie.logs.deletes import CONTENT_VERSION
from hoodie.spec import parse_log_file

PAGE = (Path(__file__).parents[3] / "docs" / "format" / "log-files.md").read_text(encoding="utf-8")


def bytes_of(cell: str) -> bytes:
    """Bytes of `23 48 · `text` · 00`."""
    parts = (part.strip() for part in cell.split("·"))
    return b"".join(part.strip("`").encode() if part.startswith("`") else bytes.fromhex(part) for part in parts)


def table(after: str) -> bytes:
    """Bytes of the first table behind `after`, whose rows must start where they say."""
    found = re.search(r"(?:^\|.*\n)+", PAGE[PAGE.index(after) :], re.MULTILINE)
    assert found is not None
    data = b""
    for line in found[0].splitlines()[2:]:
        offset, cell, _ = (part.strip() for part in line.strip("|").split("|", 2))
        assert len(data) == int(offset), line
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


def test_delete_content_in_java_form() -> None:
    text = PAGE[PAGE.index("Content of a delete block of version 2") :]
    shortened = re.findall(r"`([^`]*)`", text[: text.index("(Integer 0)")])
    model = "org.apache.hudi.common.model."
    data = b""
    for piece in shortened:
        for part in re.findall(r'"[^"]*"|[0-9a-f]{2}(?= |$)', piece.replace("…", model)):
            name = part.strip('"').encode()
            data += name[:-1] + bytes([name[-1] | 0x80]) if part.startswith('"') else bytes.fromhex(part)
    assert len(data) == int(re.findall(r"\((\d+) bytes, shortened\)", text)[0])
    found = parse_deletes(data, "f", 0)
    assert (found.keys.to_pylist(), found.partitions.to_pylist()) == (["k1"], ["p1"])
    assert found.is_default.all()


def test_positions() -> None:
    text, last = re.findall(r"Positions `([^`]*)` = \{0 … (\d+)\}", PAGE)[0]
    assert parse_positions(text).tolist() == list(range(int(last) + 1))
    assert encode_positions(range(int(last) + 1)) == text


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
