"""What Hudi's quick start takes from the JVM (`QuickstartUtils`): made-up taxi rides, and options for a laptop.

    from hoodie.quickstart import DataGenerator, convertToStringList, getQuickstartWriteConfigs

    rides = DataGenerator()
    frame = spark.read.json(spark.sparkContext.parallelize(convertToStringList(rides.generateInserts(10)), 2))
    frame.write.format("hudi").options(**getQuickstartWriteConfigs()).option(...).save(path)

Names are Hudi's, so that its guides run as they are. The same seed gives the same rides.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

PARTITIONS: Final = ("americas/united_states/san_francisco", "americas/brazil/sao_paulo", "asia/india/chennai")
_WEEK_MS: Final = 7 * 24 * 3_600_000
_NEWEST_MS: Final = 1_700_000_000_000
_PARALLELISM: Final = "2"

Ride = dict[str, Any]


class DataGenerator:
    """Rides of a few cities. It remembers those it has made, so that updates and deletes are about them."""

    def __init__(self, partitionPaths: Sequence[str] = PARTITIONS, seed: int = 46474747) -> None:
        self._partitions = tuple(partitionPaths)
        self._chance = random.Random(seed)
        self._keys: list[tuple[str, str]] = []

    def generateInserts(self, n: int) -> list[Ride]:
        """So many new rides."""
        made = [(self._uuid(), self._chance.choice(self._partitions)) for _ in range(n)]
        self._keys += made
        return [self._ride(key, partition) for key, partition in made]

    def generateUpdates(self, n: int) -> list[Ride]:
        """New values of so many rides, of which some may come more than once."""
        return [self._ride(*self._chance.choice(self._known())) for _ in range(n)]

    def generateUniqueUpdates(self, n: int) -> list[Ride]:
        """New values of so many rides, each once.

        Raises:
            ValueError: there are not so many.
        """
        return [self._ride(*key) for key in self._chance.sample(self._known(), n)]

    def generateDeletes(self, rows: Iterable[Mapping[str, Any]]) -> list[Ride]:
        """The keys of these rides, as rows to be deleted."""
        found = [{"uuid": row["uuid"], "partitionpath": row["partitionpath"], "ts": self._timestamp()} for row in rows]
        gone = {row["uuid"] for row in found}
        self._keys = [key for key in self._keys if key[0] not in gone]
        return found

    def _known(self) -> list[tuple[str, str]]:
        if not self._keys:
            raise ValueError("There are no rides yet: call generateInserts first")
        return self._keys

    def _ride(self, key: str, partition: str) -> Ride:
        chance = self._chance
        places = {name: chance.random() for name in ("begin_lat", "begin_lon", "end_lat", "end_lon")}
        return {
            "ts": self._timestamp(),
            "uuid": key,
            "rider": f"rider-{chance.randrange(1000):03}",
            "driver": f"driver-{chance.randrange(1000):03}",
            **places,
            "fare": chance.random() * 100,
            "partitionpath": partition,
        }

    def _timestamp(self) -> int:
        return _NEWEST_MS - self._chance.randrange(_WEEK_MS)

    def _uuid(self) -> str:
        text = f"{self._chance.getrandbits(128):032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def convertToStringList(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """Each of the rides as a line of JSON."""
    return [json.dumps(record) for record in records]


def getQuickstartWriteConfigs() -> dict[str, str]:
    """Options that keep Hudi's jobs small on one machine; `hoodie` accepts them, without effect."""
    names = ("insert", "upsert", "bulkinsert", "delete")
    return {f"hoodie.{name}.shuffle.parallelism": _PARALLELISM for name in names}
