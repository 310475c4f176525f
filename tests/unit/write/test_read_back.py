"""What is written comes back, or is refused: values in partition paths and in keys of several fields."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import HudiError, Invalid
from hoodie.records import KeyGenerator, key_options, partition_values
from hoodie.spec import TableConfig
from hoodie.write.read_back import ensure_distinct_keys, ensure_read_back

TEXTS = st.lists(
    st.sampled_from([*"ab1 ._-/=%:,", "%20", "%3D", "p=", "q=", "/q=", ",b:", "__HIVE_DEFAULT_PARTITION__", "ü"]),
    max_size=4,
).map("".join)


def refused(value: object, **style: Any) -> str:
    options = key_options(record_fields="id", partition_fields="p", **style)
    rows = pa.record_batch({"id": ["a"], "p": [value]}, schema=pa.schema([("id", pa.string()), ("p", pa.string())]))
    try:
        ensure_read_back(rows, KeyGenerator(options).partition_paths(rows), options, lambda _: False)
    except Invalid as error:
        return str(error)
    return ""


@pytest.mark.parametrize("value", ["a=b", "=", "50%20", "%41", "%zz%3d"])
def test_a_value_that_only_url_encoding_gives_back_is_refused_without_it(value: str) -> None:
    assert "hoodie.datasource.write.partitionpath.urlencode=true for a new table" in refused(value)
    assert refused(value, url_encode=True) == ""
    assert (refused(value, hive_style=True) == "") is ("%" not in value)


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.parametrize("style", [{}, {"url_encode": True}, {"hive_style": True}], ids=str)
def test_a_text_that_reads_as_null_is_refused(value: str, style: dict[str, Any]) -> None:
    assert "would be read as NULL. Write NULL" in refused(value, **style)


@pytest.mark.parametrize("value", [None, "a b", "50%", "100%x", "2024/01", "x=1/y=2", ".hidden", "tail ", "_u", "ü:,"])
def test_values_that_come_back_are_not_refused(value: str | None) -> None:
    for style in itertools.product([True, False], [True, False]):
        assert refused(value, hive_style=style[0], url_encode=style[1]) == ""


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("fields", ["p", "p,q"])
@given(values=st.tuples(TEXTS, TEXTS))
def test_what_is_not_refused_is_what_the_path_gives_back(hive: bool, encode: bool, fields: str, values: Any) -> None:
    options = key_options(record_fields="id", partition_fields=fields, hive_style=hive, url_encode=encode)
    rows = pa.record_batch({"id": ["a"], "p": [values[0]], "q": [values[1]]})
    try:
        paths = KeyGenerator(options).partition_paths(rows)
        ensure_read_back(rows, paths, options, lambda _: False)
    except Invalid:
        return
    layout = TableConfig(
        {"hoodie.table.partition.fields": fields, "hoodie.table.keygenerator.type": options.kind.value}
    )
    written = {name: rows.column(name)[0].as_py() for name in options.partition_fields}
    found = partition_values(paths[0].as_py(), rows.schema, layout)
    assert found == {name: written[name] for name in found}


PARTS = st.none() | TEXTS | st.sampled_from(["", "__null__", "__empty__"])


@given(one=st.tuples(PARTS, PARTS, PARTS), other=st.tuples(PARTS, PARTS, PARTS))
def test_two_rows_that_are_not_refused_share_no_key(one: Any, other: Any) -> None:
    options = key_options(record_fields="a,b,c")
    pairs = {name: pa.array(pair, pa.string()) for name, *pair in zip("abc", one, other, strict=True)}
    rows = pa.record_batch(pairs)
    try:
        ensure_distinct_keys(rows, options)
        keys = KeyGenerator(options).record_keys(rows).to_pylist()
    except HudiError:
        return
    assert (keys[0] == keys[1]) == (one == other)


def test_values_that_hold_the_beginning_of_the_next_key_field_are_refused() -> None:
    options = key_options(record_fields="a,b")
    ensure_distinct_keys(pa.record_batch({"a": ["1", "b:2", None], "b": ["2,b:3", ",b:", "x"]}), options)
    with pytest.raises(Invalid, match=r"'a': the value '1,b:2' holds ',b:'.*name 'a' last"):
        ensure_distinct_keys(pa.record_batch({"a": ["1", "1,b:2"], "b": ["2,b:3", "3"]}), options)
    ensure_distinct_keys(pa.record_batch({"a": ["1,b:2"]}), key_options(record_fields="a"))


@pytest.mark.parametrize(("text", "meaning"), [("__null__", "NULL"), ("__empty__", "the empty text")])
@pytest.mark.parametrize("field", ["a", "b"])
def test_a_text_that_stands_for_null_or_empty_in_a_key_of_several_fields_is_refused(
    text: str, meaning: str, field: str
) -> None:
    rows = pa.record_batch({"a": ["1", "2"], "b": ["1", "2"], **{field: ["3", text]}})
    with pytest.raises(Invalid, match=f"'{field}': the value '{text}' is how a key of several fields says {meaning}"):
        ensure_distinct_keys(rows, key_options(record_fields="a,b"))
    if field == "a":
        ensure_distinct_keys(rows, key_options(record_fields="a"))
