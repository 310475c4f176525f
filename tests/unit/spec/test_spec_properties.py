"""Java properties text: what Java accepts is parsed, what is written parses back."""

from datetime import UTC, datetime

import pytest

from hoodie.errors import Corrupt
from hoodie.spec.properties import encode_properties_text, java_date, parse_properties_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("  a\t=\tb", {"a": "b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("a==b", {"a": "=b"}),
        ("# no\n! no\na=b", {"a": "b"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=#b", {"a": "#b"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a\\:b=c\\=d", {"a:b": "c=d"}),
        ("a=\\u00e9\\u4E2D", {"a": "é中"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=\\t\\n\\q", {"a": "\t\nq"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
        ("a=b\\", {"a": "b"}),
    ],
)
def test_java_grammar_is_parsed(text, expected):
    assert parse_properties_text(text.encode("latin-1"), "p") == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "  x  ",
        "a=b",
        "a:b",
        "#x",
        "!x",
        "\\",
        "x\\",
        "tab\tline\nfeed\fcr\r",
        "é",
        "中文",
        "😀",
        "\x00".replace("\x00", "\x01"),
    ],
)
def test_any_text_survives_encoding_as_key_and_as_value(value):
    properties = {"k": value, "k" + value: "v"}
    assert parse_properties_text(encode_properties_text(properties, ("c",)), "p") == properties


def test_written_text_is_sorted_ascii_with_comments_first():
    data = encode_properties_text({"b": '{"x":1}', "a": "é"}, ("first", "second"))
    assert data == b'#first\n#second\na=\\u00E9\nb={"x"\\:1}\n'


def test_java_date_has_no_locale_and_is_utc():
    assert java_date(datetime(2026, 11, 1, 5, 9, 2, tzinfo=UTC)) == "Sun Nov 01 05:09:02 UTC 2026"


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\u+123", "a=\x00\x00"])
def test_damaged_text_is_corrupt_and_names_the_file(text):
    with pytest.raises(Corrupt, match=r"hoodie\.properties") as caught:
        parse_properties_text(text.encode("latin-1"), "hoodie.properties")
    assert caught.value.facts["path"] == "hoodie.properties"
