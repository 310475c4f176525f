"""A steered world for tests: time that moves when told, ids and chance from one seed, sleep that only counts."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta


class FakeEnv:
    """An `Env` whose clock starts at `start` and advances by `tick_ms` with every look at it, and by what is slept.

    Equal seeds give equal ids and numbers. `sleeps` lists the seconds that were slept, in order.
    """

    def __init__(self, start: datetime | None = None, *, seed: int = 0, tick_ms: int = 1) -> None:
        self._now = start or datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self._monotonic = 0.0
        self._tick = timedelta(milliseconds=tick_ms)
        self._random = random.Random(seed)
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        self.advance(self._tick)
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def random(self) -> float:
        return self._random.random()

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.advance(timedelta(seconds=seconds))

    def advance(self, by: timedelta) -> None:
        """Move the clock; a negative step is a wall clock that was set back (the monotonic one stays)."""
        self._now += by
        self._monotonic += max(by.total_seconds(), 0.0)
