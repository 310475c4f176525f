"""A condition as Spark SQL text, turned into Arrow expressions.

1. Column names are found exactly first, then without case; `s.f` looks into a struct.
2. A literal takes the type of what it is compared with: `day = '2024-01-01'` compares dates, `id = '5'` numbers.
3. NaN is greater than every number, as in Spark.
4. Three-valued logic as in SQL: a comparison with NULL is NULL, `NOT NULL` is NULL, `x IN (1, NULL)` is never false.
5. Timestamps without a zone in the text are in `timezone`; columns without a zone ignore it.

What has no Arrow counterpart is `Unsupported` and named; nothing is silently approximated.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import Invalid, Unsupported
from hoodie.read.filter_condition import condition_of
from hoodie.read.filter_tree import Node, parse_condition, unsupported
from hoodie.read.row_filter import Conjunct, RowFilter, all_of, matching
from hoodie.read.sql_literal import Literal, natural_type, parse_zone, typed_scalar, zone_text


def parse_filter(sql: str, schema: pa.Schema, *, timezone: str = "UTC") -> pc.Expression:
    """The condition as one Arrow expression over the columns of `schema`. See `parse_row_filter`."""
    return parse_row_filter(sql, schema, timezone=timezone).expression


def parse_row_filter(sql: str, schema: pa.Schema, *, timezone: str = "UTC") -> RowFilter:
    """The condition, one conjunct for each part that is joined by AND.

    Raises:
        Invalid: it cannot be parsed, names an unknown column, or compares what cannot be compared; or there is no such
            time zone.
        Unsupported: it uses a function or construct that is not known here.
    """
    tree = parse_condition(sql)
    scope = _Scope(schema, parse_zone(timezone), sql)
    conjuncts = tuple(_conjunct(part, scope) for part in _split(tree))
    matching(schema.empty_table(), all_of(part.expression for part in conjuncts))
    return RowFilter(conjuncts, sql)


@dataclass(frozen=True, slots=True)
class _Scope:
    schema: pa.Schema
    zone: tzinfo
    sql: str

    def unsupported(self, node: Node) -> Unsupported:
        return unsupported(node, self.sql)


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A computed value and its type (None when Arrow decides)."""

    expression: pc.Expression
    type: pa.DataType | None = None


_Operand = _Value | Literal


def _split(node: Node) -> list[Node]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*_split(node.this), *_split(node.expression)]
    return [node]


def _conjunct(node: Node, scope: _Scope) -> Conjunct:
    columns = frozenset(_resolve(column, scope)[0] for column in node.find_all(exp.Column))
    if isinstance(node, exp.In) and not _has_null(node):
        # At the top NULL and false are the same, and Arrow can compare a plain `is_in` with statistics.
        expression = _in(node, scope, exact=False)
    else:
        expression = _boolean(node, scope)
    return Conjunct(expression, columns, condition_of(node, scope.schema, scope.zone, lambda one: _resolve(one, scope)))


def _boolean(node: Node, scope: _Scope) -> pc.Expression:
    found = _operand(node, scope)
    if isinstance(found, Literal):
        return _expression(found, pa.bool_(), scope)
    if found.type is not None and not pa.types.is_boolean(found.type):
        raise Invalid(
            f"{node.sql('spark')!r} in the filter {scope.sql!r} is {found.type}, not a condition",
            remedy="Compare it with something",
        )
    return found.expression


