"""Writers and readers in processes of their own on one table, stopped (SIGSTOP) and killed (SIGKILL) at random moments.

Afterwards the table holds exactly what the writers' journals say: nothing acknowledged is lost, nothing else is seen,
and no reader failed or saw half an action. Where the writers share their rows, what all of them did and saw is what
some order of their actions gives, for each group of rows (`registers`). All processes end with the race.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hoodie.errors import Conflict
from hoodie.table import Table, as_source, write
from hoodie.testing.lake import row, table_of
from hoodie.testing.race_journal import Account, State, account_of
from hoodie.testing.race_worker import GROUPS, LEASE_SECONDS, Racer, state_of, turn
from hoodie.testing.registers import acts_of, is_serial

_PATIENCE_SECONDS: Final = 60.0
_DEATH_SECONDS: Final = 4.0
"""After so long without a heartbeat optimistic writers of these races are dead."""
_BASE_OPTIONS: Final = {
    "hoodie.table.name": "race",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.index.bloom.num_entries": "50",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


@dataclass(frozen=True, slots=True)
class RaceResult:
    """`faults`: what was lost, seen too early or failed; empty when all is right. `counts`: how often what happened."""

    faults: tuple[str, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Race:
    """A race on the table `uri` with so many writers, and two readers, for so many seconds."""

    uri: str
    folder: Path
    version: int
    table_type: str
    writers: int
    seconds: float
    seed: int
    access: Mapping[str, str]
    turns: str = ""
    shares: bool = False
    """Whether all writers change the same rows."""
    longest_pause: float = 0.6
    """Most seconds between two stops or kills."""

    @property
    def options(self) -> dict[str, str]:
        return {**_BASE_OPTIONS, "hoodie.datasource.write.table.type": self.table_type, **self.access}

    def run(self) -> RaceResult:
        """Make the table, race, let it heal, compare."""
        made = {**self.options, "hoodie.write.table.version": str(self.version)}
        write(as_source(table_of([row("first", part="p0")])), self.uri, made, "append")
        counts: Counter[str] = Counter()
        racers = [self._racer(f"w{n}", reads_only=False) for n in range(self.writers)]
        racers += [self._racer(f"r{n}", reads_only=True) for n in range(2)]
        running = {racer.name: _started(racer) for racer in racers}
        try:
            self._disturb(racers, running, counts)
            _await_progress(racers)
            (self.folder / "stop").touch()
            for process in running.values():
                process.wait(_PATIENCE_SECONDS)
        finally:
            for process in running.values():
                process.kill()
                process.wait()
        return self._judged(racers, counts)

    def _racer(self, name: str, *, reads_only: bool) -> Racer:
        return Racer(name, reads_only, self.uri, self.options, str(self.folder), self.seed, self.turns, self.shares)

    def _disturb(self, racers: list[Racer], running: dict[str, subprocess.Popen[bytes]], counts: Counter[str]) -> None:
        """Stop or kill a process every now and then; a killed one is started again."""
        chance = random.Random(self.seed)
        longest = LEASE_SECONDS + 2 if "://" in self.uri else 1.0
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.05, self.longest_pause))
            racer = chance.choice(racers)
            process = running[racer.name]
            if process.poll() is not None:
                counts["ended by itself"] += 1
                running[racer.name] = _started(racer)
            elif chance.random() < 0.5:
                process.send_signal(signal.SIGSTOP)
                time.sleep(chance.uniform(0.05, longest))
                process.send_signal(signal.SIGCONT)
                counts["SIGSTOP"] += 1
            else:
                process.kill()
                process.wait()
                counts["SIGKILL"] += 1
                running[racer.name] = _started(racer)

    def _judged(self, racers: list[Racer], counts: Counter[str]) -> RaceResult:
        with turn(self.turns):
            table = self._healed()
        found = state_of(table)
        faults = [f"validate: {finding}" for finding in table.validate() if finding.kind != "pending"]
        if counts["ended by itself"]:
            said = {racer.name: self._last_error(racer) for racer in racers}
            faults.append(f"{counts['ended by itself']} processes ended by an error: {said}")
        for racer in racers:
            notes = racer.journal.notes()
            counts.update(note["what"] for note in notes if note["what"] in ("look", "saw", "read", "none to read by"))
            counts.update(f"{note['name']}: {note['how']}" for note in notes if note["what"] == "service")
            if self.shares:
                faults += [f"{racer.name}: {note['text']}" for note in notes if note["what"] == "fault"]
                counts.update(f"writes: {note['how']}" for note in notes if note["what"] == "end")
                continue
            account: Account = account_of(notes)
            faults += [f"{racer.name}: {fault}" for fault in account.faults]
            counts.update({f"writes: {how}": number for how, number in account.ends.items()})
            own: State = {key: text for key, text in found.items() if key.startswith(f"{racer.name}-")}
            if own not in account.possible:
                faults.append(f"{racer.name}: at the end {own}, possible: {account.possible}")
        if self.shares:
            faults += self._unserial(racers, found, counts)
        return RaceResult(tuple(faults), dict(counts))

    def _unserial(self, racers: list[Racer], found: State, counts: Counter[str]) -> list[str]:
        """The groups of shared rows whose history no order of actions explains; `found` is what is there at the end."""
        now = time.monotonic()
        last = {"what": "saw", "rows": dict(found), "began": now, "at": now}
        journals = [*(racer.journal.notes() for racer in racers), [last]]
        faults = []
        for group in range(GROUPS):
            acts = acts_of(journals, group)
            counts["acts on registers"] += len(acts)
            if not is_serial(acts):
                faults.append(f"no order explains group {group}: {acts}")
        return faults

    def _last_error(self, racer: Racer) -> str:
        return (self.folder / f"{racer.name}.errors").read_text(errors="replace")[-600:]

    def _healed(self) -> Table:
        """The table after one more write and the services to which a write leaves what died in them."""
        table = Table.open(self.uri, options=self.options)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                table.upsert(table_of([row("last", part="p0")]))
                time.sleep(_DEATH_SECONDS if self.shares else 0)
                table.services.archive()
                table.services.clean()
                if table.config.is_merge_on_read:
                    table.services.compact()
                return table
            except Conflict:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)


def _await_progress(racers: list[Racer]) -> None:
    """On a busy machine a short race may be over before anything was written or read: wait for one of each."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        notes = [note for racer in racers for note in racer.journal.notes()]
        if any(note.get("how") == "done" for note in notes) and any(note["what"] == "read" for note in notes):
            return
        time.sleep(0.5)


def _started(racer: Racer) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "hoodie.testing.race_worker", racer.encode()]
    errors = open(os.path.join(racer.folder, f"{racer.name}.errors"), "ab")  # noqa: SIM115 (the process writes to it)
    with errors:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=errors)
