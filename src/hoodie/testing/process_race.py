"""Processes that race to create the same file."""

from __future__ import annotations

import multiprocessing
import multiprocessing.pool
import time
from dataclasses import dataclass

from hoodie.errors import Conflict
from hoodie.storage import Storage

_HEAD_START_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class _Contender:
    storage: Storage
    path: str
    data: bytes
    start: float


def winners_of_process_races(storage: Storage, paths: list[str], processes: int = 4) -> list[list[int]]:
    """For each of `paths`, which processes (0, 1, ...) believe they created it; process n writes `content(n)`."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        pool.map(abs, range(processes))  # all are up before the first race
        return [_race(pool, storage, path, processes) for path in paths]


def content(who: int) -> bytes:
    """What process `who` writes."""
    return str(who).encode() * 5000


def _race(pool: multiprocessing.pool.Pool, storage: Storage, path: str, processes: int) -> list[int]:
    start = time.time() + _HEAD_START_SECONDS
    tasks = [_Contender(storage, path, content(who), start) for who in range(processes)]
    return [who for who, won in enumerate(pool.map(_contend, tasks, chunksize=1)) if won]


def _contend(task: _Contender) -> bool:
    time.sleep(max(0.0, task.start - time.time()))
    try:
        task.storage.create(task.path, task.data)
    except Conflict:
        return False
    return True
