"""`df.writeStream.format("hudi")`: micro-batches become commits, each exactly once.

1. Spark may run a batch again after a crash. Each commit carries the number of its batch in its extra metadata, in
   Hudi's own words (key `_hudi_streaming_sink_checkpoint`, a JSON map from the stream's identifier to the batch), so
   that a batch which was committed is recognised, by Hudi as well.
2. Hudi compares numbers only, and so loses rows when a stream starts over with an empty checkpoint folder. Each commit
   also carries the id that Spark keeps in that folder (`_hoodie_streaming_query_id`, a JSON map like the other one),
   and a batch is skipped only if one of the same folder was committed. A stream that Hudi has led until now may repeat
   Hudi's last batch, once, and no other.
3. The look for a batch and its commit are one step: nobody else writes in between. So a process that hung and goes on
   beside its successor writes nothing twice, nor does an attempt after one whose commit was made but not answered.
4. Commits are looked for on the active timeline, as Hudi does: a batch that is repeated only after its commit was
   archived is not recognised.
5. A stream into a merge-on-read table has its log files compacted between two batches when that is due; Hudi does it
   beside them. `hoodie.datasource.write.streaming.disable.compaction` or `hoodie.compact.inline=false` leaves it to
   others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, HudiError, Invalid, Unavailable, Unsupported
from hoodie.given_options import resolve_given
from hoodie.services.ingest import CommitNote
from hoodie.spark.writer import path_of, with_partitioning, without_path, write_frame
from hoodie.state.handle import TableHandle
from hoodie.timeline import Timeline, load_commit_metadata

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
_DISABLE_COMPACTION = "hoodie.datasource.write.streaming.disable.compaction"
_INLINE_COMPACTION = "hoodie.compact.inline"
_ASYNC_COMPACTION = "hoodie.datasource.compaction.async.enable"
_QUERY_ID_PROPERTY = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class StreamNote:
    """What a commit says of streams: the last batch by identifier, and the query that wrote it if that was not Hudi."""

    batches: Mapping[str, int]
    queries: Mapping[str, str]

    def extra_metadata(self) -> dict[str, str]:
        """The note as keys of a commit's extra metadata."""
        batches = {name: str(batch) for name, batch in self.batches.items()}
        return {CHECKPOINT_KEY: json.dumps(batches), QUERY_KEY: json.dumps(dict(self.queries))}


class _AlreadyCommitted(Exception):
    """The table has the batch."""


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
        self._options = with_compaction(self._options)
        self._config = resolve_given(self._options)
        self._mode = "overwrite" if output_mode.lower() == "complete" else "append"
        self._env = env or SystemEnv()
        self._last: str | None = None
        self._is_first = True

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
            self._is_first = False
            return

    def _commit(self, frame: DataFrame, batch: int) -> None:
        """Writes the batch, unless it is in the table."""
        identifier, query_id = self._config.text(_IDENTIFIER), _query_id(frame.sparkSession)

        def ensure_new(handle: TableHandle, timeline: Timeline) -> None:
            notes = notes_since(handle, timeline, self._last)
            if has_committed(notes, identifier, batch, query_id, may_be_hudis=self._is_first):
                raise _AlreadyCommitted

        said = StreamNote({identifier: batch}, {identifier: query_id})
        note = CommitNote(said.extra_metadata(), ensure_new)
        try:
            committed = write_frame(frame, self._path, self._options, self._mode, note=note)
        except _AlreadyCommitted:
            log.warning("batch %d of stream %s is in %s already: not written again", batch, identifier, self._path)
        else:
            self._last = None if committed is None else committed.instant


def notes_since(handle: TableHandle, timeline: Timeline, last: str | None) -> Iterator[StreamNote]:
    """What completed commits say of streams, the newest first, those alone that were requested after `last`; all of the
    active timeline if that is not there any more.
    """
    for instant in reversed(timeline.completed_writes()):
        if instant.requested == last:
            return
        extra = load_commit_metadata(handle.storage, timeline.profile, instant).extra_metadata
        if CHECKPOINT_KEY in extra:
            yield StreamNote(_numbers(extra[CHECKPOINT_KEY]), _texts(extra.get(QUERY_KEY, "{}")))


def has_committed(
    notes: Iterable[StreamNote], identifier: str, batch: int, query_id: str, *, may_be_hudis: bool
) -> bool:
    """Whether this batch of this query is in the table with these notes, the newest of which comes first.

    `may_be_hudis`: the newest note on this identifier counts, too, if it is Hudi's and of just this batch.
    """
    known = (note for note in notes if identifier in note.batches)
    for place, note in enumerate(known):
        query, committed = note.queries.get(identifier), note.batches[identifier]
        if query == query_id:
            return committed >= batch
        if query is None and place == 0 and may_be_hudis and committed == batch:
            return True
    return False


def with_compaction(options: Mapping[str, object]) -> dict[str, object]:
    """`options` of a stream with those that make its commits compact a merge-on-read table, or leave that to others.

    Raises:
        Invalid: they say both.
    """
    config = resolve_given(options)
    if not config.flag(_DISABLE_COMPACTION):
        return dict(options) if config.is_set(_INLINE_COMPACTION) else {_INLINE_COMPACTION: "true", **options}
    for key, contrary in ((_INLINE_COMPACTION, True), (_ASYNC_COMPACTION, False)):
        if config.is_set(key) and config.flag(key) is contrary:
            raise Invalid(
                f"{_DISABLE_COMPACTION}=true contradicts {key}={config.text(key)}, which compacts after each batch",
                remedy="Leave one of them out",
                key=key,
            )
    return dict(options)


def ensure_checkpointed(spark: SparkSession, options: Mapping[str, object], query_name: str | None) -> None:
    """Checks that the stream has the same checkpoint folder each time it starts.

    Raises:
        Invalid: it has none, or Spark would choose another one each time, so that it would repeat all rows.
    """
    if any(name.lower() == _CHECKPOINT_LOCATION.lower() for name in options):
        return
    if not spark.conf.get(_CHECKPOINT_CONF, ""):
        raise Invalid(
            "A stream into a Hudi table needs a checkpoint folder",
            remedy=f'Give it as .option("{_CHECKPOINT_LOCATION}", folder), one for each stream',
        )
    named = query_name or next((value for name, value in options.items() if name.lower() == "queryname"), None)
    if not named:
        raise Invalid(
            f"A stream without a name gets another folder in {_CHECKPOINT_CONF} each time it starts",
            remedy=f'Name it with .queryName(...), or give .option("{_CHECKPOINT_LOCATION}", folder)',
        )


def _numbers(text: str) -> dict[str, int]:
    try:
        return {name: int(number) for name, number in _texts(text).items()}
    except ValueError:
        log.warning("what a commit says of streams is not readable, and is ignored: %s", text)
        return {}


def _texts(text: str) -> dict[str, str]:
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except (ValueError, AttributeError):
        log.warning("what a commit says of streams is not readable, and is ignored: %s", text)
        return {}


def _query_id(spark: SparkSession) -> str:
    found = spark.sparkContext.getLocalProperty(_QUERY_ID_PROPERTY)
    if not found:
        raise Unsupported(
            "Spark does not tell which stream a batch belongs to, so that batches could not be told apart",
            remedy="Start the stream in a session with pinned threads (PYSPARK_PIN_THREAD unset or true)",
        )
    return str(found)
