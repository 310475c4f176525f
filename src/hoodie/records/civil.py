"""Calendar arithmetic on whole columns: days and milliseconds since 1970 to fields and back.

1. Proleptic Gregorian calendar, as Java's `LocalDate` and Joda's ISO chronology have it; year 0 exists.
2. Any int64 of milliseconds works (years up to ±292 million): no datetime object is made.

Method: days are counted from 1 March of year 0, in eras of 400 years (146097 days), so that the leap day is the last of
its year and month lengths follow the formula (153 * m + 2) / 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MS_PER_SECOND = 1_000
MS_PER_MINUTE = 60_000
MS_PER_HOUR = 3_600_000
MS_PER_DAY = 86_400_000
DAYS_TO_ERA = 719_468  # from 0000-03-01 to 1970-01-01
DAYS_PER_ERA = 146_097


@dataclass(frozen=True, slots=True)
class Civil:
    """Fields of local times, one element per time."""

    year: Ints
    month: Ints
    day: Ints
    day_of_year: Ints
    weekday: Ints  # Monday is 1
    week_year: Ints
    week: Ints
    ms_of_day: Ints


def civil(local_ms: Ints) -> Civil:
    """The calendar fields of local milliseconds since 1970."""
    days = local_ms // MS_PER_DAY
    year, month, day = civil_date(days)
    weekday = (days + 3) % 7 + 1
    thursday = days - weekday + 4
    week_year = civil_date(thursday)[0]
    return Civil(
        year=year,
        month=month,
        day=day,
        day_of_year=days - days_since_epoch(year, np.ones_like(year), np.ones_like(year)) + 1,
        weekday=weekday,
        week_year=week_year,
        week=(thursday - days_since_epoch(week_year, np.ones_like(year), np.ones_like(year))) // 7 + 1,
        ms_of_day=local_ms - days * MS_PER_DAY,
    )


def civil_date(days: Ints) -> tuple[Ints, Ints, Ints]:
    """Year, month, day of days since 1970."""
    shifted = days + DAYS_TO_ERA
    era = shifted // DAYS_PER_ERA
    day_of_era = shifted - era * DAYS_PER_ERA
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = np.where(shifted_month < 10, shifted_month + 3, shifted_month - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def days_since_epoch(year: Ints, month: Ints, day: Ints) -> Ints:
    """Days since 1970 of dates; a day past the end of its month runs into the next."""
    shifted = year - (month <= 2)
    era = shifted // 400
    year_of_era = shifted - era * 400
    day_of_year = (153 * np.where(month > 2, month - 3, month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    days: Ints = era * DAYS_PER_ERA + day_of_era - DAYS_TO_ERA
    return days


def days_in_month(year: Ints, month: Ints) -> Ints:
    """Length of months; `month` must be 1 to 12."""
    first = np.ones_like(year)
    after_december = month == 12
    return days_since_epoch(year + after_december, np.where(after_december, 1, month + 1), first) - days_since_epoch(
        year, month, first
    )
