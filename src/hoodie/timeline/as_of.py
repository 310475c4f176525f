"""Times as users write them, made comparable with instant times.

1. Accepted are the forms Hudi accepts for `as.of.instant`: 17 and 14 digits, `yyyy-MM-dd HH:mm:ss[.SSS]`, the same with
   a `T`, and `yyyy-MM-dd`.
2. A time without milliseconds means the last one of its second, a date means its midnight: commits later that day are
   not in it. 14 digits mean the start of the second, since Hudi compares them as text.
3. No zone in the text: the times are read in the table's zone and instants are written in it, so digits suffice.
"""

from __future__ import annotations

import re
from datetime import datetime

from hoodie.errors import Invalid
from hoodie.spec import InstantTime, TimeZone

_DIGITS = re.compile(r"[0-9]{14}(?:[0-9]{3})?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{3}))?)?")


def parse_as_of(text: str, timezone: TimeZone = "LOCAL") -> InstantTime:
    """The 17-digit time that `text` names. `timezone` is the table's; no accepted form depends on it.

    Raises:
        Invalid: another form, or no such date or time of day.
    """
    del timezone
    given = text.strip()
    if _DIGITS.fullmatch(given):
        return _checked(given.ljust(17, "0"), text)
    match = _DATE.fullmatch(given)
    if match is None:
        raise _invalid(text)
    year, month, day, hour, minute, second, millis = match.groups()
    if hour is None:
        return _checked(f"{year}{month}{day}000000000", text)
    return _checked(f"{year}{month}{day}{hour}{minute}{second}{millis or '999'}", text)


def _checked(digits: InstantTime, text: str) -> InstantTime:
    if digits.startswith("0000000000000"):  # the times of bootstraps and of "from the beginning"
        return digits
    try:
        datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
    except ValueError as error:
        raise _invalid(text) from error
    return digits


def _invalid(text: str) -> Invalid:
    return Invalid(
        f"{text!r} is not a time",
        remedy="Use yyyyMMddHHmmssSSS, yyyyMMddHHmmss, 'yyyy-MM-dd HH:mm:ss[.SSS]' or yyyy-MM-dd",
        value=text,
    )
