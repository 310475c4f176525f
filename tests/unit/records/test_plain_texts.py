"""Texts of one length are compared as they are stored; every other page is left to Arrow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.records.plain_texts import plain_texts

LEVELS = (2).to_bytes(4, "little") + b"\x06\x01"


def page(texts: list[bytes], levels: bytes = b"") -> memoryview:
    return memoryview(levels + b"".join(len(one).to_bytes(4, "little") + one for one in texts))


@given(st.data(), st.integers(1, 20), st.booleans())
def test_texts_are_found_where_they_are(data: st.DataObject, length: int, is_optional: bool) -> None:
    letters = st.sampled_from("ab")
    text = st.text(letters, min_size=length, max_size=length).map(str.encode)
    texts = data.draw(st.lists(text, min_size=1, max_size=30))
    wanted = data.draw(st.lists(text | st.just(b"") | st.just(b"b" * 30), max_size=4))
    found = plain_texts(page(texts, LEVELS if is_optional else b""), len(texts), is_optional=is_optional)
    assert found is not None
    places = found.places_of(wanted)
    assert places.tolist() == [at for at, one in enumerate(texts) if one in wanted]
    assert found.take(places).to_pylist() == [texts[at].decode() for at in places]


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (page([b"key-1", b"key-22"]), 2),
        (page([b"key-1", b"key-2"]), 3),
        (page([b"", b""]), 2),
        (page([b"abcd", b"abcdefgh", b"abcd"]), 3),
        (page([b"abc", b"ab", b"abcd"]), 3),
        (memoryview(b""), 1),
        (memoryview(b""), 0),
    ],
)
def test_other_pages_are_left_to_arrow(content: memoryview, values: int) -> None:
    assert plain_texts(content, values, is_optional=False) is None


@pytest.mark.parametrize("content", [b"", b"\xff\xff\xff\xff", b"\x02\x00", LEVELS])
def test_levels_without_values_are_no_texts(content: bytes) -> None:
    assert plain_texts(memoryview(content), 1, is_optional=True) is None
