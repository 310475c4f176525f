"""Random sequences of writes and services with crashes and interrupts, against a model of the table's rows.

`HOODIE_MACHINE_EXAMPLES` (default 6) is the number of sequences for each seed, `HOODIE_MACHINE_STEPS` (default 12)
their length, `HOODIE_MACHINE_SEEDS` (default 1) the number of seeds from `HOODIE_MACHINE_SEED` on;
`HOODIE_MACHINE_BUCKETS` (default 1) and `HOODIE_MACHINE_BUCKET_STEPS` (default 8) those over buckets. `make crash` runs
many. What is drawn and what holds: `hoodie.testing.table_machine`, `hoodie.testing.table_laws`.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from hoodie.storage import LocalStorage
from hoodie.testing import driven_table, table_laws, table_machine
from hoodie.testing.closed_buckets import ClosedBuckets, closed_buckets
from hoodie.testing.s3_server import S3Server, s3_server
from hoodie.testing.table_machine import TableMachine, run_machine
from hoodie.testing.two_stores import Stores

__all__ = ["s3_server"]

EXAMPLES = int(os.environ.get("HOODIE_MACHINE_EXAMPLES", "6"))
STEPS = int(os.environ.get("HOODIE_MACHINE_STEPS", "12"))
BUCKET_EXAMPLES = int(os.environ.get("HOODIE_MACHINE_BUCKETS", "1"))
BUCKET_STEPS = int(os.environ.get("HOODIE_MACHINE_BUCKET_STEPS", "8"))
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


class UnpartitionedMachine(TableMachine):
    """The same without partitions: rows move nowhere, and the record index of partitions has one to be of."""

    partitioned = False


@pytest.mark.parametrize("number", range(SEED, SEED + SEEDS))
def test_a_table_without_partitions_holds_the_same(number: int) -> None:
    run_machine(UnpartitionedMachine, number, max(EXAMPLES // 3, 2), STEPS)


class BucketsMachine(TableMachine):
    """The same over buckets of a real S3 server, each with an access key of its own: storage paths in the bucket of the
    table path, in another, and on this disk.
    """

    strategy = "bits:4"
    closed: ClosedBuckets
    folder: Path
    numbers = itertools.count()

    def new_stores(self) -> Stores:
        mine, other = (self.closed.new_bucket() for _ in range(2))
        roots = (self.closed.storage(mine, "root"), self.closed.storage(other, "root"))
        on_disk = LocalStorage(str(self.folder / f"root{next(self.numbers)}"))
        return Stores(self.closed.storage(mine, "table"), (*roots, on_disk))


@pytest.mark.parametrize("number", range(SEED, SEED + SEEDS))
def test_a_table_over_buckets_with_keys_of_their_own_holds_the_same(
    number: int, s3_server: S3Server, tmp_path: Path
) -> None:
    with closed_buckets(s3_server) as closed:
        BucketsMachine.closed, BucketsMachine.folder = closed, tmp_path
        run_machine(BucketsMachine, number, BUCKET_EXAMPLES, BUCKET_STEPS)


def test_the_machine_did_something() -> None:
    counts = {**table_machine.COUNTS, **driven_table.COUNTS, **table_laws.COUNTS}
    print(f"\nstate machine, seeds {SEED} to {SEED + SEEDS - 1}: {counts}")
    assert counts["steps"] > EXAMPLES * SEEDS
