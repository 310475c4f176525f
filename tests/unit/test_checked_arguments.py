"""What callers pass is checked where it comes in: one short message with a remedy, and nothing has happened."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from hoodie.arguments import checked_number, checked_texts, checked_whole
from hoodie.config import resolve
from hoodie.errors import LONGEST_MESSAGE, HudiError, Invalid
from hoodie.table import Table
from hoodie.testing.lake import Lake, row

LONG = "9" * 5000


def test_a_message_is_short_whatever_was_seen() -> None:
    for cause, remedy in ((LONG, LONG), ("a b " * 900, None), (LONG, "a b " * 900), (f"{object()!r}", "x")):
        error = HudiError(cause, remedy=remedy, path=LONG)
        assert len(str(error)) <= LONGEST_MESSAGE
        assert "0x" not in str(error)
        assert error.facts["path"] == LONG
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_path_of_usual_length_stays_whole_in_a_message() -> None:
    path = "warehouse/" + "partition=value/" * 15 + "f.parquet"
    assert path in str(HudiError(f"{path} is gone", remedy="Look for it"))


@pytest.mark.parametrize("value", [None, True, math.nan, 1.5, "x", LONG, 2**64, [], -1])
def test_what_is_no_whole_number_in_range_is_refused(value: Any) -> None:
    with pytest.raises(Invalid, match="n is a whole number of at least 0, not "):
        checked_whole("n", value, least=0)


@pytest.mark.parametrize("value", [None, True, math.nan, math.inf, "x", LONG, 10**400, -1, 101])
def test_what_is_no_number_in_range_is_refused(value: Any) -> None:
    with pytest.raises(Invalid, match="n is a number of at least 0 and at most 100, not "):
        checked_number("n", value, least=0, most=100)


def test_numbers_may_be_texts_and_texts_one_or_many() -> None:
    assert (checked_whole("n", " 7 "), checked_number("n", "1.5")) == (7, 1.5)
    assert checked_texts("names", "a") == ("a",)
    assert checked_texts("names", iter(["a", "b"])) == ("a", "b")


@pytest.mark.parametrize("value", [object(), {"a": 1}, {"a"}, len, b"x", timedelta(1), [None], pa.table({}), "\ud800"])
@pytest.mark.parametrize("key", ["hoodie.table.name", "hoodie.clean.commits.retained", "of.a.storage"])
def test_an_option_cannot_be_what_has_no_text(key: str, value: Any) -> None:
    with pytest.raises(Invalid, match=f"Option {key}"):
        resolve({key: value})


@pytest.mark.parametrize("value", [2**70, LONG, "nan", math.inf])
def test_a_number_of_an_option_is_one_of_64_bits(value: Any) -> None:
    with pytest.raises(Invalid, match="hoodie.clean.commits.retained cannot be"):
        resolve({"hoodie.clean.commits.retained": value})


CALLS: dict[str, tuple[Callable[[Table], Any], str]] = {
    "clustering by an unknown op": (lambda table: table.services.cluster(op="x"), "op of cluster is 'x'. Use one of"),
    "a flag that is a text": (lambda table: table.services.relayout(move="no"), "move of relayout is True or False"),  # type: ignore[arg-type]
    "orphans of the future": (lambda table: table.services.orphans(-1), "at least 0"),
    "orphans of an endless time": (lambda table: table.services.orphans(math.inf), "at most 1,000,000"),
    "half a table version": (lambda table: table.services.upgrade(8.5), "whole number, not 8.5"),  # type: ignore[arg-type]
    "arguments as a list": (lambda table: table.services.run("clean", ["x"]), "Arguments of clean are a mapping"),  # type: ignore[arg-type]
    "a service without name": (lambda table: table.services.run(None), "name of a service is a text, not None"),  # type: ignore[arg-type]
    "advice by no keys": (lambda table: table.indexes.advise(0), "keys is a whole number of at least 1, not 0"),
    "an index of no name": (lambda table: table.indexes.drop(1), "name of an index is a text, not 1"),  # type: ignore[arg-type]
    "a savepoint of bytes": (lambda table: table.savepoints.create(b"1"), "instant is a text"),  # type: ignore[arg-type]
    "an operation of no name": (lambda table: table.write(None, None), "operation is a text, not None"),  # type: ignore[arg-type]
    "options as pairs": (lambda table: table.write("upsert", None, [("a", 1)]), "Options are a mapping"),  # type: ignore[arg-type]
    "partitions that are numbers": (lambda table: table.delete_partition([1]), "Each of partitions is a text, not 1"),  # type: ignore[list-item]
    "a deep look that is a text": (lambda table: table.validate(deep="no"), "deep is True or False, not 'no'"),  # type: ignore[arg-type]
    "batches of no rows": (lambda table: table.scan(batch_rows=0), "batch_rows is a whole number of at least 1"),
    "an unknown policy": (lambda table: table.scan(begin="0", hollow_commits="x"), "Use one of: FAIL, BLOCK"),
    "progress that is no function": (lambda table: table.scan(progress=1), "progress is a function, not 1"),  # type: ignore[arg-type]
    "a key of too many bits": (lambda table: table.lookup(2**70).read_all(), "Not a list of record keys"),
    "a key that is a span of time": (lambda table: table.lookup(timedelta(1)).read_all(), "has no text of its own"),
    "an engine that is none": (lambda table: Table.open(table.uri, engine="x"), "engine runs tasks"),  # type: ignore[arg-type]
    "a session that is none": (lambda table: Table.open(table.uri, spark="x"), "spark is a session"),
    "no time to wait": (lambda table: Table.open(table.uri, wait=math.nan), "wait is a number of at least 0"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_told_with_a_remedy_and_changes_nothing(name: str) -> None:
    call, reason = CALLS[name]
    lake = Lake(9)
    lake.upsert(row("a"))
    before = lake.files()
    with pytest.raises(Invalid) as caught:
        call(lake.table)
    assert reason in str(caught.value)
    assert caught.value.remedy
    assert lake.files() == before


def test_none_for_a_setting_of_a_scan_is_its_default() -> None:
    lake = Lake(9)
    lake.upsert(row("a"), row("b"))
    assert lake.values(filter="id = 'a'", use_metadata=None, timezone=None, batch_rows=None) == {"a": "a"}
