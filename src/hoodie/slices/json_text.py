"""Rows as JSON text, the two ways Hudi writes the images of change queries. Whole columns at a time.

1. `ROW` is what Hudi makes of rows of base and log files: no blanks, members that are NULL are left out, text beyond
   ASCII stays, bytes are Base64.
2. `AVRO` is what Avro's own `toString` makes of the images in change files: a blank after `:` and `,`, NULL members are
   written, more characters are escaped, bytes are text of one character per byte, decimals the list of their bytes.
3. Both write dates as days and timestamps as micros since 1970, and NaN and the infinities as text.
4. NULL rows stay NULL. Entries of maps come in the order they are stored in.

Kernels do all but three things, which are done value by value: control characters without an escape of their own,
Avro's escapes beyond ASCII, and Base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.records.avro import decimal_bytes
from hoodie.records.java_text import java_text

_SHORT_ESCAPES: Final = (
    ("\\", "\\\\"),
    ('"', '\\"'),
    ("\b", "\\b"),
    ("\f", "\\f"),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
)
_CONTROL: Final = r"\x00-\x07\x0b\x0e-\x1f"


@dataclass(frozen=True, slots=True)
class JsonForm:
    """How values are written. `rare` is the set of characters (as in a regular expression) written as `\\uXXXX`."""

    colon: str
    comma: str
    keeps_nulls: bool
    rare: str
    bytes_text: Callable[[pa.Array], pa.Array]
    decimal_text: Callable[[pa.Array], pa.Array]


def json_rows(rows: pa.Table, form: JsonForm) -> pa.ChunkedArray:
    """One JSON object per row, its members in the order of the columns."""
    chunks = [
        _object(batch.schema.names, batch.columns, batch.num_rows, form)
        for batch in rows.to_batches()
        if batch.num_rows
    ]
    return pa.chunked_array(chunks, pa.string())


def json_structs(values: pa.ChunkedArray, form: JsonForm) -> pa.ChunkedArray:
    """One JSON object per struct, NULL for a NULL struct."""
    return pa.chunked_array([_text(chunk, form) for chunk in values.chunks], pa.string())


def _text(values: pa.Array, form: JsonForm) -> pa.Array:
    """The JSON of each value; NULL stays NULL."""
    kind = values.type
    types = pa.types
    if types.is_struct(kind):
        names = [field.name for field in kind]
        text = _object(names, [pc.struct_field(values, [at]) for at in range(len(names))], len(values), form)
        return pc.if_else(values.is_valid(), text, None)
    if types.is_map(kind):
        return _map(values, form)
    if types.is_list(kind):
        return _list(values, form)
    if types.is_string(kind):
        return _quoted(values, form)
    if types.is_floating(kind):
        text = java_text(values)
        return pc.if_else(pc.is_finite(values), text, _joined('"', text, '"'))
    if types.is_decimal(kind):
        return form.decimal_text(values)
    if types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.string())
    if types.is_date(kind):
        return values.cast(pa.date32()).cast(pa.int32()).cast(pa.string())
    if types.is_binary(kind):
        return form.bytes_text(values)
    return java_text(values)


def _object(names: Sequence[str], columns: Sequence[pa.Array], count: int, form: JsonForm) -> pa.Array:
    if not names:
        return pa.repeat(pa.scalar("{}"), count)
    members = []
    for name, column in zip(names, columns, strict=True):
        text = pc.fill_null(_text(column, form), "null") if form.keeps_nulls else _text(column, form)
        (label,) = _quoted(pa.array([name]), form).to_pylist()
        members.append(pc.fill_null(_joined(f"{form.comma}{label}{form.colon}", text), ""))
    # Every member brings the comma before it, so members may be missing; the first one begins with a quote.
    return _joined("{", pc.ascii_ltrim(_joined(*members), characters=form.comma), "}")


def _list(values: Any, form: JsonForm) -> pa.Array:
    first, last = _range(values)
    items = pc.fill_null(_text(values.values.slice(first, last - first), form), "null")
    return _enclosed("[", items, "]", values, form)


def _map(values: Any, form: JsonForm) -> pa.Array:
    first, last = _range(values)
    keys = _text(values.keys.slice(first, last - first), form)
    items = _text(values.items.slice(first, last - first), form)
    if form.keeps_nulls:
        items = pc.fill_null(items, "null")
    entries = _joined(keys, form.colon, items)
    return _enclosed("{", entries, "}", values, form)


def _enclosed(before: str, items: pa.Array, after: str, values: Any, form: JsonForm) -> pa.Array:
    """The items of each list or map, joined; NULL items are left out."""
    offsets = values.offsets.to_numpy() - values.offsets[0].as_py()
    if items.null_count:
        present = items.is_valid().to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(present)])[offsets]
        items = items.drop_null()
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
    return pc.if_else(values.is_valid(), _joined(before, pc.binary_join(lists, form.comma), after), None)


def _range(values: Any) -> tuple[int, int]:
    """The part of the child a (maybe sliced) list or map speaks of."""
    offsets = values.offsets
    return offsets[0].as_py(), offsets[len(offsets) - 1].as_py()


def _quoted(text: pa.Array, form: JsonForm) -> pa.Array:
    return _joined('"', _escaped(text, form), '"')


def _escaped(text: pa.Array, form: JsonForm) -> pa.Array:
    odd = pc.fill_null(pc.match_substring_regex(text, f'["\\\\\\x00-\\x1f{_regex(form.rare)}]'), False)
    if not pc.any(odd).as_py():
        return text
    found = text.filter(odd)
    for sign, escape in _SHORT_ESCAPES:
        found = pc.replace_substring(found, sign, escape)
    rare = pc.match_substring_regex(found, f"[{_regex(form.rare)}]")
    if pc.any(rare).as_py():
        pattern = re.compile(f"[{form.rare}]")
        spelled = [pattern.sub(_unicode_escape, value) for value in found.filter(rare).to_pylist()]
        found = pc.replace_with_mask(found, rare, pa.array(spelled, pa.string()))
    return pc.replace_with_mask(text, odd, found)


def _regex(characters: str) -> str:
    """A set of characters in Arrow's regular expressions, which spell code points otherwise than Python's."""
    return re.sub(r"\\u([0-9a-f]{4})", r"\\x{\1}", characters)


def _unicode_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04X}"


def _base64(values: pa.Array) -> pa.Array:
    return pa.array(
        [None if value is None else f'"{base64.b64encode(value).decode()}"' for value in values.to_pylist()],
        pa.string(),
    )


def _latin(values: pa.Array) -> pa.Array:
    """Bytes as text of one character each, quoted."""
    text = pa.array([None if value is None else value.decode("latin-1") for value in values.to_pylist()], pa.string())
    return _quoted(text, AVRO)


def _plain_decimals(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _byte_lists(values: pa.Array) -> pa.Array:
    """Decimals as `[0, 3, -24]`: the bytes of the fixed field that holds them, as Java prints them."""
    size = decimal_bytes(values.type.precision)
    flat = values.cast(pa.decimal128(values.type.precision, values.type.scale))
    # A buffer may end after a part of a value: Arrow's kernels reserve more than they fill.
    raw = np.frombuffer(flat.buffers()[1], dtype=np.int8, count=16 * len(flat), offset=16 * flat.offset).reshape(-1, 16)
    digits = pa.array(np.arange(-128, 128)).cast(pa.string())
    # Arrow stores the lowest byte first; the fixed field has the highest first.
    columns = [digits.take(pa.array(raw[:, at].astype(np.int64) + 128)) for at in reversed(range(size))]
    text = _joined("[", pc.binary_join_element_wise(*columns, ", "), "]")
    return pc.if_else(flat.is_valid(), text, None)


def _joined(*parts: Any) -> pa.Array:
    """The parts as one text; NULL where one is."""
    return pc.binary_join_element_wise(*parts, "")


ROW: Final = JsonForm(":", ",", False, _CONTROL, _base64, _plain_decimals)
"""Images made of rows."""

AVRO: Final = JsonForm(": ", ", ", True, rf"{_CONTROL}\u007f-\u009f\u2000-\u20ff", _latin, _byte_lists)
"""Images that stand in change files."""
