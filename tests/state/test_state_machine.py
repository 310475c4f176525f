"""Random sequences of writes and services with crashes and interrupts, against a model of the table's rows.

`HOODIE_MACHINE_EXAMPLES` (default 6) is the number of sequences for each seed, `HOODIE_MACHINE_STEPS` (default 12)
their length, `HOODIE_MACHINE_SEEDS` (default 1) the number of seeds from `HOODIE_MACHINE_SEED` on. `make crash` runs
many. What is drawn and what holds: `hoodie.testing.table_machine`, `hoodie.testing.table_laws`.
"""

from __future__ import annotations

import os

import pytest

from hoodie.testing import driven_table, table_laws, table_machine
from hoodie.testing.table_machine import TableMachine, run_machine

EXAMPLES = int(os.environ.get("HOODIE_MACHINE_EXAMPLES", "6"))
STEPS = int(os.environ.get("HOODIE_MACHINE_STEPS", "12"))
SEED = int(os.environ.get("HOODIE_MACHINE_SEED", "20261121"))
SEEDS = int(os.environ.get("HOODIE_MACHINE_SEEDS", "1"))


@pytest.mark.parametrize("number", range(SEED, SEED + SEEDS))
def test_the_table_holds_what_the_model_holds_whatever_is_done_and_whoever_dies(number: int) -> None:
    run_machine(TableMachine, number, EXAMPLES, STEPS)


class FederatedMachine(TableMachine):
    """The same with files under sixteen prefixes of another store."""

    strategy = "bits:4"


@pytest.mark.parametrize("number", range(SEED, SEED + SEEDS))
def test_a_table_with_a_storage_path_holds_the_same(number: int) -> None:
    run_machine(FederatedMachine, number, max(EXAMPLES // 3, 2), STEPS)


def test_the_machine_did_something() -> None:
    counts = {**table_machine.COUNTS, **driven_table.COUNTS, **table_laws.COUNTS}
    print(f"\nstate machine, seeds {SEED} to {SEED + SEEDS - 1}: {counts}")
    assert counts["steps"] > EXAMPLES * SEEDS
