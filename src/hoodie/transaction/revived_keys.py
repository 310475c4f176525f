"""Whether a compaction that came meanwhile leaves out a key that a write has brought back in a log file.

1. A key whose base row a log file deleted is updated where it was, unless a compaction is planned. One that is planned
   after the look-up writes a base file without the key, in front of the log file that has it again. An index that knows
   keys of base files alone does not find it there, and the next upsert would add it once more.
2. So a write bears such a compaction (`overlaps`) only if all base rows it has updated are alive. Else it gives way,
   and finds the plan when it is repeated: the key is a new row then.
3. Nobody else has changed these groups since the look-up, or the write gives way anyway. So the compaction merges what
   the look-up saw, and that is what is asked: base rows and log of the slice as it was then.
4. Asked is only who appended to a group of a compaction that came meanwhile. Everybody else reads nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.spec import COMMIT, COMPACTION
from hoodie.transaction.conflicts import ConflictRule
from hoodie.transaction.moves import moves_since
from hoodie.transaction.pending_commit import PendingCommit
from hoodie.transaction.write_conflict import KEYS_TOLD, write_conflict
from hoodie.view import GroupId

_COMPACTS: Final = frozenset({COMPACTION, COMMIT})
"""Actions of compactions, planned and completed. Other writes of merge-on-read tables are none of the two."""

RevivedKeys = Callable[[Collection[GroupId]], Mapping[GroupId, Sequence[str]]]
"""Which deleted keys a write has brought back in each of some file groups; those without any are left out."""


@dataclass(frozen=True, slots=True)
class NoneRevived:
    """A `ConflictRule`: what `rule` says, and no compaction that came meanwhile leaves out a key the write has brought
    back. `appended` are the file groups whose logs it has added to; `revived` reads their base rows and logs.
    """

    rule: ConflictRule
    appended: frozenset[GroupId]
    revived: RevivedKeys

    def check(self, pending: PendingCommit) -> None:
        """See `ConflictRule`.

        Raises:
            WriteConflict: a compaction leaves out a key that this write has brought back. Else as `rule`.
        """
        self.rule.check(pending)
        now = pending.seen
        if now is None:
            return
        for other in moves_since(pending.handle, pending.planned_on, now, pending.inflight, _COMPACTS):
            groups = other.groups & self.appended if other.merges_base_files else frozenset()
            if groups and (revived := self.revived(groups)):
                keys = [key for group in sorted(revived) for key in revived[group]][:KEYS_TOLD]
                what = "file groups without deleted keys that the write brings back"
                raise write_conflict(pending, other, revived, keys, what)
