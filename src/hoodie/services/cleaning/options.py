"""What steers a clean: which states of the table stay readable, where it looks, and when it is worth a look."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.spec import CleanPolicy

NO_LIMIT = 2**63 - 1
SELECTED = "hoodie.clean.partition.filter.selected"
PATTERN = "hoodie.clean.partition.filter.regex"
INCREMENTAL = "hoodie.clean.incremental.enabled"


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """The partitions a clean looks at: the `selected` ones or, where none is named, those whose whole path is matched
    by `pattern`.
    """

    selected: frozenset[str] = frozenset()
    pattern: str = ""

    def takes(self, partition: str) -> bool:
        """Whether a clean looks at the partition."""
        if self.selected:
            return partition in self.selected
        return re.fullmatch(self.pattern, partition) is not None

    @property
    def text(self) -> str:
        """The filter in words: noted in the clean, and shown by previews."""
        return ",".join(sorted(self.selected)) or self.pattern


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """Behaviour.

    `policy` says what is kept: the files of the last `commits` commits, of the last `hours` hours, or the last
    `versions` slices of every file group. `trigger_commits`: commits since the last clean before there is another one.
    `max_commits`: how many commits a clean may move on at once. `empty_after_hours`: a clean that finds nothing is
    recorded all the same when the last one is older than that, so that the next ones have little to look at; never
    when it is not positive. `only`: the partitions it is about (None: all). `multiple`: another clean is planned even
    when one was pending.

    Performance: `incremental` looks only at partitions that were touched since the last clean.
    """

    policy: CleanPolicy = "KEEP_LATEST_COMMITS"
    commits: int = 10
    hours: int = 24
    versions: int = 3
    trigger_commits: int = 1
    max_commits: int = NO_LIMIT
    empty_after_hours: int = -1
    incremental: bool = True
    only: PartitionFilter | None = None
    multiple: bool = False

    @property
    def by_versions(self) -> bool:
        """Whether slices are counted, and so nothing is promised about past states of the table."""
        return self.policy == "KEEP_LATEST_FILE_VERSIONS"

    @property
    def chosen(self) -> str:
        """The filter of partitions as text; empty when all are looked at."""
        return self.only.text if self.only else ""

    def takes(self, partition: str) -> bool:
        """Whether a clean looks at the partition."""
        return self.only is None or self.only.takes(partition)


def parse_clean_options(config: Config) -> CleanOptions:
    """The options of a clean.

    Raises:
        Invalid: a filter of partitions beside incremental cleaning, or no regular expression.
    """
    incremental = config.flag(INCREMENTAL)
    return CleanOptions(
        policy=cast(CleanPolicy, config.text("hoodie.clean.policy")),
        commits=config.integer("hoodie.clean.commits.retained"),
        hours=config.integer("hoodie.clean.hours.retained"),
        versions=config.integer("hoodie.clean.fileversions.retained"),
        trigger_commits=config.integer("hoodie.clean.trigger.max.commits"),
        max_commits=config.integer("hoodie.clean.max.commits.to.clean"),
        empty_after_hours=config.integer("hoodie.write.empty.clean.interval.hours"),
        incremental=incremental,
        only=_parse_filter(config, incremental=incremental),
        multiple=config.flag("hoodie.clean.multiple.enabled"),
    )


def _parse_filter(config: Config, *, incremental: bool) -> PartitionFilter | None:
    selected, pattern = frozenset(config.list(SELECTED)), config.text(PATTERN)
    if not selected and not pattern:
        return None
    if incremental:
        raise Invalid(
            f"{SELECTED if selected else PATTERN} chooses partitions, and so does incremental cleaning",
            remedy=f"Set {INCREMENTAL}=false to clean chosen partitions",
        )
    if selected:
        return PartitionFilter(selected)
    try:
        re.compile(pattern)
    except re.error as error:
        raise Invalid(
            f"{PATTERN} is no regular expression: {error}", remedy="It has to match the whole path of a partition"
        ) from error
    return PartitionFilter(pattern=pattern)
