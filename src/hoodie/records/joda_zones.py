"""Time zones as Hudi's timestamp key generator names them.

1. Names go through Java's `TimeZone.getTimeZone`, then Joda: region names, `UTC`/`GMT`/`Z`, `GMT+8`, `GMT+08:00`, and
   Java's old three-letter names (`EST` is New York there, not a fixed offset).
2. Java turns a name it does not know into UTC in silence, and so writes rows into folders nobody meant. We refuse it.
3. Before the year 1 a zone keeps its first offset; after 9999 it goes on as in the same year of the 400-year cycle.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import Invalid, Unsupported

Ints = npt.NDArray[np.int64]

MS_PER_DAY = 86_400_000
FIRST_MS = -62_135_596_800_000 + MS_PER_DAY  # 0001-01-02: no zone reaches into year 0
LAST_MS = 253_402_214_400_000  # 9999-12-31
CYCLE_MS = 146_097 * MS_PER_DAY  # 400 years, a whole number of weeks
CYCLE_START_MS = 946_684_800_000  # 2000-01-01
ARROW_KNOWS_UNTIL_MS = 2_114_380_800_000  # 2037-01-01
QUARTER_MS = 900_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

OLD_JAVA_NAMES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "CET",
    "EST": "America/New_York",
    "HST": "Pacific/Honolulu",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "America/Denver",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
_GMT_OFFSET = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?$")


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone: its id as Joda prints it (`UTC`, `America/New_York`, `+08:00`), and the name Arrow knows."""

    id: str

    def offsets_ms(self, millis: Ints) -> Ints:
        """Milliseconds that local time is ahead of UTC at each instant."""
        if self.id == "UTC":
            return np.zeros_like(millis)
        inside = _inside(millis)
        local = pc.local_timestamp(pa.array(inside, pa.timestamp("ms", self.id)))
        offsets: Ints = local.cast(pa.int64()).to_numpy() - inside
        late = inside >= ARROW_KNOWS_UNTIL_MS
        if late.any() and self.id[0] not in "+-":
            offsets = offsets.copy()
            offsets[late] = self._late_offsets_ms(inside[late])
        return offsets

    def instants_ms(self, local_ms: Ints) -> Ints:
        """The instants of local times; the earlier one where a time happens twice.

        Raises:
            Invalid: a local time does not exist (the clock jumped over it).
        """
        if self.id == "UTC":
            return local_ms
        # A zone changes once in two days at most: one of the offsets of the days around is the right one.
        before = self.offsets_ms(local_ms - MS_PER_DAY)
        after = self.offsets_ms(local_ms + MS_PER_DAY)
        first, second = np.maximum(before, after), np.minimum(before, after)
        first_fits = self.offsets_ms(local_ms - first) == first
        second_fits = self.offsets_ms(local_ms - second) == second
        missing = ~(first_fits | second_fits)
        if missing.any():
            gap = np.datetime64(int(local_ms[missing][0]), "ms")
            raise Invalid(f"The time {gap} does not exist in time zone {self.id}: the clock jumps over it there")
        instants: Ints = local_ms - np.where(first_fits, first, second)
        return instants

    def short_name(self, instant_ms: int) -> str:
        """The abbreviation in force at an instant, as pattern letter `z` prints it.

        Raises:
            Unsupported: the zone has no alphabetic abbreviation (Java invents one for some of them).
        """
        if self.id == "UTC" or self.id[0] in "+-":
            return self.id
        inside = int(_inside(np.array([instant_ms], dtype=np.int64))[0])
        moment = EPOCH + timedelta(milliseconds=inside)
        name = moment.astimezone(ZoneInfo(self.id)).tzname() or ""
        if self.id.startswith("Etc/GMT"):
            return offset_zone(int(self.offsets_ms(np.array([inside]))[0])).id
        if not name.isalpha():
            raise Unsupported(f"Time zone {self.id} has no abbreviation that Java and others agree on")
        return name

    def _late_offsets_ms(self, millis: Ints) -> Ints:
        """Offsets by the zone's closing rule, which Arrow's reader of zone files leaves out."""
        quarters = pa.array(millis // QUARTER_MS).dictionary_encode()
        zone = ZoneInfo(self.id)
        found = [
            (EPOCH + timedelta(milliseconds=quarter * QUARTER_MS)).astimezone(zone).utcoffset() or timedelta()
            for quarter in quarters.dictionary.to_pylist()
        ]
        offsets = np.array([int(offset.total_seconds() * 1000) for offset in found], dtype=np.int64)
        late: Ints = offsets[quarters.indices.to_numpy()]
        return late


UTC_ZONE = Zone("UTC")


def offset_zone(offset_ms: int) -> Zone:
    """The zone of a fixed offset; zero is UTC."""
    if offset_ms == 0:
        return UTC_ZONE
    minutes = abs(offset_ms) // 60_000
    return Zone(f"{'-' if offset_ms < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}")


def _inside(millis: Ints) -> Ints:
    """Times that zone rules cover, standing for `millis`."""
    later = CYCLE_START_MS + (np.maximum(millis, CYCLE_START_MS) - CYCLE_START_MS) % CYCLE_MS
    inside: Ints = np.where(millis > LAST_MS, later, np.maximum(millis, FIRST_MS))
    return inside


def zone_named(name: str) -> Zone:
    """The zone Java and Joda make of `name`.

    Raises:
        Invalid: no such zone.
    """
    if name in ("UTC", "GMT", "Z", "UCT", "Zulu", "Etc/UTC", "Etc/GMT"):
        return UTC_ZONE
    offset = _GMT_OFFSET.match(name)
    if offset:
        sign, hours, minutes = offset.groups()
        return offset_zone((1 if sign == "+" else -1) * (int(hours) * 60 + int(minutes or 0)) * 60_000)
    region = OLD_JAVA_NAMES.get(name, name)
    try:
        ZoneInfo(region)
    except (KeyError, ValueError, OSError) as error:
        raise Invalid(
            f"Unknown time zone {name!r}",
            remedy="Use a region such as America/New_York, UTC, or an offset written as GMT+05:30",
            zone=name,
        ) from error
    return Zone(region)
