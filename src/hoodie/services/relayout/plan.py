"""What a relayout is: the switch that is added to a layout, and where the move that follows leads. Pure.

1. A switch adds a version that counts from an instant after all others: nothing is moved, and both places stay known.
2. A move makes the newest version count from the beginning. `since` decides, in one replacement of the properties, so
   files are copied before and deleted after it.
3. Both may be for some partitions only. Where one switch is for all, those for some that came before it end with it.

The stored state of a move: `hoodie.layout.move`. Bytes: `docs/format/storage-layout.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Final

from hoodie.errors import Invalid
from hoodie.layout import Layout, LayoutVersion, StorageStrategy
from hoodie.layout.layout import Guard
from hoodie.layout.properties import MAX_VERSIONS, ensure_folder
from hoodie.layout.strategy import parse_strategy

BEGINNING: Final = "0"

_FOR_ALL: Final = 2
"""Versions that are left to one for all partitions and to a move: the ways to have fewer."""


def plan_switch(  # noqa: PLR0917
    layout: Layout | None,
    strategy: tuple[str, StorageStrategy],
    roots: tuple[str, ...],
    folder: str,
    since: str,
    uuid: str,
    partition: str = "",
) -> Layout:
    """The layout with one version more, of a strategy and its text. `roots` are those it uses; known ones are not added
    again. `folder` and `uuid` are for a table that has none. `partition`: which ones it is for, all if empty.

    Raises:
        Invalid: there are as many versions as there may be, or `folder` cannot be one.
    """
    text, made = strategy
    known = () if layout is None else layout.roots
    every = (*known, *(root for root in roots if root not in known))
    numbers = () if text == "hive" else tuple(every.index(root) for root in roots)
    versions = () if layout is None else layout.versions
    last = versions[-1].number if versions else 0
    used = next((one.folder for one in reversed(versions) if one.folder), None)
    if len(versions) >= (MAX_VERSIONS - _FOR_ALL if partition else MAX_VERSIONS):
        raise too_many_versions()
    place = "" if text == "hive" else used or ensure_folder(folder)
    new = LayoutVersion(last + 1, since, text, numbers, place, partition, made)
    guard: Guard = "strict" if layout is None else layout.guard
    return Layout(every, (*versions, new), uuid if layout is None else layout.uuid, guard)


def newest_for(versions: Sequence[LayoutVersion], partition: str) -> LayoutVersion | None:
    """The version by which new files of some partitions go where they go; None: to the table path. For all (an empty
    `partition`) it is the newest that is for all.
    """
    covers = (one for one in reversed(versions) if not one.partitions or (partition and _covers(one, partition)))
    return next(covers, None)


def is_one_place(one: LayoutVersion, other: LayoutVersion) -> bool:
    """Whether two versions put files of a partition into the same places."""
    return (one.text, one.roots, one.folder) == (other.text, other.roots, other.folder)


def plan_target(layout: Layout, partition: str = "") -> tuple[LayoutVersion, ...]:
    """The versions of a table all of whose files lie where new ones go; with `partition`, those of some partitions.
    They are the layout's own where all is so already.

    Raises:
        Invalid: new files of the partition go to the table path since ever, a partition among them has a strategy of
            its own, or there are as many versions as there may be.
    """
    versions = layout.versions
    newest = newest_for(versions, partition)
    if newest is None:
        raise Invalid(
            f"No storage strategy is for {f'partition {partition!r}' if partition else 'all partitions'} of the table",
            remedy="Say which one it should have (--to), or move the partitions that have one (--partition)",
        )
    later = versions[versions.index(newest) + 1 :]
    if not partition:
        # What is for some partitions and newer goes on. What leads to the same places is needed only behind one that
        # does not, of whose partitions it may have some.
        own = [replace(one, since=BEGINNING) for one in dropwhile(lambda one: is_one_place(one, newest), later)]
        return (replace(newest, since=BEGINNING), *own)
    if any(_lies_in(one, partition) and not is_one_place(one, newest) for one in later):
        raise Invalid(
            f"Partitions of {partition!r} have a storage strategy of their own",
            remedy="Move these by themselves (--partition), or give all the same first (--to)",
        )
    if newest.since == BEGINNING:
        return versions
    # Of the same partitions none but the newest counts from now on.
    kept = tuple(one for one in versions if one.partitions != partition)
    if len(kept) >= MAX_VERSIONS:
        raise too_many_versions()
    return (*kept, replace(newest, number=versions[-1].number + 1, since=BEGINNING, partitions=partition))


def too_many_versions() -> Invalid:
    """The error for who would add one more."""
    return Invalid(
        f"The table may have {MAX_VERSIONS} versions of its storage layout, and has as many as it can use",
        remedy="Give all partitions one strategy, and move all files there: hoodie relayout --to STRATEGY --move",
    )


def _covers(version: LayoutVersion, partition: str) -> bool:
    """Whether a version that is for some partitions is for all of `partition` (which may end in a `*`)."""
    if not partition.endswith("*"):
        return version.is_for(partition)
    known = version.partitions
    return partition == known or (known.endswith("*") and partition.startswith(known[:-1]))


def _lies_in(version: LayoutVersion, partition: str) -> bool:
    """Whether a version that is for some partitions is for some of `partition`."""
    theirs, ours = version.partitions.rstrip("*"), partition.rstrip("*")
    inside = theirs.startswith(ours) if partition.endswith("*") else theirs == ours or theirs.startswith(f"{ours}/")
    return inside or (version.partitions.endswith("*") and ours.startswith(theirs))


def strategy_of(text: str, own: Mapping[str, StorageStrategy]) -> tuple[str, StorageStrategy]:
    """A strategy with its text. Raises as `parse_strategy`."""
    return text, parse_strategy(text, own)
