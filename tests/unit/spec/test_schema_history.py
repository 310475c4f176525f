"""The history of a table's columns with ids: parsing, encoding, which version a file was written under."""

import json

import pytest

from hoodie.errors import Corrupt
from hoodie.spec.schema_history import (
    IdArray,
    IdField,
    IdMap,
    IdRecord,
    SchemaHistory,
    SchemaVersion,
    encode_schema_history,
    encode_schema_version,
    named_fields,
    parse_schema_history,
    parse_schema_version,
)

PATH = ".hoodie/.schema/20261121062010208.schemacommit"


def column(id: int, name: str, kind: object = "string") -> IdField:
    return IdField(id, name, optional=True, kind=kind)


NESTED = SchemaVersion(
    20261121062010208,
    10,
    (
        IdField(0, "_hoodie_commit_time", optional=True, kind="string", doc=""),
        column(1, "amount", "decimal(10, 2)"),
        column(2, "place", IdRecord((column(3, "town"), column(4, "zip", "int")))),
        column(5, "tags", IdArray(IdField(6, "element", optional=True, kind="string"))),
        column(
            7,
            "prices",
            IdMap(
                IdField(8, "key", optional=False, kind="string"),
                IdField(9, "value", optional=True, kind=IdRecord((column(10, "net", "double"),))),
            ),
        ),
    ),
)


def history(*versions: tuple[int, dict[int, str]]) -> SchemaHistory:
    """Newest version first, each with its number and names by id."""
    return SchemaHistory(
        tuple(
            SchemaVersion(number, max(names), tuple(column(id, name) for id, name in names.items()))
            for number, names in versions
        )
    )


def test_a_nested_history_survives_encoding_and_parsing():
    known = SchemaHistory((NESTED, SchemaVersion(0, 1, (column(1, "amount", "int"),))))
    assert parse_schema_history(encode_schema_history(known), PATH) == known
    assert parse_schema_version(encode_schema_version(NESTED), PATH) == NESTED


def test_bytes_are_those_of_hudi():
    text = (
        '{"schemas":[{"max_column_id":3,"version_id":20261121062010663,"type":"record","fields":['
        '{"id":0,"name":"_hoodie_commit_time","optional":true,"type":"string","doc":""},'
        '{"id":1,"name":"ä","optional":true,"type":"long"},'
        '{"id":2,"name":"list","optional":false,"type":{"type":"array","element_id":3,"element":"date",'
        '"element_optional":true}}]}]}'
    ).encode()
    assert encode_schema_history(parse_schema_history(text, PATH)) == text


def test_fields_of_all_depths_have_full_names():
    assert [name for name, _ in named_fields(NESTED.fields)] == [
        "_hoodie_commit_time",
        "amount",
        "place",
        "place.town",
        "place.zip",
        "tags",
        "tags.element",
        "prices",
        "prices.key",
        "prices.value",
        "prices.value.net",
    ]
    assert NESTED.find(10) == column(10, "net", "double")
    assert NESTED.find(99) is None


@pytest.mark.parametrize(
    ("instant", "number"),
    [
        ("20261121062010662", 200),
        ("20261121062010663", 20261121062010663),
        ("20270101000000000", 20261121062010663),
        ("00000000000001", 0),
        ("20221121062010", 200),
        ("00000000000000", 0),
        ("no digits", 20261121062010663),
    ],
)
def test_the_version_of_a_file_is_the_newest_that_is_not_newer(instant, number):
    known = history((20261121062010663, {1: "a"}), (200, {1: "a"}), (0, {1: "a"}))
    assert known.at(instant).number == number


def test_what_is_older_than_all_versions_has_the_oldest():
    assert history((30, {1: "b"}), (20, {1: "a"})).at("00000000000001").number == 20


def test_versions_are_sorted_newest_first():
    known = history((0, {1: "a"}), (7, {1: "b"}))
    assert [one.number for one in parse_schema_history(encode_schema_history(known), PATH).versions] == [7, 0]


@pytest.mark.parametrize(
    ("versions", "stable"),
    [
        ([(0, {1: "a"})], True),
        ([(2, {1: "a", 2: "b"}), (0, {1: "a"})], True),
        ([(2, {2: "b"}), (0, {1: "a", 2: "b"})], True),
        ([(2, {1: "b"}), (0, {1: "a"})], False),
        ([(3, {2: "a"}), (2, {3: "c"}), (0, {1: "a"})], False),
    ],
    ids=["one version", "added", "dropped", "renamed", "made anew"],
)
def test_names_are_stable_until_a_rename_or_a_name_that_is_used_anew(versions, stable):
    assert history(*versions).names_are_stable is stable


def version(fields: object, **other: object) -> bytes:
    one = {"max_column_id": 1, "version_id": 0, "type": "record", "fields": fields} | other
    return json.dumps({"schemas": [one]}).encode()


def field(**other: object) -> dict[str, object]:
    return {"id": 1, "name": "a", "optional": True, "type": "int"} | other


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no versions"),
        (b'{"schemas": []}', "no versions"),
        (b'{"schemas": [1]}', "no object"),
        (version(None), "no fields"),
        (version([]), None),
        (version([], version_id="1"), "version_id is no number"),
        (version([], max_column_id=True), "max_column_id is no number"),
        (version([1]), "no name"),
        (version([field(name=1)]), "no name"),
        (version([field(id=None)]), "id is no number"),
        (version([field(doc=1)]), "comment of a"),
        (version([field(type=7)]), "no type"),
        (version([field(type={"type": "set"})]), "no type"),
        (version([field(type={"type": "array"})]), "no type"),
        (version([field(type={"type": "map", "key": "string", "value": "int"})]), "key_id is no number"),
        (version([field(), field(name="b")]), "twice"),
    ],
)
def test_damage_is_named(data, words):
    if words is None:
        assert parse_schema_history(data, PATH).newest.fields == ()
        return
    with pytest.raises(Corrupt, match=words) as raised:
        parse_schema_history(data, PATH)
    assert raised.value.facts["path"] == PATH


def test_a_version_without_numbers_is_the_first_one():
    data = json.dumps({"schemas": [{"type": "record", "fields": [field(id=7)]}]}).encode()
    newest = parse_schema_history(data, PATH).newest
    assert (newest.number, newest.max_column_id) == (0, 7)


@pytest.mark.parametrize("kind", ["record", "array"])
def test_nesting_has_a_limit(kind):
    inner: object = "int"
    for id in range(2, 202):
        if kind == "record":
            inner = {"type": "record", "fields": [field(id=id, type=inner)]}
        else:
            inner = {"type": "array", "element_id": id, "element": inner, "element_optional": True}
    with pytest.raises(Corrupt, match="nested deeper"):
        parse_schema_history(version([field(type=inner)]), PATH)
