"""Record keys: the text that names a row, exactly as Hudi writes it in `_hoodie_record_key`.

1. Plain form (one key field of SIMPLE, TIMESTAMP, CUSTOM, NON_PARTITION): the field's text, nothing else. NULL and ""
   are errors.
2. Named form (two or more fields, or one where the table says so): `f1:v1,f2:v2` in configured order; NULL is written
   `__null__` and "" `__empty__`; a row whose fields are all NULL or "" is an error. Values are not escaped.
3. Automatic form (no key fields): `<instant>_<task>_<row>`, unique because a task numbers its rows.

Errors name the fields, how many rows are wrong and the first of them. Format: docs/format/record-keys.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.columns import column
from hoodie.records.java_text import AVRO_TEXT, TextForm, ensure_text, java_text

NULL_PART = "__null__"
EMPTY_PART = "__empty__"
_SQL_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{1,3}")


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where rows come from, for automatic keys: the write's instant, the task's number, the number of the first row."""

    instant: str
    task: int
    first_row: int = 0


def plain_keys(batch: pa.RecordBatch, field: str, form: TextForm = AVRO_TEXT) -> pa.Array:
    """The text of `field`, one key per row.

    Raises:
        Invalid: the column is missing, has no text, or holds NULL or "".
    """
    text = _text(batch, field, form)
    _, blank = _part(text)
    if blank is not None:
        _ensure_no_rows(blank, (field,))
    return text


def named_keys(batch: pa.RecordBatch, fields: Sequence[str], form: TextForm = AVRO_TEXT) -> pa.Array:
    """`f1:v1,f2:v2` per row.

    Raises:
        Invalid: a column is missing or has no text, or all fields of a row are NULL or "".
    """
    return joined_keys([_text(batch, field, form) for field in fields], fields)


def joined_keys(texts: Sequence[pa.Array], fields: Sequence[str]) -> pa.Array:
    """The same of the fields' texts.

    Raises:
        Invalid: all fields of a row are NULL or "".
    """
    pieces: list[object] = []
    blank_everywhere: pa.Array | None = None
    for position, (field, text) in enumerate(zip(fields, texts, strict=True)):
        part, blank = _part(text)
        pieces += [f"{',' if position else ''}{field}:", part]
        if position == 0:
            blank_everywhere = blank
        elif blank_everywhere is not None:
            blank_everywhere = None if blank is None else pc.and_(blank_everywhere, blank)
    if blank_everywhere is not None:
        _ensure_no_rows(blank_everywhere, tuple(fields))
    return pc.binary_join_element_wise(*pieces, "")


def automatic_keys(rows: int, origin: RowOrigin) -> pa.Array:
    """`<instant>_<task>_<row>` for `rows` rows, numbered from `origin.first_row`."""
    numbers = pa.array(np.arange(origin.first_row, origin.first_row + rows)).cast(pa.string())
    return pc.binary_join_element_wise(f"{origin.instant}_{origin.task}_", numbers, "")


def stored_text_form(stored_key: str) -> TextForm:
    """How the timestamps in a key that a table already holds are written; ask only where a key field is a timestamp.

    A table that was bulk-inserted by Hudi's row writer holds SQL text, one filled by its other operations raw numbers:
    an upsert finds its rows only in the form they have.
    """
    return TextForm("sql" if _SQL_TIMESTAMP.search(stored_key) else "avro")


def _text(batch: pa.RecordBatch, field: str, form: TextForm) -> pa.Array:
    values = column(batch, field, "record key field")
    ensure_text(values.type, field, "record key field")
    return java_text(values, form)


def _part(text: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """`text` with NULL and "" spelled out, and which rows were blank (None: no row was)."""
    shortest = pc.min(pc.binary_length(text)).as_py()
    has_empty = shortest == 0
    if not has_empty and not text.null_count:
        return text, None
    empty = pc.fill_null(pc.equal(text, ""), False)
    blank = pc.or_(empty, text.is_null())
    spelled = pc.if_else(empty, EMPTY_PART, text) if has_empty else text
    return pc.fill_null(spelled, NULL_PART), blank


def _ensure_no_rows(wrong: pa.Array, fields: tuple[str, ...]) -> None:
    count = pc.sum(wrong).as_py() or 0
    if not count:
        return
    names = ", ".join(fields)
    raise Invalid(
        f"Record key field{'s' if len(fields) > 1 else ''} {names}: {count} of {len(wrong)} rows "
        f"{'have' if count > 1 else 'has'} a key that is null or empty (first: row {pc.index(wrong, True).as_py()})",
        remedy="Fill the key, drop those rows, or name other key fields in hoodie.datasource.write.recordkey.field",
        columns=fields,
        count=count,
    )
