"""Random histories of a table whose writes and services decide by a timeline service in their process.

`HOODIE_MACHINE_EXAMPLES` (default 4), `HOODIE_MACHINE_STEPS` (default 12), `HOODIE_MACHINE_SEED`: as of the state
machine, whose histories these are, with its crashes and interrupts.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `server`")

from hoodie.server.embedded import stop_embedded
from hoodie.server.service import Service
from hoodie.testing import driven_table
from hoodie.testing.driven_table import DrivenTable
from hoodie.testing.table_machine import TableMachine, run_machine

EXAMPLES = int(os.environ.get("HOODIE_MACHINE_EXAMPLES", "4"))
STEPS = int(os.environ.get("HOODIE_MACHINE_STEPS", "12"))
SEED = int(os.environ.get("HOODIE_MACHINE_SEED", "20261125"))


def test_the_table_holds_what_the_model_holds_with_a_service_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"known": 0, "failed": 0}
    known_at, make = Service.known_at, DrivenTable.__init__

    def counted(self: Service, *given: Any) -> Any:
        asked["known"] += 1
        try:
            return known_at(self, *given)
        except Exception:
            asked["failed"] += 1
            raise

    def embedding(self: DrivenTable, options: dict[str, str], **where: Any) -> None:
        make(self, {**options, "hoodie.embed.timeline.server": "true"}, **where)

    monkeypatch.setattr(Service, "known_at", counted)
    monkeypatch.setattr(DrivenTable, "__init__", embedding)
    crashes = driven_table.COUNTS["crashes"]
    try:
        run_machine(TableMachine, SEED, EXAMPLES, STEPS)
    finally:
        stop_embedded()
    print(f"\nembedded histories, seed {SEED}: {asked}, {driven_table.COUNTS['crashes'] - crashes} crashes")
    assert asked["known"] > EXAMPLES
    assert asked["failed"] < asked["known"] / 10
