"""Which schema a table has at a time, and whether its files must be read by column id.

1. The newest completed write that may change the schema says it, in the `schema` of its extra metadata. Compactions and
   clusterings repeat what they were given; they are asked when nothing else is left in the active timeline.
2. Without any: the schema the table was created with, then the footer of a base file.
3. Files are read by column *name*, unless names changed their meaning. Schema-on-read (SQL `ALTER TABLE` with
   `hoodie.schema.on.read.enable`) gives columns ids and keeps a history of them; such a table's commits say
   `latest_schema`. Only a rename, or a name that was dropped and used anew, makes ids necessary.
4. The newest schema commit counts whose instant is committed. It repeats all versions, also those older than the active
   timeline. One of an instant that was rolled back may be left over and is passed by.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import EllipsisType

import pyarrow as pa

from hoodie.errors import Corrupt, Unsupported
from hoodie.records import ColumnIds, from_avro, read_footer, without_meta
from hoodie.spec import CommitMetadata, InstantTime, TableConfig
from hoodie.spec.keys import HOODIE_DIR, PROPERTIES_FILE
from hoodie.spec.schema_history import SchemaHistory, parse_schema_history, parse_schema_version
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.timeline import Timeline, instant_path, load_commit_metadata
from hoodie.view import View, list_files, load_view

SCHEMA_HISTORY_DIR = f"{HOODIE_DIR}/.schema"
INTERNAL_SCHEMA = "latest_schema"
MAX_HISTORY_BYTES = 256 * 1024 * 1024

_SCHEMA_COMMIT = re.compile(r"([0-9]+)(?:_[0-9]+)?\.schemacommit")
NEVER_CHANGES_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX", "BUCKET_RESCALE"})


@dataclass(frozen=True, slots=True, eq=False)
class TableSchema:
    """A table's own columns at a time, without meta columns; None where nobody ever said them.

    `ids` is there when files can not be read by name: see `hoodie.records.ColumnIds`.
    """

    arrow: pa.Schema | None
    ids: ColumnIds | None = None


@dataclass(frozen=True, slots=True)
class SaidSchema:
    """A commit that has the table's schema, and its file."""

    metadata: CommitMetadata
    path: str

    @property
    def columns(self) -> pa.Schema:
        return without_meta(from_avro(self.metadata.schema or "", self.path))

    @property
    def internal_schema(self) -> str | None:
        return self.metadata.extra_metadata.get(INTERNAL_SCHEMA)


def load_schema(
    storage: Storage,
    config: TableConfig,
    view: View,
    as_of: InstantTime | None = None,
    said: SaidSchema | EllipsisType | None = ...,
) -> TableSchema:
    """The table's schema, at `as_of` or now. `said`: what `load_said` says, where somebody knows that already.

    Reads commits from the newest (requested at or before `as_of`) backwards until one has a schema.

    Raises:
        Corrupt: the history of the columns is damaged, or gone though columns were changed.
    """
    if isinstance(said, EllipsisType):
        said = load_said(storage, view.timeline, as_of)
    if said is not None:
        return TableSchema(said.columns, _column_ids(storage, view.timeline, said, as_of))
    slices = view.base_slices_at(as_of)
    if config.create_schema and (as_of is None or not slices):
        return TableSchema(_created_with(config.create_schema))
    bases = [part.base for part in slices if part.base is not None]
    if bases:
        newest = max(bases, key=lambda base: base.name.instant)
        return TableSchema(without_meta(read_footer(storage, newest.path).schema))
    return load_schema(storage, config, view) if as_of is not None else TableSchema(None)


def load_table_schema(
    storage: Storage, config: TableConfig, view: View, as_of: InstantTime | None = None
) -> pa.Schema | None:
    """The columns of `load_schema` alone, for who reads files by name.

    Raises:
        Unsupported: columns were renamed, or dropped and made anew.
    """
    found = load_schema(storage, config, view, as_of)
    if found.ids is not None:
        raise Unsupported(
            f"Columns of table {config.name} were renamed or made anew: its files must be read by column id",
            remedy="Read it with Table.scan",
        )
    return found.arrow


