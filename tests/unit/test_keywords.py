"""Keywords and values of the façade's calls: acted on, or a short error that says what to do."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

from hoodie import Table
from hoodie.errors import HudiError, Invalid, Unavailable
from hoodie.spark.session import session
from hoodie.testing.lake import Lake, row, table_of
from hoodie.timeline import instant_text, parse_as_of


@pytest.fixture(params=[6, 8, 9])
def lake(request) -> Lake:
    made = Lake(request.param)
    made.upsert(row("a"))
    made.upsert(row("b", "b2", 2))
    return made


def moment_of(text: str) -> datetime.datetime:
    """The moment of an instant, which tables here write in the machine's zone."""
    return datetime.datetime.strptime(text[:17] + "000", "%Y%m%d%H%M%S%f")


def test_a_begin_asks_for_an_incremental_query_whatever_kind_of_time_it_is(lake):
    timeline = lake.table.timeline()
    first = timeline.completed_writes()[0]
    text = timeline.profile.clock.of(first)
    moment = moment_of(text)
    kinds = [text, moment, pd.Timestamp(moment), np.datetime64(moment), moment.astimezone(), int(text)]
    for begin in (*kinds, moment.astimezone(datetime.UTC), moment.astimezone(datetime.UTC).isoformat()):
        assert lake.values(begin=begin) == {"b": "b2"}, begin
    assert lake.values(begin="earliest") == {"a": "a", "b": "b2"}
    assert lake.values(begin="000", end=moment) == {"a": "a"}
    for as_of in (moment_of(first.requested), pd.Timestamp(moment_of(first.requested)), int(first.requested)):
        assert lake.values(as_of=as_of) == {"a": "a"}
        assert len(lake.table.files(as_of=as_of)) == 1
    assert lake.values(as_of=datetime.date(9999, 1, 1)) == {"a": "a", "b": "b2"}


def test_a_range_of_a_snapshot_query_is_refused(lake):
    for query in ("snapshot", "read_optimized"):
        with pytest.raises(Invalid, match="begin and end belong to incremental queries"):
            lake.table.scan(begin="000", query=query)
    said = Table.open(lake.uri, options={"hoodie.datasource.query.type": "snapshot"})
    with pytest.raises(Invalid, match="begin and end belong to incremental queries"):
        said.scan(begin="000")
    for key in ("hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"):
        said = Table.open(lake.uri, options={key: "20240101000000"})
        with pytest.raises(Invalid, match="begin and end belong to incremental queries"):
            said.scan()
    with pytest.raises(Invalid, match="needs a begin"):
        lake.table.scan(end="20240101000000")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda table: table.scan(colums=["id"]), "Did you mean columns"),
        (lambda table: table.scan(where="id = 'a'"), "Did you mean filter"),
        (lambda table: table.scan([1]), "Each of columns is a text, not 1"),
        (lambda table: table.scan(limit=3), "Unknown keyword limit. Take as many rows"),
        (lambda table: table.scan(asof="2024-01-01"), "Did you mean as_of"),
        (lambda table: table.lookup("a", foo=1), "Unknown keyword foo"),
        (lambda table: table.upsert(None, foo=1), "Unknown keyword foo"),
        (lambda table: table.upsert(None, mode="append"), "Unknown keyword mode. Use upsert"),
        (lambda table: table.upsert(None, hoodie_index_type="SIMPLE"), "Did you mean hoodie.index.type"),
        (lambda table: table.upsert(None, primaryKey="id"), "Did you mean hoodie.datasource.write.recordkey.field"),
        (lambda table: table.upsert(None, options="x"), "Options are a mapping of names to values, not 'x'"),
        (lambda table: table.upsert(None, options={"hoodie.index.typ": "SIMPLE"}), "Did you mean hoodie.index.type"),
        (lambda table: table.services.clean(retain=1), "Unknown keyword retain"),
    ],
)
def test_keywords_nobody_knows_are_refused_with_the_nearest(call, reason):
    lake = Lake(9)
    lake.upsert(row("a"))
    with pytest.raises(Invalid, match=reason):
        call(lake.table)


def test_options_of_a_write_may_be_a_mapping(lake):
    lake.table.upsert(
        table_of([row("c")]), options={"hoodie.datasource.write.commitmeta.key.prefix": "my.", "my.note": "x"}
    )
    assert lake.commits()[-1].extra_metadata["my.note"] == "x"


@pytest.mark.parametrize("odd", [1.5, True, 7, float("nan"), pd.NaT, np.datetime64("NaT"), object(), b"2024"])
def test_what_is_no_time_is_refused_with_the_forms(odd):
    lake = Lake(9)
    lake.upsert(row("a"))
    for name in ("as_of", "begin", "end"):
        with pytest.raises(Invalid, match="is not a time"):
            lake.table.scan(**{name: odd})


def test_times_with_a_zone_are_put_into_the_tables():
    assert parse_as_of("2024-05-06T07:08:09Z", "UTC") == "20240506070809999"
    assert parse_as_of("2024-05-06 07:08:09.123456+02:00", "UTC") == "20240506050809123"
    assert parse_as_of("2024-05-06T07:08:09.5+0530", "UTC") == "20240506013809500"
    zone = datetime.timezone(datetime.timedelta(hours=-3))
    assert instant_text(datetime.datetime(2024, 5, 6, 23, 8, 9, 123999, zone), "UTC") == "20240507020809123"
    for wrong in ("2024-05-06T07:08:09+25:00", "2024-05-06T07:08:09 Mars", "0001-01-01T00:00:00+10:00"):
        with pytest.raises(Invalid, match="is not a time"):
            parse_as_of(wrong, "UTC")


@pytest.mark.parametrize("path", [None, 5, ["a"]])
def test_what_is_no_path_is_refused(path):
    for call in (Table.open, Table.create):
        with pytest.raises(Invalid, match="is no path of a table"):
            call(path)


@pytest.mark.parametrize("index", ["id", "v", "id and v", "neither"])
def test_an_index_of_a_pandas_frame_is_columns_where_it_has_names(index):
    """As `groupby` leaves keys; one without a name is a number that nobody asked for."""
    frame = pd.DataFrame({"id": ["a", "b"], "part": ["p", "p"], "v": ["x", "y"], "ts": [1, 2]})
    given = frame.set_index(index.split(" and ")) if index != "neither" else frame.iloc[::-1]
    lake = Lake()
    lake.save(given)
    assert lake.values() == {"a": "x", "b": "y"}
    assert "index" not in lake.table.scan().read_all().column_names


def test_pandas_frames_that_arrow_cannot_take_are_refused_in_one_line(lake):
    mixed = pd.DataFrame({"id": ["a", "b"], "part": "p", "v": [1, "x"], "ts": 1})
    twice = pd.DataFrame([["a", "p", "x", "y", 1]], columns=["id", "part", "v", "v", "ts"])
    for frame, reason in ((mixed, "column v"), (twice, "Duplicate column names")):
        with pytest.raises(Invalid, match=reason) as refused:
            lake.table.upsert(frame)
        assert len(str(refused.value)) < 300
        assert "\n" not in str(refused.value)


def test_a_session_without_pyspark_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(Unavailable, match=r"pip install 'hoodie\[spark\]'") as refused:
        session()
    assert isinstance(refused.value, HudiError)
