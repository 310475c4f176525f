"""Pages of docs/format for tests: their examples, taken out of the text, as bytes and cells."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"


def page(name: str) -> str:
    return (ROOT / "docs" / "format" / f"{name}.md").read_text(encoding="utf-8")


def block(text: str, after: str) -> str:
    """The first fenced block behind the heading or sentence `after`."""
    found = re.search(r"```\w*\n(.*?)```", text[text.index(after) :], re.DOTALL)
    assert found is not None
    return found[1]


def rows(text: str, after: str) -> list[list[str]]:
    """Cells of the first table behind `after`, without its heading."""
    table = re.search(r"(?:^\|.*\n)+", text[text.index(after) :], re.MULTILINE)
    assert table is not None
    lines = [re.split(r" *\| *", line.strip().strip("|").strip()) for line in table[0].splitlines()]
    return lines[2:]


def from_hexdump(text: str) -> bytes:
    """Bytes of the lines `00000000: 2370 6172 ...  text`."""
    lines = (line.split(": ", 1)[1] for line in text.splitlines() if re.match(r"[0-9a-f]{8}: ", line))
    return b"".join(bytes.fromhex(line.split("  ")[0]) for line in lines)


def hex_of(cell: str) -> bytes:
    """Bytes of the hexadecimal digits in the code spans of a cell, up to the first `…` or span of another kind."""
    spans = re.findall(r"`([^`]*)`", cell)
    digits = itertools.takewhile(lambda span: re.fullmatch(r"(?:[0-9a-f]{2}[ …]*)+", span), spans)
    return bytes.fromhex("".join(digits).split("…")[0])


def ensure_bytes(data: bytes, table: list[list[str]]) -> None:
    """Every line (offset, bytes, meaning) is true of `data`; sync markers are anybody's choice."""
    for offset, cell, meaning in table:
        expected = b"" if "sync" in meaning else hex_of(cell)
        assert data[int(offset) : int(offset) + len(expected)] == expected, offset


def bytes_of(cell: str) -> bytes:
    """Bytes of `23 48 · `text` · 00`, up to a `…` at the end of a part."""
    parts = (part.strip() for part in cell.split("·"))
    return b"".join(
        part.strip("`").removesuffix("…").encode() if part.startswith("`") else bytes.fromhex(part.removesuffix("…"))
        for part in parts
    )


def ensure_lines(data: bytes, table: list[list[str]]) -> tuple[int, int]:
    """Where the lines (offset, bytes as `bytes_of` has them, meaning) begin and end in `data`, of which they must be
    true. Each begins where the one before it ends, unless that one is cut off by `…`.
    """
    end, is_cut = int(table[0][0]), False
    for offset, cell, meaning in table:
        expected = bytes_of(cell)
        assert int(offset) > end if is_cut else int(offset) == end, (offset, end)
        end, is_cut = int(offset) + len(expected), "…" in cell
        assert data[int(offset) : end] == expected, (offset, meaning)
    return int(table[0][0]), end
