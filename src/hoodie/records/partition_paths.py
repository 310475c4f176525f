"""Partition paths: the folder of a row below the table's base path, as written in `_hoodie_partition_path`.

1. A path is the segments of the partition fields joined by `/`; a table without partition fields has the path "".
2. NULL and "" become `__HIVE_DEFAULT_PARTITION__`. Other values are url-encoded if asked, then Hive style puts `field=`
   in front.
3. No path leaves the base path or hides in it: no `..` or `.` or empty segment, no leading or trailing `/`, no control
   character, no segment `.hoodie`. What url encoding or `field=` makes harmless is accepted.
4. Text work happens once per distinct value: rows are dictionary-encoded first and paths taken by code.

Format: docs/format/partition-paths.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid
from hoodie.records.timestamp_keys import TimestampOptions, timestamp_texts

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
URL_ENCODE_KEY = "hoodie.datasource.write.partitionpath.urlencode"

# Hudi escapes these and nothing else: space, "}", "~" and all of non-ASCII stay as they are.
ESCAPED = frozenset([*map(chr, range(0x20)), *"\"#%'*/:=?\\{[]^", "\x7f"])
_ESCAPES = {ord(char): f"%{ord(char):02X}" for char in ESCAPED}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class PathStyle:
    """How values become folders. Behaviour only; each is a table property fixed at creation."""

    hive: bool = False
    url_encode: bool = False
    slash_dates: bool = False


@dataclass(frozen=True, slots=True)
class SegmentColumn:
    """One partition field: a code per row, and the segment each code stands for."""

    codes: pa.Array
    segments: list[str]


def url_encoded(value: str) -> str:
    """`value` with Hudi's reserved characters as `%XX`."""
    return value.translate(_ESCAPES)


def encoded_column(values: pa.Array) -> pa.DictionaryArray:
    """`values` as distinct values and a code per row; NULL is a value of its own, so no code is NULL."""
    return pc.dictionary_encode(values, null_encoding="encode")


def simple_segments(field: str, distinct: pa.Array, style: PathStyle) -> list[str]:
    """The folder (or folders, where a value holds `/`) of each distinct text value of `field`.

    Raises:
        Invalid: a value would leave the base path or hide in it.
    """
    segments = [_segment(field, value, style) for value in distinct.to_pylist()]
    for segment, value in zip(segments, distinct.to_pylist(), strict=True):
        ensure_safe(segment, field, value, style)
    return segments


def timestamp_segments(
    field: str, values: pa.Array, options: TimestampOptions, style: PathStyle, consistent_timestamps: bool = False
) -> SegmentColumn:
    """The folders of a column that goes through the timestamp key generator; NULL has a time too, no default folder.

    Raises:
        Invalid: a value is no time, or its format would leave the base path.
    """
    codes, texts = timestamp_texts(values, field, options, consistent_timestamps)
    # Times are neither split by slashes nor defaulted: their format already says what the folder is.
    plain = PathStyle(style.hive, style.url_encode, slash_dates=False)
    segments = [_segment(field, text, plain) for text in texts]
    for segment, text in zip(segments, texts, strict=True):
        ensure_safe(segment, field, text, plain)
    return SegmentColumn(pa.array(codes), segments)


def joined_paths(columns: Sequence[SegmentColumn]) -> pa.DictionaryArray:
    """One path per row from the segments of every partition field, in order."""
    first, *others = columns
    codes, texts = first.codes, first.segments
    for other in others:
        width = len(other.segments)
        both = pc.add(pc.multiply(codes.cast(pa.int64()), width), other.codes.cast(pa.int64()))
        pairs = both.dictionary_encode()
        texts = [f"{texts[pair // width]}/{other.segments[pair % width]}" for pair in pairs.dictionary.to_pylist()]
        codes = pairs.indices
    return _deduplicated(codes, texts)


def ensure_safe(path: str, field: str, value: object, style: PathStyle) -> None:
    """Refuse a relative partition path that would not be a folder of its own below the base path.

    Raises:
        Invalid: names the column, the value and what to do.
    """
    trouble = _trouble(path)
    if trouble is None:
        return
    remedy = (
        "Change the value" if style.url_encode else f"Change the value, or set {URL_ENCODE_KEY}=true for a new table"
    )
    raise Invalid(
        f"Partition column {field!r}: the value {value!r} makes the partition path {path!r}, {trouble}",
        remedy=remedy,
        column=field,
        value=value,
    )


def _segment(field: str, value: str | None, style: PathStyle) -> str:
    text = value if value else DEFAULT_PARTITION
    if style.url_encode and value:
        text = url_encoded(text)
    segment = f"{field}={text}" if style.hive else text
    if style.slash_dates and value:
        segment = segment.replace("-", "/")
    return segment


def _trouble(path: str) -> str | None:
    if path.startswith("/"):
        return "which is absolute"
    if _CONTROL.search(path):
        return "which holds a control character"
    segments = path.split("/")
    if ".." in segments or "." in segments:
        return "which leaves the folder it should be in"
    if "" in segments:
        return "which has an empty folder name"
    if ".hoodie" in segments:
        return "which is named like the table's metadata folder"
    return None


def _deduplicated(codes: pa.Array, texts: list[str]) -> pa.DictionaryArray:
    """A dictionary of distinct paths (different values may share one: NULL and "")."""
    place: dict[str, int] = {}
    mapping = pa.array([place.setdefault(text, len(place)) for text in texts], pa.int32())
    return pa.DictionaryArray.from_arrays(mapping.take(codes), pa.array(list(place), pa.string()))
