"""Instant times as text: `yyyyMMddHHmmssSSS`, 17 digits, in the time zone the table names.

1. Instant times are compared as plain strings; nothing here is needed to order them.
2. Old tables have 14-digit times (whole seconds). As a moment such a time means its last millisecond.
3. `LOCAL` is the zone of this machine, as it was of the Java process that wrote the table.

It does not know the current time. Grammar: `docs/format/timeline.md`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from hoodie.errors import Invalid
from hoodie.spec.instant import InstantTime

TimeZone = Literal["LOCAL", "UTC"]

INSTANT_DIGITS = 17
INIT_INSTANT: InstantTime = "00000000000000"
METADATA_BOOTSTRAP_INSTANT: InstantTime = "00000000000001"
FULL_BOOTSTRAP_INSTANT: InstantTime = "00000000000002"

_MILLISECOND = timedelta(milliseconds=1)


def format_instant_time(moment: datetime, timezone: TimeZone = "LOCAL") -> InstantTime:
    """The 17 digits of a timezone-aware moment, cut to whole milliseconds."""
    local = moment.astimezone(UTC) if timezone == "UTC" else moment.astimezone()
    return local.strftime("%Y%m%d%H%M%S").rjust(14, "0") + f"{local.microsecond // 1000:03d}"


def format_instant_millis(epoch_ms: int, timezone: TimeZone = "LOCAL") -> InstantTime:
    """The 17 digits of a moment given in milliseconds since 1970."""
    return format_instant_time(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=epoch_ms), timezone)


def parse_instant_time(text: InstantTime, timezone: TimeZone = "LOCAL") -> datetime:
    """The moment an instant time names, timezone-aware. Digits past the 17th (metadata table suffixes) are ignored.

    Raises:
        Invalid: not 14 or at least 17 digits, or no such date.
    """
    naive = _naive(text)
    return naive.replace(tzinfo=UTC) if timezone == "UTC" else naive.astimezone()


def next_instant_time(after: InstantTime) -> InstantTime:
    """The smallest 17-digit time that is greater than `after`, both as text and as time."""
    if len(after) < INSTANT_DIGITS or not after[:INSTANT_DIGITS].isdigit():
        return after.ljust(INSTANT_DIGITS, "0")[: INSTANT_DIGITS - 1] + "1"
    try:
        naive = _naive(after) + _MILLISECOND
    except Invalid:  # not a date, for instance the all-zero times of bootstraps: count on as a number
        return f"{int(after[:INSTANT_DIGITS]) + 1:0{INSTANT_DIGITS}d}"
    return naive.strftime("%Y%m%d%H%M%S").rjust(14, "0") + f"{naive.microsecond // 1000:03d}"


def _naive(text: InstantTime) -> datetime:
    digits = text[:INSTANT_DIGITS]
    if len(digits) == 14:
        digits += "999"
    if len(digits) != INSTANT_DIGITS or not (digits.isascii() and digits.isdigit()):
        raise Invalid(f"{text!r} is not an instant time", remedy="Give 17 digits: yyyyMMddHHmmssSSS", value=text)
    try:
        whole = datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
    except ValueError as error:
        raise Invalid(
            f"{text!r} is not an instant time: there is no such date",
            remedy="Give 17 digits: yyyyMMddHHmmssSSS",
            value=text,
        ) from error
    return whole + timedelta(milliseconds=int(digits[14:]))
