"""The history of version 8 and later: parquet files in levels, and a manifest that says which of them count.

1. What the current manifest names is the history, and nothing else (`lsm_manifest`).
2. A row is one instant. Names of files tell ranges, but not reliably (tables that were upgraded); the statistics inside
   the files do, so these decide which row groups are read.
3. What an instant did is a column of its own. It is read only for instants that are asked about.
4. While it is read the history may be compacted and cleaned. When a file is gone, the manifest is read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hoodie.errors import Corrupt, Missing, Unavailable
from hoodie.spec import (
    CleanMetadata,
    CommitMetadata,
    Instant,
    InstantTime,
    State,
    comparable_action,
    parse_clean_metadata,
    parse_commit,
)
from hoodie.storage import Storage, translated
from hoodie.timeline.archived_instant import ArchivedInstant, RowPlace
from hoodie.timeline.lsm_manifest import load_manifest

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from hoodie.records.page_index import FileFooter

MAX_FILE_INSTANTS = 10_000_000
"""Rows one history file may have: a few damaged bytes in a footer can claim any number."""

_REQUESTED, _COMPLETED, _ACTION, _METADATA = "instantTime", "completionTime", "action", "metadata"
_ATTEMPTS = 3
_REMEDY = "Restore the file from a copy"


def load_lsm_history(
    storage: Storage, folder: str, after: InstantTime = "", until: InstantTime | None = None
) -> tuple[ArchivedInstant, ...]:
    """Completed instants that were at work in (after, until], in timeline order. Reads the manifest, and three columns
    of what may have such instants.

    Raises:
        Corrupt: the manifest or a file it names is damaged or gone.
    """
    for attempt in range(_ATTEMPTS):
        found: dict[tuple[str, str], ArchivedInstant] = {}
        path = folder
        try:
            for file in load_manifest(storage, folder).files:
                path = f"{folder}/{file.name}"
                for one in _instants(storage, path, after, until):
                    found.setdefault(one.instant.logical, one)
        except Missing as error:
            if attempt + 1 < _ATTEMPTS:
                continue
            raise Corrupt(f"Archived history {path} is gone", remedy=_REMEDY, path=path) from error
        return tuple(sorted(found.values(), key=lambda one: one.instant))
    raise AssertionError("the last attempt returns or raises")


def load_lsm_metadata(
    storage: Storage, instants: Iterable[tuple[ArchivedInstant, RowPlace]]
) -> dict[InstantTime, CommitMetadata]:
    """What these commits did, by requested time. Reads one column of the row groups they are in.

    Raises:
        Corrupt: a file is damaged. Missing: the history was compacted since the instants were loaded.
    """
    return {requested: parse_commit(data, path) for requested, path, data in _contents(storage, instants)}


def load_lsm_cleans(
    storage: Storage, instants: Iterable[tuple[ArchivedInstant, RowPlace]]
) -> tuple[CleanMetadata, ...]:
    """What these cleans did, those left out that do not say. Raises as `load_lsm_metadata`."""
    return tuple(parse_clean_metadata(data, path) for _, path, data in _contents(storage, instants) if data)


def _contents(
    storage: Storage, instants: Iterable[tuple[ArchivedInstant, RowPlace]]
) -> Iterator[tuple[InstantTime, str, bytes]]:
    """Requested time of each instant, the history file it is in, and the bytes of its completed file."""
    by_file: dict[str, dict[int, ArchivedInstant]] = defaultdict(dict)
    for one, place in instants:
        by_file[place.path][place.row] = one
    for path, wanted in by_file.items():
        with _opened(storage, path) as (_, file):
            for first, group in _groups(file):
                rows = [row for row in wanted if first <= row < first + file.metadata.row_group(group).num_rows]
                if rows:
                    column = file.read_row_group(group, [_METADATA]).column(_METADATA)
                    for row in rows:
                        data = column[row - first].as_py()
                        if not isinstance(data, bytes | None):
                            raise _damaged(path, f"the metadata in row {row} is no bytes")
                        yield wanted[row].requested, path, data or b""


def _instants(storage: Storage, path: str, after: InstantTime, until: InstantTime | None) -> Iterator[ArchivedInstant]:
    with _opened(storage, path) as (source, file):
        footer = _footer(source) if after or until is not None else None
        for first, group in _groups(file):
            if not _may_have(file, footer, group, after, until):
                continue
            rows = file.read_row_group(group, [_REQUESTED, _COMPLETED, _ACTION])
            columns = (rows.column(name).to_pylist() for name in (_REQUESTED, _COMPLETED, _ACTION))
            for at, (requested, completed, action) in enumerate(zip(*columns, strict=True)):
                if not (isinstance(requested, str) and isinstance(action, str) and isinstance(completed, str | None)):
                    raise _damaged(path, f"row {first + at} names no instant")
                instant = Instant(requested, comparable_action(action), State.COMPLETED, completed)
                one = ArchivedInstant(instant, RowPlace(path, first + at))
                if one.was_at_work(after, until):
                    yield one


@contextmanager
def _opened(storage: Storage, path: str) -> Iterator[tuple[Any, pq.ParquetFile]]:
    """A history file, as bytes and as Parquet. Damage that shows while it is read is reported as such."""
    # Nothing else of the timeline needs pyarrow, which takes longer to load than `hoodie timeline` to answer.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with translated("read", path), storage.open_input(path) as source:
            file = pq.ParquetFile(source)
            if file.metadata.num_rows > MAX_FILE_INSTANTS:
                raise _damaged(path, f"it claims {file.metadata.num_rows} instants")
            yield source, file
    except (pa.ArrowException, KeyError, ValueError, Unavailable) as error:
        # Arrow reports some damage as an input/output error without a number; those of the system have one.
        if isinstance(error, Unavailable) and error.facts.get("errno") != "0":
            raise
        raise _damaged(path, str(error)) from error


def _groups(file: pq.ParquetFile) -> Iterator[tuple[int, int]]:
    """The first row of each row group, and the group's number."""
    first = 0
    for group in range(file.num_row_groups):
        yield first, group
        first += file.metadata.row_group(group).num_rows


def _footer(source: Any) -> FileFooter | None:
    from hoodie.records.page_index import ranges_of, read_file_footer  # noqa: PLC0415 - see _opened

    return read_file_footer(ranges_of(source), source.size())


def _may_have(
    file: pq.ParquetFile, footer: FileFooter | None, group: int, after: InstantTime, until: InstantTime | None
) -> bool:
    """Whether statistics leave room for instants that were at work in (after, until]."""
    import pyarrow as pa  # noqa: PLC0415 - see _opened

    from hoodie.records.group_stats import group_stats  # noqa: PLC0415 - see _opened

    if footer is None:
        return True
    stored = file.schema_arrow
    schema = pa.schema([stored.field(name) for name in (_REQUESTED, _COMPLETED) if name in stored.names])
    stats = group_stats(footer, group, schema)
    requested, completed = stats.get(_REQUESTED), stats.get(_COMPLETED)
    last = completed.high if completed is not None and completed.nulls == 0 else None
    first = requested.low if requested is not None else None
    ended_before = isinstance(last, str) and last <= after
    return not (ended_before or (until is not None and isinstance(first, str) and first > until))


def _damaged(path: str, what: str) -> Corrupt:
    return Corrupt(f"Archived history {path} cannot be read: {what}", remedy=_REMEDY, path=path)