def _operand(node: Node, scope: _Scope) -> _Operand:
    node = node.unnest()
    match node:
        case exp.Column():
            return _column(node, scope)
        case exp.Literal():
            return Literal(str(node.this), "string" if node.is_string else "number")
        case exp.Boolean():
            return Literal(str(bool(node.this)).lower(), "boolean")
        case exp.Null():
            return Literal("null", "null")
        case exp.And() | exp.Or():
            join = operator.and_ if isinstance(node, exp.And) else operator.or_
            return _Value(join(_boolean(node.this, scope), _boolean(node.expression, scope)), pa.bool_())
        case exp.Not():
            return _Value(~_boolean(node.this, scope), pa.bool_())
        case exp.NullSafeEQ():
            return _Value(_null_safe_equal(node, scope), pa.bool_())
        case exp.In():
            return _Value(_in(node, scope, exact=True), pa.bool_())
        case exp.Between():
            low = _compare(operator.ge, node.this, node.args["low"], scope)
            return _Value(low & _compare(operator.le, node.this, node.args["high"], scope), pa.bool_())
        case exp.Is():
            return _Value(_is(node, scope), pa.bool_())
        case exp.Cast() | exp.TryCast():
            return _cast(node, scope)
        case exp.Neg():
            return _negative(node, scope)
        case exp.Escape():
            return _Value(_like(node.this, scope, escape=str(node.expression.this)), pa.bool_())
        case exp.Like() | exp.ILike():
            return _Value(_like(node, scope), pa.bool_())
    if type(node) in _COMPARISONS:
        return _Value(_compare(_COMPARISONS[type(node)], node.this, node.expression, scope), pa.bool_())
    if type(node) in _ARITHMETIC:
        return _arithmetic(node, scope)
    return _function(node, scope)


def _column(node: exp.Column, scope: _Scope) -> _Value:
    path = _resolve(node, scope)
    found: pa.DataType = scope.schema.field(path[0]).type
    for name in path[1:]:
        found = found.field(name).type
    return _Value(pc.field(*path) if len(path) > 1 else pc.field(path[0]), found)


def _resolve(node: exp.Column, scope: _Scope) -> tuple[str, ...]:
    """The names on the way to a column or struct member, spelled as in the schema."""
    asked = tuple(part.name for part in node.parts)
    fields = list(scope.schema)
    path: list[str] = []
    for name in asked:
        exact = [field for field in fields if field.name == name]
        found = exact or [field for field in fields if field.name.lower() == name.lower()]
        if not found:
            raise Invalid(
                f"The filter {scope.sql!r} names {'.'.join(asked)!r}, which is not a column of the table",
                remedy=f"Columns are: {', '.join(scope.schema.names)}",
                column=".".join(asked),
            )
        path.append(found[0].name)
        fields = list(found[0].type) if pa.types.is_struct(found[0].type) else []
    return tuple(path)


_Compare = Callable[[pc.Expression, pc.Expression], pc.Expression]

_COMPARISONS: Mapping[type[Any], _Compare] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
}

_ARITHMETIC: Mapping[type[Any], Callable[[pc.Expression, pc.Expression], pc.Expression]] = {
    exp.Add: pc.add,
    exp.Sub: pc.subtract,
    exp.Mul: pc.multiply,
    exp.Div: pc.divide,
}


def _compare(compare: _Compare, left: Node, right: Node, scope: _Scope) -> pc.Expression:
    left_operand, right_operand = _operand(left, scope), _operand(right, scope)
    one, two = _aligned(left_operand, right_operand, scope)
    greater = {
        operator.gt: left_operand,
        operator.ge: left_operand,
        operator.lt: right_operand,
        operator.le: right_operand,
    }
    larger = greater.get(compare)
    if isinstance(larger, _Value) and larger.type is not None and pa.types.is_floating(larger.type):
        return compare(one, two) | larger.expression.is_nan()
    return compare(one, two)


def _null_safe_equal(node: exp.NullSafeEQ, scope: _Scope) -> pc.Expression:
    one, two = _aligned(_operand(node.this, scope), _operand(node.expression, scope), scope)
    both_null = one.is_null() & two.is_null()
    return pc.coalesce(one == two, both_null)


