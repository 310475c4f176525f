"""Partitions that have lived long enough: which ones, and their deletion as one `delete_partition`.

1. KEEP_BY_TIME counts from the newest slice of a partition (the base instants of its live slices),
   KEEP_BY_CREATION_TIME from the instant in its partition metafile; both as Hudi 1.x counts. A partition without
   either is left alone.
2. Nothing expires while `hoodie.partition.ttl.strategy.days.retain` is not positive, which is the default.
3. The deletion is an ordinary replacecommit: files stay until the cleaner takes them, and time travel sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Invalid, Missing
from hoodie.remote import asked_server, open_asked_view
from hoodie.services.ingest import Request, write_locked
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.service import AfterCommit, Service
from hoodie.spec import TimeZone, keys, parse_instant_time, parse_partition_metafile, path_in
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.transaction import Committed, HeldThroughout
from hoodie.view import FileSlice

STRATEGY = "hoodie.partition.ttl.management.strategy.type"
DAYS = "hoodie.partition.ttl.strategy.days.retain"
SELECTED = "hoodie.partition.ttl.strategy.partition.selected"
MAX_PARTITIONS = "hoodie.partition.ttl.strategy.max.delete.partitions"

Rule = Literal["KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"]


@dataclass(frozen=True, slots=True)
class TtlOptions:
    """When partitions expire. `selected` are the partitions the rule looks at; empty: all."""

    rule: Rule
    days: int
    selected: tuple[str, ...]
    most: int


def parse_ttl_options(config: Config) -> TtlOptions:
    """The rule the options ask for.

    Raises:
        Invalid: no such rule.
    """
    rule = config.text(STRATEGY).upper()
    if rule not in ("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"):
        raise Invalid(f"{STRATEGY} is {rule}", remedy="Choose KEEP_BY_TIME or KEEP_BY_CREATION_TIME")
    return TtlOptions(rule, config.integer(DAYS), config.list(SELECTED), config.integer(MAX_PARTITIONS))  # type: ignore[arg-type]


def plan_ttl(
    starts: Mapping[str, str], options: TtlOptions, now: datetime, timezone: TimeZone
) -> tuple[tuple[str, str], ...]:
    """Expired partitions with the instant their life is counted from, oldest first; at most `options.most`."""
    if options.days <= 0:
        return ()
    limit = now - timedelta(days=options.days)
    expired = (
        (instant, partition)
        for partition, instant in starts.items()
        if (not options.selected or partition in options.selected) and parse_instant_time(instant, timezone) < limit
    )
    return tuple((partition, instant) for instant, partition in sorted(expired)[: options.most])


def preview_ttl(handle: TableHandle, config: Config, engine: Engine | None = None) -> ServicePreview:
    """What `run_ttl` would delete."""
    del engine
    options = parse_ttl_options(config)
    slices = _slices(handle, config)
    expired = _expired(handle, options, slices)
    steps = []
    for partition, instant in expired:
        mine = [one for one in slices if one.partition == partition]
        paths = tuple(path for one in mine for path in one.paths)
        size = sum(one.size_bytes for one in mine)
        steps.append(PreviewStep("delete", partition, None, paths, size, f"{options.rule}: counted from {instant}"))
    notes = () if options.days > 0 else (f"{DAYS} is {options.days}: no partition expires",)
    return ServicePreview("ttl", tuple(steps), notes)


def run_ttl(handle: TableHandle, config: Config, engine: Engine) -> Committed | None:
    """The commit that deleted the expired partitions, or None when none has expired. The caller holds the table's
    table lock.
    """
    expired = _expired(handle, parse_ttl_options(config), _slices(handle, config))
    if not expired:
        return None
    names = tuple(partition for partition, _ in expired)
    return write_locked(HeldThroughout(handle), Request("delete_partition", None, config, engine, names))


def _slices(handle: TableHandle, config: Config) -> tuple[FileSlice, ...]:
    return open_asked_view(asked_server(config), handle, timeline_of(handle)).load().slices_at()


def _expired(handle: TableHandle, options: TtlOptions, slices: Sequence[FileSlice]) -> tuple[tuple[str, str], ...]:
    starts: dict[str, str] = {}
    if options.rule == "KEEP_BY_TIME":
        for one in slices:
            starts[one.partition] = max(starts.get(one.partition, ""), one.base_instant)
    else:
        starts = dict(_creations(handle, {one.partition for one in slices}))
    return plan_ttl(starts, options, handle.env.now(), handle.config.timezone)


def _creations(handle: TableHandle, partitions: set[str]) -> Iterator[tuple[str, str]]:
    for partition in sorted(partitions):
        for suffix in ("", ".parquet"):
            path = path_in(partition, keys.PARTITION_METAFILE_PREFIX + suffix)
            try:
                yield partition, parse_partition_metafile(handle.storage.read(path), path).commit_time
                break
            except Missing:
                continue


def _is_inline(handle: TableHandle, config: Config) -> bool:
    return config.flag("hoodie.partition.ttl.inline")


SERVICE: Final = Service(
    name="ttl",
    nothing="no partition has expired",
    run=run_ttl,
    preview=preview_ttl,
    after_commit=(AfterCommit("deleting expired partitions", _is_inline),),
)
