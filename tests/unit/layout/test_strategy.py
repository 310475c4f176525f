"""Storage strategies: Hudi's hashes, forms of prefixes, and what is refused."""

import pytest

from hoodie.errors import Invalid, Unsupported
from hoodie.layout.strategy import HashedPrefix, load_own_strategies, parse_strategy
from hoodie.spec.hash_id import hash_id, one_xxhash32

USA = ("country=usa", "075f3295-def8-4a42-a927-07fd2dd2976c-0")
GROUPS = [  # partition, file id, prototype's hash of the id, of both, HashID 32 and 64 of the id, HashID 64 of the path
    (*USA, 0x943C61DB, 0x3329A5FF, 0x5602DF97, 0xA9B42DB31E90EEF7, 0xFBDC97034DF6B901),
    (
        "country=india",
        "4b0c6b40-2ac0-4a1c-a26f-6338aa4db22e-0",
        0x75383E2F,
        0x729D35F9,
        0xA853307D,
        0xAB06154DA5CB7839,
        0x6C5EC6B5669DC013,
    ),
    (
        "country=india",
        "9320889c-8537-4aa7-a63e-ef088b9a21ce-0",
        0x8E5635AC,
        0x9B53397B,
        0x2620614F,
        0x4C62FB0B449CE3A3,
        0xBD0EDD98180A3BB4,
    ),
    (
        "country=uk",
        "a62aa56b-d55e-4a2b-88a6-d603ef26775c-0",
        0x51F46F76,
        0x36F3C4AB,
        0xEC263191,
        0x3A87E6DFE92D3011,
        0xAD9D553C7008C5A7,
    ),
    (
        "2024/01/02",
        "00000003-0daf-438b-9d2f-1c0e5b6a7788-0",
        0xD2BE0DFE,
        0x34D17645,
        0x177A5048,
        0x147A576251C31ABF,
        0x1071340792E0BE14,
    ),
]


@pytest.mark.parametrize(("partition", "file_id", "rfc", "rfc_both", "id32", "id64", "id64_path"), GROUPS)
def test_hashes_are_those_that_hudi_computes(partition, file_id, rfc, rfc_both, id32, id64, id64_path):
    assert one_xxhash32(file_id.encode(), 0x0E43CD7A) == rfc
    assert parse_strategy("rfc60", {}).location(partition, file_id) == f"{rfc_both:08x}"
    assert hash_id(file_id, 32) == id32
    assert hash_id(file_id, 64) == id64
    assert hash_id(f"{partition}/{file_id}", 64) == id64_path


def test_hashes_of_short_texts_are_those_that_hudi_computes():
    assert (one_xxhash32(b"", 0x0E43CD7A), one_xxhash32(b"abc", 0x0E43CD7A)) == (0x78B91279, 0x98F02F40)
    assert (hash_id("", 32), hash_id("abc", 32)) == (0x5D4CBDF7, 0x30BB416D)
    assert (hash_id("", 64), hash_id("abc", 64)) == (0x0D6FDE68D55B45DA, 0xD5BE724DEBD3DFC9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bits:8", f"{0x33:08b}"),
        ("bits:8:hex", "33"),
        ("bits:8:hex:file", "94"),
        ("bits:4:id32:file", f"{0x5:04b}"),
        ("bits:12:hex:id64:file", "a9b"),
        ("bits:20", f"{0x3329A:020b}"),
        ("rfc60", "3329a5ff"),
        ("fileid:0:2", "07"),
        ("fileid:31:9", "2976c-0"),
        ("fileid:80:2", "-"),
        ("map", ""),
        ("hive", ""),
    ],
)
def test_strategy_gives_prefix_of_its_form(text, expected):
    strategy = parse_strategy(text, {})
    assert strategy.location(*USA) == expected
    assert strategy.prefixes is None or expected in strategy.prefixes


def test_one_bit_more_halves_each_prefix():
    for _, file_id, *_ in GROUPS:
        assert HashedPrefix(9).location("", file_id).startswith(HashedPrefix(8).location("", file_id))


def test_prefixes_of_many_groups_are_even():
    hashed = HashedPrefix(8)
    found = [hashed.location("p", f"{n:08d}-0daf-438b-9d2f-1c0e5b6a7788-0") for n in range(5_000)]
    assert set(found) <= set(hashed.prefixes)
    assert len(set(found)) == 256
    assert max(found.count(one) for one in set(found)) < 2.2 * 5_000 / 256


@pytest.mark.parametrize(
    "text",
    ["", "bits:0", "bits:21", "bits:6:hex", "bits:8:hex:hex", "bits:8:id32:id64", "fileid:0:0", "Bits:8", "../x"],
)
def test_unknown_strategy_is_refused(text):
    with pytest.raises(Unsupported, match="no storage strategy"):
        parse_strategy(text, {})


class ByMonth:
    prefixes = None

    def location(self, partition, file_id):
        return partition[:7] or "none"


class Escaping(ByMonth):
    def location(self, partition, file_id):
        return "../../elsewhere"


class NoStrategy:
    pass


def test_own_strategy_is_used_only_where_the_caller_names_its_class():
    with pytest.raises(Unsupported, match=r"hoodie\.storage\.strategy\.classes=month=package"):
        parse_strategy("own:month", {})
    own = load_own_strategies(f"month={__name__}:ByMonth, bad={__name__}:Escaping")
    assert parse_strategy("own:month", own).location("2024-05-01", "x") == "2024-05"
    with pytest.raises(Invalid, match="no plain names"):
        parse_strategy("own:bad", own).location("p", "x")


@pytest.mark.parametrize(
    "said", ["month=no.such.module:X", f"x={__name__}:NoStrategy", "nothing", f"../x={__name__}:ByMonth"]
)
def test_wrong_class_of_a_strategy_is_refused(said):
    with pytest.raises(Invalid, match=r"hoodie\.storage\.strategy\.classes"):
        load_own_strategies(said)
