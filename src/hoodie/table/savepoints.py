"""`Table.savepoints`: the commits whose files stay, and to which `Table.services.restore` can go back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from hoodie.arguments import checked_name, checked_text
from hoodie.notebook import Displayed
from hoodie.table.opened import OpenedTable

if TYPE_CHECKING:
    from hoodie.services.rollback.savepoint import Savepoint


class TableSavepoints(Sequence["Savepoint"], Displayed):
    """All savepoints, oldest first; loaded anew with every look."""

    def __init__(self, opened: OpenedTable) -> None:
        self._opened = opened

    def create(self, instant: str | None = None, *, user: str = "", comments: str = "") -> Savepoint:
        """Makes a savepoint of a completed commit (the newest): its files stay until it is deleted.

        Raises:
            Invalid: no such commit, or a clean may have taken its files. Conflict: another writer is at work.
        """
        from hoodie.services.rollback.savepoint import create_savepoint  # noqa: PLC0415 - loads what writes

        wanted = None if instant is None else checked_name("instant", instant)
        checked_text("user", user)
        checked_text("comments", comments)
        with self._opened.held("savepoint") as handle:
            return create_savepoint(handle, self._opened.config({}), wanted, user=user, comments=comments)

    def delete(self, instant: str) -> None:
        """Deletes the savepoint of a commit; cleans may remove its files from then on.

        Raises:
            Invalid: it has none.
        """
        from hoodie.services.archiving.unsaved import drop_savepoint  # noqa: PLC0415 - loads what writes

        with self._opened.held("delete savepoint") as handle:
            drop_savepoint(handle, checked_name("instant", instant))

    @overload
    def __getitem__(self, at: int) -> Savepoint: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Savepoint]: ...
    def __getitem__(self, at: int | slice) -> Savepoint | Sequence[Savepoint]:
        return self._load()[at]

    def __iter__(self) -> Iterator[Savepoint]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __eq__(self, other: Any) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._load())

    def _load(self) -> tuple[Savepoint, ...]:
        from hoodie.services.rollback.savepoint import load_savepoints  # noqa: PLC0415 - loads what writes

        return load_savepoints(self._opened.fresh())
