"""Statements that name Hudi tables: what is taken out of a query, and what is only told apart."""

from __future__ import annotations

import pytest

from hoodie.spark.sql_text import PathRelation, is_temporary_view, mentions_hudi, parse_path_query


def test_a_query_by_path_becomes_a_template() -> None:
    query = parse_path_query("SELECT a, '{x}' FROM hudi.`/data/a``b` t JOIN org.apache.hudi.`s3://b/c` u ON t.a = u.a")
    assert query is not None
    assert query.template == "SELECT a, '{{x}}' FROM {hoodie_0} t JOIN {hoodie_1} u ON t.a = u.a"
    assert query.relations == (PathRelation("/data/a`b"), PathRelation("s3://b/c"))
    assert query.template.format(hoodie_0="t", hoodie_1="u").startswith("SELECT a, '{x}' FROM t t")


@pytest.mark.parametrize(
    ("clause", "as_of"),
    [
        ("TIMESTAMP AS OF '2024-01-01 10:00:00'", "2024-01-01 10:00:00"),
        ("version as of 20240101100000000", "20240101100000000"),
        ('FOR SYSTEM_TIME AS OF "2024-01-01"', "2024-01-01"),
        ("", None),
    ],
)
def test_a_time_behind_the_relation_is_its_state(clause: str, as_of: str | None) -> None:
    query = parse_path_query(f"select * from hudi.`/t` {clause} where a > 1")
    assert query is not None
    assert query.relations == (PathRelation("/t", as_of),)
    assert "AS OF" not in query.template.upper()


def test_braces_of_a_template_are_left_alone() -> None:
    query = parse_path_query("select * from hudi.`/t` join {other} using (a)", is_template=True)
    assert query is not None
    assert query.template == "select * from {hoodie_0} join {other} using (a)"


@pytest.mark.parametrize(
    "sql",
    [
        "select 'from hudi.`/t`' as text",
        "select 1 -- from hudi.`/t`",
        "select 1 /* using hudi */",
        "select hudi.a from hudi",
        "select * from x.hudi.`/t`",
        "select * from t join u using (hudi)",
    ],
)
def test_other_statements_are_none_of_ours(sql: str) -> None:
    assert not mentions_hudi(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "create table t (a int) using hudi",
        "insert into hudi.`/t` values (1)",
        "delete from hudi.`/t` where a = 1",
        "create table u using parquet as select * from hudi.`/t`",
        "create view v as select * from hudi.`/t`",
    ],
)
def test_statements_that_make_or_change_tables_are_no_queries(sql: str) -> None:
    assert mentions_hudi(sql)
    assert parse_path_query(sql) is None
    assert not is_temporary_view(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TEMPORARY VIEW v USING hudi OPTIONS (path '/t')",
        "-- a view\ncreate or replace global temp view v\n using `hudi` options (path '/t')",
        "create temp view v using org.apache.hudi options (path '/t')",
    ],
)
def test_temporary_views_are_seen(sql: str) -> None:
    assert mentions_hudi(sql)
    assert is_temporary_view(sql)
