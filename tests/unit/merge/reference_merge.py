"""Merging told one record at a time, in plain Python: what `hoodie.merge` has to equal.

A version is a dict. `Version.has` names the columns it brings (None: all), `ordering` is the tuple that competes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

Row = Mapping[str, object]
Ordering = tuple[object, ...]


@dataclass(frozen=True)
class Version:
    key: str
    row: Row
    ordering: Ordering = ()
    delete: bool = False
    by_time: bool = False
    listed: bool = False
    has: frozenset[str] | None = None
    after_partial: bool = False


@dataclass(frozen=True)
class Step:
    ordered: bool
    fill: str | None = None


@dataclass(frozen=True)
class Reference:
    in_log: Step
    against_base: Step
    columns: tuple[str, ...]
    unavailable: str | None = None
    custom: bool = False

    def slice(self, base: Sequence[Version], log: Sequence[Version], *, partial: bool) -> list[Row]:
        """The rows of the slice in the promised order. `partial`: a block of the log has partial rows."""
        merged: dict[str, Version] = {}
        for version in log:
            older = merged.get(version.key)
            merged[version.key] = version if older is None else self.pair(older, version)
        rows: list[Row] = []
        for stored in base:
            newer = merged.get(stored.key)
            if newer is None:
                rows.append(stored.row)
                continue
            outcome = self.meet_base(stored, replace(newer, after_partial=partial))
            if outcome is not None:
                rows.append(outcome)
        stored_keys = {version.key for version in base}
        rows += [one.row for key, one in merged.items() if key not in stored_keys and not one.delete]
        return rows

    def pair(self, older: Version, newer: Version) -> Version:
        if older.by_time and newer.listed:
            return older
        newer_first = self.newer_is_higher(older, newer, self.in_log)
        higher, lower = (newer, older) if newer_first else (older, newer)
        if older.delete or newer.delete:
            return higher
        if self.custom:
            return self.summed(older, newer)
        row = dict(higher.row)
        has = {name for name in self.columns if self.brings(higher, name)}
        for name in self.columns:
            if not self.says(higher, name, newer.after_partial, self.in_log):
                row[name] = lower.row[name]
                if self.brings(lower, name):
                    has.add(name)
        return replace(higher, row=row, has=None if len(has) == len(self.columns) else frozenset(has))

    def meet_base(self, stored: Version, newer: Version) -> Row | None:
        newer_first = self.newer_is_higher(stored, newer, self.against_base)
        if newer.delete:
            return None if newer_first else stored.row
        if self.custom:
            summed = self.summed(stored, newer)
            return None if summed.delete else summed.row
        higher, lower = (newer, stored) if newer_first else (stored, newer)
        row = dict(higher.row)
        for name in self.columns:
            if not self.says(higher, name, newer.after_partial, self.against_base):
                row[name] = lower.row[name]
        return row

    def newer_is_higher(self, older: Version, newer: Version, step: Step) -> bool:
        if not step.ordered or older.by_time or newer.by_time:
            return True
        for new, old in zip(newer.ordering, older.ordering, strict=True):
            if new == old:
                continue
            if old is None:
                return True
            return new is not None and new > old  # type: ignore[operator]
        return True

    def says(self, version: Version, name: str, by_columns: bool, step: Step) -> bool:
        if by_columns:
            return self.brings(version, name)
        if step.fill == "IGNORE_DEFAULTS":
            return version.row[name] is not None
        if step.fill == "FILL_UNAVAILABLE":
            return version.row[name] != self.unavailable
        return True

    @staticmethod
    def brings(version: Version, name: str) -> bool:
        return version.has is None or name in version.has

    @staticmethod
    def summed(older: Version, newer: Version) -> Version:
        """What the merger of the tests does: adds `n`; a sum of 0 is a delete. Everything else from the newer."""
        total = (older.row["n"] or 0) + (newer.row["n"] or 0)  # type: ignore[operator]
        row = {**newer.row, "n": total, "_hoodie_is_deleted": total == 0}
        by_time = total == 0 and all(value is None for value in newer.ordering)
        return replace(newer, row=row, delete=total == 0, by_time=by_time, has=None)
