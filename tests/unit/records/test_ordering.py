from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hoodie.records import newer_wins, newest


def kept(keys: list[str], *ordering: pa.Array, deleted: list[bool | None] | None = None) -> list[int]:
    marks = None if deleted is None else pa.array(deleted, pa.bool_())
    return newest(pa.array(keys, pa.string()), list(ordering), marks).tolist()


def wins(new: list[object], old: list[object], kind: pa.DataType | None = None) -> list[bool]:
    return newer_wins([pa.array(new, kind)], [pa.array(old, kind)]).tolist()


def test_distinct_keys_are_all_kept_in_order() -> None:
    assert kept(["b", "a", "c"]) == [0, 1, 2]
    assert kept([]) == []


def test_without_ordering_the_last_row_of_a_key_is_kept() -> None:
    assert kept(["a", "b", "a", "c", "a"]) == [1, 3, 4]


def test_the_largest_ordering_value_wins_and_the_later_row_a_tie() -> None:
    keys = ["up", "up", "down", "down", "tie", "tie", "one", "mid", "mid", "mid"]
    ordering = pa.array([1, 2, 2, 1, 1, 1, 0, 1, 2, 1])
    assert kept(keys, ordering) == [1, 2, 5, 6, 8]


def test_several_fields_compare_one_after_the_other() -> None:
    keys = ["d", "d", "f", "f", "g", "g"]
    first, second = pa.array([1, 1, 2, 1, 1, 1]), pa.array([2, 1, 1, 9, 3, 3])
    assert kept(keys, first, second) == [0, 2, 5]


def test_a_null_ordering_value_is_the_smallest() -> None:
    assert kept(["a", "a", "b", "b", "c", "c"], pa.array([None, -5, -5, None, None, None], pa.int64())) == [1, 2, 5]
    assert wins([None, 5, None], [-5, None, None], pa.int64()) == [False, True, True]
    assert wins([None, ""], ["", None], pa.string()) == [False, True]


def test_doubles_compare_as_in_java() -> None:
    nan = float("nan")
    assert wins([1.0, nan, nan, 0.0, -0.0], [nan, 1.0, nan, -0.0, 0.0]) == [False, True, True, True, False]
    assert kept(["q", "q", "w", "w"], pa.array([nan, 5.0, 0.0, -0.0])) == [0, 2]
    assert wins([1.5, 1.25], [1.25, 1.5], pa.float32()) == [True, False]


def test_strings_compare_by_their_bytes() -> None:
    assert wins(["😀", "\uffee", "ab", "Z"], ["\uffee", "😀", "a", "a"]) == [True, False, True, False]
    assert kept(["n", "n", "m", "m"], pa.array(["10", "9", "9", "10"])) == [1, 2]


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (False, True, pa.bool_()),
        (date(2024, 1, 1), date(2024, 1, 2), pa.date32()),
        (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (Decimal("9.50"), Decimal("10.25"), pa.decimal128(10, 2)),
        (Decimal("-9.50"), Decimal("1.25"), pa.decimal128(10, 2)),
        (1, 2**63, pa.uint64()),
        (b"a", b"ab", pa.binary()),
        (-128, 127, pa.int8()),
    ],
    ids=str,
)
def test_every_type_has_an_order(low: object, high: object, kind: pa.DataType) -> None:
    assert wins([high, low, low], [low, high, low], kind) == [True, False, True]
    assert kept(["a", "a", "b", "b"], pa.array([low, high, high, low], kind)) == [1, 2]


def test_a_promoted_column_compares_across_widths() -> None:
    assert newer_wins([pa.array([5, 7])], [pa.array([6, 7], pa.int32())]).tolist() == [False, True]
    assert newer_wins([pa.array([5.5])], [pa.array([5], pa.int32())]).tolist() == [True]


def test_a_later_field_decides_only_when_the_earlier_ones_are_equal() -> None:
    new = [pa.array([1, 1, 1, 1]), pa.array([4, 6, 5, 9])]
    old = [pa.array([1, 1, 1, 2]), pa.array([5, 5, 5, 1])]
    assert newer_wins(new, old).tolist() == [False, True, True, False]


def test_a_delete_with_an_ordering_value_competes_like_any_row() -> None:
    keys = ["x1", "x1", "x2", "x2", "x3", "x3", "x4", "x4"]
    ordering = pa.array([6, 7, 7, 6, 7, 6, 6, 6])
    deleted = [True, False, True, False, False, True, True, False]
    assert kept(keys, ordering, deleted=deleted) == [1, 2, 4, 7]


def test_a_delete_without_ordering_value_goes_by_time() -> None:
    keys = ["a", "a", "b", "b", "c", "c", "c", "d", "d", "d"]
    ordering = pa.array([7, None, None, -3, 9, None, 4, 9, None, None])
    deleted = [False, True, True, False, False, True, False, False, True, None]
    assert kept(keys, ordering, deleted=deleted) == [1, 3, 6, 9]
    incoming, stored = [pa.array([None, None, 4])], [pa.array([5, 5, 5])]
    assert newer_wins(incoming, stored, pa.array([True, False, True])).tolist() == [True, False, False]


def test_the_int_zero_of_a_delete_is_hudis_default_but_a_long_zero_is_a_value() -> None:
    for kind, goes_by_time in ((pa.int32(), True), (pa.int64(), False)):
        zero, five = pa.array([0], kind), pa.array([5], kind)
        assert newer_wins([zero], [five], pa.array([True])).tolist() == [goes_by_time]
    two = [pa.array([0], pa.int32()), pa.array([0], pa.int32())]
    assert newer_wins(two, [pa.array([5], pa.int32())] * 2, pa.array([True])).tolist() == [False]


def test_chunks_slices_and_dictionaries_are_one_column() -> None:
    keys = pa.chunked_array([pa.array(["x", "a", "b"])[1:], pa.array(["a"])])
    ordering = pa.chunked_array([pa.array([3, 1]), pa.array([2])])
    assert newest(keys, [ordering]).tolist() == [0, 1]
    assert newest(keys.dictionary_encode(), [ordering.dictionary_encode()]).tolist() == [0, 1]
    assert newest(pa.chunked_array([], pa.string())).tolist() == []


def test_comparing_without_columns_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="nothing to ask"):
        newer_wins([], [])


def test_the_fold_of_any_small_input_equals_the_rule_applied_row_by_row() -> None:
    random = np.random.default_rng(7)
    for _ in range(200):
        size = int(random.integers(1, 9))
        keys = [f"k{number}" for number in random.integers(0, 3, size)]
        ordering = [None if number == 0 else int(number) for number in random.integers(0, 4, size)]
        deleted = [bool(flag) for flag in random.integers(0, 2, size)]
        expected: dict[str, int] = {}
        for row, key in enumerate(keys):
            old = expected.get(key)
            if old is None or _newer(ordering, deleted, old, row):
                expected[key] = row
        assert kept(keys, pa.array(ordering, pa.int64()), deleted=deleted) == sorted(expected.values())


def _newer(ordering: list[int | None], deleted: list[bool], old: int, new: int) -> bool:
    if any(deleted[row] and ordering[row] is None for row in (old, new)):
        return True
    return (ordering[new] or 0) >= (ordering[old] or 0)
