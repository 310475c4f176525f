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
import logging
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from hoodie.errors import Invalid, Unsupported
from hoodie.filters.arithmetic import OPERATIONS, computed, negated
from hoodie.filters.casts import cast_constant, cast_value
from hoodie.filters.column_types import arrow_type
from hoodie.filters.comparisons import (
    Compare,
    Operand,
    Value,
    aligned,
    as_value,
    compared,
    in_type,
    together,
)
from hoodie.filters.conditions import condition_of
from hoodie.filters.literals import (
    Literal,
    common_type,
    is_number,
    natural_type,
    parse_zone,
    shown,
    typed_array,
    typed_scalar,
    zone_text,
)
from hoodie.filters.row_filter import Conjunct, RowFilter, all_of, balanced
from hoodie.filters.tree import Node, constant_of, constants_of, parse_condition, parts_of, too_deep, unsupported
from hoodie.records.filter_error import is_overflow

log = logging.getLogger(__name__)


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
    try:
        conjuncts = tuple(_conjunct(part, scope) for part in parts_of(tree, exp.And))
    except RecursionError as error:
        raise too_deep(sql) from error
    try:
        schema.empty_table().filter(all_of(part.expression for part in conjuncts))
    except (pa.ArrowException, TypeError) as error:
        if is_overflow(error):
            raise Invalid(
                f"The filter {shown(sql)} computes a number that its type cannot hold",
                remedy="Cast it to BIGINT, DOUBLE or DECIMAL before computing with it",
            ) from error
        raise Invalid(
            f"The filter {shown(sql)} compares or computes what does not go together",
            remedy="Compare columns with values of their own type, or cast one side",
        ) from error
    return RowFilter(conjuncts, sql)


@dataclass(frozen=True, slots=True)
class _Scope:
    schema: pa.Schema
    zone: tzinfo
    sql: str

    def unsupported(self, node: Node) -> Unsupported:
        return unsupported(node, self.sql)


def _conjunct(node: Node, scope: _Scope) -> Conjunct:
    columns = frozenset(_resolve(column, scope)[0] for column in node.find_all(exp.Column))
    # At the top NULL and false are the same, and Arrow can compare a plain `is_in` with statistics.
    expression = _in(node, scope, exact=False) if isinstance(node, exp.In) else _boolean(node, scope)
    return Conjunct(expression, columns, condition_of(node, scope.schema, scope.zone, lambda one: _resolve(one, scope)))


def _boolean(node: Node, scope: _Scope) -> pc.Expression:
    found = _operand(node, scope)
    if isinstance(found, Literal):
        return _expression(found, pa.bool_(), scope)
    if found.type is not None and not pa.types.is_boolean(found.type):
        raise Invalid(
            f"{node.sql('spark')!r} in the filter {shown(scope.sql)} is {found.type}, not a condition",
            remedy="Compare it with something",
        )
    return found.expression


def _operand(node: Node, scope: _Scope) -> Operand:
    node = node.unnest()
    constant = constant_of(node)
    if constant is not None:
        return constant
    match node:
        case exp.Column():
            return _column(node, scope)
        case exp.And() | exp.Or():
            join = operator.and_ if isinstance(node, exp.And) else operator.or_
            return Value(balanced(join, [_boolean(one, scope) for one in parts_of(node, type(node))]), pa.bool_())
        case exp.Not():
            return Value(~_boolean(node.this, scope), pa.bool_())
        case exp.NullSafeEQ():
            return Value(_null_safe_equal(node, scope), pa.bool_())
        case exp.In():
            return Value(_in(node, scope, exact=True), pa.bool_())
        case exp.Between():
            low = _compare(operator.ge, node.this, node.args["low"], scope)
            return Value(low & _compare(operator.le, node.this, node.args["high"], scope), pa.bool_())
        case exp.Is():
            return Value(_is(node, scope), pa.bool_())
        case exp.Cast() | exp.TryCast():
            return _cast(node, scope)
        case exp.Neg():
            return _negative(node, scope)
        case exp.Escape():
            return Value(_like(node.this, scope, escape=str(node.expression.this)), pa.bool_())
        case exp.Like() | exp.ILike():
            return Value(_like(node, scope), pa.bool_())
    if type(node) in _COMPARISONS:
        return Value(_compare(_COMPARISONS[type(node)], node.this, node.expression, scope), pa.bool_())
    if type(node) in OPERATIONS:
        return _arithmetic(node, scope)
    return _function(node, scope)


def _column(node: exp.Column, scope: _Scope) -> Value:
    path = _resolve(node, scope)
    found: pa.DataType = scope.schema.field(path[0]).type
    for name in path[1:]:
        found = found.field(name).type
    return Value(pc.field(*path) if len(path) > 1 else pc.field(path[0]), found)


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
                f"The filter {shown(scope.sql)} names {'.'.join(asked)!r}, which is not a column of the table",
                remedy=f"Columns are: {', '.join(scope.schema.names)}. Texts stand in single quotes",
                column=".".join(asked),
            )
        path.append(found[0].name)
        fields = list(found[0].type) if pa.types.is_struct(found[0].type) else []
    return tuple(path)


