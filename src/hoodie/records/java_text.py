"""Values as Java writes them: the text Hudi puts into record keys and partition paths.

Hudi turns a key field into text by Java's `toString` of its Avro value. This module gives the same text, whole columns
at a time.

1. NULL stays NULL. Binary values are hex digits.
2. Text is the same on every machine: nothing here reads the locale or the zone of the process.
3. Floating point text is the shortest that reads back to the same number (Java 19 and later). Java 17 and older print
   one more digit for a small share of doubles (`2.0E-3` alike, `1.0E23` alike, `2.2E-322` not); see
   docs/format/record-keys.md.

It knows nothing about keys, paths or their escapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid

LAST_FOUR_DIGIT_DAY = 2_932_896  # 9999-12-31
_HEX_DIGITS = np.array([int.from_bytes(f"{byte:02x}".encode(), "little") for byte in range(256)], dtype="<u2")


@dataclass(frozen=True, slots=True)
class TextForm:
    """Which of Hudi's two habits a timestamp follows.

    `avro` is what every operation but the row writer's bulk_insert does: the raw number the Avro record holds, micros
    since 1970. `sql` is `java.sql.Timestamp.toString`, milliseconds only, in `zone`, the zone of the writing JVM: what
    the row writer does, and the Avro path too when consistent logical timestamps are on. Timestamps without a zone are
    raw numbers in both.
    """

    timestamps: Literal["avro", "sql"] = "avro"
    zone: str = "UTC"


AVRO_TEXT = TextForm()


def java_text(values: pa.Array, form: TextForm = AVRO_TEXT) -> pa.Array:
    """`values` as strings, the way Java prints them. Nested types have no text: see `ensure_text`."""
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_timestamp(kind):
        return _timestamps(values, form)
    if pa.types.is_date(kind):
        return _dates(values.cast(pa.date32()))
    if pa.types.is_floating(kind):
        return _floats(values)
    if pa.types.is_decimal(kind):
        return values.cast(pa.string())
    if pa.types.is_time(kind):
        return values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_large_string(kind) or _is_view(kind):
        return values.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _is_fixed_binary(kind):
        return _hex(values)
    if pa.types.is_null(kind):
        return pa.nulls(len(values), pa.string())
    raise TypeError(f"{kind} has no text")


def ensure_text(kind: pa.DataType, name: str, role: str) -> None:
    """Refuse column `name` as a `role` where `java_text` has nothing to say about its type.

    Raises:
        Invalid: a list, map, struct or span of time.
    """
    if pa.types.is_nested(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind):
        raise Invalid(
            f"{role} {name!r} is a {kind}, which has no text of its own",
            remedy="Use a string, number, date, timestamp, decimal or boolean column, or a field inside the struct",
            column=name,
            type=str(kind),
        )


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind))


def _is_fixed_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind)) and not pa.types.is_decimal(kind)


def _dates(days: pa.Array) -> pa.Array:
    """`java.time.LocalDate.toString`: four digits at least, `+` before the year from 10000 on."""
    text = days.cast(pa.string())
    late = pc.greater(days.cast(pa.int32()), LAST_FOUR_DIGIT_DAY)
    if not pc.any(late).as_py():
        return text
    return pc.if_else(late, pc.binary_join_element_wise("+", text, ""), text)


def _timestamps(values: pa.Array, form: TextForm) -> pa.Array:
    micros = values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64())
    if form.timestamps == "avro" or values.type.tz is None:
        return micros.cast(pa.string())
    # Java's Timestamp is made from milliseconds, cut toward zero.
    millis = pc.divide(micros, 1000).cast(pa.timestamp("ms", form.zone))
    text = pc.local_timestamp(millis).cast(pa.string())
    return pc.replace_substring_regex(text, r"^(.*\.\d+?)0*$", r"\1")


def _hex(values: pa.Array) -> pa.Array:
    """Two lower-case digits per byte, by table look-up over the whole value buffer."""
    flat = values.cast(pa.large_binary())
    ends = np.frombuffer(flat.buffers()[1], dtype=np.int64)[flat.offset : flat.offset + len(flat) + 1]
    data = np.frombuffer(flat.buffers()[2] or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    missing = flat.is_null()
    digits = pa.LargeStringArray.from_buffers(
        len(flat), pa.py_buffer((ends - ends[0]) * 2), pa.py_buffer(_HEX_DIGITS[data])
    )
    return pc.if_else(missing, None, digits).cast(pa.string())


def _floats(values: pa.Array) -> pa.Array:
    """`Double.toString` / `Float.toString`.

    Arrow already gives the shortest digits; only the dress differs. Facts used below:
    (1) Java writes 10^-3 <= |v| < 10^7 plainly with at least one digit after the point, all else as d.dddE[-]x;
    (2) Arrow writes [-]digits[.digits][e[+-]x], so the digits and the place of the point can be read from its text.
    """
    text = values.cast(pa.string())
    size = pc.abs(values.cast(pa.float64()))
    plain = pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7))
    if pa.types.is_float32(values.type):
        # 0.001f lies above 10^-3 as a double but Java compares the printed decimal exponent: the shortest text decides.
        plain = pc.and_(pc.greater_equal(size, float(np.float32(1e-3))), pc.less(size, 1e7))
    plain = pc.or_(plain, pc.equal(size, 0.0))
    has_point = pc.match_substring(text, ".")
    plain_text = pc.if_else(has_point, text, pc.binary_join_element_wise(text, ".0", ""))
    odd = pc.invert(pc.and_(plain, pc.is_finite(values)))
    if not pc.any(odd).as_py():
        return plain_text
    return pc.replace_with_mask(plain_text, pc.fill_null(odd, False), _odd_floats(values.filter(odd), text.filter(odd)))


def _odd_floats(values: pa.Array, text: pa.Array) -> pa.Array:
    special = pc.invert(pc.is_finite(values))
    named = pc.if_else(pc.is_nan(values), "NaN", pc.if_else(pc.greater(values, 0), "Infinity", "-Infinity"))
    finite = _two_digit_denormals(values, pc.if_else(special, "1e7", text))
    parts = pc.extract_regex(finite, r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<part>\d+))?(?:e(?P<exp>[+-]?\d+))?$")
    sign, whole, part, exp = (
        pc.fill_null(pc.struct_field(parts, name), "") for name in ("sign", "whole", "part", "exp")
    )
    digits = pc.binary_join_element_wise(whole, part, "")
    significant = pc.utf8_ltrim(digits, "0")
    leading_zeros = pc.subtract(pc.binary_length(digits), pc.binary_length(significant))
    written = pc.cast(pc.utf8_ltrim(pc.if_else(pc.equal(exp, ""), "0", exp), "+"), pa.int32())
    exponent = pc.add(written, pc.subtract(pc.subtract(pc.binary_length(whole), 1), leading_zeros))
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(significant, 1), "0")
    rest = pc.if_else(pc.equal(rest, ""), "0", rest)
    first = pc.utf8_slice_codeunits(significant, 0, 1)
    scientific = pc.binary_join_element_wise(sign, first, ".", rest, "E", exponent.cast(pa.string()), "")
    return pc.if_else(special, named, scientific)


def _two_digit_denormals(values: pa.Array, text: pa.Array) -> pa.Array:
    """The smallest numbers have so few bits that one digit says which is meant; Java gives the nearest two digits."""
    limit = 1e-43 if pa.types.is_float32(values.type) else 1e-321
    tiny = pc.less(pc.abs(values.cast(pa.float64())), limit)
    if not pc.any(tiny).as_py():
        return text
    return pc.replace_with_mask(text, tiny, pa.array([f"{value:.1e}" for value in values.filter(tiny).to_pylist()]))
