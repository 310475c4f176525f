"""A store that limits requests by key prefix, in simulated time: what a layout is worth there.

1. Each partition of the key space has a token bucket. A request that finds it empty is answered 503 at once, and its
   client waits with full jitter before it asks again, as the clients of object stores do.
2. Partitions are those that the store has split: `parts` says which one a key is in. A new bucket has one.
3. Nothing waits: the clock is a number. All comes from one seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests a second and at once that a partition takes, and seconds that one takes; S3's, scaled 1:35."""

    rate: float = 100.0
    burst: float = 100.0
    latency_s: float = 0.02


@dataclass(frozen=True, slots=True)
class Outcome:
    """When the last request was done, how many were answered 503, and how many would have failed by a retry budget."""

    makespan_s: float
    refused: int
    given_up: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float = 0.0

    def takes(self, now: float, limits: Limits) -> bool:
        self.tokens = min(limits.burst, self.tokens + (now - self.at) * limits.rate)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass(slots=True)
class ThrottledStore:
    """Requests of `clients` side by side. Back-off is drawn up to `first_s`, doubled each time, at most `max_s`."""

    parts: Callable[[str], str]
    limits: Limits = field(default_factory=Limits)
    clients: int = 64
    retries: int = 5
    first_s: float = 0.05
    max_s: float = 5.0
    seed: int = 1

    def run(self, keys: Sequence[str]) -> Outcome:
        """One request for each key, in order, none left out."""
        chance = random.Random(self.seed)
        buckets: dict[str, _Bucket] = {}
        waiting = iter(keys)
        busy = [(0.0, number, key, 0) for number, key in zip(range(self.clients), waiting, strict=False)]
        heapq.heapify(busy)
        end, refused, given_up = 0.0, 0, 0
        while busy:
            now, number, key, tries = heapq.heappop(busy)
            bucket = buckets.setdefault(self.parts(key), _Bucket(self.limits.burst))
            if bucket.takes(now, self.limits):
                end = max(end, now + self.limits.latency_s)
                following = next(waiting, None)
                if following is not None:
                    heapq.heappush(busy, (now + self.limits.latency_s, number, following, 0))
                continue
            refused += 1
            given_up += tries == self.retries
            pause = chance.uniform(0, min(self.max_s, self.first_s * 2**tries))
            heapq.heappush(busy, (now + self.limits.latency_s + pause, number, key, tries + 1))
        return Outcome(end, refused, given_up)
