"""A view that is kept by a service equals one that is loaded anew, whatever is done to its table and whoever dies.

`HOODIE_MACHINE_EXAMPLES` (default 12), `HOODIE_MACHINE_STEPS` (default 12), `HOODIE_MACHINE_SEED`: as of the state
machine, whose histories these are. The view lags: it is synced after one, two or three steps.
"""

from __future__ import annotations

import os

from hypothesis.stateful import invariant

from hoodie.server.kept_view import KeptView, load_into, open_view
from hoodie.state.handle import load_handle
from hoodie.testing.lake import Awake
from hoodie.testing.table_machine import TableMachine, run_machine
from hoodie.testing.view_law import COUNTS, ensure_view_is_kept

EXAMPLES = int(os.environ.get("HOODIE_MACHINE_EXAMPLES", "12"))
STEPS = int(os.environ.get("HOODIE_MACHINE_STEPS", "12"))
SEED = int(os.environ.get("HOODIE_MACHINE_SEED", "20261124"))


class ViewMachine(TableMachine):
    """The machine with a view beside it that is never opened again."""

    def __init__(self) -> None:
        super().__init__()
        self.view: KeptView | None = None

    @invariant()
    def the_table_holds_what_the_model_holds(self) -> None:
        """Here it is asked of the view alone."""
        if not self.states:
            return
        self._note_state()
        storage = self.table.opened().storage
        turn = next(self.turns)
        if self.view is None:
            view = open_view(load_handle(storage, Awake()))
            self.view = load_into(view, None if turn % 2 else ["p0"])
        elif turn % 6 not in (1, 3, 4):
            self.view = ensure_view_is_kept(self.view, storage)

    def at_the_end(self) -> None:
        assert self.view is not None
        ensure_view_is_kept(self.view, self.table.opened().storage)


def test_a_kept_view_equals_a_fresh_one_whatever_is_done() -> None:
    run_machine(ViewMachine, SEED, EXAMPLES, STEPS)


def test_views_were_kept() -> None:
    print(f"\nkept views, seed {SEED}: {COUNTS}")
    assert COUNTS["synced"] > COUNTS["rebuilt"] > 0
