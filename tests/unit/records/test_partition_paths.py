import pyarrow as pa
import pytest

from hoodie.errors import Invalid
from hoodie.records import KeyGenerator, key_options
from hoodie.records.partition_paths import url_encoded


def paths(values: list[object] | pa.Array, **options: bool) -> list[str]:
    rows = pa.RecordBatch.from_arrays([values if isinstance(values, pa.Array) else pa.array(values)], ["p"])
    generator = KeyGenerator(key_options(record_fields="id", partition_fields="p", **options))
    return generator.partition_paths(rows).to_pylist()


def test_null_and_empty_share_the_default_partition() -> None:
    assert paths(["a", None, "", "a"]) == ["a", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__", "a"]
    assert paths(["a", None], hive_style=True) == ["p=a", "p=__HIVE_DEFAULT_PARTITION__"]


def test_equal_paths_share_one_code() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(["a", None, ""])], ["p"])
    codes = KeyGenerator(key_options(record_fields="id", partition_fields="p")).partition_codes(rows)
    assert codes.dictionary.to_pylist() == ["a", "__HIVE_DEFAULT_PARTITION__"]
    assert codes.type == pa.dictionary(pa.int32(), pa.string())


def test_several_fields_make_nested_folders() -> None:
    rows = pa.RecordBatch.from_pydict({"a": ["x", "y", "x"], "b": [1, None, 1], "c": [True, False, True]})
    generator = KeyGenerator(key_options(record_fields="id,k", partition_fields="a,b,c", hive_style=True))
    assert generator.partition_paths(rows).to_pylist() == [
        "a=x/b=1/c=true",
        "a=y/b=__HIVE_DEFAULT_PARTITION__/c=false",
        "a=x/b=1/c=true",
    ]


def test_url_encoding_escapes_what_hudi_escapes_and_nothing_else() -> None:
    assert url_encoded("x/y z") == "x%2Fy z"
    assert url_encoded("p=q%25") == "p%3Dq%2525"
    assert url_encoded("\"#%'*:?\\{[]^\x00\x1f\x7f") == "%22%23%25%27%2A%3A%3F%5C%7B%5B%5D%5E%00%1F%7F"
    assert url_encoded("}~!@$&()+;,<>| é日😀\x85") == "}~!@$&()+;,<>| é日😀\x85"


def test_encoding_touches_the_value_not_the_field_name() -> None:
    assert paths(["x/y", None], hive_style=True, url_encode=True) == ["p=x%2Fy", "p=__HIVE_DEFAULT_PARTITION__"]


def test_a_value_with_slashes_makes_folders_when_it_is_not_encoded() -> None:
    assert paths(["x/y z"]) == ["x/y z"]


def test_slash_separated_dates_are_for_the_single_field() -> None:
    days = pa.array(["2024-01-02"]).cast(pa.date32())
    assert paths(days, slash_dates=True) == ["2024/01/02"]
    assert paths(days, slash_dates=True, hive_style=True) == ["p=2024/01/02"]
    rows = pa.RecordBatch.from_arrays([days, days], ["a", "b"])
    two = KeyGenerator(key_options(record_fields="id", partition_fields="a,b", slash_dates=True))
    assert two.partition_paths(rows).to_pylist() == ["2024-01-02/2024-01-02"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("..", "leaves"),
        ("../up", "leaves"),
        ("a/../../b", "leaves"),
        (".", "leaves"),
        ("a/./b", "leaves"),
        ("/abs", "absolute"),
        ("a//b", "empty folder"),
        ("a/", "empty folder"),
        ("nul\x00", "control character"),
        ("line\nbreak", "control character"),
        ("del\x7f", "control character"),
        (".hoodie", "metadata folder"),
        ("a/.hoodie/b", "metadata folder"),
    ],
)
def test_a_value_that_leaves_or_hides_is_refused(value: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as error:
        paths(["fine", value])
    assert error.value.facts["column"] == "p"
    assert error.value.facts["value"] == value
    assert "urlencode=true" in str(error.value)


def test_what_encoding_or_hive_style_makes_harmless_is_accepted() -> None:
    hostile = ["/abs", "a//b", "../up", "nul\x00", "a/"]
    assert paths(hostile, url_encode=True) == ["%2Fabs", "a%2F%2Fb", "..%2Fup", "nul%00", "a%2F"]
    assert paths([".."], hive_style=True) == ["p=.."]
    with pytest.raises(Invalid, match="Change the value"):
        paths([".."], url_encode=True)


def test_a_negative_number_is_no_slash_separated_date() -> None:
    with pytest.raises(Invalid, match="absolute"):
        paths([-1], slash_dates=True)


def test_a_missing_partition_column_is_refused() -> None:
    rows = pa.RecordBatch.from_pydict({"x": [1]})
    with pytest.raises(Invalid, match="partition column 'p' is not in the input"):
        KeyGenerator(key_options(record_fields="id", partition_fields="p")).partition_paths(rows)


def test_a_nested_partition_column_needs_a_field() -> None:
    with pytest.raises(Invalid, match="partition column 'p' is a struct"):
        paths([{"a": 1}])


def test_a_table_without_partitions_has_one_empty_path() -> None:
    rows = pa.RecordBatch.from_pydict({"p": ["a", "b"]})
    for kind in ("NON_PARTITION", "GLOBAL_DELETE"):
        generator = KeyGenerator(key_options(kind, record_fields="id", partition_fields="p"))
        assert generator.partition_paths(rows).to_pylist() == ["", ""]


def test_no_rows_give_no_paths() -> None:
    assert paths(pa.array([], pa.string())) == []
