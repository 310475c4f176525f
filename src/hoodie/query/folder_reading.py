"""What a folder on the way to partitions says about the partitions in it.

1. A partition has one folder for each field, or more where values hold slashes, which only some can: texts that are not
   url-encoded, dates that are written with slashes, times in a format of the table's.
2. With one folder for each field, the first folders give the first fields (`values`).
3. With more, a folder is read as the whole path would be (`below`): a single field as it stands, several in Hive style
   by their `field=`. Else nobody can tell where one value ends and the next begins, and values are read from files:
   every way to cut the path is a reading.
4. Where the writer's own class makes the paths, or another table's folders are the partitions (bootstrap), a folder
   says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import combinations
from typing import Any

import pyarrow as pa

from hoodie.errors import Invalid
from hoodie.query.value_spans import NULL, Span, Spans, exactly, texts_below
from hoodie.records import DEFAULT_PARTITION, partition_values
from hoodie.records.partition_values import parse_partition_text, read_layout, time_fields
from hoodie.records.schema import is_text
from hoodie.spec import TableConfig, keys

_DATE = re.compile(r"(\d{4})(?:/(\d{2})(?:/(\d{2}))?)?")
Known = Mapping[str, Spans]


class FolderReading:
    """Reads folders of a table. `types`: the columns whose values paths can give; `is_possible`: whether a folder says
    anything at all.
    """

    def __init__(self, types: pa.Schema, config: TableConfig) -> None:
        self.layout = read_layout(config)
        self.is_possible = config.has_known_keygen and not config.raw.get(keys.BOOTSTRAP_BASE_PATH)
        self._types = {field.name: field.type for field in types}
        self._schema = types
        self._fields = self.layout.partition_fields
        self._times = time_fields(self.layout)
        self._is_hive, self._is_encoded = config.hive_style, config.url_encode
        self._spanning = frozenset(name for name in self._fields if self._can_span(name))

    def may_be_whole(self, folder: str) -> bool:
        """Whether partitions at or below it can have one folder for each field."""
        segments = folder.split("/")
        dates = zip(self._fields, segments, strict=False)
        has_part = any(self._is_slash_date(name) and _text(segment) != DEFAULT_PARTITION for name, segment in dates)
        return len(segments) <= len(self._fields) and not has_part

    def values(self, folder: str) -> Mapping[str, Any]:
        """The values of the first fields, for partitions with one folder for each."""
        count = folder.count("/") + 1
        path = "/".join((folder, *[DEFAULT_PARTITION] * (len(self._fields) - count)))
        try:
            found = partition_values(path, self._schema, self.layout)
        except Invalid:  # it does not tell a column that no file has
            return {}
        return {name: found[name] for name in self._fields[:count] if name in found}

    def below(self, folder: str) -> Iterator[Known]:
        """What can be true of partitions at or below it that have more folders than fields; none: there are none."""
        segments = folder.split("/")
        if not self._spanning:
            if len(segments) > len(self._fields):
                yield {}
            return
        if len(self._fields) == 1:
            yield self._of_one(folder, is_whole=len(segments) > 1)
        elif self._is_hive:
            yield self._marked(segments)
        elif any("=" in segment for segment in segments):
            yield {}
        else:
            yield from self._cut(segments)

    def _of_one(self, folder: str, *, is_whole: bool) -> Known:
        (name,) = self._fields
        text = folder.removeprefix(f"{name}=")
        if self._is_text(name):
            return {name: (*((exactly(text),) if is_whole else ()), texts_below(text))}
        return self._known(name, text, is_open=True)

    def _marked(self, segments: Sequence[str]) -> Known:
        """As values that span folders are read in Hive style: raw, each from its `field=` on."""
        texts: list[str] = []
        for segment in segments:
            name = self._fields[len(texts)] if len(texts) < len(self._fields) else None
            if name is not None and segment.startswith(f"{name}="):
                texts.append(segment.partition("=")[2])
            elif texts:
                texts[-1] = f"{texts[-1]}/{segment}"
            else:
                return {}
        known: dict[str, Spans] = {}
        for name, text in zip(self._fields, texts, strict=False):
            if text == DEFAULT_PARTITION:
                known[name] = (NULL,)
            else:
                known.update(self._known(name, text, is_open=name == self._fields[len(texts) - 1]))
        return known

    def _cut(self, segments: Sequence[str]) -> Iterator[Known]:
        """One reading for each way to cut the folder into values, the last of which may go on below it."""
        count = len(segments)
        for fields in range(1, min(len(self._fields), count) + 1):
            for cuts in combinations(range(1, count), fields - 1):
                begins = (0, *cuts, count)
                texts = ["/".join(segments[begins[at] : begins[at + 1]]) for at in range(fields)]
                if any(
                    "/" in text and name not in self._spanning for name, text in zip(self._fields, texts, strict=False)
                ):
                    continue
                known: dict[str, Spans] = {}
                for at, (name, text) in enumerate(zip(self._fields, texts, strict=False)):
                    if text == DEFAULT_PARTITION:
                        known.update(self._nothing(name))
                    elif not (self._is_encoded and self._is_text(name)):  # files have it in another form
                        known.update(self._known(name, text, is_open=at == fields - 1))
                yield known

    def _nothing(self, name: str) -> Known:
        """What a file can have where the path has no value."""
        if name not in self._types or self._is_time(name):
            return {}
        return {name: (NULL, exactly("")) if self._is_text(name) else (NULL,)}

    def _known(self, name: str, text: str, *, is_open: bool) -> Known:
        """The values of a field that is written as `text`, or begins so where it `is_open`; nothing if any."""
        if name not in self._types or self._is_time(name):
            return {}
        kind = self._types[name]
        if self._is_text(name):
            return {name: (exactly(text), *((texts_below(text),) if is_open and name in self._spanning else ()))}
        if self._is_slash_date(name):
            days = _days(text)
            return {} if days is None else {name: (days,)}
        if name in self._spanning or pa.types.is_floating(kind):
            return {}
        try:
            return {name: (exactly(parse_partition_text(text, kind)),)}
        except ValueError:
            return {}

    def _can_span(self, name: str) -> bool:
        """Whether a value can take more than one folder."""
        if self._is_time(name) or self.layout.slash_dates:
            return True
        return not self._is_encoded and (name not in self._types or self._is_text(name))

    def _is_time(self, name: str) -> bool:
        return name in self._times

    def _is_text(self, name: str) -> bool:
        if name not in self._types or self._is_time(name):
            return False
        return is_text(self._types[name])

    def _is_slash_date(self, name: str) -> bool:
        return self.layout.slash_dates and name in self._types and pa.types.is_date(self._types[name])


def _text(segment: str) -> str:
    return segment.partition("=")[2] if "=" in segment else segment


def _days(text: str) -> Span | None:
    """The days of a year, month or day with slashes; None where it is none."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day = (None if part is None else int(part) for part in found.groups())
    try:
        low = date(year or 0, month or 1, day or 1)
        if day is not None:
            return Span(low, low)
        last = date(low.year, month or 12, 28) + timedelta(days=4)
        return Span(low, last - timedelta(days=last.day))
    except (ValueError, OverflowError):
        return None
