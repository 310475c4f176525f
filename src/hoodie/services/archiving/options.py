"""What steers archiving: how many commits stay on the timeline, and how the history is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from hoodie.config import Config
from hoodie.services.cleaning.options import CleanOptions, parse_clean_options
from hoodie.timeline import HistoryLimits, MergeLimits


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """Behaviour.

    Archiving begins when there are more than `max_commits` completed writes and leaves `min_commits`. Both are
    raised where the cleaner (`clean`) keeps more. `beyond_savepoint`: later commits than a savepoint's go as well.
    `block_on_clean`: what the last clean kept stays. `delta_commits`: how many delta commits a compaction is planned
    after, when it goes by their number; None otherwise.

    Performance: `batch` entries stand in a block of the archive (version 6), `merge` says which of those archives are
    merged (None: none), `history` how the history of later versions is kept.
    """

    min_commits: int = 20
    max_commits: int = 30
    beyond_savepoint: bool = False
    block_on_clean: bool = False
    delta_commits: int | None = 5
    clean: CleanOptions = field(default_factory=CleanOptions)
    batch: int = 10
    merge: MergeLimits | None = None
    history: HistoryLimits = field(default_factory=HistoryLimits)


def parse_archive_options(config: Config) -> ArchiveOptions:
    """The options of archiving."""
    counts = config.text("hoodie.compact.inline.trigger.strategy") in ("NUM_COMMITS", "NUM_AND_TIME")
    merge = MergeLimits(
        config.integer("hoodie.archive.merge.files.batch.size"),
        config.integer("hoodie.archive.merge.small.file.limit.bytes"),
    )
    return ArchiveOptions(
        min_commits=config.integer("hoodie.keep.min.commits"),
        max_commits=config.integer("hoodie.keep.max.commits"),
        beyond_savepoint=config.flag("hoodie.archive.beyond.savepoint"),
        block_on_clean=config.flag("hoodie.archive.block.on.latest.clean.ectr"),
        delta_commits=config.integer("hoodie.compact.inline.max.delta.commits") if counts else None,
        clean=parse_clean_options(config),
        batch=config.integer("hoodie.commits.archival.batch"),
        merge=merge if config.flag("hoodie.archive.merge.enable") else None,
        history=HistoryLimits(
            config.integer("hoodie.timeline.compaction.batch.size"),
            config.integer("hoodie.timeline.compaction.target.file.max.bytes"),
            config.integer("hoodie.timeline.manifest.retained.versions"),
        ),
    )
