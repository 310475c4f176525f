"""`df.writeStream.format("hudi")`: micro-batches become commits, each exactly once.

1. Spark may run a batch again after a crash. Each commit carries the number of its batch in its extra metadata, in
   Hudi's own words (key `_hudi_streaming_sink_checkpoint`, a JSON map from the stream's identifier to the batch), so
   that a batch which was committed is recognised, by Hudi as well.
2. Hudi compares numbers only, and so loses rows when a stream starts over with an empty checkpoint folder. Each commit
   also carries the id that Spark keeps in that folder (`_hoodie_streaming_query_id`, a JSON map like the other one),
   and a batch is skipped only if one of the same folder (or of Hudi) was committed.
3. A commit repeats what is known of other streams into the table, of which Hudi reads the newest commit only. That may
   be old where two commit at once: whether a batch was committed is seen from all commits of the active timeline.
4. A stream into a merge-on-read table has its log files compacted between two batches when that is due; Hudi does it
   beside them. `hoodie.compact.inline=false` leaves it to others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie.config import resolve
from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, HudiError, Invalid, Unavailable
from hoodie.spark.writer import path_of, with_partitioning, without_path, write_frame
from hoodie.storage import open_storage
from hoodie.table import Table
from hoodie.timeline import is_table, load_commit_metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"
QUERY_KEY = "_hoodie_streaming_query_id"

_CHECKPOINT_LOCATION = "checkpointLocation"
_CHECKPOINT_CONF = "spark.sql.streaming.checkpointLocation"
_IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
_RETRIES = "hoodie.datasource.write.streaming.retry.count"
_RETRY_MS = "hoodie.datasource.write.streaming.retry.interval.ms"
_IGNORE_FAILED = "hoodie.datasource.write.streaming.ignore.failed.batch"
_OPERATION = "hoodie.datasource.write.operation"
_INLINE_COMPACTION = "hoodie.compact.inline"
_QUERY_ID_PROPERTY = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class StreamNote:
    """What a commit says of streams: the last batch by identifier, and the query that wrote it if that was not Hudi."""

    batches: Mapping[str, int]
    queries: Mapping[str, str]

    def over(self, older: StreamNote) -> StreamNote:
        """This note, with what only an older one says."""
        theirs = {name: query for name, query in older.queries.items() if name not in self.batches}
        return StreamNote({**older.batches, **self.batches}, {**theirs, **self.queries})

    def extra_metadata(self) -> dict[str, str]:
        """The note as keys of a commit's extra metadata."""
        batches = {name: str(batch) for name, batch in self.batches.items()}
        return {CHECKPOINT_KEY: json.dumps(batches), QUERY_KEY: json.dumps(dict(self.queries))}


class BatchSink:
    """The function Spark calls with each micro-batch."""

    def __init__(
        self,
        path: str | None,
        options: Mapping[str, object],
        partition_by: Sequence[str],
        output_mode: str,
        env: Env | None = None,
    ) -> None:
        self._path = path_of(path, options)
        named = {name: value for name, value in options.items() if name.lower() != _CHECKPOINT_LOCATION.lower()}
        self._options = with_partitioning(without_path(named), partition_by)
        self._options = {_INLINE_COMPACTION: "true", **self._options}
        self._config = resolve(self._options)
        self._mode = "overwrite" if output_mode.lower() == "complete" else "append"
        self._env = env or SystemEnv()
        self._last: StreamNote | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """The batch is in the table then, or dropped where options say so.

        Raises:
            HudiError: it was not committed.
        """
        left = self._config.integer(_RETRIES)
        while True:
            try:
                self._commit(frame, batch)
            except HudiError as error:
                if isinstance(error, Unavailable | Conflict) and left > 0:
                    left -= 1
                    log.warning("batch %d failed, trying again: %s", batch, error)
                    self._env.sleep(self._config.integer(_RETRY_MS) / 1000)
                    continue
                if not self._config.flag(_IGNORE_FAILED):
                    raise
                log.exception("batch %d failed and is dropped, as %s says", batch, _IGNORE_FAILED)
            return

    def _commit(self, frame: DataFrame, batch: int) -> None:
        """Writes the batch, unless it is in the table: an attempt may have failed after its commit."""
        identifier, query_id = self._config.text(_IDENTIFIER), _query_id(frame.sparkSession)
        notes = load_notes(self._path, self._options, self._last)
        if has_committed(notes, identifier, batch, query_id) and self._config.text(_OPERATION) != "delete":
            log.info("batch %d of stream %s is in %s already", batch, identifier, self._path)
            return
        note = StreamNote({identifier: batch}, {identifier: query_id})
        for older in notes:
            note = note.over(older)
        write_frame(frame, self._path, {**self._options, **note.extra_metadata()}, self._mode)
        self._last = note


def load_notes(path: str, options: Mapping[str, object], until: StreamNote | None = None) -> tuple[StreamNote, ...]:
    """Notes of the completed commits of streams into the table at `path`, the newest first and `until` the last; of all
    of the active timeline if that is not among them. None when there is no table.
    """
    passed = {name: str(value) for name, value in resolve(options).passed.items()}
    if not is_table(open_storage(path, passed)):
        return ()
    table = Table.open(path, options=options)
    timeline = table.timeline()
    notes: list[StreamNote] = []
    for instant in reversed(timeline.completed_writes()):
        extra = load_commit_metadata(table.storage, timeline.profile, instant).extra_metadata
        if CHECKPOINT_KEY in extra:
            notes.append(_parse_note(extra))
            if notes[-1] == until:
                break
    return tuple(notes)


def has_committed(notes: Sequence[StreamNote], identifier: str, batch: int, query_id: str) -> bool:
    """Whether this batch of this query is in the table with these notes, the newest of which comes first."""
    known = [note for note in notes if identifier in note.batches]
    mine = [note for note in known if note.queries.get(identifier) == query_id]
    if known and identifier not in known[0].queries:
        mine.append(known[0])
    return any(note.batches[identifier] >= batch for note in mine)


def ensure_checkpointed(spark: SparkSession, options: Mapping[str, object]) -> None:
    """Nothing, when the stream has a checkpoint folder.

    Raises:
        Invalid: it has none, so it would begin from its start every time and repeat rows.
    """
    if any(name.lower() == _CHECKPOINT_LOCATION.lower() for name in options):
        return
    if not spark.conf.get(_CHECKPOINT_CONF, ""):
        raise Invalid(
            "A stream into a Hudi table needs a checkpoint folder",
            remedy=f'Give it as .option("{_CHECKPOINT_LOCATION}", folder), one for each stream',
        )


def _parse_note(extra: Mapping[str, str]) -> StreamNote:
    try:
        batches = {str(name): int(number) for name, number in json.loads(extra[CHECKPOINT_KEY]).items()}
        queries = {str(name): str(one) for name, one in json.loads(extra.get(QUERY_KEY, "{}")).items()}
    except (ValueError, AttributeError, TypeError):
        log.warning("what a commit says of streams is not readable, and is ignored: %s", extra[CHECKPOINT_KEY])
        return StreamNote({}, {})
    return StreamNote(batches, queries)


def _query_id(spark: SparkSession) -> str:
    return spark.sparkContext.getLocalProperty(_QUERY_ID_PROPERTY) or ""
