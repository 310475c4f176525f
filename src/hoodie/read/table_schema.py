"""Which schema a table has at a time, and whether its files can be read with it by column name.

1. The newest completed write that may change the schema says it, in the `schema` of its extra metadata. Compactions and
   clusterings repeat what they were given; they are asked when nothing else is left in the active timeline.
2. Without any: the schema the table was created with, then the footer of a base file.
3. Files are read by column *name*. Schema-on-read (SQL `ALTER TABLE` with `hoodie.schema.on.read.enable`) gives columns
   ids, so that a name can change its meaning. As long as it never did, names will do; otherwise reading is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hoodie.errors import Corrupt, Unsupported
from hoodie.records import from_avro, read_footer, without_meta
from hoodie.spec import CommitMetadata, InstantTime, TableConfig
from hoodie.storage import Storage
from hoodie.timeline import Timeline, load_commit_metadata
from hoodie.view import View, load_view

SCHEMA_HISTORY_DIR = ".hoodie/.schema"
INTERNAL_SCHEMA = "latest_schema"
SCHEMA_COMMIT = ".schemacommit"

_NEVER_CHANGES_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX", "BUCKET_RESCALE"})


def load_table_schema(
    storage: Storage, config: TableConfig, view: View, as_of: InstantTime | None = None
) -> pa.Schema | None:
    """The table's own schema, without meta columns; None for a table of which nobody ever said one.

    Reads commits from the newest (requested at or before `as_of`) backwards until one has a schema.

    Raises:
        Unsupported: columns were renamed, or dropped and made anew.
    """
    said = _latest_said(storage, view.timeline, as_of)
    if said is not None:
        return _schema_of(storage, said, as_of)
    slices = view.base_slices_at(as_of)
    if config.create_schema and (as_of is None or not slices):
        return without_meta(from_avro(config.create_schema))
    bases = [part.base for part in slices if part.base is not None]
    if bases:
        newest = max(bases, key=lambda base: base.name.instant)
        return without_meta(read_footer(storage, newest.path).schema)
    return load_table_schema(storage, config, view) if as_of is not None else None


def load_newest_schema(storage: Storage, config: TableConfig, timeline: Timeline) -> pa.Schema | None:
    """The table's own schema now, as a writer needs it. Lists the table's files only when nothing else says it.

    Raises:
        Unsupported: the table keeps a schema-on-read history, which a write would have to continue.
    """
    said = _latest_said(storage, timeline, None)
    if said is not None and said.extra_metadata.get(INTERNAL_SCHEMA):
        raise Unsupported(
            f"Table {config.name} keeps a history of its schema (schema-on-read), which hoodie cannot continue yet",
            remedy="Write it with Apache Hudi; reading works",
        )
    if said is not None:
        return _schema_of(storage, said, None)
    if config.create_schema:
        return without_meta(from_avro(config.create_schema))
    return load_table_schema(storage, config, load_view(storage, config, timeline))


def load_schema_history(storage: Storage, as_of: InstantTime | None = None) -> tuple[dict[str, Any], ...]:
    """Every version of the schema-on-read schema, as the newest completed schema commit lists them."""
    files = {
        name.partition(".")[0].partition("_")[0]: file.path
        for file in storage.list_dir(SCHEMA_HISTORY_DIR).files
        if (name := file.path.rpartition("/")[2]).endswith(SCHEMA_COMMIT) and not name.startswith(".")
    }
    known = [requested for requested in files if as_of is None or requested <= as_of]
    if not known:
        return ()
    path = files[max(known)]
    try:
        return tuple(json.loads(storage.read(path))["schemas"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{path} is not a schema history", remedy="Restore the file from a copy", path=path) from error


def ensure_names_are_stable(history: tuple[dict[str, Any], ...]) -> None:
    """Nothing, when every column id always had one name, and every name one id.

    Raises:
        Unsupported: a column was renamed, or dropped and made anew under the same name.
    """
    ids: dict[int, str] = {}
    names: dict[str, int] = {}
    for version in history:
        for number, name in _columns(version, ""):
            if ids.setdefault(number, name) != name or names.setdefault(name, number) != number:
                raise Unsupported(
                    f"Column `{ids[number]}` was renamed, or dropped and made anew as `{name}`: reading by column id "
                    "(schema-on-read) is not there yet",
                    remedy="Read this table with Apache Hudi and hoodie.schema.on.read.enable=true",
                    column=name,
                )


def _schema_of(storage: Storage, said: CommitMetadata, as_of: InstantTime | None) -> pa.Schema:
    if said.extra_metadata.get(INTERNAL_SCHEMA):
        ensure_names_are_stable(load_schema_history(storage, as_of))
    return without_meta(from_avro(said.schema or ""))


def _latest_said(storage: Storage, timeline: Timeline, as_of: InstantTime | None) -> CommitMetadata | None:
    second_choice: CommitMetadata | None = None
    for instant in reversed(timeline.completed_writes()):
        if as_of is not None and instant.requested > as_of:
            continue
        metadata = load_commit_metadata(storage, timeline.profile, instant)
        if metadata.schema is None:
            continue
        if metadata.operation_type not in _NEVER_CHANGES_SCHEMA:
            return metadata
        second_choice = second_choice or metadata
    return second_choice


def _columns(record: dict[str, Any], prefix: str) -> Iterator[tuple[int, str]]:
    """Id and full name of every field below a record of the schema-on-read JSON."""
    for field in record.get("fields", ()):
        name = f"{prefix}{field['name']}"
        yield field["id"], name
        if isinstance(field.get("type"), dict):
            yield from _nested(field["type"], name)


def _nested(kind: dict[str, Any], name: str) -> Iterator[tuple[int, str]]:
    yield from _columns(kind, f"{name}.")
    for child, part in (("element", "element"), ("value", "value")):
        inner = kind.get(child)
        if isinstance(inner, dict):
            yield from _nested(inner, f"{name}.{part}")
