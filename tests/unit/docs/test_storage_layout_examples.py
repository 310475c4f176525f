"""The worked example of docs/format/storage-layout.md is true, and no row of RFC-60 is without a test."""

from __future__ import annotations

import re

from compat_page import compat_tables
from format_pages import block, page, rows

from hoodie.layout.layout import Layout, LayoutVersion
from hoodie.layout.properties import parse_versions
from hoodie.layout.strategy import parse_strategy
from hoodie.spec.hash_id import hash_id, one_xxhash32

PAGE = page("storage-layout")
GROUP = ("country=usa", "075f3295-def8-4a42-a927-07fd2dd2976c-0")


def test_hashes_and_prefixes_of_the_page_are_those_of_its_group() -> None:
    both, alone, ids, *prefixes = rows(PAGE, "For the group")[0]
    assert both == f"`{one_xxhash32(''.join(GROUP).encode(), 0x0E43CD7A):08x}`"
    assert alone == f"`{one_xxhash32(GROUP[1].encode(), 0x0E43CD7A):08x}`"
    assert ids == f"`{hash_id(GROUP[1], 32):08x}`, `{hash_id(GROUP[1], 64):016x}`"
    texts = ("bits:8", "bits:8:hex", "rfc60", "fileid:0:2")
    assert prefixes == [f"`{parse_strategy(text, {}).location(*GROUP)}`" for text in texts]


def test_files_of_the_page_lie_where_it_says() -> None:
    said = re.search(r"`(\[\{\"v\".*?\}\])`", PAGE)
    assert said is not None
    versions = parse_versions(said[1], 1, {})
    assert versions == (LayoutVersion(1, "0", "bits:8", (0,), "orders", "", parse_strategy("bits:8", {})),)
    layout = Layout(("s3://data",), versions, "")
    for line in block(PAGE, "lie side by side").splitlines()[:2]:
        key = line.removeprefix("s3://data/")
        path = layout.logical(0, key)
        assert path is not None
        assert layout.place(path) == (0, key)


def test_every_row_of_the_rfc_is_shown_by_tests() -> None:
    found = [cells for cells in compat_tables() if cells[0].startswith("S60-")]
    named = [int(number) for cells in found for number in re.findall(r"[0 ]-([0-9]{2})\b", cells[0])]
    assert sorted(named) == list(range(1, 23))
    assert all("`tests/" in cells[-1] for cells in found)
