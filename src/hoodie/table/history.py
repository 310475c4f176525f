"""`Table.history`: all instants of a table, the archived timeline before the active one."""

from __future__ import annotations

from collections.abc import Iterator

from hoodie.notebook import Displayed
from hoodie.spec import Instant
from hoodie.state.handle import timeline_of
from hoodie.table.opened import OpenedTable
from hoodie.timeline import load_history


class TableHistory(Displayed):
    """All instants of a table, oldest first; loaded anew with every look. `Table.timeline()` has the active ones."""

    def __init__(self, opened: OpenedTable) -> None:
        self._opened = opened

    def archived(self) -> tuple[Instant, ...]:
        """Loads the archived timeline: instants that left the active one, oldest first.

        Raises:
            Corrupt: the history is damaged.
        """
        handle = self._opened.fresh()
        return tuple(sorted({row.instant for row in load_history(handle.storage, handle.profile)}))

    def __iter__(self) -> Iterator[Instant]:
        # The history is read last: what is archived meanwhile is then in both, never in none.
        active = {instant.logical: instant for instant in timeline_of(self._opened.fresh()).instants}
        return iter(sorted({**{instant.logical: instant for instant in self.archived()}, **active}.values()))