def _in(node: exp.In, scope: _Scope, *, exact: bool) -> pc.Expression:
    if node.args.get("query") is not None or not node.expressions:
        raise scope.unsupported(node)
    wanted = _operand(node.this, scope)
    if not isinstance(wanted, _Value) or wanted.type is None:
        options = [_compare(operator.eq, node.this, option, scope) for option in node.expressions]
        return functools.reduce(operator.or_, options)
    literals = [_operand(option, scope) for option in node.expressions]
    constants = [one for one in literals if isinstance(one, Literal) and one.kind != "null"]
    scalars = [typed_scalar(one, wanted.type, scope.zone, scope.sql) for one in constants]
    if any(not isinstance(one, Literal) for one in literals) or len({scalar.type for scalar in scalars}) > 1:
        options = [_compare(operator.eq, node.this, option, scope) for option in node.expressions]
        return functools.reduce(operator.or_, options)
    values = pa.array([scalar.as_py() for scalar in scalars], scalars[0].type if scalars else wanted.type)
    subject = wanted.expression if values.type == wanted.type else wanted.expression.cast(values.type)
    found = subject.isin(values)
    unknown = _expression(Literal("null", "null"), pa.bool_(), scope)
    if exact:
        found = found | (subject.is_null() & unknown)
    return found | unknown if _has_null(node) else found


def _has_null(node: exp.In) -> bool:
    return any(isinstance(option.unnest(), exp.Null) for option in node.expressions)


def _is(node: exp.Is, scope: _Scope) -> pc.Expression:
    subject = _operand(node.this, scope)
    other = node.expression.unnest()
    value = _expression(subject, None, scope)
    if isinstance(other, exp.Null):
        return value.is_null()
    if isinstance(other, exp.Boolean):
        truth = value if other.this else ~value
        return pc.coalesce(truth, pc.scalar(False))
    raise scope.unsupported(node)


def _like(node: Node, scope: _Scope, *, escape: str = "\\") -> pc.Expression:
    subject = _expression(_operand(node.this, scope), pa.string(), scope)
    pattern = _operand(node.expression, scope)
    if not isinstance(pattern, Literal) or not isinstance(node, exp.Like | exp.ILike):
        raise scope.unsupported(node)
    return pc.match_like(subject, _backslashed(pattern.text, escape), ignore_case=isinstance(node, exp.ILike))


def _backslashed(pattern: str, escape: str) -> str:
    """A LIKE pattern with backslash as its escape character, which is what Arrow understands."""
    if escape == "\\":
        return pattern
    plain = pattern.replace("\\", "\\\\")
    return plain.replace(escape * 2, "\0").replace(escape, "\\").replace("\0", escape)


def _cast(node: Node, scope: _Scope) -> _Operand:
    wanted = _arrow_type(node.args["to"], scope)
    found = _operand(node.this, scope)
    if isinstance(found, Literal):
        scalar = typed_scalar(found, wanted, scope.zone, scope.sql)
        return _Value(pc.scalar(scalar), scalar.type)
    if found.type is not None and pa.types.is_string(wanted) and not _prints_as_spark(found.type):
        raise scope.unsupported(node)
    return _Value(found.expression.cast(wanted, safe=False), wanted)


def _negative(node: exp.Neg, scope: _Scope) -> _Operand:
    found = _operand(node.this, scope)
    if isinstance(found, Literal):
        text = found.text[1:] if found.text.startswith("-") else f"-{found.text}"
        return Literal(text, found.kind)
    return _Value(pc.negate(found.expression), found.type)


def _arithmetic(node: Node, scope: _Scope) -> _Value:
    left, right = _operand(node.this, scope), _operand(node.expression, scope)
    if isinstance(node, exp.Div):  # Spark divides integers as doubles; division by zero is NULL there, infinite here
        one = _expression(left, pa.float64(), scope).cast(pa.float64())
        two = _expression(right, pa.float64(), scope).cast(pa.float64())
        zero = two == pc.scalar(0.0)
        return _Value(pc.divide(one, pc.if_else(zero, pa.scalar(None, pa.float64()), two)), pa.float64())
    one, two = _aligned(left, right, scope)
    return _Value(_ARITHMETIC[type(node)](one, two))


