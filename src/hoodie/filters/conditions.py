"""What a SQL condition says about single columns, in the form statistics and indexes understand.

1. Columns, or functions of one column, compared with constants; AND, OR, and NOT pushed down to the comparisons.
   Anything else becomes "may hold".
2. A constant is typed as `sql` types it. Where that would cast the column (a text compared with a number) the
   comparison says nothing.
3. The result never says more than the condition: where it is false for a row, so is the condition, or NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any

import pyarrow as pa
from sqlglot import exp

from hoodie.errors import Invalid
from hoodie.filters.literals import Literal, natural_type, typed_array
from hoodie.filters.tree import Node, constant_of, constants_of, parts_of
from hoodie.records.condition import ANYTHING, Comparison, Condition, Operator, all_of, any_of

Resolve = Callable[[Any], tuple[str, ...]]

_OPERATORS: Mapping[type[Any], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED: Mapping[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DENIED: Mapping[Operator, Operator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "is null": "is not null",
    "is not null": "is null",
}
_FUNCTIONS: Mapping[type[Any], str] = {
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.Abs: "abs",
}
_NULL_TESTS: Mapping[str, Operator] = {"isnull": "is null", "isnotnull": "is not null"}


def condition_of(node: Node, schema: pa.Schema, zone: tzinfo, resolve: Resolve) -> Condition:
    """What the condition `node` says. `resolve` finds the path of a column in `schema`."""
    return _Reader(schema, zone, resolve).read(node, denied=False)


class _Reader:
    def __init__(self, schema: pa.Schema, zone: tzinfo, resolve: Resolve) -> None:
        self._schema = schema
        self._zone = zone
        self._resolve = resolve

    def read(self, node: Node, *, denied: bool) -> Condition:
        node = node.unnest()
        match node:
            case exp.Not():
                return self.read(node.this, denied=not denied)
            case exp.And() | exp.Or():
                parts = [self.read(one, denied=denied) for one in parts_of(node, type(node))]
                return all_of(*parts) if isinstance(node, exp.And) != denied else any_of(*parts)
            case exp.Between():
                low = self._compared(node.this, ">=", node.args["low"], denied=denied)
                high = self._compared(node.this, "<=", node.args["high"], denied=denied)
                return any_of(low, high) if denied else all_of(low, high)
            case exp.In():
                return ANYTHING if denied else self._in(node)
            case exp.Is():
                return self._is(node, denied=denied)
            case exp.NullSafeEQ():
                return ANYTHING if denied else self._null_safe(node)
            case exp.Like():
                return ANYTHING if denied else self._like(node)
            case exp.StartsWith():
                return ANYTHING if denied else self._starts_with(node.this, node.expression)
            case exp.Column():
                return self._compared(node, "=", exp.true(), denied=denied)
            case exp.Anonymous() if node.name.lower() in _NULL_TESTS and len(node.expressions) == 1:
                return self._null_test(node.expressions[0], _NULL_TESTS[node.name.lower()], denied=denied)
        operator = _OPERATORS.get(type(node))
        return ANYTHING if operator is None else self._compared(node.this, operator, node.expression, denied=denied)

    def _compared(self, left: Node, operator: Operator, right: Node, *, denied: bool) -> Condition:
        subject, constant = _subject(left), constant_of(right)
        if subject is None and constant is None:
            subject, constant = _subject(right), constant_of(left)
            operator = _TURNED[operator]
        if subject is None or constant is None:
            return ANYTHING
        return self._test(subject, _DENIED[operator] if denied else operator, [constant])

    def _in(self, node: Node) -> Condition:
        subject = _subject(node.this)
        constants = constants_of(node)
        if subject is None or not constants:
            return ANYTHING
        return self._test(subject, "in", [one for one in constants if one.kind != "null"])

    def _is(self, node: Node, *, denied: bool) -> Condition:
        other = node.expression.unnest()
        if isinstance(other, exp.Null):
            return self._null_test(node.this, "is null", denied=denied)
        if isinstance(other, exp.Boolean) and not denied:
            return self._compared(node.this, "=", other, denied=False)
        return ANYTHING

    def _null_test(self, node: Node, operator: Operator, *, denied: bool) -> Condition:
        subject = _subject(node)
        if subject is None or subject[1]:
            return ANYTHING
        return self._test(subject, _DENIED[operator] if denied else operator, [])

    def _null_safe(self, node: Node) -> Condition:
        for subject, other in ((node.this, node.expression), (node.expression, node.this)):
            if isinstance(other.unnest(), exp.Null):
                return self._null_test(subject, "is null", denied=False)
        return self._compared(node.this, "=", node.expression, denied=False)

    def _like(self, node: Node) -> Condition:
        pattern = constant_of(node.expression)
        if pattern is None or pattern.kind != "string":
            return ANYTHING
        head = pattern.text.removesuffix("%")
        if any(sign in head for sign in "%_\\"):
            return ANYTHING
        if head == pattern.text:
            return self._compared(node.this, "=", node.expression, denied=False)
        return self._starts_with(node.this, exp.Literal.string(head))

    def _starts_with(self, node: Node, prefix: Node) -> Condition:
        subject, constant = _subject(node), constant_of(prefix)
        if subject is None or constant is None or constant.kind != "string" or not constant.text:
            return ANYTHING
        return self._test(subject, "starts with", [constant])

    def _test(self, subject: tuple[Node, str], operator: Operator, constants: list[Literal]) -> Condition:
        column, function = subject
        path = self._resolve(column)
        found = self._schema.field(path[0]).type
        for name in path[1:]:
            found = found.field(name).type
        if function:
            if not constants:
                return ANYTHING
            found = _of_bounds(natural_type(constants[0]))
        if operator == "starts with" and not pa.types.is_string(found):
            return ANYTHING
        try:
            values = typed_array(constants, found, self._zone, "")
        except Invalid:  # a text that is no value of the column's type: the column is cast, not the text
            return ANYTHING
        if pa.types.is_string(found) != pa.types.is_string(values.type):
            return ANYTHING
        return Comparison(".".join(path), operator, values, function)


def _of_bounds(data_type: pa.DataType) -> pa.DataType:
    """The type in which the bounds of a function are compared with a constant of this one."""
    if pa.types.is_integer(data_type):
        return pa.int64()
    return pa.float64() if pa.types.is_decimal(data_type) and data_type.scale else data_type


def _subject(node: Node) -> tuple[Node, str] | None:
    """A column, or a known function of one, with the function's name."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node, ""
    function = _FUNCTIONS.get(type(node))
    if function is None:
        return None
    inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
    inner = inner.unnest()
    return (inner, function) if isinstance(inner, exp.Column) else None
