"""Spark drivers with their JVM and their Python workers, killed by SIGKILL at a change of a table's folder.

1. A family is a driver and all processes below it. Its Python processes hear of their changes as the victims of
   `killed.Killer` do: the driver calls `join_family`, the workers get it from `spark_daemon`, which Spark is told to
   start them with (`DAEMON`). What the JVM writes is not heard of; it writes nothing into tables.
2. What is watched stands in a file, the `Order`, which is written anew for each job. Changes are counted across the
   family: each process writes its own into the order's log, one at a time.
3. Who finds the change at which the order says so kills all of the family, or all of its Python workers but not the
   daemon that forks them, and itself last, in the middle of a write after half of the bytes. Nobody else of the family
   makes a change meanwhile.
4. Counting goes on: what Spark tries again after the death of its workers is not killed again.

Linux only.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from hoodie.testing.killed import Change, Watch

Victim = Literal["driver", "workers"]

DAEMON: Final = "hoodie.testing.spark_daemon"
"""What `spark.python.daemon.module` has to be in a family."""

_ORDER: Final = "HOODIE_KILL_ORDER"
_LIMIT_S: Final = 180
_POLL_S: Final = 0.004
_WORKER: Final = "worker"


@dataclass(frozen=True, slots=True)
class Order:
    """What is watched: changes of `folder` by the family of the process `driver` go to the file `log`. `victim` dies at
    the change `at`; of the workers' changes when these are the victims. None: nobody dies.
    """

    driver: int
    folder: str
    log: str
    victim: Victim | None = None
    at: int | str = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What a log says: changes of the driver and of workers in order, and whom a kill was for (none if there was none).
    The last change is the one at which they died.
    """

    changes: tuple[tuple[str, Change], ...]
    doomed: tuple[int, ...]

    @property
    def of_workers(self) -> tuple[Change, ...]:
        """The changes that workers made."""
        return tuple(change for role, change in self.changes if role == _WORKER)


class Family:
    """A running driver: a program that reads a JSON object per line, does that job and answers with a line. Its first
    line is `ready`. `folder` is for orders and logs.
    """

    def __init__(self, program: Path, folder: Path) -> None:
        self._order = folder / "order.json"
        self._log = folder / "log"
        environment = {**os.environ, _ORDER: str(self._order)}
        command = [sys.executable, str(program)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._answer() == "ready"

    def do(self, job: Mapping[str, Any], folder: str) -> tuple[str, Told]:
        """The answer to a job that runs to its end, and what it changed in `folder`."""
        self._begin(job, Order(self._process.pid, os.path.abspath(folder), str(self._log)))
        return self._answer(), self._told()

    def do_without_workers(self, job: Mapping[str, Any], folder: str, at: int | str) -> tuple[str, Told]:
        """The answer to a job whose workers are killed at the change `at` of theirs.

        Raises:
            AssertionError: there was no such change.
        """
        self._begin(job, Order(self._process.pid, os.path.abspath(folder), str(self._log), "workers", at))
        answer, told = self._answer(), self._told()
        assert told.doomed, f"no worker made the change {at}: {[str(one) for one in told.of_workers]}"
        return answer, told

    def die(self, job: Mapping[str, Any], folder: str, at: int | str) -> Change:
        """The change (`at`) of `folder` at which the whole family was killed while it did a job.

        Raises:
            AssertionError: there was no such change, or somebody lives.
        """
        self._begin(job, Order(self._process.pid, os.path.abspath(folder), str(self._log), "driver", at))
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        assert not answer, f"the driver outlived its job: {answer}"
        code = self._process.wait(_LIMIT_S)
        assert code == -signal.SIGKILL, f"the driver ended with {code}, not by the kill"
        told = self._told()
        wait_until(lambda: not any(map(_is_alive, told.doomed)), "the family is gone")
        return told.changes[-1][1]

    @property
    def is_alive(self) -> bool:
        """Whether the driver runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it, its JVM and its workers, and wait until they are gone."""
        doomed = [self._process.pid, *_descendants(self._process.pid)]
        _kill(doomed)
        self._process.wait(_LIMIT_S)
        wait_until(lambda: not any(map(_is_alive, doomed)), "the family is gone")

    def _begin(self, job: Mapping[str, Any], order: Order) -> None:
        self._log.write_bytes(b"")
        fresh = self._order.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(order)))
        fresh.replace(self._order)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(dict(job)) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the driver ended with {self._process.wait(_LIMIT_S)}"
        return line.strip()

    def _told(self) -> Told:
        changes: list[tuple[str, Change]] = []
        doomed: list[int] = []
        for role, what, path in (line.split("\t") for line in self._log.read_text().splitlines()):
            if role == "doomed":
                doomed.extend(map(int, path.split()))
            else:
                changes.append((role, Change(what, path)))
        return Told(tuple(changes), tuple(doomed))


def join_family() -> None:
    """This process, and those it forks from now on, carry out the order that stands in the file which the environment
    names.
    """
    _Member(Path(os.environ[_ORDER])).install()


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Waits for a condition.

    Raises:
        AssertionError: in vain.
    """
    deadline = time.monotonic() + _LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(_POLL_S)


class _Member(Watch):
    """One of the family, as it hears of its own changes."""

    def __init__(self, order: Path) -> None:
        super().__init__()
        self._order_file = order

    def folder(self) -> str | None:
        order = self._order()
        return None if order is None else order.folder

    def struck(self, change: Change, last_deed: Callable[[], object] | None) -> None:
        order = self._order()
        if order is None:
            return
        role = "driver" if os.getpid() == order.driver else _WORKER
        with open(order.log, "a+", encoding="utf-8") as log:
            fcntl.flock(log, fcntl.LOCK_EX)  # let go by the end of the block, or of this process
            log.seek(0)
            before = [line.split("\t") for line in log.read().splitlines()]
            log.write(f"{role}\t{change.what}\t{change.path}\n")
            log.flush()
            counted = _WORKER if order.victim == "workers" else None
            known = [Change(what, path) for who, what, path in before if who == counted or counted is None]
            if order.victim is None or role != (counted or role) or not _is_first(known, change, order.at):
                return
            doomed = _doomed(order)
            log.write(f"doomed\t{order.victim}\t{' '.join(map(str, doomed))}\n")
            log.flush()
            if last_deed is not None:
                last_deed()
            _kill(doomed)

    def _order(self) -> Order | None:
        try:
            return Order(**json.loads(self._order_file.read_text()))
        except FileNotFoundError:
            return None


def _is_first(known: Sequence[Change], change: Change, at: int | str) -> bool:
    """Whether a change is the one that is meant, after those that are known."""
    if isinstance(at, str) and any(one.is_meant(0, at) for one in known):
        return False
    return change.is_meant(len(known) + 1, at)


def _doomed(order: Order) -> list[int]:
    """Who is to be killed; this process, if it is one of them, last."""
    family = _descendants(order.driver)
    if order.victim == "driver":
        found = [order.driver, *family]
    else:
        forked = {pid for pid, command in family.items() if DAEMON in command}
        found = [pid for pid in forked if _parent(pid) in forked]
    return [*(pid for pid in found if pid != os.getpid()), os.getpid()]


def _kill(doomed: Sequence[int]) -> None:
    for pid in doomed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> dict[int, str]:
    """The processes below `pid`, with their command lines."""
    parents = {int(name): _parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    found: dict[int, str] = {}
    young = {pid}
    while young:
        young = {child for child, parent in parents.items() if parent in young}
        found.update((child, _command(child)) for child in young)
    return found


def _parent(pid: int) -> int:
    """The parent of a process; 0 when it is gone."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
