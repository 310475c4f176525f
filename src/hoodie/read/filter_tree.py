"""The text of a condition as sqlglot's tree, of which every part is known.

1. A part of an accepted node that nobody reads would be a part of the condition that nobody heeds. So what may be set
   on a node is listed here, and anything else is `Unsupported`, whatever a later sqlglot thinks of.
2. Where releases of sqlglot say one thing in two ways, the tree has one of them: NOT LIKE is `Not` over `Like`.

It knows what nodes consist of, not what they mean (`filter_sql`, `filter_condition`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hoodie.errors import Invalid, Unsupported

Node = Any
"""A node of sqlglot's tree. Its base class has had different names in releases this package works with."""

_MOST_SHOWN: Final = 200

_ONE: Final = frozenset({"this"})
_TWO: Final = frozenset({"this", "expression"})
_CAST: Final = frozenset({"this", "to", "safe"})

KNOWN_ARGS: Final[Mapping[type[Any], frozenset[str]]] = {
    exp.Paren: _ONE,
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _ONE,
    exp.Null: frozenset(),
    exp.And: _TWO,
    exp.Or: _TWO,
    exp.Not: _ONE,
    exp.EQ: _TWO,
    exp.NEQ: _TWO,
    exp.GT: _TWO,
    exp.GTE: _TWO,
    exp.LT: _TWO,
    exp.LTE: _TWO,
    exp.NullSafeEQ: _TWO,
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Is: _TWO,
    exp.Like: _TWO,
    exp.ILike: _TWO,
    exp.Escape: _TWO,
    exp.RegexpLike: _TWO,
    exp.Neg: _ONE,
    exp.Add: _TWO,
    exp.Sub: _TWO,
    exp.Mul: _TWO,
    exp.Div: _TWO | {"typed", "safe"},  # how other dialects divide
    exp.Cast: _CAST,
    exp.TryCast: _CAST,
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _ONE,
    exp.Concat: frozenset({"expressions", "coalesce", "safe"}),
    exp.Lower: _ONE,
    exp.Upper: _ONE,
    exp.Length: _ONE,
    exp.StartsWith: _TWO,
    exp.EndsWith: _TWO,
    exp.Contains: _TWO,
    exp.Year: _ONE,
    exp.Month: _ONE,
    exp.Day: _ONE,
    exp.TsOrDsToDate: _ONE,
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Abs: _ONE,
    exp.Anonymous: frozenset({"this", "expressions"}),
}
"""What may be set on each node that is accepted, which is what is read of it."""


def parse_condition(sql: str) -> Node:
    """The tree of a condition in Spark's SQL.

    Raises:
        Invalid: it cannot be parsed. Unsupported: a node says something that is not read.
    """
    try:
        tree: Node = sqlglot.parse_one(sql, read="spark")
    except SqlglotError as error:
        raise Invalid(
            f"Cannot parse the filter {shown(sql)}: {str(error).splitlines()[0]}",
            remedy="Write a condition as it would stand behind WHERE",
        ) from error
    tree = tree.transform(_one_way)
    for node in tree.walk():
        _ensure_known(node, sql)
    return tree


def unsupported(node: Node, sql: str) -> Unsupported:
    """What is said of a node that has no counterpart here."""
    return _unsupported(f"{shown(node.sql('spark'))} ({type(node).__name__})", sql)


def shown(text: str) -> str:
    """A text as messages show it: in quotes, and not longer than a few lines."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")


def _one_way(node: Node) -> Node:
    """`node`, negated by `Not` and no other way."""
    like = node.this if isinstance(node, exp.Escape) else node
    if not isinstance(like, exp.Like | exp.ILike) or not like.args.get("negate"):
        return node
    like.set("negate", None)
    return exp.Not(this=exp.Paren(this=node))


def _ensure_known(node: Node, sql: str) -> None:
    known = KNOWN_ARGS.get(type(node))
    if known is None:  # refused where its meaning is asked for
        return
    for name, value in node.args.items():
        if name not in known and value not in (None, False, []):
            raise _unsupported(f"{type(node).__name__} with {name!r}", sql)


def _unsupported(what: str, sql: str) -> Unsupported:
    return Unsupported(
        f"The filter {shown(sql)} uses {what}, which is not supported here",
        remedy="Filter the rows after reading, or run the query on Spark",
    )
