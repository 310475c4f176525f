"""The text of a condition as sqlglot's tree, of which every part is known.

1. A part of an accepted node that nobody reads would be a part of the condition that nobody heeds. So what may be set
   on a node is listed here, and anything else is `Unsupported`, whatever a later sqlglot thinks of.
2. Where releases of sqlglot say one thing in two ways, the tree has one of them: NOT LIKE is `Not` over `Like`.

It knows what nodes consist of, not what they mean (`sql`, `conditions`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hoodie.errors import Invalid, Unsupported
from hoodie.filters.literals import Literal, shown

Node = Any
"""A node of sqlglot's tree. Its base class has had different names in releases this package works with."""

_CONSTANTS: Final = "constants"

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
    exp.IsNan: _ONE,
    exp.Anonymous: frozenset({"this", "expressions"}),
}
"""What may be set on each node that is accepted, which is what is read of it."""


def _place(error: SqlglotError) -> str:
    """Where the parser stopped, in words of ours; nothing if it does not say."""
    known = getattr(error, "errors", None)
    if not known or not known[0].get("col"):
        return ""
    near = known[0].get("highlight")
    return f": it stops making sense at character {known[0]['col']}" + (f", near {shown(near)}" if near else "")


def parse_condition(sql: str) -> Node:
    """The tree of a condition in Spark's SQL.

    Raises:
        Invalid: it cannot be parsed. Unsupported: a node says something that is not read.
    """
    lists: dict[str, list[Literal]] = {}
    try:
        tree: Node = sqlglot.parse_one(_prepared(sql, lists), read="spark")
        tree = tree.transform(_one_way)
    except SqlglotError as error:
        raise Invalid(
            f"Cannot parse the filter {shown(sql)}{_place(error)}",
            remedy="Write a condition as it would stand behind WHERE",
        ) from error
    except RecursionError as error:
        raise too_deep(sql) from error
    for node in tree.walk():
        _ensure_known(node, sql)
    for node in tree.find_all(exp.In) if lists else ():
        name = node.expressions[0].name if node.expressions else ""
        if name in lists and isinstance(node.expressions[0], exp.Placeholder):
            node.meta[_CONSTANTS] = lists[name]
    return tree


def parts_of(node: Node, kind: type[Any]) -> list[Node]:
    """The conditions that are joined by `kind` (AND or OR), in their order, however many they are."""
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop().unnest()
        if isinstance(one, kind):
            waiting += [one.expression, one.this]
        else:
            found.append(one)
    return found


def constant_of(node: Node) -> Literal | None:
    """The constant a node is, if it is one."""
    node = node.unnest()
    match node:
        case exp.Literal():
            return Literal(str(node.this), "string" if node.is_string else "number")
        case exp.Boolean():
            return Literal(str(bool(node.this)).lower(), "boolean")
        case exp.Null():
            return Literal("null", "null")
        case exp.Neg():
            inner = constant_of(node.this)
            if inner is not None and inner.kind == "number":
                return Literal(inner.text[1:] if inner.text.startswith("-") else f"-{inner.text}", "number")
    return None


def constants_of(node: exp.In) -> list[Literal] | None:
    """The constants of a list; None when something else is in it."""
    known: list[Literal] | None = node.meta.get(_CONSTANTS)
    if known is not None:
        return known
    found = [constant_of(option) for option in node.expressions]
    return None if None in found else [one for one in found if one is not None]


def too_deep(sql: str) -> Invalid:
    """What is said of conditions within conditions that are more than can be looked through."""
    return Invalid(
        f"The filter {shown(sql)} is nested too deeply",
        remedy="Join conditions by AND and OR without parentheses around each, or name values with IN",
    )


_NUMBER: Final = r"[+-]?\d{1,18}(?![\w.])"
_TEXT: Final = r"'[^'\\]*+'(?!')"
_TOKEN: Final = re.compile(
    rf"""(?P<text>'(?:[^'\\]|\\.|'')*+')|"(?:[^"\\]|\\.)*+"|`[^`]*+`|--[^\n]*+|/\*.*?\*/"""
    rf"""|(?P<list>\bIN\s*+\(\s*+(?P<values>(?:{_NUMBER}\s*+,\s*+)++{_NUMBER}|(?:{_TEXT}\s*+,\s*+)++{_TEXT})\s*+\))""",
    re.IGNORECASE | re.DOTALL,
)
_LONG_LIST: Final = 2_000


def _prepared(sql: str, lists: dict[str, list[Literal]]) -> str:
    """`sql` with two quotes in a text as Spark 4 takes them, one quote, and names for long lists of plain constants,
    which sqlglot would look at for seconds. They come in `lists`.
    """

    def prepared(found: re.Match[str]) -> str:
        text = found["text"]
        if text is not None:
            return "'" + text[1:-1].replace("''", "\\'") + "'"
        values = found["values"]
        if values is None or len(values) < _LONG_LIST:
            return found[0]
        name = f"list{len(lists)}"
        while name in sql:
            name += "_"
        if "'" in values:
            lists[name] = [Literal(one[1:-1], "string") for one in re.findall(_TEXT, values)]
        else:
            lists[name] = [Literal(one.strip(), "number") for one in values.split(",")]
        return f"IN (:{name})"

    return _TOKEN.sub(prepared, sql)


def unsupported(node: Node, sql: str) -> Unsupported:
    """What is said of a node that has no counterpart here."""
    return _unsupported(f"{shown(node.sql('spark'))} ({type(node).__name__})", sql)


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
