"""Which blocks of a file slice count, and in what order they are merged.

Hudi 1.2 looks at the blocks twice, and this module does the same with the same result.

1. First pass, in slice order: blocks are gathered by instant, instants in the order in which they first appear.
   Damaged spans, blocks of writes that do not count, blocks after the time asked for and blocks outside the range are
   left out. A rollback block drops what its target wrote *before* it; what came after it stays.
2. Rollback blocks are heeded whatever their own instant: the write they take back is gone for every reader.
3. Second pass, from the last instant to the first: an instant whose first block says `COMPACTED_BLOCK_TIMES` stands
   for the instants it lists. Its blocks come once, at the place of the latest of them that is still there; the blocks
   of those instants do not come at all. A compacted block may list compacted ones.
4. A compacted block none of whose originals count does not count either.
5. The result is oldest to newest; the blocks of one instant keep their order.

Pure: it sees headers only. Why versions differ in what counts: `docs/format/log-files.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from hoodie.errors import Unsupported
from hoodie.spec import ROLLBACK_COMMAND, BlockKind, HeaderKey, InstantTime, LogBlock

_Gathered = dict[InstantTime, list[LogBlock]]


def every_instant(_: InstantTime) -> bool:
    """Counts every write: what tables of version 8 and later do, whose slices hold files of committed writes only."""
    return True


def blocks_to_merge(
    blocks: Iterable[LogBlock],
    *,
    counts: Callable[[InstantTime], bool] = every_instant,
    until: InstantTime | None = None,
    within: Container[InstantTime] | None = None,
) -> tuple[LogBlock, ...]:
    """Data and delete blocks that make up the slice, oldest first.

    `blocks` are those of all log files in slice order. `counts`: whether a write is committed; tables of version 6
    have blocks of failed writes in good files. `until`: later instants are left out. `within`: so are instants that
    are not in it.

    Raises:
        Corrupt: a block does not say which instant wrote it.
        Unsupported: a command that is no rollback.
    """
    return _in_order(_gathered(blocks, counts, until, within))


def _gathered(
    blocks: Iterable[LogBlock],
    counts: Callable[[InstantTime], bool],
    until: InstantTime | None,
    within: Container[InstantTime] | None,
) -> _Gathered:
    """Blocks that count by instant, in the order in which instants first appear."""
    found: _Gathered = {}
    for block in blocks:
        if block.kind is BlockKind.COMMAND:
            _ensure_rollback(block)
            found.pop(block.target_instant, None)
        elif block.kind.is_data or block.kind is BlockKind.DELETE:
            instant = block.instant
            late = until is not None and instant > until
            if not late and counts(instant) and (within is None or instant in within):
                found.setdefault(instant, []).append(block)
    return found


def _in_order(found: _Gathered) -> tuple[LogBlock, ...]:
    """Blocks oldest first, compacted ones in the place of what they replace."""
    replaced: dict[InstantTime, InstantTime] = {}
    newest_first: list[InstantTime] = []
    given: set[InstantTime] = set()
    for instant in reversed(found):
        stands_for = found[instant][0].compacted_instants
        final = replaced.get(instant, instant)
        if stands_for:
            replaced.update(dict.fromkeys(stands_for, final))
        elif final not in given:
            given.add(final)
            newest_first.append(final)
    return tuple(block for instant in reversed(newest_first) for block in found[instant])


def _ensure_rollback(block: LogBlock) -> None:
    command = block.header.get(HeaderKey.COMMAND_BLOCK_TYPE)
    if command != ROLLBACK_COMMAND:
        raise Unsupported(
            f"Command {command!r} in the log block at byte {block.start} of {block.path} is not known",
            remedy="Read the table with the release that wrote it, or compact it there",
            path=block.path,
            offset=block.start,
        )