_Function = Callable[[Node, _Scope], _Value]


def _text_function(compute: Callable[[pc.Expression], pc.Expression], result: pa.DataType) -> _Function:
    def call(node: Node, scope: _Scope) -> _Value:
        return _Value(compute(_expression(_operand(node.this, scope), pa.string(), scope)), result)

    return call


def _text_test(compute: Callable[[pc.Expression, str], pc.Expression]) -> _Function:
    def call(node: Node, scope: _Scope) -> _Value:
        pattern = _operand(node.expression, scope)
        if not isinstance(pattern, Literal) or pattern.kind != "string":
            raise scope.unsupported(node)
        return _Value(compute(_expression(_operand(node.this, scope), pa.string(), scope), pattern.text), pa.bool_())

    return call


def _date_part(compute: Callable[[pc.Expression], pc.Expression]) -> _Function:
    def call(node: Node, scope: _Scope) -> _Value:
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        found = _operand(inner, scope)
        if not isinstance(found, _Value) or found.type is None or not pa.types.is_temporal(found.type):
            raise scope.unsupported(node)
        value = found.expression
        if pa.types.is_timestamp(found.type) and found.type.tz is not None:
            value = value.cast(pa.timestamp("us", tz=zone_text(scope.zone)))
        return _Value(compute(value), pa.int64())

    return call


def _coalesce(node: Node, scope: _Scope) -> _Value:
    operands = [_operand(one, scope) for one in (node.this, *node.expressions)]
    found = next((one.type for one in operands if isinstance(one, _Value) and one.type is not None), None)
    if found is None:
        raise scope.unsupported(node)
    return _Value(pc.coalesce(*(_expression(one, found, scope) for one in operands)), found)


def _substring(node: Node, scope: _Scope) -> _Value:
    start, length = node.args.get("start"), node.args.get("length")
    numbers = [None if part is None else _operand(part, scope) for part in (start, length)]
    if any(one is not None and (not isinstance(one, Literal) or one.kind != "number") for one in numbers):
        raise scope.unsupported(node)
    first, count = (
        None if one is None else int(one.text) for one in numbers if one is None or isinstance(one, Literal)
    )
    begin = max((first or 1) - 1, 0) if (first or 0) >= 0 else (first or 0)
    stop = None if count is None else begin + max(count, 0)
    if begin < 0 and stop is not None and stop >= 0:
        stop = None
    text = _expression(_operand(node.this, scope), pa.string(), scope)
    return _Value(pc.utf8_slice_codeunits(text, begin, stop), pa.string())


def _abs(node: Node, scope: _Scope) -> _Value:
    found = _operand(node.this, scope)
    if not isinstance(found, _Value):
        raise scope.unsupported(node)
    return _Value(pc.abs(found.expression), found.type)


_FUNCTIONS: Mapping[type[Any], _Function] = {
    exp.Lower: _text_function(pc.utf8_lower, pa.string()),
    exp.Upper: _text_function(pc.utf8_upper, pa.string()),
    exp.Length: _text_function(pc.utf8_length, pa.int32()),
    exp.StartsWith: _text_test(pc.starts_with),
    exp.EndsWith: _text_test(pc.ends_with),
    exp.Contains: _text_test(pc.match_substring),
    exp.RegexpLike: _text_test(pc.match_substring_regex),
    exp.Year: _date_part(pc.year),
    exp.Month: _date_part(pc.month),
    exp.Day: _date_part(pc.day),
    exp.Coalesce: _coalesce,
    exp.Substring: _substring,
    exp.Abs: _abs,
}

_NAMED_FUNCTIONS: Mapping[str, Callable[[pc.Expression], pc.Expression]] = {
    "isnull": lambda value: value.is_null(),
    "isnotnull": lambda value: value.is_valid(),
}


