"""`spark.readStream.format("hudi")`: commits as they complete, each exactly once.

1. An offset is a point on the table's clock: `{"offsetCommitTime": "<completion time>"}`, and in version 6, whose
   commits have no completion time, `{"commitTime": "<instant>"}`. These are Hudi's own forms; unknown members are
   ignored.
2. A micro-batch has exactly the rows of an incremental query of (start, end]; with
   `hoodie.datasource.query.incremental.format=cdc` its changes. Both ends stand in Spark's checkpoint, so a batch that
   is run again reads the same rows.
3. In version 6 no offset goes past a write that is not complete: its rows would never be seen.
4. Limits (`maxFilesPerTrigger`, `maxBytesPerTrigger`, as Spark's file source has them) count what commits wrote. A
   batch ends with a whole commit and has at least one.
5. Columns and types are those of the moment when the stream was loaded. Columns that are new since are left out.

Spark calls these methods in a Python process of its own; nothing is kept between calls but what is needed to stop at
the right place for `availableNow`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from hoodie.errors import Invalid, Unsupported
from hoodie.query import narrowed
from hoodie.query.time_travel import first_incomplete_write
from hoodie.spark.arrow_types import spark_schema
from hoodie.spark.failures import through_jvm
from hoodie.spark.source_partitions import (
    MAX_BYTES,
    MAX_FILES,
    START,
    is_change_query,
    open_table,
    partitions_of,
    read_partition,
)
from hoodie.spec import COMPLETION_CLOCK, REQUEST_CLOCK, CommitClock, Instant, InstantTime
from hoodie.table import Table
from hoodie.timeline import Timeline, load_commit_metadata, parse_as_of

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    HAS_LIMITS = True
except ImportError:  # PySpark 4.1 reads everything there is with every trigger
    HAS_LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands where later releases have their own."""


if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_KEYS: Mapping[CommitClock, str] = {COMPLETION_CLOCK: "offsetCommitTime", REQUEST_CLOCK: "commitTime"}
BEGINNING = "00000000000000"


class TableStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream of a table's commits."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        own = {name.lower(): value for name, value in options.items()}
        self._start = own.get(START, "earliest")
        self._most_files = _limit(own, MAX_FILES)
        self._max_bytes = _limit(own, MAX_BYTES)
        self._options = options
        self._schema = schema
        self._target: InstantTime | None = None

    @through_jvm()
    def initialOffset(self) -> dict[str, str]:
        table = open_table(self._options)
        timeline = table.timeline()
        match self._start:
            case "earliest":
                return _offset(timeline, BEGINNING)
            case "latest":
                return _offset(timeline, _latest(table, timeline))
        instant = self._start if self._start.isdigit() else parse_as_of(self._start, table.config.timezone)
        return _offset(timeline, instant)

    @through_jvm()
    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, str]:
        table = open_table(self._options)
        timeline = table.timeline()
        latest = _latest(table, timeline)
        if self._target is not None:
            latest = min(latest, self._target)
        if start is None:
            return _offset(timeline, latest)
        begin = _time(start, timeline)
        if latest <= begin:
            return _offset(timeline, begin)
        return _offset(timeline, _limited(table, timeline, begin, latest, limit))

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._most_files is not None:
            return ReadMaxFiles(self._most_files)
        if self._max_bytes is not None:
            return ReadMaxBytes(self._max_bytes)
        return ReadAllAvailable()

    @through_jvm()
    def reportLatestOffset(self) -> dict[str, str]:
        table = open_table(self._options)
        timeline = table.timeline()
        return _offset(timeline, _latest(table, timeline))

    @through_jvm()
    def prepareForTriggerAvailableNow(self) -> None:
        table = open_table(self._options)
        self._target = _latest(table, table.timeline())

    @through_jvm()
    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        table = open_table(self._options)
        timeline = table.timeline()
        begin, until = _time(start, timeline), _time(end, timeline)
        if until <= begin:
            return []
        query = "cdc" if is_change_query(self._options) else "incremental"
        plan = table.read_plan(query=query, begin=begin, end=until, as_of=None, hollow_commits="BLOCK")
        less = narrowed(plan, self._schema.names)
        _ensure_same_types(self._schema, spark_schema(less.schema))
        return list(partitions_of(table, less))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(partition, self._schema)


def _latest(table: Table, timeline: Timeline) -> InstantTime:
    """The last point up to which the table is settled."""
    clock = timeline.profile.clock
    hollow = first_incomplete_write(table.storage, timeline) if clock.has_hollow_commits else None
    times = (clock.of(one) for one in timeline.completed_writes())
    return max((time for time in times if hollow is None or time < hollow), default=BEGINNING)


def _offset(timeline: Timeline, time: InstantTime) -> dict[str, str]:
    return {_KEYS[timeline.profile.clock]: time}


def _time(offset: Mapping[str, Any], timeline: Timeline) -> InstantTime:
    """An offset on the table's clock, also one from before the table was upgraded or downgraded.

    Raises:
        Invalid: it is not an offset of a Hudi stream.
    """
    clock = timeline.profile.clock
    if _KEYS[clock] in offset:
        return str(offset[_KEYS[clock]])
    other = next((one for one, key in _KEYS.items() if key in offset), None)
    if other is None:
        raise Invalid(f"{dict(offset)} is no offset of a Hudi table", remedy="Start the stream with a new checkpoint")
    time = str(offset[_KEYS[other]])
    return max((clock.of(one) for one in timeline.completed_writes() if other.of(one) <= time), default=time)


def _limited(table: Table, timeline: Timeline, begin: InstantTime, latest: InstantTime, limit: Any) -> InstantTime:
    """The end of a batch that begins after `begin`: whole commits, until the limit is reached."""
    if not HAS_LIMITS or not isinstance(limit, ReadMaxFiles | ReadMaxBytes):
        return latest
    times = {one: timeline.profile.clock.of(one) for one in timeline.completed_writes()}
    end, taken = begin, 0
    for instant, time in sorted(times.items(), key=lambda pair: pair[1]):
        if not begin < time <= latest:
            continue
        taken += _amount(table, timeline, instant, limit)
        if end > begin and taken > (limit.max_files if isinstance(limit, ReadMaxFiles) else limit.max_bytes):
            return end
        end = time
    return end


def _amount(table: Table, timeline: Timeline, instant: Instant, limit: Any) -> int:
    stats = [stat for _, stat in load_commit_metadata(table.storage, timeline.profile, instant).write_stats()]
    return len(stats) if isinstance(limit, ReadMaxFiles) else sum(stat.total_write_bytes for stat in stats)


def _limit(options: Mapping[str, str], name: str) -> int | None:
    if name not in options:
        return None
    if not HAS_LIMITS:
        raise Unsupported(f"{name} needs PySpark 4.2 or newer", remedy="Leave it out: each trigger reads all there is")
    if not options[name].isdigit() or int(options[name]) < 1:
        raise Invalid(f"{name} is a positive whole number, not {options[name]!r}")
    return int(options[name])


def _ensure_same_types(stream: StructType, table: StructType) -> None:
    """Checks that rows of the table are still rows of the stream.

    Raises:
        Invalid: a column has another type now.
    """
    for told, now in zip(stream.fields, table.fields, strict=True):
        if told.dataType != now.dataType:
            raise Invalid(
                f"Column {told.name!r} is {now.dataType.simpleString()} now; it was {told.dataType.simpleString()} "
                "when the stream was loaded",
                remedy="Load the stream again; its checkpoint can be kept",
                column=told.name,
            )
