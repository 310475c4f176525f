"""A view that is kept by a service equals one that is loaded anew, whatever is done to its table and whoever dies: in
each store, and also when the service is stopped or killed and started again.

`HOODIE_MACHINE_EXAMPLES` (default 5), `HOODIE_MACHINE_STEPS` (default 12), `HOODIE_MACHINE_SEED`: as of the state
machine, whose histories these are. The view lags: it is synced after one, two or three steps.
"""

from __future__ import annotations

import os
import random
from typing import ClassVar

import pytest
from hypothesis.stateful import invariant

from hoodie.server.kept_view import KeptView, load_into
from hoodie.state.handle import load_handle
from hoodie.storage import Storage
from hoodie.testing.lake import Awake
from hoodie.testing.table_machine import TableMachine, run_machine
from hoodie.testing.view_law import COUNTS, ensure_view_is_kept
from hoodie.testing.view_stores import KINDS, Restarted

EXAMPLES = int(os.environ.get("HOODIE_MACHINE_EXAMPLES", "5"))
STEPS = int(os.environ.get("HOODIE_MACHINE_STEPS", "12"))
SEED = int(os.environ.get("HOODIE_MACHINE_SEED", "20261124"))
RESUMED = dict.fromkeys(KINDS, 0)


class ViewMachine(TableMachine):
    """The machine with a service beside it, whose view is in a store of `kind`."""

    kind: ClassVar[str]
    chance: ClassVar[random.Random]

    def __init__(self) -> None:
        super().__init__()
        self.service = Restarted(self.kind)
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
            self.view = load_into(self.service.opened(load_handle(storage, Awake())), None if turn % 2 else ["p0"])
        elif turn % 6 not in (1, 3, 4):
            self.view = ensure_view_is_kept(self.view, storage)
            self._start_again(storage)

    def _start_again(self, storage: Storage) -> None:
        end = self.chance.choice(("runs on", "stopped", "killed"))
        if end == "runs on":
            return
        self.view = None
        if end == "stopped":
            self.service.stop()
        else:
            self.service.kill(self.chance)
        if self.chance.random() < 0.5:  # else it is started after the next steps
            self.view = ensure_view_is_kept(self.service.opened(load_handle(storage, Awake())), storage)

    def at_the_end(self) -> None:
        if self.view is not None:
            ensure_view_is_kept(self.view, self.table.opened().storage)
        self.view = None
        self.service.close()
        RESUMED[self.kind] += self.service.resumed


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_view_equals_a_fresh_one_whatever_is_done(kind: str) -> None:
    machine = type(f"{kind.title()}Machine", (ViewMachine,), {"kind": kind, "chance": random.Random(SEED)})
    run_machine(machine, SEED, EXAMPLES, STEPS)
    print(f"\nkept views, {kind}, seed {SEED}: {COUNTS}, found after a start: {RESUMED[kind]}")
    assert (RESUMED[kind] > 0) == (kind == "rocksdb")


def test_views_were_kept() -> None:
    assert COUNTS["synced"] > COUNTS["rebuilt"] > 0
