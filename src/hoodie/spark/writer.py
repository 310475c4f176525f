"""`df.write.format("hudi")`: what the writer was told, turned into a write of the table façade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from hoodie.errors import Invalid, Unsupported
from hoodie.services.ingest import CommitNote
from hoodie.services.save import SaveMode
from hoodie.spark.engine import SparkEngine, is_classic
from hoodie.spark.frame_source import FrameSource
from hoodie.spark.session_options import with_session
from hoodie.table import write
from hoodie.transaction import Committed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION_FIELDS = "hoodie.datasource.write.partitionpath.field"
_KEYGEN_CLASS = "hoodie.datasource.write.keygenerator.class"
_KEYGEN_TYPE = "hoodie.datasource.write.keygenerator.type"
_OPERATION = "hoodie.datasource.write.operation"
_BY_PARTITION = "insert_overwrite"
_OVERWRITE_OPTION = "partitionOverwriteMode"
_OVERWRITE_CONF = "spark.sql.sources.partitionOverwriteMode"
_MODES = {"append", "overwrite", "ignore", "error", "errorifexists", "default"}


def write_frame(
    frame: DataFrame,
    path: str | None,
    options: Mapping[str, object],
    mode: str,
    partition_by: Sequence[str] = (),
    *,
    note: CommitNote | None = None,
) -> Committed | None:
    """Writes `frame` to the table at `path` (or the option of that name), as Spark's `save` does; what was committed,
    None when mode `ignore` found a table.

    Raises:
        Invalid: no path, an unknown mode, or options that do not fit. Unsupported: a Spark Connect session.
    """
    if not is_classic(frame.sparkSession):
        raise connect_unsupported()
    if mode.lower() not in _MODES:
        raise Invalid(f"Unknown save mode {mode!r}", remedy=f"Use one of: {', '.join(sorted(_MODES - {'default'}))}")
    chosen = cast(SaveMode, "error" if mode.lower() == "default" else mode.lower())
    given = with_partitioning(without_path(with_session(frame.sparkSession, options, writes=True)), partition_by)
    if note is None:  # mode overwrite of a stream means all rows, as its output mode says
        given = with_overwrite_mode(given, chosen, frame.sparkSession.conf.get(_OVERWRITE_CONF, "STATIC"))
    engine = SparkEngine(frame.sparkSession)
    return write(FrameSource(frame), path_of(path, options), given, chosen, engine=engine, note=note)


def path_of(path: str | None, options: Mapping[str, object]) -> str:
    """The base path: the argument, else the option `path` in any case.

    Raises:
        Invalid: neither is there. Unsupported: it names memory of this process.
    """
    named = path or next((str(value) for name, value in options.items() if name.lower() == "path"), "")
    if not named:
        raise Invalid("The table's path is missing", remedy='Give it to save, load or start, or as option "path"')
    if named.startswith("memory:"):
        raise Unsupported(
            f"{named} lives in the memory of one process, and Spark's workers are others",
            remedy="Use a path that all processes see, or hoodie.Table without Spark",
        )
    return named


def without_path(options: Mapping[str, object]) -> dict[str, object]:
    """The options without the base path, which is not one of Hudi's."""
    return {name: value for name, value in options.items() if name.lower() != "path"}


def with_partitioning(options: Mapping[str, object], partition_by: Sequence[str]) -> dict[str, object]:
    """`options` with the columns of Spark's `partitionBy` as partition fields, as Hudi takes them when none are named.

    Raises:
        Invalid: both are given and differ.
    """
    if not partition_by:
        return dict(options)
    keygen = f"{options.get(_KEYGEN_CLASS, '')} {options.get(_KEYGEN_TYPE, '')}".upper()
    named = [str(column) for column in partition_by]
    fields = ",".join(f"{column}:simple" for column in named) if "CUSTOM" in keygen else ",".join(named)
    given = options.get(_PARTITION_FIELDS)
    if given is None:
        return {**options, _PARTITION_FIELDS: fields}
    bare = [part.partition(":")[0].strip() for part in str(given).split(",")]
    if bare != named:
        raise Invalid(
            f"partitionBy({', '.join(named)}) and {_PARTITION_FIELDS}={given} contradict each other",
            remedy=f"Leave partitionBy out: {_PARTITION_FIELDS} says how a Hudi table is partitioned",
        )
    return dict(options)


def with_overwrite_mode(options: Mapping[str, object], mode: SaveMode, of_session: str | None) -> dict[str, object]:
    """`options` without Spark's own `partitionOverwriteMode`, which goes before the setting of the session. DYNAMIC
    makes save mode overwrite replace the partitions that have new rows, as in Spark's formats and in Delta.

    Raises:
        Invalid: it is neither STATIC nor DYNAMIC.
    """
    named = [value for name, value in options.items() if name.lower() == _OVERWRITE_OPTION.lower()]
    given = {name: value for name, value in options.items() if name.lower() != _OVERWRITE_OPTION.lower()}
    asked = str(named[0] if named else of_session).upper()
    if asked not in ("STATIC", "DYNAMIC"):
        raise Invalid(f"{_OVERWRITE_OPTION} is {asked}", remedy="Use STATIC or DYNAMIC")
    operation = next((str(value) for name, value in given.items() if name.lower() == _OPERATION), None)
    if mode != "overwrite" or asked == "STATIC" or operation not in (None, "upsert", "insert", "bulk_insert"):
        return given
    return {**{name: value for name, value in given.items() if name.lower() != _OPERATION}, _OPERATION: _BY_PARTITION}


def connect_unsupported() -> Unsupported:
    return Unsupported(
        "Hudi tables cannot be written over Spark Connect yet",
        remedy="Write from a classic session, or with hoodie.Table(...).upsert(df.toArrow()); reading works",
    )
