"""What steers a clean: which states of the table stay readable, and when it is worth a look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from hoodie.config import Config
from hoodie.spec import CleanPolicy

NO_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """Behaviour.

    `policy` says what is kept: the files of the last `commits` commits, of the last `hours` hours, or the last
    `versions` slices of every file group. `trigger_commits`: commits since the last clean before there is another one.
    `most_commits`: how many commits a clean may move on at once. `empty_after_hours`: a clean that finds nothing is
    recorded all the same when the last one is older than that, so that the next ones have little to look at; never
    when it is not positive.

    Performance: `incremental` looks only at partitions that were touched since the last clean.
    """

    policy: CleanPolicy = "KEEP_LATEST_COMMITS"
    commits: int = 10
    hours: int = 24
    versions: int = 3
    trigger_commits: int = 1
    most_commits: int = NO_LIMIT
    empty_after_hours: int = -1
    incremental: bool = True

    @property
    def by_versions(self) -> bool:
        """Whether slices are counted, and so nothing is promised about past states of the table."""
        return self.policy == "KEEP_LATEST_FILE_VERSIONS"


def parse_clean_options(config: Config) -> CleanOptions:
    """The options of a clean."""
    return CleanOptions(
        policy=cast(CleanPolicy, config.text("hoodie.clean.policy")),
        commits=config.integer("hoodie.clean.commits.retained"),
        hours=config.integer("hoodie.clean.hours.retained"),
        versions=config.integer("hoodie.clean.fileversions.retained"),
        trigger_commits=config.integer("hoodie.clean.trigger.max.commits"),
        most_commits=config.integer("hoodie.clean.max.commits.to.clean"),
        empty_after_hours=config.integer("hoodie.write.empty.clean.interval.hours"),
        incremental=config.flag("hoodie.clean.incremental.enabled"),
    )
