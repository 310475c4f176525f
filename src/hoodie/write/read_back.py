"""Values that a table would not give back: refused before they are written.

1. Readers take partition columns from the partition path (docs/format/partition-paths.md, "Reading"), decode `%XX` in
   it whether or not the table encodes, and cut what stands before `=`. So `a=b` reads as `b`, `%20` as a blank, and the
   empty text as NULL, unless the table writes paths url-encoded or in Hive style.
2. The named form of a record key escapes nothing: two rows share one key where a value holds what begins the next
   field, or is the text that stands for NULL or for "". Where no value does, the parts can be told apart: names hold no
   comma, so nothing else overlaps.
3. What the table holds already (Hudi writes all of it) stays writable: a partition that is there is not refused.

It does not know the operation; automatic keys and times in paths, which are read from the files, are no concern here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records import DEFAULT_PARTITION, KeyOptions
from hoodie.records.columns import column
from hoodie.records.partition_paths import URL_ENCODE_KEY
from hoodie.records.partition_values import unescaped
from hoodie.records.record_keys import EMPTY_PART, NULL_PART
from hoodie.records.schema import is_text

_STAND_INS = {NULL_PART: "NULL", EMPTY_PART: "the empty text"}
_HIVE_STYLE_KEY = "hoodie.datasource.write.hive_style_partitioning"


def ensure_read_back(
    rows: pa.RecordBatch, paths: pa.Array, options: KeyOptions, is_held: Callable[[str], bool]
) -> None:
    """Refuse rows whose partition values would be read as others. `paths` has the partition path of each row;
    `is_held` tells whether the table has a partition.

    Raises:
        Invalid: names the path, what it would be read as, and the option that helps.
    """
    fields = [name for name in options.partition_fields if not options.is_timestamp(name)]
    if not fields or options.style.slash_dates:
        return
    _ensure_no_default(rows, paths, fields, is_held)
    if options.style.url_encode or not any(_is_text(rows, name) for name in fields):
        return
    for path in pc.unique(paths).to_pylist():
        shown = _read_otherwise(path, options)
        if shown is not None and not is_held(path):
            raise Invalid(
                f"The partition path {path!r} would not be read as what it was written for: {shown}",
                remedy=f"Set {URL_ENCODE_KEY}=true for a new table"
                + ("" if options.style.hive or "%" in path else f", or {_HIVE_STYLE_KEY}=true")
                + ", or change the value",
                partition=path,
            )


def ensure_distinct_keys(rows: pa.RecordBatch, options: KeyOptions) -> None:
    """Refuse rows whose key could be that of other values.

    Raises:
        Invalid: names the column and a value.
    """
    if not options.keys_have_names or len(options.record_fields) == 1:
        return
    for name in options.record_fields:
        if _is_text(rows, name):
            _ensure_no_stand_in(rows, name)
    for name, following in zip(options.record_fields, options.record_fields[1:], strict=False):
        if not _is_text(rows, name):
            continue
        values = column(rows, name, "record key column")
        mistaken = pc.fill_null(pc.match_substring(values, f",{following}:"), False)
        if pc.any(mistaken).as_py():
            value = values.filter(mistaken)[0].as_py()
            raise Invalid(
                f"Record key column {name!r}: the value {value!r} holds {f',{following}:'!r}, so its key could be that "
                "of another row",
                remedy=f"Change the value, or name {name!r} last in hoodie.datasource.write.recordkey.field of a new "
                "table",
                column=name,
                value=value,
            )


def _ensure_no_stand_in(rows: pa.RecordBatch, name: str) -> None:
    values = column(rows, name, "record key column")
    for text, meaning in _STAND_INS.items():
        if pc.any(pc.equal(values, text)).as_py():
            raise Invalid(
                f"Record key column {name!r}: the value {text!r} is how a key of several fields says {meaning}, so its "
                "key would be that of another row",
                remedy=f"Change the value, or write {meaning} where that is meant",
                column=name,
                value=text,
            )


def _ensure_no_default(
    rows: pa.RecordBatch, paths: pa.Array, fields: Sequence[str], is_held: Callable[[str], bool]
) -> None:
    for name in fields:
        if not _is_text(rows, name):
            continue
        values = column(rows, name, "partition column")
        nullish = pc.fill_null(pc.is_in(values, pa.array(["", DEFAULT_PARTITION], values.type)), False)
        if not pc.any(nullish).as_py():
            continue
        if all(is_held(path) for path in pc.unique(paths.filter(nullish)).to_pylist()):
            continue
        value = values.filter(nullish)[0].as_py()
        raise Invalid(
            f"Partition column {name!r}: the value {value!r} would be read as NULL",
            remedy="Write NULL where there is no value, or another text",
            column=name,
            value=value,
        )


def _is_text(rows: pa.RecordBatch, name: str) -> bool:
    return is_text(column(rows, name, "column").type)


def _read_otherwise(path: str, options: KeyOptions) -> str | None:
    """What readers make of a path that is not url-encoded; None where they find the values, or look in the files."""
    fields, segments, hive = options.partition_fields, path.split("/"), options.style.hive
    if len(segments) == len(fields):
        for name, segment in zip(fields, segments, strict=True):
            text = segment.removeprefix(f"{name}=") if hive else segment
            read = unescaped(segment.partition("=")[2] if "=" in segment else segment)
            if read != text and not options.is_timestamp(name):
                return f"{text!r} comes back as {read!r}"
        return None
    marks = sum(segment.startswith(tuple(f"{name}=" for name in fields)) for segment in segments)
    if marks != (len(fields) if hive else 0):
        return "its folders look like those of other values"
    return None
