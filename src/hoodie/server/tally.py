"""Counts of what a service did, for whoever measures it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Literal

Counted = Literal["opened", "looks", "synced", "loaded", "failed"]


class Tally:
    """Counts that several threads add to."""

    def __init__(self) -> None:
        self._counts: Counter[Counted] = Counter()
        self._lock = threading.Lock()

    def add(self, what: Counted) -> None:
        """Counts one more."""
        with self._lock:
            self._counts[what] += 1

    def read(self) -> Mapping[Counted, int]:
        """The counts as they are."""
        with self._lock:
            return dict(self._counts)
