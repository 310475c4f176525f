"""What `Table` offers to keep a table healthy: each service, and its plan before it.

Every method reloads the table, holds the writer exclusion where the service needs it, and says what was done. Services
are loaded when they are asked for: who only reads does not wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from hoodie.config import Config, text_of
from hoodie.engine import Engine
from hoodie.errors import Invalid
from hoodie.given_options import resolve_given
from hoodie.handle import TableHandle, held_table, load_handle, timeline_of
from hoodie.keywords import call_options

if TYPE_CHECKING:
    from hoodie.metadata import IndexDefinition
    from hoodie.metadata_writer import IndexBuilt
    from hoodie.services.archiving.archive import ArchiveResult
    from hoodie.services.cleaning.clean import CleanResult
    from hoodie.services.compaction.admin import OperationCheck, Repaired, Unscheduled
    from hoodie.services.compaction.result import CompactionResult
    from hoodie.services.health import TableHealth
    from hoodie.services.preview import ServicePreview
    from hoodie.services.resizing.resize import ResizeResult
    from hoodie.services.undoing.restore import Restored
    from hoodie.services.undoing.rollback import RolledBack
    from hoodie.services.undoing.savepoint import Savepoint
    from hoodie.services.upgrading.upgrade import Upgraded
    from hoodie.spec import Instant
    from hoodie.write import Committed

ServiceName = Literal["compact", "clean", "archive", "rollback", "restore", "ttl", "upgrade", "resize"]


class TableServices:
    """The services of a table, for `Table`. Options of a call go before those of the table."""

    _handle: TableHandle
    _options: dict[str, str]
    _engine: Engine

    def preview(self, service: ServiceName, target: str | int | None = None, **options: object) -> ServicePreview:
        """What a service would do now: files, bytes, reasons. Writes nothing.

        `target` is the instant of `rollback` and `restore`, the table version of `upgrade`.

        Raises:
            Invalid: no such service, or it needs a target.
        """
        handle, config, engine = self._fresh(), self._config(options), self._engine
        match service:
            case "compact":
                from hoodie.services.compaction.compact import preview_compaction  # noqa: PLC0415

                return preview_compaction(handle, config, when_due=False)
            case "clean":
                from hoodie.services.cleaning.clean import preview_clean  # noqa: PLC0415

                return preview_clean(handle, config)
            case "archive":
                from hoodie.services.archiving.archive import preview_archive  # noqa: PLC0415

                return preview_archive(handle, config)
            case "ttl":
                from hoodie.services.ttl import preview_ttl  # noqa: PLC0415

                return preview_ttl(handle, config)
            case "resize":
                from hoodie.services.resizing.resize import preview_resize  # noqa: PLC0415

                return preview_resize(handle, config)
            case "rollback":
                from hoodie.services.undoing.rollback_preview import preview_rollback  # noqa: PLC0415

                return preview_rollback(handle, config, engine, _text_of(service, target))
            case "restore":
                from hoodie.services.undoing.restore import preview_restore  # noqa: PLC0415

                return preview_restore(handle, config, engine, _text_of(service, target))
            case "upgrade":
                from hoodie.services.upgrading.upgrade import preview_upgrade  # noqa: PLC0415

                return preview_upgrade(handle, config, int(_text_of(service, target)))
        raise Invalid(f"There is no preview of {service}", remedy="Ask for compact, clean, archive, rollback, ...")

    def schedule_compaction(self, **options: object) -> Instant | None:
        """The instant of a new compaction plan, or None when no slice has log files to merge. It is carried out by
        `compact`, here or in another process, while writers go on.
        """
        from hoodie.services.compaction.compact import schedule_compaction  # noqa: PLC0415

        with self._held("plan compaction") as handle:
            return schedule_compaction(handle, self._config(options), self._engine, when_due=False)

    def compact(self, instant: str | None = None, **options: object) -> CompactionResult | None:
        """The outcome of the pending compaction (of `instant`, or the oldest); one is planned first when none is
        pending. None when there is nothing to compact. Writers may go on meanwhile.
        """
        from hoodie.services.compaction.compact import run_compaction  # noqa: PLC0415

        pending = [one for one in timeline_of(self._fresh()).pending() if one.action == "compaction"]
        if instant is None and not pending and self.schedule_compaction(**options) is None:
            return None
        return run_compaction(self._fresh(), self._config(options), self._engine, instant)

    def unschedule_compaction(self, instant: str) -> Unscheduled:
        """What dropping the plan of a pending compaction did. Its log files stay where they are.

        Raises:
            Invalid: no such plan; or (version 6) log files carry its instant in their names.
        """
        from hoodie.services.compaction.admin import unschedule_compaction  # noqa: PLC0415

        with self._held("unschedule compaction") as handle:
            return unschedule_compaction(handle, self._engine, instant)

    def validate_compaction(self, instant: str | None = None) -> tuple[OperationCheck, ...]:
        """Whether every file that a pending compaction (of `instant`, or the oldest) is about is there."""
        from hoodie.services.compaction.admin import validate_compaction  # noqa: PLC0415

        return validate_compaction(self._fresh(), instant)

    def repair_compaction(self) -> tuple[Repaired, ...]:
        """The plans that were put back because committed log files carry their instant (version 6)."""
        from hoodie.services.compaction.admin import repair_compaction  # noqa: PLC0415

        with self._held("repair compaction") as handle:
            return repair_compaction(handle, self._config({}))

    def compact_logs(self, **options: object) -> CompactionResult | None:
        """The outcome of merging many small log blocks into one per slice; None when no slice has enough of them."""
        from hoodie.services.compaction.log_compact import run_log_compaction, schedule_log_compaction  # noqa: PLC0415

        config = self._config(options)
        with self._held("plan log compaction") as handle:
            schedule_log_compaction(handle, config, self._engine, when_enabled=False)
        return run_log_compaction(self._fresh(), config, self._engine)

    def resize_buckets(self, **options: object) -> ResizeResult | None:
        """What splitting large and merging small buckets of a consistent hashing index has done; None when all are of a
        good size. A resize that died is carried out first. Name the index in the options, as for writes.
        """
        from hoodie.services.resizing.resize import resize_buckets  # noqa: PLC0415

        with self._held("resize buckets") as handle:
            return resize_buckets(handle, self._config(options), self._engine)

    def clean(self, **options: object) -> CleanResult | None:
        """What the cleaner removed: file versions that no retained commit, savepoint or pending plan needs. None when
        there was nothing to remove.
        """
        from hoodie.services.cleaning.clean import clean  # noqa: PLC0415

        with self._held("clean") as handle:
            return clean(handle, self._config(options), self._engine)

    def archive(self, **options: object) -> ArchiveResult | None:
        """What moved from the active timeline to the history; None when the timeline is short enough or something keeps
        all of it (`preview` says what).
        """
        from hoodie.services.archiving.archive import archive  # noqa: PLC0415

        with self._held("archive") as handle:
            return archive(handle, self._config(options), self._engine)

    def rollback(self, instant: str, **options: object) -> RolledBack:
        """The outcome of undoing one instant: a pending one, or the newest completed one.

        Raises:
            Invalid: a savepoint or later commits stand on it; use `restore` for those.
        """
        from hoodie.services.undoing.rollback import roll_back_instant  # noqa: PLC0415

        with self._held("rollback") as handle:
            return roll_back_instant(handle, self._config(options), self._engine, instant)

    def restore(self, to: str, **options: object) -> Restored:
        """The table as it was after the completed instant `to`: everything newer is undone and cannot come back.

        Raises:
            Invalid: no such completed instant, or its files were cleaned.
        """
        from hoodie.services.undoing.restore import restore  # noqa: PLC0415

        with self._held("restore") as handle:
            return restore(handle, self._config(options), self._engine, to)

    def savepoint(self, instant: str | None = None, *, user: str = "", comments: str = "") -> Savepoint:
        """A savepoint of a completed commit (the newest): its files stay, and `restore` can go back to it."""
        from hoodie.services.undoing.savepoint import create_savepoint  # noqa: PLC0415

        with self._held("savepoint") as handle:
            config = self._config({})
            return create_savepoint(handle, config, instant, user=user, comments=comments)

    def delete_savepoint(self, instant: str) -> None:
        """Remove a savepoint; the cleaner may take its files from now on."""
        from hoodie.services.undoing.savepoint import delete_savepoint  # noqa: PLC0415

        with self._held("delete savepoint") as handle:
            delete_savepoint(handle, instant)

    def savepoints(self) -> tuple[Savepoint, ...]:
        """All savepoints, oldest first."""
        from hoodie.services.undoing.savepoint import load_savepoints  # noqa: PLC0415

        return load_savepoints(self._fresh())

    def ttl(self, **options: object) -> Committed | None:
        """The commit that deleted partitions past their time to live; None when none is."""
        from hoodie.services.ttl import run_ttl  # noqa: PLC0415

        with self._held("ttl") as handle:
            return run_ttl(handle, self._config(options), self._engine)

    def upgrade(self, version: int = 9, **options: object) -> Upgraded | None:
        """The steps that took the table to another version (6, 8 or 9), upwards or downwards; None when it has it
        already. A step that dies is finished by the next call.
        """
        from hoodie.services.upgrading.upgrade import upgrade  # noqa: PLC0415

        with self._held("upgrade") as handle:
            return upgrade(handle, self._config(options), self._engine, version)

    def create_index(
        self,
        name: str,
        *columns: str,
        function: str | None = None,
        using: str = "column_stats",
        partitioned: bool = False,
        **options: object,
    ) -> IndexBuilt:
        """An index of the metadata table, built beside running writers and kept by them from now on.

        `name` is `record_index` (of each partition when `partitioned`), `column_stats`, `partition_stats` or
        `bloom_filters`, or a name of one's own for a secondary index of one column, or with `function` (for example
        `from_unixtime`, with the options it takes) for an expression index
        `using` column_stats or bloom_filters.

        Raises:
            Invalid: there is such an index, or the table cannot have it. Unsupported: a column or function that cannot
                be indexed. Conflict: another writer holds the table.
        """
        from hoodie.metadata_writer import (  # noqa: PLC0415
            bloom_filters_index,
            build_index,
            column_stats_index,
            partition_stats_index,
            record_index,
        )

        match name:
            case "record_index":
                definition = record_index(partitioned=partitioned)
            case "column_stats":
                definition = column_stats_index(*columns)
            case "partition_stats":
                definition = partition_stats_index()
            case "bloom_filters":
                definition = bloom_filters_index()
            case _:
                definition = _index_of_column(name, columns, function, using, options)
        config = self._config({key: value for key, value in options.items() if key.startswith("hoodie.")})
        return build_index(self._fresh(), definition, self._engine, config)

    def drop_index(self, name: str) -> tuple[str, ...]:
        """The names of the indexes that are gone: the one with this name, and those that need it."""
        from hoodie.metadata_writer import drop_index  # noqa: PLC0415

        with self._held("drop index") as handle:
            return drop_index(handle, name)

    def indexes(self) -> dict[str, IndexDefinition | None]:
        """The partitions of the metadata table that readers may use, with the definitions of those that have one."""
        from hoodie.metadata import load_index_definitions  # noqa: PLC0415

        handle = self._fresh()
        definitions = load_index_definitions(handle.storage, handle.config)
        return {name: definitions.get(name) for name in handle.config.metadata_partitions}

    def doctor(self, **options: object) -> TableHealth:
        """How the table is: sizes, log debt, stuck instants, what is wrong, each concern with its remedy."""
        from hoodie.services.health import examine  # noqa: PLC0415

        return examine(self._fresh(), self._config(options))

    def rebuild_metadata(self, *partitions: str) -> None:
        """Make partitions of the metadata table anew from the table's files; without names all of it."""
        from hoodie.metadata_writer import rebuild_partitions  # noqa: PLC0415

        with self._held("rebuild metadata") as handle:
            rebuild_partitions(handle, partitions or handle.config.metadata_partitions, self._engine)

    def remove_orphans(self) -> tuple[str, ...]:
        """Paths of data files that belonged to no write on the timeline or in the history, which are gone now: what
        workers left that outlived their write. `doctor` names them before.
        """
        from hoodie.services.undoing.orphans import remove_orphans  # noqa: PLC0415

        with self._held("remove orphans") as handle:
            return remove_orphans(handle, self._engine)

    def report(self, path: str | None = None, **options: object) -> str:
        """The HTML page about the table's health; also stored in the local file `path` when given.

        Raises:
            Unavailable: matplotlib is not installed. Invalid: the file cannot be written.
        """
        from hoodie.services.report import html_report  # noqa: PLC0415

        page = html_report(self.doctor(**options), self._handle.config.timezone)
        if path is not None:
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(page)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise Invalid(
                    f"Cannot write {path}: {reason}", remedy="Name a file in a folder that is there"
                ) from error
        return page

    def _config(self, options: Mapping[str, object]) -> Config:
        return resolve_given(call_options(options), self._options)

    def _fresh(self) -> TableHandle:
        handle = load_handle(self._handle.storage, self._handle.env)
        self._handle = handle
        return handle

    @contextmanager
    def _held(self, what: str) -> Iterator[TableHandle]:
        """The table as it is now, its writer exclusion held; its options are checked, whatever looks at them.

        Raises:
            Conflict: another writer holds it. Unsupported: an option asks for what is not there yet.
        """
        resolve_given(self._options)
        with held_table(self._handle.storage, what, self._handle.env) as handle:
            self._handle = handle
            yield handle  # not `self._handle`, which other threads set too


def _index_of_column(
    name: str, columns: tuple[str, ...], function: str | None, using: str, options: Mapping[str, object]
) -> IndexDefinition:
    from hoodie.metadata_writer import expression_index, secondary_index  # noqa: PLC0415

    if len(columns) != 1:
        raise Invalid(
            f"The index {name} needs one column",
            remedy="Name it: --column, in Python the argument after the name",
            columns=columns,
        )
    if function is None:
        return secondary_index(name, columns[0])
    own = {key: str(value) for key, value in options.items() if not key.startswith("hoodie.")}
    return expression_index(name, columns[0], function, own, using=using)


def _text_of(service: str, target: Any) -> str:
    if target is None:
        raise Invalid(f"A preview of {service} needs its target", remedy="Pass the instant, or the version for upgrade")
    return str(target)


def option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Options as the text they are stored and parsed as; those of value None are left out.

    Raises:
        Invalid: this is no mapping.
    """
    if options is not None and not isinstance(options, Mapping):
        raise Invalid(
            f"Options are a mapping of keys to values, not a {type(options).__name__}",
            remedy="Pass options={'hoodie.…': value}",
        )
    return {key: text_of(value) for key, value in (options or {}).items() if value is not None}
