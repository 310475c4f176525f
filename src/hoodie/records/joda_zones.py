"""Time zones as Hudi's timestamp key generator names them.

1. Names go through Java's `TimeZone.getTimeZone`, then Joda: region names, `UTC`/`GMT`/`Z`, `GMT+8`, `GMT+08:00`, and Java's old
   three-letter names (`EST` is New York there, not a fixed offset).
2. Java turns a name it does not know into UTC in silence, and so writes rows into folders nobody meant. We refuse it.
3. Outside the years 1 to 9999 a zone keeps the offset it has at that border.
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

FIRST_MS = -62_135_596_800_000  # 0001-01-01
LAST_MS = 253_402_214_400_000  # 9999-12-31

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
        inside = np.clip(millis, FIRST_MS, LAST_MS)
        local = pc.local_timestamp(pa.array(inside, pa.timestamp("ms", self.id)))
        offsets: Ints = local.cast(pa.int64()).to_numpy() - inside
        return offsets

    def instants_ms(self, local_ms: Ints) -> Ints:
        """The instants of local times; the earlier one where a time happens twice.

        Raises:
            Invalid: a local time does not exist (the clock jumped over it).
        """
        if self.id == "UTC":
            return local_ms
        inside = np.clip(local_ms, FIRST_MS, LAST_MS)
        local = pa.array(inside, pa.timestamp("ms"))
        try:
            placed = pc.assume_timezone(local, self.id, ambiguous="earliest", nonexistent="raise")
        except pa.ArrowInvalid as error:
            raise Invalid(f"A local time does not exist in time zone {self.id}: {error}") from error
        instants: Ints = placed.cast(pa.int64()).to_numpy() - inside + local_ms
        return instants

    def short_name(self, instant_ms: int) -> str:
        """The abbreviation in force at an instant, as pattern letter `z` prints it.

        Raises:
            Unsupported: the zone has no alphabetic abbreviation (Java invents one for some of them).
        """
        if self.id == "UTC" or self.id[0] in "+-":
            return self.id
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(np.clip(instant_ms, FIRST_MS, LAST_MS)))
        name = moment.astimezone(ZoneInfo(self.id)).tzname() or ""
        if not name.isalpha():
            raise Unsupported(f"Time zone {self.id} has no abbreviation that Java and others agree on")
        return name


UTC_ZONE = Zone("UTC")


def offset_zone(offset_ms: int) -> Zone:
    """The zone of a fixed offset; zero is UTC."""
    if offset_ms == 0:
        return UTC_ZONE
    minutes = abs(offset_ms) // 60_000
    return Zone(f"{'-' if offset_ms < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}")


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
