"""Times as users write them, made comparable with instant times.

1. Accepted are, first of all, the forms Hudi accepts for `as.of.instant`: 17 and 14 digits,
   `yyyy-MM-dd HH:mm:ss[.SSS]`, the same with a `T`, and `yyyy-MM-dd`.
2. A time without milliseconds means the last one of its second, a date means its midnight: commits later that day are
   not in it. 14 digits mean the start of the second, since Hudi compares them as text.
3. Without a zone the times are read in the table's zone, in which instants are written, so digits suffice. A zone
   (`Z`, `+02:00`) is that of the time; seconds may have up to nine decimals, of which three count.
4. `instant_text` takes what Python programs have instead: datetimes, dates, pandas timestamps, NumPy datetimes, numbers
   that look like instants.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from hoodie.errors import Invalid
from hoodie.spec import InstantTime, TimeZone, format_instant_time

_DIGITS = re.compile(r"[0-9]{14}(?:[0-9]{3})?")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?: ?(Z|z|[+-][0-9]{2}:?[0-9]{2}))?)?"
)


def parse_as_of(text: str, timezone: TimeZone = "LOCAL") -> InstantTime:
    """The 17-digit time that `text` names. `timezone` is the table's, for times that name another.

    Raises:
        Invalid: another form, or no such date or time of day.
    """
    given = text.strip()
    if _DIGITS.fullmatch(given):
        return _checked(given.ljust(17, "0"), text)
    match = _DATE.fullmatch(given)
    if match is None:
        raise _invalid(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if hour is None:
        return _checked(f"{year}{month}{day}000000000", text)
    millis = (fraction or "999").ljust(3, "0")[:3]
    digits = _checked(f"{year}{month}{day}{hour}{minute}{second}{millis}", text)
    return digits if zone is None else _in_zone(digits, zone, timezone, text)


def instant_text(value: object, timezone: TimeZone = "LOCAL") -> str:
    """`value` as a text that names a time: texts stay, moments become 17 digits in `timezone`.

    Raises:
        Invalid: it is no time.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and _DIGITS.fullmatch(str(value)):
        return str(value)
    moment: Any = value
    if type(value).__name__ == "datetime64":  # NumPy's, which the command line need not load
        moment = moment.astype("datetime64[us]").item()
    if moment != moment:  # noqa: PLR0124 - NaT
        raise _invalid(value)
    if isinstance(moment, datetime):
        if moment.tzinfo is not None:
            return format_instant_time(moment, timezone)
        return f"{moment:%Y%m%d%H%M%S}".rjust(14, "0") + f"{moment.microsecond // 1000:03d}"
    if isinstance(moment, date):
        return f"{moment:%Y%m%d}".rjust(8, "0") + "0" * 9
    raise _invalid(value)


def _in_zone(digits: InstantTime, zone: str, timezone: TimeZone, text: str) -> InstantTime:
    offset = "+0000" if zone in "Zz" else zone.replace(":", "")
    try:
        moment = datetime.strptime(f"{digits[:14]}{digits[14:]}000{offset}", "%Y%m%d%H%M%S%f%z")
        return format_instant_time(moment, timezone)
    except (ValueError, OverflowError) as error:
        raise _invalid(text) from error


def _checked(digits: InstantTime, text: str) -> InstantTime:
    if digits.startswith("0000000000000"):  # the times of bootstraps and of "from the beginning"
        return digits
    try:
        datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
    except ValueError as error:
        raise _invalid(text) from error
    return digits


def _invalid(value: object) -> Invalid:
    return Invalid(
        f"{value!r} is not a time",
        remedy="Use yyyyMMddHHmmssSSS, yyyyMMddHHmmss, 'yyyy-MM-dd HH:mm:ss[.SSS]' (with Z or an offset, too), "
        "yyyy-MM-dd, or a datetime",
        value=value,
    )
