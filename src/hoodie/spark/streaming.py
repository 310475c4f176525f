"""`df.writeStream.format("hudi")`: micro-batches become commits, each exactly once.

Spark may run a batch again after a crash. Each commit carries the number of its batch in its extra metadata, in Hudi's
own words (key `_hudi_streaming_sink_checkpoint`, a JSON map from the stream's identifier to the batch), so that a batch
which was committed is recognised, by Hudi as well.

A stream into a merge-on-read table has its log files compacted between two batches when that is due; Hudi does it
beside them. `hoodie.compact.inline=false` leaves it to others.

Hudi compares numbers only, and so loses rows when a stream starts over with an empty checkpoint folder. We also note
the id Spark keeps in that folder, and skip a batch only if the last one committed came from the same folder (or from
Hudi).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
class Progress:
    """What the last streaming commit says: batch number of each identifier, and the id of the query that wrote it."""

    batches: Mapping[str, int]
    query_id: str | None

    def has_committed(self, identifier: str, batch: int, query_id: str) -> bool:
        """Whether this batch of this query is in the table already."""
        return self.batches.get(identifier, -1) >= batch and self.query_id in (None, query_id)


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
        self._progress: Progress | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        identifier = self._config.text(_IDENTIFIER)
        query_id = _query_id(frame.sparkSession)
        if self._progress is None:
            self._progress = load_progress(self._path, self._options)
        if self._progress.has_committed(identifier, batch, query_id) and self._config.text(_OPERATION) != "delete":
            log.info("batch %d of stream %s is in %s already", batch, identifier, self._path)
            return
        batches = {**self._progress.batches, identifier: batch}
        noted = {
            CHECKPOINT_KEY: json.dumps({name: str(number) for name, number in batches.items()}),
            QUERY_KEY: query_id,
        }
        if self._written(frame, {**self._options, **noted}, batch):
            self._progress = Progress(batches, query_id)

    def _written(self, frame: DataFrame, options: Mapping[str, object], batch: int) -> bool:
        """Whether the batch was committed; False for one that may be dropped. Retries what may pass by itself."""
        left = self._config.integer(_RETRIES)
        while True:
            try:
                write_frame(frame, self._path, options, self._mode)
            except HudiError as error:
                if isinstance(error, Unavailable | Conflict) and left > 0:
                    left -= 1
                    log.warning("batch %d failed, trying again: %s", batch, error)
                    self._env.sleep(self._config.integer(_RETRY_MS) / 1000)
                    continue
                if self._config.flag(_IGNORE_FAILED):
                    log.exception("batch %d failed and is dropped, as %s says", batch, _IGNORE_FAILED)
                    return False
                raise
            return True


def load_progress(path: str, options: Mapping[str, object]) -> Progress:
    """Progress of streams into the table at `path`; none when there is no table or no stream wrote to it."""
    passed = {name: str(value) for name, value in resolve(options).passed.items()}
    if not is_table(open_storage(path, passed)):
        return Progress({}, None)
    table = Table.open(path, options=options)
    timeline = table.timeline()
    for instant in reversed(timeline.writes()):
        if instant.completed is None:
            continue
        extra = load_commit_metadata(table.storage, timeline.profile, instant).extra_metadata
        if CHECKPOINT_KEY in extra:
            return Progress(_batches(extra[CHECKPOINT_KEY]), extra.get(QUERY_KEY))
    return Progress({}, None)


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


def _batches(text: str) -> dict[str, int]:
    try:
        record: Any = json.loads(text)
        return {str(name): int(number) for name, number in record.items()}
    except (ValueError, AttributeError, TypeError):
        log.warning("the stream checkpoint in the last commit is not readable, and is ignored: %s", text)
        return {}


def _query_id(spark: SparkSession) -> str:
    return spark.sparkContext.getLocalProperty(_QUERY_ID_PROPERTY) or ""
