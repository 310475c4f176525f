"""A view that is kept by a service equals one that is loaded anew, whatever is done to its table and whoever dies: in
each store, and also when the service is stopped or killed and started again.

`HOODIE_MACHINE_EXAMPLES` (default 5), `HOODIE_MACHINE_STEPS` (default 12), `HOODIE_MACHINE_SEED`: as of the state
machine, whose histories these are; plans are rewritten, and taken off and put back, too. The view lags: it is synced
after one, two or three steps.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.server.kept_view import KeptView, load_into
from hoodie.services.compaction.admin import unschedule_compaction
from hoodie.spec import COMPACTION, Instant, State
from hoodie.state.handle import TableHandle, load_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.storage import Storage
from hoodie.testing.lake import Awake
from hoodie.testing.table_machine import TableMachine, run_machine
from hoodie.testing.view_law import COUNTS, ensure_view_is_kept
from hoodie.testing.view_stores import KINDS, Restarted
from hoodie.timeline import instant_path

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

    @precondition(lambda self: self.half_changed)
    @rule()
    def give_up_version(self) -> None:
        """A change of version that died is given up, if it did not come to its end."""
        assert self._serve(lambda table: table.services.upgrade(self.table.version), None)
        self.half_changed = False

    @precondition(lambda self: self.logs)
    @rule(group=st.integers(0, 5))
    def take_off_plan(self, group: int) -> None:
        """One file group is taken off a plan, where no log file was written on top of it."""
        plans, handle = self._plans()
        if plans:
            groups = PendingPlans(handle.storage, timeline_of(handle)).groups(plans[0])
            with suppress(Invalid):
                unschedule_compaction(handle, LocalEngine(1), plans[0].requested, groups[group % len(groups)])
            self.before_newest = None

    @precondition(lambda self: self.logs)
    @rule(is_seen=st.booleans())
    def put_plan_back(self, is_seen: bool) -> None:
        """A plan is taken off as Hudi's command line does, with log files on top of it, and put back."""
        plans, handle = self._plans()
        if plans:
            path = instant_path(handle.profile, plans[0])
            data = handle.storage.read(path)
            handle.storage.delete(path)
            if is_seen and self.view is not None:
                self.view = ensure_view_is_kept(self.view, handle.storage)
            handle.storage.create(path, data)

    def _plans(self) -> tuple[tuple[Instant, ...], TableHandle]:
        """Compactions that are planned and not begun."""
        handle = load_handle(self.table.opened().storage, Awake())
        pending = timeline_of(handle).pending()
        return tuple(one for one in pending if one.action == COMPACTION and one.state is State.REQUESTED), handle

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
    assert COUNTS["told of"] > 0