_COMPARISONS: Mapping[type[Any], Compare] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
}


def _compare(compare: Compare, left: Node, right: Node, scope: _Scope) -> pc.Expression:
    one, two = _operand(left, scope), _operand(right, scope)
    if '"' in scope.sql and isinstance(one, Literal) and isinstance(two, Literal):
        log.warning('%s compares two constants: in Spark\'s SQL "x" is a text, and `x` a column', shown(scope.sql))
    return compared(compare, one, two, scope.zone, scope.sql)


def _null_safe_equal(node: exp.NullSafeEQ, scope: _Scope) -> pc.Expression:
    one, two = aligned(_operand(node.this, scope), _operand(node.expression, scope), scope.zone, scope.sql)
    both_null = one.expression.is_null() & two.expression.is_null()
    return pc.coalesce(compared(operator.eq, one, two, scope.zone, scope.sql), both_null)


def _in(node: exp.In, scope: _Scope, *, exact: bool) -> pc.Expression:
    constants = constants_of(node)
    if not constants and not node.expressions:
        raise scope.unsupported(node)
    wanted = _operand(node.this, scope)
    if constants is None or not isinstance(wanted, Value) or wanted.type is None:
        return _any_equal(wanted, [_operand(option, scope) for option in node.expressions], scope)
    plain = [one for one in constants if one.kind != "null"]
    values = typed_array(plain, wanted.type, scope.zone, scope.sql)
    subject = in_type(wanted, values.type, scope.zone).expression
    found = subject.isin(values)
    if not exact:
        return found
    unknown = pc.scalar(pa.scalar(None, pa.bool_()))
    found = found | (subject.is_null() & unknown)
    return found | unknown if len(plain) < len(constants) else found


def _any_equal(wanted: Operand, options: list[Operand], scope: _Scope) -> pc.Expression:
    """Whether one of them is equal, all compared in one type: a double among them makes all of them doubles, and a
    timestamp makes timestamps of dates and texts.
    """
    if isinstance(wanted, Value) and wanted.type is not None:
        kinds = [aligned(wanted, one, scope.zone, scope.sql)[0].type or wanted.type for one in options]
        if pa.float64() in kinds:
            wanted = in_type(wanted, pa.float64(), scope.zone)
        elif pa.types.is_temporal(wanted.type):
            wanted = in_type(wanted, functools.reduce(together, kinds, wanted.type), scope.zone)
    return balanced(operator.or_, [compared(operator.eq, wanted, one, scope.zone, scope.sql) for one in options])


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
    subject = _text(node.this, scope)
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


def _cast(node: Node, scope: _Scope) -> Value:
    wanted = arrow_type(node.args["to"])
    if wanted is None:
        raise scope.unsupported(node.args["to"])
    if node.args.get("safe"):  # TRY_CAST gives NULL where it fails
        raise scope.unsupported(node)
    found = _operand(node.this, scope)
    if isinstance(found, Literal):
        return cast_constant(found, wanted, scope.zone, scope.sql)
    expression = cast_value(found, wanted, scope.zone)
    if expression is None:
        raise scope.unsupported(node)
    return Value(expression, wanted)


def _negative(node: exp.Neg, scope: _Scope) -> Value:
    found = negated(_operand(node.this, scope), scope.zone, scope.sql)
    if found is None:
        raise scope.unsupported(node)
    return found


def _arithmetic(node: Node, scope: _Scope) -> Value:
    left, right = _operand(node.this, scope), _operand(node.expression, scope)
    found = computed(node, left, right, scope.zone, scope.sql)
    if found is None:
        raise scope.unsupported(node)
    if found.type is not None and pa.types.is_decimal(found.type):
        _ensure_same_decimals(node, left, right, found.type.scale, scope)
    return found


def _ensure_same_decimals(node: Node, left: Operand, right: Operand, scale: int, scope: _Scope) -> None:
    """Raises `Unsupported` where the decimals of the result depend on what the tree does not tell: beside a decimal,
    `3L` has one digit and CAST(3 AS BIGINT) twenty.
    """
    one, two = _other_reading(node.this, left), _other_reading(node.expression, right)
    if one is left and two is right:
        return
    other = computed(node, one, two, scope.zone, scope.sql)
    if other is None or other.type is None or not pa.types.is_decimal(other.type) or other.type.scale != scale:
        raise scope.unsupported(node)


def _other_reading(node: Node, operand: Operand) -> Operand:
    node = node.unnest()
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Paren) and isinstance(operand, Literal):
        kind = natural_type(operand)  # -(3) is computed, -3 written
        return Value(pc.scalar(None).cast(kind), kind)
    node = node.this.unnest() if isinstance(node, exp.Neg) else node
    if not isinstance(node, exp.Cast | exp.TryCast) or node.args["to"].this not in _SUFFIXED:
        return operand
    constant = constant_of(node.this)
    is_digits = constant is not None and constant.kind == "number" and constant.text.isdecimal()
    return constant if constant is not None and is_digits else operand


