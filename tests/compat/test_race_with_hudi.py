"""Hudi and our writers on one table of a local disk, in turns at random, ours killed and stopped at any moment.

There is no lock that both see there, so whoever lets both write keeps them apart by a lock of their own: here a locked
file around each write and service. Reads wait for nobody. `HOODIE_RACE_SECONDS` is the length of each race.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from peers import Peer, table_options, write_rows
from peers.process import PeerFailed

from hoodie.engine import LocalEngine
from hoodie.env import SystemEnv
from hoodie.errors import Conflict, Fenced
from hoodie.state.handle import TableHandle, load_handle
from hoodie.storage import LocalStorage
from hoodie.table import Table
from hoodie.testing.counting_storage import Call, CountingStorage
from hoodie.testing.lake import row, table_of
from hoodie.testing.live_race import Race
from hoodie.testing.race_journal import Journal, State, account_of, keys_of
from hoodie.testing.race_worker import GROUPS, state_of, turn

SECONDS = float(os.environ.get("HOODIE_RACE_SECONDS", "15"))
SEED = int(os.environ.get("HOODIE_RACE_SEED", "20261123"))
PAUSE_SECONDS = 3.0
"""Turns of Hudi take seconds, so that writers who wait for theirs must live for longer than in other races."""

WITH_METADATA = {"hoodie.metadata.enable": "true"}


@pytest.mark.parametrize(("version", "table_type"), [(9, "MERGE_ON_READ"), (6, "COPY_ON_WRITE")])
def test_what_hudi_and_we_acknowledged_in_turns_is_there(
    version: int, table_type: str, hudi_12: Peer, tmp_path: Path
) -> None:
    first = {**table_options(version, "id", "part"), "hoodie.datasource.write.table.type": table_type}
    hudi_12.write(
        tmp_path / "warm", "insert", table_of([row("k")]), first | {"hoodie.write.auto.upgrade": "false"}, "overwrite"
    )  # takes its time
    turns = str(tmp_path / "turns")
    race = Race(str(tmp_path / "table"), tmp_path, version, table_type, 2, SECONDS, SEED, {}, turns, PAUSE_SECONDS)
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(write_until_over, hudi_12, race)
        result = race.run()
        journal = theirs.result()
    account = account_of(journal.notes())
    print(f"\nversion {version} {table_type}: {result.counts}, Hudi: {account.ends}")
    assert result.faults == ()
    assert account.faults == ()
    assert account.ends["done"] > 0
    assert result.counts["writes: done"] > 0
    ours = state_of(Table.open(race.uri))
    assert {key: text for key, text in ours.items() if key.startswith("hudi-")} in account.possible
    assert state_by(hudi_12, race) == ours


def test_a_write_of_hudi_that_came_between_is_noticed_and_ours_is_taken_back(hudi_12: Peer, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    write_rows(tmp_path / "table", "insert", table_of([row("a", "1")]), table_options(9, "id", "part"))
    storage, struck = LocalStorage(table), []

    def strike(call: Call) -> None:
        if call.op == "close" and not struck:
            struck.append(call)
            hudi_12.write(table, "upsert", table_of([row("b", "hudi")]))

    handle = load_handle(storage, SystemEnv())
    beside = TableHandle(CountingStorage(storage, on_call=strike), handle.config, handle.profile, handle.env)
    options = {"hoodie.metadata.enable": "false"}
    with pytest.raises((Conflict, Fenced)):
        Table(beside, options, LocalEngine(1)).upsert(table_of([row("c", "ours")]))
    assert struck
    assert values(Table.open(table)) == {"a": "1", "b": "hudi"}
    Table.open(table, options=options).upsert(table_of([row("c", "ours")]))
    assert values(Table.open(table)) == {"a": "1", "b": "hudi", "c": "ours"}
    assert Table.open(table).validate() == []


def values(table: Table) -> dict[str, str]:
    found = table.scan(columns=["id", "v"]).read_all().to_pydict()
    return dict(zip(found["id"], found["v"], strict=True))


def write_until_over(hudi: Peer, race: Race) -> Journal:
    """Hudi's turns: it writes and deletes its own rows, and looks at them now and then."""
    journal, chance = Journal(str(race.folder / "hudi.journal")), random.Random(race.seed)
    numbers: Counter[str] = Counter()
    while not list(race.folder.glob("w*.journal")):
        time.sleep(0.2)
    while True:
        with turn(race.turns):
            if (race.folder / "stop").exists():
                return journal
            if chance.random() < 0.2:
                rows = state_by(hudi, race)
                journal.note(what="look", rows={key: text for key, text in rows.items() if key.startswith("hudi-")})
            else:
                numbers["writes"] += 1
                change(hudi, race, journal, chance.randrange(GROUPS), chance.random() < 0.2, numbers["writes"])
        time.sleep(chance.uniform(0, 1))


def change(hudi: Peer, race: Race, journal: Journal, group: int, deletes: bool, number: int) -> None:
    text = None if deletes else str(number)
    rows = table_of([row(key, text, part=f"p{place}") for place, key in enumerate(keys_of("hudi", group))])
    journal.note(what="begin", writer="hudi", group=group, text=text)
    try:
        hudi.write(race.uri, "delete" if deletes else "upsert", rows, WITH_METADATA)
    except PeerFailed as error:
        journal.note(what="end", how="failed")
        journal.note(what="fault", text=str(error)[:2000])
    else:
        journal.note(what="end", how="done")


def state_by(hudi: Peer, race: Race) -> State:
    """Text by key of the racers' rows, as Hudi reads them."""
    found = hudi.read(race.uri).select(["id", "v"]).to_pydict()
    pairs = [(key, text) for key, text in zip(found["id"], found["v"], strict=True) if "-" in key]
    assert len({key for key, _ in pairs}) == len(pairs), "a key occurs twice"
    return dict(pairs)
