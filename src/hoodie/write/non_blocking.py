"""What a write may be that does not wait for others and bears their log files: Hudi's rules, and one more.

1. Hudi allows the mode for merge-on-read tables with a bucket index of engine SIMPLE: writers agree where a key is, and
   a change is a log file of its own. Version 8 and later: there a log file finds its slice by its completion.
2. Overwrites replace file groups, which others may be adding to: refused, as in Hudi.
3. Rows of one key meet in one slice, and the ordering value has to say which of them wins. Without it that is the order
   of log files, which is by the beginning of writes and not by their end, and changes when a compaction comes between:
   a row that was committed last could be hidden, then come back. Hudi lets that happen; here it is refused.
"""

from __future__ import annotations

from typing import Final

from hoodie.config import Config
from hoodie.errors import Invalid
from hoodie.index.simple_bucket_index import SimpleBucketIndex
from hoodie.state.handle import TableHandle
from hoodie.transaction.concurrency import MODE, is_non_blocking
from hoodie.write.options import WriteOptions

_OVERWRITES: Final = frozenset({"insert_overwrite", "insert_overwrite_table"})


def ensure_may_not_wait(handle: TableHandle, options: WriteOptions, config: Config) -> None:
    """Checks that a write in the mode NON_BLOCKING_CONCURRENCY_CONTROL is one that may be; others are not looked at.

    Raises:
        Invalid: it is not.
    """
    if not is_non_blocking(config):
        return
    table = handle.config
    why = ""
    if not table.is_merge_on_read:
        why = "it is for merge-on-read tables"
    elif not isinstance(options.index, SimpleBucketIndex):
        why = "it is for tables with a bucket index of engine SIMPLE (hoodie.index.type=BUCKET)"
    elif not handle.profile.log_naming.finds_slice_by_completion:
        why = f"it is for versions 8 and later, and the table has version {table.table_version}"
    elif options.operation in _OVERWRITES:
        why = f"{options.operation} replaces file groups that others may be adding to"
    elif not (options.ordering and options.merge_rule.ordered_against_stored):
        why = "nothing says which of two rows of a key wins: that needs ordering fields and event time"
    if why:
        raise Invalid(
            f"{MODE} is NON_BLOCKING_CONCURRENCY_CONTROL, and {why} (table {table.name})",
            remedy=f"Set {MODE} to OPTIMISTIC_CONCURRENCY_CONTROL, or leave it out",
            key=MODE,
        )
