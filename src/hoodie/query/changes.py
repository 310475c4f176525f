"""Change data capture: which files tell what each commit in a range changed, and how.

1. A write of a base file over an older one has change files (`.cdc`) beside it. All else is inferred: a base file
   without updates is all inserts, one without anything new has no changes, a replaced file group is all deletes, and a
   log file changes the slice its commit says it was written on. In version 6 that may be the one a planned compaction
   is to make: it has no base file yet, and what the compaction is to read lies below it.
2. Only operations that change data count. Compaction and clustering move rows.
3. What the change files hold depends on the logging mode: both images, the image before, or operation and key only.
   Missing images come from the base file before and the one after.
4. Rows of bootstrap skeletons are those of their sources.
5. Changes come in the order of the commits' requested times; those of one commit by partition and file.

Pure, like all planning. What rows look like: `change_rows`; the cases with examples: docs/design/0004-reads.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from hoodie.errors import Corrupt, Invalid
from hoodie.query.incremental import Window
from hoodie.slices import ChangeKind, ChangeRead, SliceRead
from hoodie.slices.bootstrap import BootstrapSource, source_of
from hoodie.spec import (
    CommitMetadata,
    InstantTime,
    LogFileName,
    TableConfig,
    WriteStat,
    parse_log_file_name,
)
from hoodie.view import BaseFile, FileSlice, GroupId, LogFile, View

_DATA_CHANGES: Final = frozenset(
    {
        "INSERT",
        "INSERT_PREPPED",
        "UPSERT",
        "UPSERT_PREPPED",
        "DELETE",
        "DELETE_PREPPED",
        "BULK_INSERT",
        "BULK_INSERT_PREPPED",
        "DELETE_PARTITION",
        "INSERT_OVERWRITE",
        "INSERT_OVERWRITE_TABLE",
        "BOOTSTRAP",
    }
)
_DELETES: Final = frozenset({"DELETE", "DELETE_PREPPED"})
_BOTH_IMAGES: Final = "DATA_BEFORE_AFTER"
_OPERATION_AND_KEY: Final = "OP_KEY_ONLY"


def ensure_changes_are_kept(config: TableConfig) -> None:
    """Checks that the table keeps change data.

    Raises:
        Invalid: it does not.
    """
    if not config.cdc_enabled:
        raise Invalid(
            f"Table {config.name} keeps no change data",
            remedy="Only a table that was made with hoodie.table.cdc.enabled=true does; use query='incremental'",
        )


def change_reads(
    window: Window,
    commits: Mapping[InstantTime, CommitMetadata],
    view: View,
    mode: str,
    sources: Mapping[GroupId, BootstrapSource] | None = None,
    *,
    renamed_logs: Mapping[str, str] | None = None,
    being_taken: Mapping[tuple[str, str], InstantTime] | None = None,
    cleaned: Mapping[GroupId, tuple[InstantTime, ...]] | None = None,
) -> tuple[ChangeRead, ...]:
    """The changes of the window's commits, oldest first. `sources` has the other halves of bootstrap skeletons,
    `renamed_logs` the other names of log files that lie under either, `being_taken` the files (partition, name) that
    pending cleans take: a metadata table lists them until the clean completes, so nobody knows which are there.
    `cleaned`: instants of files that cleans took, by group: a slice that a savepoint keeps is older than these.

    Raises:
        Invalid: a file that is needed was cleaned, or is about to be, or commits of the range are archived.
        Corrupt: a commit changed a base file and says neither how nor that it has no updates.
    """
    if window.needs_snapshot:
        raise Invalid(
            "Changes of archived commits are not known any more, and the range has some, or may have",
            remedy="Begin at a commit of the active timeline, and at none that only a savepoint keeps there",
            begin=window.begin,
        )
    known = _Known(view, mode, sources or {}, renamed_logs or {}, cleaned or {})
    reads: list[ChangeRead] = []
    for instant in window.instants:
        metadata = commits[instant.requested]
        if metadata.operation_type in _DATA_CHANGES:
            reads += sorted(known.of_commit(instant.requested, metadata), key=lambda read: read.partition)
    for read in reads if being_taken else ():
        for path in _paths_of(read):
            clean = (being_taken or {}).get((read.partition, path.rpartition("/")[2]))
            if clean is not None:
                raise _gone(f"{path}, which the clean {clean} takes,", read.instant, path)
    return tuple(reads)


def _paths_of(read: ChangeRead) -> Iterator[str]:
    yield from (path for path, _ in read.changes)
    for part in (read.before, read.after):
        if part is not None:
            yield from (file.path for file in (part.base, *part.logs) if file is not None)


class _Known:
    """Files of the table by path, to put slices of the past together."""

    def __init__(
        self,
        view: View,
        mode: str,
        sources: Mapping[GroupId, BootstrapSource],
        renamed_logs: Mapping[str, str],
        cleaned: Mapping[GroupId, tuple[InstantTime, ...]],
    ) -> None:
        self._sources = sources
        self._cleaned = cleaned
        self._renamed_logs = renamed_logs
        self._view = replace(view, replaced={})  # slices of replaced groups are asked for, too
        self._mode = mode
        self._bases = {base.path: base for found in view.files for base in found.bases}
        self._logs = {log.path: log for found in view.files for log in found.logs}
        self._changes = {change.path for found in view.files for change in found.changes}
        self._by_instant = {
            (found.partition, base.name.file_id, base.name.instant): base
            for found in view.files
            for base in found.bases
        }
        self._by_group: dict[GroupId, list[BaseFile | LogFile]] = defaultdict(list)
        for found in view.files:
            for base in found.bases:
                self._by_group[found.partition, base.name.file_id].append(base)
            for log in found.logs:
                if not log.name.is_cdc:
                    self._by_group[found.partition, log.name.file_id].append(log)

    def of_commit(self, requested: InstantTime, metadata: CommitMetadata) -> Iterator[ChangeRead]:
        for partition, stat in metadata.write_stats():
            if not _changed_nothing(stat):
                yield self._of_stat(requested, metadata.operation_type or "", partition, stat)
        replaced = metadata.partition_to_replace_file_ids or {}
        for partition, file_ids in replaced.items():
            slices = {part.file_id: part for part in self._view.slices_at(requested, (partition,))}
            for file_id in file_ids:
                if file_id not in slices or self._is_cleaned(partition, slices[file_id], requested):
                    raise _gone(f"the replaced file group {file_id}", requested, None)
                before = self._read(partition, slices[file_id].base, slices[file_id].logs)
                yield ChangeRead(ChangeKind.REPLACED, requested, partition, before=before)

    def _of_stat(self, requested: InstantTime, operation: str, partition: str, stat: WriteStat) -> ChangeRead:
        if stat.cdc_stats:
            return self._logged(requested, partition, stat)
        path = stat.path or ""
        if stat.is_log or parse_log_file_name(path.rpartition("/")[2]) is not None:
            before = self._slice_before(requested, partition, stat)
            logs = (*_logs_of(before), self._log(path, requested))
            after = self._read(partition, before.base if before else None, logs)
            return ChangeRead(ChangeKind.MERGED, requested, partition, before=before, after=after)
        if operation in _DELETES and stat.num_writes == 0 and stat.num_deletes:
            before = self._read(partition, self._base_before(partition, stat, requested))
            return ChangeRead(ChangeKind.DELETED, requested, partition, before=before)
        if stat.num_update_writes == 0 and stat.num_deletes == 0 and stat.num_writes == stat.num_inserts:
            after = self._read(partition, self._base(path, requested))
            return ChangeRead(ChangeKind.INSERTED, requested, partition, after=after)
        raise Corrupt(
            f"The commit {requested} updated {path} and names no change file for it",
            remedy="Read the rows with query='incremental'; changes are kept from the commit on that enabled them",
            path=path,
        )

    def _logged(self, requested: InstantTime, partition: str, stat: WriteStat) -> ChangeRead:
        files = tuple(sorted((stat.cdc_stats or {}).items()))
        for path, _ in files:
            if path not in self._changes:
                raise _gone(path, requested, path)
        if self._mode == _BOTH_IMAGES:
            return ChangeRead(ChangeKind.LOGGED, requested, partition, files)
        after = self._read(partition, self._base(stat.path or "", requested))
        before = None
        if self._mode == _OPERATION_AND_KEY:
            before = self._read(partition, self._base_before(partition, stat, requested))
        return ChangeRead(ChangeKind.LOGGED, requested, partition, files, before, after)

    def _slice_before(self, requested: InstantTime, partition: str, stat: WriteStat) -> SliceRead | None:
        """The slice a log file was written on, as its commit describes it; None when there was nothing."""
        base_name = (stat.path or "").rpartition("/")[2]
        base = self._base(_path(partition, stat.base_file), requested) if stat.base_file else None
        names = [name.rpartition("/")[2] for name in stat.log_files or ()]
        logs = [self._log(_path(partition, name), requested) for name in names if name != base_name and _has_rows(name)]
        name = parse_log_file_name(base_name)
        if base is None and name is not None and name.instant != requested:
            base, below = self._below(partition, name)
            last = max((file.name.instant for file in (base, *below) if file is not None), default="")
            is_cleaned = self._took((partition, name.file_id), last, name.instant)
            if is_cleaned or (base is None and not below and not logs):
                raise _gone(f"the file slice below {base_name}", requested, stat.path)
            logs = [*below, *logs]
        if base is None and not logs:
            return None
        return self._read(partition, base, tuple(sorted(logs, key=lambda log: log.name.order)))

    def _below(self, partition: str, name: LogFileName) -> tuple[BaseFile | None, list[LogFile]]:
        """What lies below the log files of a slice whose commits name no base file: its base file, if a compaction has
        made it since, else the slice before it, which that was to read; nothing in a group that began with log files.
        """
        made = self._by_instant.get((partition, name.file_id, name.instant))
        if made is not None:
            return made, []
        files = self._by_group.get((partition, name.file_id), [])
        older = max((file.name.instant for file in files if file.name.instant < name.instant), default="")
        logs = [log for log in files if isinstance(log, LogFile) and log.name.instant == older]
        return self._by_instant.get((partition, name.file_id, older)), logs

    def _is_cleaned(self, partition: str, part: FileSlice, before: InstantTime) -> bool:
        """Whether a clean took something of the group that is later than this slice."""
        last = max((log.name.instant for log in part.logs), default=part.base_instant)
        return self._took((partition, part.file_id), max(last, part.base_instant), before)

    def _took(self, group_id: GroupId, since: InstantTime, before: InstantTime) -> bool:
        return any(since < instant < before for instant in self._cleaned.get(group_id, ()))

    def _read(self, partition: str, base: BaseFile | None, logs: tuple[LogFile, ...] = ()) -> SliceRead:
        return SliceRead(partition, base, logs, source=source_of(self._sources, partition, base))

    def _base_before(self, partition: str, stat: WriteStat, requested: InstantTime) -> BaseFile:
        found = self._by_instant.get((partition, stat.file_id or "", stat.prev_commit or ""))
        if found is None:
            raise _gone(f"the base file of {stat.file_id} that {stat.prev_commit} wrote", requested, None)
        return found

    def _base(self, path: str, requested: InstantTime) -> BaseFile:
        if path not in self._bases:
            raise _gone(path, requested, path)
        return self._bases[path]

    def _log(self, path: str, requested: InstantTime) -> LogFile:
        log = self._logs.get(path) or self._logs.get(self._renamed_logs.get(path, path))
        if log is None:
            raise _gone(path, requested, path)
        return log


def _changed_nothing(stat: WriteStat) -> bool:
    """Whether a rewrite without change file took over every row as it was, since all that came was too late."""
    is_rewrite = not stat.is_log and not stat.cdc_stats and not stat.begins_group
    return is_rewrite and stat.num_writes > 0 and not (stat.num_inserts or stat.num_update_writes or stat.num_deletes)


def _has_rows(log_file: str) -> bool:
    """Whether it is the name of a log file with rows: change files are listed among them."""
    name = parse_log_file_name(log_file)
    return name is not None and not name.is_cdc


def _logs_of(part: SliceRead | None) -> tuple[LogFile, ...]:
    return () if part is None else part.logs


def _path(partition: str, name: str | None) -> str:
    return f"{partition}/{name}" if partition else str(name)


def _gone(what: str, requested: InstantTime, path: str | None) -> Invalid:
    return Invalid(
        f"The changes of {requested} cannot be told: {what} is gone, cleaned since",
        remedy="Begin later, or let cleaning retain more commits",
        path=path,
        instant=requested,
    )