def load_said_schema(storage: Storage, config: TableConfig, timeline: Timeline) -> pa.Schema | None:
    """The table's own schema now, as far as it stands in commits and properties: no file is listed."""
    said = load_said(storage, timeline, None)
    if said is not None:
        return said.columns
    return _created_with(config.create_schema) if config.create_schema else None


def load_newest_schema(
    storage: Storage, config: TableConfig, timeline: Timeline, said: SaidSchema | EllipsisType | None = ...
) -> pa.Schema | None:
    """The table's own schema now, as a writer needs it. Lists the table's files only when nothing else says it. `said`:
    what `load_said` says, where somebody knows that already.

    Raises:
        Unsupported: the table keeps a schema-on-read history, which a write would have to continue.
    """
    if isinstance(said, EllipsisType):
        said = load_said(storage, timeline, None)
    if said is not None and said.internal_schema:
        raise Unsupported(
            f"Table {config.name} keeps a history of its schema (schema-on-read), which hoodie cannot continue yet",
            remedy="Write it with Apache Hudi; reading works",
        )
    if said is not None:
        return said.columns
    if config.create_schema:
        return _created_with(config.create_schema)
    compactions = PendingPlans(storage, timeline).compactions()
    return load_table_schema(storage, config, load_view(storage, timeline, list_files(storage), compactions))


def load_schema_history(storage: Storage, timeline: Timeline) -> SchemaHistory | None:
    """Every version of the schema-on-read schema, as the newest committed schema commit lists them; None without one.

    Raises:
        Corrupt: it is damaged.
    """
    files = {
        match[1]: file
        for file in storage.list_dir(SCHEMA_HISTORY_DIR).files
        if (match := _SCHEMA_COMMIT.fullmatch(file.path.rpartition("/")[2]))
    }
    newest = max(filter(timeline.is_committed, files), default=None)
    if newest is None:
        return None
    file = files[newest]
    if file.size_bytes > MAX_HISTORY_BYTES:
        raise Corrupt(
            f"{file.path} is {file.size_bytes} bytes large, no schema history is",
            remedy="Restore the file from a copy",
            path=file.path,
        )
    return parse_schema_history(storage.read(file.path), file.path)


def _column_ids(storage: Storage, timeline: Timeline, said: SaidSchema, as_of: InstantTime | None) -> ColumnIds | None:
    latest = said.internal_schema
    if not latest and as_of is None:
        return None
    # Also the past of before the first change: a query of it may read files that were written later.
    history = load_schema_history(storage, timeline)
    if history is not None:
        return None if history.names_are_stable else ColumnIds(history, as_of)
    if latest and parse_schema_version(latest, SCHEMA_HISTORY_DIR).number:
        raise Corrupt(
            f"Columns of the table were changed, but the history of its schema in {SCHEMA_HISTORY_DIR} is gone",
            remedy="Restore the folder from a copy",
            path=SCHEMA_HISTORY_DIR,
        )
    return None


def load_said(storage: Storage, timeline: Timeline, as_of: InstantTime | None) -> SaidSchema | None:
    """The newest commit, requested at or before `as_of`, that says the table's schema; None where none does."""
    second_choice: SaidSchema | None = None
    for instant in reversed(timeline.completed_writes()):
        if as_of is not None and instant.requested > as_of:
            continue
        metadata = load_commit_metadata(storage, timeline.profile, instant)
        if metadata.schema is None:
            continue
        said = SaidSchema(metadata, instant_path(timeline.profile, instant))
        if metadata.operation_type not in NEVER_CHANGES_SCHEMA:
            return said
        second_choice = second_choice or said
    return second_choice


def _created_with(schema: str) -> pa.Schema:
    return without_meta(from_avro(schema, PROPERTIES_FILE))