def _function(node: Node, scope: _Scope) -> _Operand:
    if type(node) in _FUNCTIONS:
        return _FUNCTIONS[type(node)](node, scope)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _NAMED_FUNCTIONS and len(node.expressions) == 1:
        value = _expression(_operand(node.expressions[0], scope), None, scope)
        return _Value(_NAMED_FUNCTIONS[node.name.lower()](value), pa.bool_())
    if isinstance(node, exp.Concat) and all(isinstance(part, exp.Literal) for part in node.expressions):
        return Literal("".join(str(part.this) for part in node.expressions), "string")  # 'it''s'
    raise scope.unsupported(node)


def _aligned(one: _Operand, two: _Operand, scope: _Scope) -> tuple[pc.Expression, pc.Expression]:
    """Both sides of a comparison in types Arrow can compare."""
    if isinstance(one, Literal) and isinstance(two, Literal):
        if one.kind == two.kind == "number" or "null" in (one.kind, two.kind):
            return _expression(one, pa.float64(), scope), _expression(two, pa.float64(), scope)
        return _expression(one, pa.string(), scope), _expression(two, pa.string(), scope)
    if isinstance(one, Literal):
        two_aligned, one_aligned = _aligned(two, one, scope)
        return one_aligned, two_aligned
    if isinstance(two, Literal):
        if one.type is None:
            return one.expression, _expression(two, natural_type(two), scope)
        scalar = typed_scalar(two, one.type, scope.zone, scope.sql)
        same_family = scalar.type == one.type or not pa.types.is_string(one.type)
        subject = one.expression if same_family else one.expression.cast(scalar.type, safe=False)
        return subject, pc.scalar(scalar)
    return _aligned_values(one, two)


def _aligned_values(one: _Value, two: _Value) -> tuple[pc.Expression, pc.Expression]:
    if one.type is None or two.type is None or one.type == two.type:
        return one.expression, two.expression
    for wide, narrow in ((one, two), (two, one)):
        if pa.types.is_timestamp(wide.type) and pa.types.is_date(narrow.type):
            cast = narrow.expression.cast(wide.type)
            return (wide.expression, cast) if wide is one else (cast, wide.expression)
        if pa.types.is_string(narrow.type) and not pa.types.is_string(wide.type):
            cast = narrow.expression.cast(wide.type, safe=False)
            return (wide.expression, cast) if wide is one else (cast, wide.expression)
    return one.expression, two.expression


def _expression(operand: _Operand, wanted: pa.DataType | None, scope: _Scope) -> pc.Expression:
    if isinstance(operand, Literal):
        return pc.scalar(typed_scalar(operand, wanted or natural_type(operand), scope.zone, scope.sql))
    needs_cast = (
        wanted is not None
        and operand.type is not None
        and pa.types.is_string(wanted) != pa.types.is_string(operand.type)
    )
    return operand.expression.cast(wanted) if needs_cast else operand.expression


def _prints_as_spark(data_type: pa.DataType) -> bool:
    """Whether Arrow's text of a value is the text Spark gives."""
    types = pa.types
    return bool(
        types.is_integer(data_type)
        or types.is_string(data_type)
        or types.is_boolean(data_type)
        or types.is_date(data_type)
        or types.is_decimal(data_type)
    )


def _arrow_type(to: exp.DataType, scope: _Scope) -> pa.DataType:
    if to.this == exp.DType.DECIMAL:
        digits = [int(str(part.this.this)) for part in to.expressions]
        return pa.decimal128(*(digits or [10, 0]))
    if to.this == exp.DType.TIMESTAMPTZ:
        return pa.timestamp("us", tz="UTC")
    found = _SQL_TYPES.get(to.this)
    if found is None:
        raise scope.unsupported(to)
    return found


_SQL_TYPES: Mapping[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.VARCHAR: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMP: pa.timestamp("us"),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
}
