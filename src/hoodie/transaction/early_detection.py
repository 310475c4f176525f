"""Early detection of conflicts: what options ask for, and markers that are made after a look around.

1. Hudi's keys, and its classes by name. It is off by default, and for optimistic writers alone.
2. Direct markers, and lists of a process, are made right after the look; with `SimpleTransactionDirect...` both happen
   under a lock of the file group.
3. A timeline server looks around itself before it writes a marker. Who hears from it that a marker is not new looks
   whom he has to give way to. Where no server answers, markers are made as those of point 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hoodie.config import Config
from hoodie.errors import Conflict, Invalid
from hoodie.locks import LockOptions, held_group_lock, parse_lock_options
from hoodie.spec import Marker, MarkerKind
from hoodie.timeline import Markers
from hoodie.transaction.concurrency import MODE, OPTIMISTIC
from hoodie.transaction.lookout import EarlyConflict, Lookout, group_of, is_of_new_group

ENABLE: Final = "hoodie.write.concurrency.early.conflict.detection.enable"
STRATEGY: Final = "hoodie.write.concurrency.early.conflict.detection.strategy"
_COMMITS: Final = "hoodie.write.concurrency.early.conflict.check.commit.conflict"
_LOCKED: Final = "org.apache.hudi.table.marker.SimpleTransactionDirectMarkerBasedDetectionStrategy"


@dataclass(frozen=True, slots=True)
class EarlyDetection:
    """How to look around. `locks`: those of file groups, where the look and the marker are to be one step.
    `looks_at_commits`: those that completed meanwhile matter, too.
    """

    locks: LockOptions | None = None
    looks_at_commits: bool = False


def parse_early_detection(config: Config) -> EarlyDetection | None:
    """What the options ask for; None where they ask for nothing.

    Raises:
        Invalid: it is asked for where a single writer, or none that gives way, is at work.
    """
    if not config.flag(ENABLE):
        return None
    if config.text(MODE) != OPTIMISTIC:
        raise Invalid(
            f"{ENABLE} is on, and {MODE} is {config.text(MODE)}: no other writer is let in",
            remedy=f"Set {MODE}={OPTIMISTIC}, or leave {ENABLE} out",
            key=ENABLE,
        )
    locks = parse_lock_options(config) if config.text(STRATEGY) == _LOCKED else None
    return EarlyDetection(locks, config.flag(_COMMITS))


@dataclass(frozen=True, slots=True)
class WatchfulMarkers:
    """Markers that are made after a look around."""

    made: Markers
    lookout: Lookout
    locks: LockOptions | None = None

    def create(self, data_path: str, kind: MarkerKind) -> None:
        """See `Markers`.

        Raises:
            EarlyConflict: another writer is about to write the file group, or has meanwhile.
        """
        if is_of_new_group(data_path, kind, by_bucket=self.lookout.by_bucket):
            self.made.create(data_path, kind)
            return
        with self._alone(data_path):
            self.lookout.ensure_free(data_path)
            self.made.create(data_path, kind)

    def load(self) -> tuple[Marker, ...] | None:
        """See `Markers`."""
        return self.made.load()

    def drop(self) -> None:
        """See `Markers`."""
        self.made.drop()

    @contextmanager
    def _alone(self, data_path: str) -> Iterator[None]:
        group, look = group_of(data_path), self.lookout
        if self.locks is None or group is None:
            yield
            return
        what = f"a file of {look.instant}"
        with held_group_lock(look.handle.storage, what, group, self.locks, look.handle.env):
            yield


@dataclass(frozen=True, slots=True)
class ServedMarkers:
    """Markers of a timeline server that looks around before it makes one (`made`). `instead`: how those are made that
    it does not make.
    """

    made: Markers
    instead: Markers
    lookout: Lookout

    def create(self, data_path: str, kind: MarkerKind) -> None:
        """See `Markers`. Raises as `WatchfulMarkers`."""
        self.lookout.ensure_unmoved(data_path)
        try:
            self.made.create(data_path, kind)
        except EarlyConflict:
            raise
        except Conflict as refusal:
            self.lookout.ensure_free(data_path)
            if Marker(data_path, kind) not in (self.load() or ()):
                # The other has ended meanwhile, or it is a server that takes more for a conflict than there is.
                self.instead.create(data_path, kind)
            elif not refusal.facts.get("is_repeated"):
                raise

    def load(self) -> tuple[Marker, ...] | None:
        """See `Markers`."""
        return self.made.load()

    def drop(self) -> None:
        """See `Markers`."""
        self.made.drop()
