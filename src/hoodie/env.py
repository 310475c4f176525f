"""The only place that reads the clock, makes ids, draws random numbers and sleeps.

Tests pass a `FakeEnv` (hoodie.testing) and run skew, crashes and races from one seed.
"""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol


class Env(Protocol):
    """What the outside world gives: time, identity, chance, rest."""

    def now(self) -> datetime:
        """Current time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back; only differences mean something."""
        ...

    def uuid(self) -> str:
        """A fresh random UUID, lower case with dashes."""
        ...

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemEnv:
    """The real clock and the operating system's randomness. Picklable and stateless."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def uuid(self) -> str:
        return str(uuid.uuid4())

    def random(self) -> float:
        return random.random()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
