"""Java's hash of texts."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie.records import java_hashes


def one_by_one(text: str) -> int:
    hashed = 0
    units = text.encode("utf-16-le")
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + units[at] + 256 * units[at + 1]) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >> 31 else hashed


def test_known_values_of_java():
    assert java_hashes(pa.array(["", "a", "hello", "polygenelubricants"])).tolist() == [0, 97, 99162322, -(2**31)]


@given(st.lists(st.text(max_size=20), max_size=20))
def test_hashes_are_those_of_the_definition(texts):
    assert java_hashes(pa.array(texts, pa.string())).tolist() == [one_by_one(text) for text in texts]
