"""What one action of a table did to its files, as those who keep the metadata table need to know it.

1. It is said before the action's instant completes, by the action itself: nothing is read back from the timeline.
2. Paths and partitions are relative to the table; the root as a partition is `""`.
3. Saying the same thing twice is safe: what an earlier attempt of the same instant recorded is taken back first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.metadata_writer.file_facts import FileFacts
from hoodie.spec import InstantTime, WriteStat


@dataclass(frozen=True, slots=True)
class TableUpdate:
    """One action of the table's timeline.

    `action`: `commit` (also a compaction's), `deltacommit`, `replacecommit`, `clean`, `rollback`, `restore`,
    `indexing`.
    `stats`: files written, with their `cdc_stats`; `facts` what is known of some of them beside that, by path: others
    are read. `deleted`: partition to names of files that were removed (clean).
    `deleted_partitions`: partitions that are gone as a whole (clean). `sizes`: path to bytes of log files that grew or
    appeared (rollback in version 6). `schema`: the table's data columns after the action, where it is known.
    `replaced`: file ids by partition that the action replaces. `keeps_rows`: it says nothing new, only in other files,
    as compactions and log compactions do: deletes its statistics count were counted when they were written.
    `knows_inserts`: new rows of log files are counted as such. A bucket index counts them as updates: it knows where a
    key belongs, not whether it is there.
    """

    instant: InstantTime
    action: str
    stats: tuple[WriteStat, ...] = ()
    facts: Mapping[str, FileFacts] = field(default_factory=dict)
    deleted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    deleted_partitions: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    schema: pa.Schema | None = None
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keeps_rows: bool = False
    knows_inserts: bool = False