_SUFFIXED = frozenset({exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.BIGINT})


_Function = Callable[[Node, _Scope], Value]


def _text_function(compute: Callable[[pc.Expression], pc.Expression], result: pa.DataType) -> _Function:
    def call(node: Node, scope: _Scope) -> Value:
        return Value(compute(_text(node.this, scope)), result)

    return call


def _text_test(compute: Callable[[pc.Expression, str], pc.Expression]) -> _Function:
    def call(node: Node, scope: _Scope) -> Value:
        pattern = _operand(node.expression, scope)
        if not isinstance(pattern, Literal) or pattern.kind != "string":
            raise scope.unsupported(node)
        return Value(compute(_text(node.this, scope), pattern.text), pa.bool_())

    return call


def _date_part(compute: Callable[[pc.Expression], pc.Expression]) -> _Function:
    def call(node: Node, scope: _Scope) -> Value:
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        found = _operand(inner, scope)
        if not isinstance(found, Value) or found.type is None or not pa.types.is_temporal(found.type):
            raise scope.unsupported(node)
        value = found.expression
        if pa.types.is_timestamp(found.type) and found.type.tz is not None:
            value = value.cast(pa.timestamp("us", tz=zone_text(scope.zone)))
        return Value(compute(value), pa.int64())

    return call


def _coalesce(node: Node, scope: _Scope) -> Value:
    operands = [_operand(one, scope) for one in (node.this, *node.expressions)]
    found = next((one.type for one in operands if isinstance(one, Value) and one.type is not None), None)
    if found is None:
        raise scope.unsupported(node)
    if is_number(found):
        kinds = [natural_type(one) if isinstance(one, Literal) else one.type for one in operands if not _is_null(one)]
        if not all(kind is not None and is_number(kind) for kind in kinds):
            raise scope.unsupported(node)
        found = functools.reduce(common_type, kinds)
        values = [_as_typed(one, found, scope) for one in operands]
        return Value(pc.coalesce(*values), found)
    if any(isinstance(one, Value) and one.type != found for one in operands):
        raise scope.unsupported(node)
    return Value(pc.coalesce(*(_expression(one, found, scope) for one in operands)), found)


def _is_null(operand: Operand) -> bool:
    return isinstance(operand, Literal) and operand.kind == "null"


def _as_typed(operand: Operand, wanted: pa.DataType, scope: _Scope) -> pc.Expression:
    if isinstance(operand, Literal):
        return cast_constant(operand, wanted, scope.zone, scope.sql).expression
    return in_type(operand, wanted, scope.zone).expression


def _substring(node: Node, scope: _Scope) -> Value:
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
    text = _text(node.this, scope)
    return Value(pc.utf8_slice_codeunits(text, begin, stop), pa.string())


def _abs(node: Node, scope: _Scope) -> Value:
    found = _operand(node.this, scope)
    if not isinstance(found, Value) or found.type is None or not is_number(found.type):
        raise scope.unsupported(node)
    return Value(pc.abs_checked(found.expression), found.type)


def _is_nan(node: Node, scope: _Scope) -> Value:
    found = as_value(_operand(node.this, scope), scope.zone, scope.sql)
    if found.type is None or not pa.types.is_floating(found.type):
        raise scope.unsupported(node)
    return Value(pc.coalesce(found.expression.is_nan(), pc.scalar(False)), pa.bool_())


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
    exp.IsNan: _is_nan,
}

_NAMED_FUNCTIONS: Mapping[str, Callable[[pc.Expression], pc.Expression]] = {
    "isnull": lambda value: value.is_null(),
    "isnotnull": lambda value: value.is_valid(),
}


def _function(node: Node, scope: _Scope) -> Operand:
    if type(node) in _FUNCTIONS:
        return _FUNCTIONS[type(node)](node, scope)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _NAMED_FUNCTIONS and len(node.expressions) == 1:
        value = _expression(_operand(node.expressions[0], scope), None, scope)
        return Value(_NAMED_FUNCTIONS[node.name.lower()](value), pa.bool_())
    if isinstance(node, exp.Concat) and all(isinstance(part, exp.Literal) for part in node.expressions):
        return Literal("".join(str(part.this) for part in node.expressions), "string")  # 'it' 's'
    raise scope.unsupported(node)


def _expression(operand: Operand, wanted: pa.DataType | None, scope: _Scope) -> pc.Expression:
    if isinstance(operand, Literal):
        return pc.scalar(typed_scalar(operand, wanted or natural_type(operand), scope.zone, scope.sql))
    return operand.expression


def _text(node: Node, scope: _Scope) -> pc.Expression:
    """A part of the condition as the text Spark makes of it."""
    found = _operand(node, scope)
    if isinstance(found, Literal):
        return cast_constant(found, pa.string(), scope.zone, scope.sql).expression
    expression = cast_value(found, pa.string(), scope.zone)
    if expression is None:
        raise scope.unsupported(node)
    return expression
