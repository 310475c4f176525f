"""How a table is: sizes, log debt, what hangs, what could be freed, and for every concern the remedy.

1. One listing of the storage, the timeline, and what `hoodie validate` finds. Nothing is changed.
2. A concern is a sentence about numbers with a command beside it; `error` means that rows are or may be wrong,
   `warning` that the table gets slower or larger than it has to be, `note` that somebody may want to know.
3. Limits are Hudi's own where a key has one (small files, compaction and archiving triggers, cleaner retention).
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hoodie.config import Config
from hoodie.engine import Engine, LocalEngine
from hoodie.errors import Invalid
from hoodie.fileview import FolderView, open_file_view
from hoodie.notebook import Displayed
from hoodie.query import Finding
from hoodie.services.overlaps import ColumnOverlap, load_overlaps
from hoodie.services.remedies import told
from hoodie.services.repair import strays, unreached
from hoodie.services.spread import Spread, spread_of
from hoodie.services.validate import validate
from hoodie.spec import COMPACTION, Instant, parse_instant_time
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.timeline import Timeline
from hoodie.units import size_text
from hoodie.view import FileSlice, View

Severity = Literal["error", "warning", "note"]

STUCK_SECONDS = 3600
CHEAP_LOGS = 1 << 20
"""Bytes of logs of a file group up to which opening them is what they cost a read."""
FEW_BYTES = 1 << 20
"""Bytes of old versions of a table up to which nobody wants them back."""
SMALL_FILES = 10
_WARNINGS = frozenset({"orphan", "pending", "stray", "uncommitted", "version"})
_TROUBLE = {
    "metadata": "`hoodie doctor {uri} --fix`",
    "index": "`hoodie doctor {uri} --fix`",
    "uncommitted": "the next write rolls it back, the next compaction begins it anew if it died; to reclaim what is "
    "left: `hoodie clean {uri}`",
    "orphan": "no reader takes it; to remove it: `hoodie doctor {uri} --fix`",
    "orphan without metadata": "no reader takes it; without a metadata table only the history says that it was never "
    "committed; to remove it if its rows are no loss: `hoodie orphans {uri} --delete`",
    "stray": "no reader takes it, and nothing removes it: look at it, delete it by hand if it is no loss",
    "unreachable": "see that it is what it was: mounted, the right bucket, the right keys of it "
    "(fs.s3a.bucket.<bucket>.*); files there were not looked at",
    "version": "to finish it: `hoodie upgrade {uri} --to 6`; to give it up: `hoodie upgrade {uri} --to {version}`",
    "pending": "the next write rolls it back, or: `hoodie rollback {uri} {instant}`",
}


@dataclass(frozen=True, slots=True)
class Concern:
    """Something about a table somebody should look at. `subject` is the partition, file or instant it is about,
    `commands` are those in the remedy.
    """

    severity: Severity
    kind: str
    subject: str
    message: str
    remedy: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionSizes:
    """What lies in one partition: live slices, and versions that only time travel reads. Sizes are bytes."""

    partition: str
    file_groups: int
    base_files: int
    base_bytes: int
    small_files: int
    log_files: int
    log_bytes: int
    old_files: int
    old_bytes: int


@dataclass(frozen=True, slots=True)
class LogDebt:
    """The log files of one file group that compaction has not merged."""

    partition: str
    file_id: str
    base_bytes: int
    log_files: int
    log_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class TableHealth(Displayed):
    """How a table is. `base_sizes` has the bytes of each live base file (below `small_limit` one is small), `debts` the
    slices with log files, largest first, `instants` the active timeline, `spread` where files lie if the table has
    storage paths, `overlaps` how many files a look-up of one value reads, by column; none where nobody looked.
    """

    name: str
    uri: str
    table_type: str
    version: int
    examined: datetime
    partitions: tuple[PartitionSizes, ...]
    small_limit: int
    base_sizes: tuple[int, ...]
    debts: tuple[LogDebt, ...]
    instants: tuple[Instant, ...]
    concerns: tuple[Concern, ...]
    spread: Spread | None = None
    overlaps: tuple[ColumnOverlap, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether something is damaged or gone."""
        return any(one.severity == "error" for one in self.concerns)

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is an error or a warning."""
        return all(one.severity == "note" for one in self.concerns)


def examine(handle: TableHandle, config: Config, engine: Engine | None = None) -> TableHealth:
    """The health of the table now. Lists the whole table and opens the footer of every live base file.

    Raises:
        Corrupt: the properties or the timeline cannot be read at all.
    """
    view, findings = looked_at(handle, engine)
    return health_of(handle, config, view, findings, overlaps_if_sound(handle, view, findings, engine))


def looked_at(handle: TableHandle, engine: Engine | None = None) -> tuple[View, list[Finding]]:
    """All files of the table, and what `findings_of` says. Where a storage path is not reached, the files are those
    that the metadata table lists. Raises as `examine`.
    """
    timeline, findings = timeline_of(handle), findings_of(handle, engine)
    if any(one.kind == "unreachable" for one in findings):
        return open_file_view(handle.storage, handle.config, timeline, engine=engine).load(), findings
    return FolderView(handle.storage, timeline, engine).load(), findings


def findings_of(handle: TableHandle, engine: Engine | None = None) -> list[Finding]:
    """All that is wrong with files and indexes of the table. Where a storage path is not reached, that alone."""
    return list(unreached(handle)) or [*validate(handle, engine), *strays(handle)]


def overlaps_if_sound(
    handle: TableHandle, view: View, findings: Sequence[Finding], engine: Engine | None = None
) -> tuple[ColumnOverlap, ...]:
    """How columns overlap over the files in `view`; none where something was found that keeps files from being read."""
    if findings and not {one.kind for one in findings} <= _WARNINGS:
        return ()
    return load_overlaps(handle, view, engine or LocalEngine())


def health_of(
    handle: TableHandle,
    config: Config,
    view: View,
    findings: Sequence[Finding] = (),
    overlaps: tuple[ColumnOverlap, ...] = (),
) -> TableHealth:
    """The health of the table whose files are in `view`, with what `validate` found, and how columns overlap. Nothing
    is read.
    """
    timeline, slices = view.timeline, view.slices_at()
    small = config.integer("hoodie.parquet.small.file.limit")
    partitions = tuple(_partition_sizes(view, slices, small))
    debts = tuple(sorted((_debt(one) for one in slices if one.logs), key=lambda one: -one.log_bytes))
    spread = spread_of(handle.storage, view.files)
    concerns = (
        *_findings(handle, findings),
        *_stuck(handle, timeline),
        *_log_debt(handle, config, timeline, debts),
        *_small_files(handle, partitions, small),
        *_overlaps(handle, overlaps),
        *_old_versions(handle, timeline, partitions),
        *_archiving(handle, config, timeline),
        *_gathered(handle, spread),
    )
    order = ("error", "warning", "note")
    return TableHealth(
        name=handle.config.name,
        uri=handle.storage.uri,
        table_type=handle.config.table_type,
        version=handle.config.table_version,
        examined=handle.env.now(),
        partitions=partitions,
        small_limit=small,
        base_sizes=tuple(one.base.size_bytes for one in slices if one.base is not None),
        debts=debts,
        instants=timeline.instants,
        concerns=tuple(sorted(concerns, key=lambda one: order.index(one.severity))),
        spread=spread,
        overlaps=overlaps,
    )


def _partition_sizes(view: View, slices: Sequence[FileSlice], small: int) -> Iterator[PartitionSizes]:
    live: dict[str, list[FileSlice]] = defaultdict(list)
    for one in slices:
        live[one.partition].append(one)
    for found in view.files:
        mine = live[found.partition]
        read = {path for one in mine for path in one.paths}
        old = [one for one in found.everything if one.path not in read]
        bases = [one.base.size_bytes for one in mine if one.base is not None]
        logs = [log.size_bytes for one in mine for log in one.logs]
        yield PartitionSizes(
            partition=found.partition,
            file_groups=len(mine),
            base_files=len(bases),
            base_bytes=sum(bases),
            small_files=sum(size < small for size in bases),
            log_files=len(logs),
            log_bytes=sum(logs),
            old_files=len(old),
            old_bytes=sum(one.size_bytes for one in old),
        )


def _debt(one: FileSlice) -> LogDebt:
    base = 0 if one.base is None else one.base.size_bytes
    return LogDebt(one.partition, one.file_id, base, len(one.logs), sum(log.size_bytes for log in one.logs))


def _findings(handle: TableHandle, findings: Sequence[Finding]) -> Iterator[Concern]:
    uri, is_listed = _place(handle), handle.config.is_metadata_table_ready
    for one in findings:
        severity: Severity = "warning" if one.kind in _WARNINGS else "error"
        kind = "orphan without metadata" if one.kind == "orphan" and not is_listed else one.kind
        remedy = _TROUBLE.get(kind, "restore the file, or restore to an earlier savepoint or instant")
        facts = {"uri": uri, "instant": shlex.quote(one.path.partition(".")[0]), "version": handle.config.table_version}
        yield Concern(severity, one.kind, one.path, one.message, *told(remedy, **facts))


def _stuck(handle: TableHandle, timeline: Timeline) -> Iterator[Concern]:
    """Pending instants that are older than any work should take."""
    now = handle.env.now()
    for instant in timeline.pending():
        try:
            age = now - parse_instant_time(instant.requested, handle.config.timezone).astimezone(UTC)
        except Invalid:  # digits that are no date: nobody knows how old it is
            continue
        if age.total_seconds() < STUCK_SECONDS:
            continue
        remedy = "`hoodie compact {uri}`" if instant.action == COMPACTION else "`hoodie rollback {uri} {instant}`"
        yield Concern(
            "warning",
            "stuck",
            f"{instant.requested}.{instant.action}",
            f"has been {instant.state.name.lower()} for {_span(age.total_seconds())}",
            *told(remedy, uri=_place(handle), instant=instant.requested),
        )


def _log_debt(handle: TableHandle, config: Config, timeline: Timeline, debts: Sequence[LogDebt]) -> Iterator[Concern]:
    if not debts:
        return
    compactions = [i for i in timeline.completed_writes() if i.action == "commit"]
    since = max((one.requested for one in compactions), default="")
    deltas = [i for i in timeline.completed_writes() if i.action == "deltacommit" and i.requested > since]
    limit = config.integer("hoodie.compact.inline.max.delta.commits")
    logs, base = sum(one.log_bytes for one in debts), sum(one.base_bytes for one in debts)
    if len(deltas) > 2 * limit or (base and logs > max(base, CHEAP_LOGS * len(debts))):
        yield Concern(
            "warning",
            "log debt",
            handle.config.name,
            f"{len(debts):,} file groups have {size_text(logs)} of logs on {size_text(base)} of base files after "
            f"{len(deltas):,} delta commits (compaction is due after {limit})",
            *told("`hoodie compact {uri}`", uri=_place(handle)),
        )


def _small_files(handle: TableHandle, partitions: Sequence[PartitionSizes], small: int) -> Iterator[Concern]:
    for one in partitions:
        if one.small_files >= SMALL_FILES:
            yield Concern(
                "note",
                "small files",
                one.partition,
                f"{one.small_files:,} of {one.base_files:,} base files are smaller than {size_text(small)}",
                *told(
                    "to join them: `hoodie compact-base {uri}`; to sort them, too: `hoodie cluster {uri}`; or write "
                    "larger batches, or leave hoodie.parquet.small.file.limit above 0 so that inserts fill them",
                    uri=_place(handle),
                ),
            )


def _overlaps(handle: TableHandle, overlaps: Sequence[ColumnOverlap]) -> Iterator[Concern]:
    """Columns that a clustering has sorted by, and whose files overlap again."""
    behind = [one for one in overlaps if one.is_clustered and one.files >= SMALL_FILES and one.reads > one.files / 2]
    if behind:
        names = ",".join(one.column for one in behind)
        worst = max(behind, key=lambda one: one.reads / one.files)
        yield Concern(
            "note",
            "overlap",
            names,
            f"was sorted by, and files overlap again: one value of {worst.column} is in about {worst.reads:.1f} of "
            f"{worst.files:,} files",
            *told(
                "`hoodie cluster {uri} -o hoodie.clustering.plan.strategy.sort.columns={names}`",
                uri=_place(handle),
                names=shlex.quote(names),
            ),
        )


def _old_versions(handle: TableHandle, timeline: Timeline, partitions: Sequence[PartitionSizes]) -> Iterator[Concern]:
    old, live = sum(one.old_bytes for one in partitions), sum(one.base_bytes + one.log_bytes for one in partitions)
    if old > max(3 * live, FEW_BYTES):
        cleans = Counter(one.action for one in timeline.completed())["clean"]
        yield Concern(
            "note" if cleans else "warning",
            "old versions",
            handle.config.name,
            f"{size_text(old)} in {sum(one.old_files for one in partitions):,} files are kept for time travel, "
            f"{size_text(live)} are read",
            *told("`hoodie clean {uri}`", uri=_place(handle)),
        )


def _archiving(handle: TableHandle, config: Config, timeline: Timeline) -> Iterator[Concern]:
    limit = config.integer("hoodie.keep.max.commits")
    writes = len(timeline.completed_writes())
    if writes > 2 * limit:
        yield Concern(
            "warning",
            "long timeline",
            handle.config.name,
            f"{writes:,} completed writes are in the active timeline, archiving is due at {limit}: every action reads "
            "them",
            *told("to see what keeps them: `hoodie archive {uri} --dry-run`", uri=_place(handle)),
        )


def _gathered(handle: TableHandle, spread: Spread | None) -> Iterator[Concern]:
    if spread is None or not spread.is_gathered:
        return
    home = spread.left_at_home
    to_prefixes, to_hashes = (
        "to bring them to their prefixes: `hoodie relayout {uri} --move`",
        "to hash partition and file id: `hoodie relayout {uri} --to bits:8 --move`",
    )
    yield Concern(
        "note",
        "spread",
        handle.config.name,
        f"half of {spread.file_groups:,} file groups lie under {spread.crowded:,} of {spread.prefixes:,} prefixes"
        + (f" ({home:,} have files at the table path)" if home else ""),
        *told(to_prefixes if home * 2 >= spread.file_groups else to_hashes, uri=_place(handle)),
    )


def _place(handle: TableHandle) -> str:
    """The table as a word of a command: people paste remedies into a shell."""
    return shlex.quote(handle.storage.uri)


def _span(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:.0f} days"
