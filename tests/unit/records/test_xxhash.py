"""xxHash against its published values, and against itself in parts."""

import pyarrow as pa
import pytest

from hoodie.records import xxhash32
from hoodie.spec.hash_id import xxhash64

LONG = b"Nobody inspects the spammish repetition"


@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"xxhash", 0, 0x32DD38952C4BC720),
        (LONG, 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_xxhash64_gives_published_values(data, seed, expected):
    assert xxhash64(data, seed) == expected


def test_xxhash64_takes_the_seed_modulo_its_width():
    assert xxhash64(b"part", 0xDABADABA - (1 << 32)) == xxhash64(b"part", 0xFFFFFFFFDABADABA)


def test_xxhash32_gives_published_values_whatever_the_lengths_around():
    texts = ["", LONG.decode(), "a", "", "é"]
    hashes = xxhash32(pa.array(texts)).tolist()
    assert hashes[:3] == [0x02CC5D05, 0xE2293B2F, 0x550D7456]
    assert hashes[3] == hashes[0]


def test_xxhash32_of_a_slice_is_the_slice_of_the_hashes():
    texts = pa.array([f"key-{number:05d}" * (number % 5) for number in range(100)])
    assert xxhash32(texts.slice(17, 30)).tolist() == xxhash32(texts).tolist()[17:47]
