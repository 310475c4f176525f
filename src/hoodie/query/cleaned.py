"""From when on the past is whole again after cleans, by whatever policy they chose.

1. A clean takes away what had been superseded before it began, so states from its own time on are not touched by it:
   only cleans after the time asked for are looked at, archived ones only when the active timeline does not reach back
   far enough.
2. A clean that counts commits or hours says from which commit on every state is still there.
3. One that counts file versions does not say. The slice a removed file belonged to was part of the states from its
   instant on, until the next slice of its group, or until the group was replaced; where neither is known any more,
   until the clean. In these states its rows are missing.
4. Cleans are looked for after files were listed, not in the timeline of the view: one that came in between has taken
   files that the list lacks. It was on the timeline before it took the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hoodie.errors import Corrupt
from hoodie.spec import (
    CLEAN,
    Instant,
    InstantTime,
    State,
    parse_base_file_name,
    parse_clean_metadata,
    parse_clean_plan,
    parse_log_file_name,
)
from hoodie.storage import Storage
from hoodie.timeline import has_history, instant_path, load_archived_cleans, load_instant, load_requested, load_timeline
from hoodie.view import GroupId, PartitionChoice, View


@dataclass(frozen=True, slots=True)
class Removal:
    """What one clean took, or is about to take: its requested time, the earliest commit it promises, and names of files
    by partition, where it promises none. Of one that is not `is_done` nobody knows which of its files are still there:
    a metadata table hears of them when it completes.
    """

    instant: InstantTime
    earliest: InstantTime | None
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_done: bool = True


def load_retained_from(
    storage: Storage, view: View, as_of: InstantTime, choice: PartitionChoice | None = None
) -> InstantTime | None:
    """The first time, not before `as_of`, at which cleans have left the whole state, or that of the partitions of a
    `choice`, which `view` has; None when that is `as_of` itself.

    Lists the timeline; reads the metadata of completed cleans after `as_of`, plans of pending ones, and maybe the
    archived history.

    Raises:
        Corrupt: metadata of a clean cannot be read.
    """
    removals = tuple(_load_removals(storage, view, as_of))
    promised = [removal.earliest for removal in removals if removal.earliest is not None]
    lost = tuple(_lost_spans(view, [removal for removal in removals if removal.earliest is None], choice))
    found = max([as_of, *promised])
    while ends := [end for start, end in lost if start <= found < end]:
        found = max(ends)
    return found if found > as_of else None


def load_unpromised(storage: Storage, view: View) -> frozenset[tuple[str, str]]:
    """Partitions and names of files that cleans took which promise no earliest commit. Reads what all cleans say.

    Raises:
        Corrupt: metadata of a clean cannot be read.
    """
    removals = _load_removals(storage, view, "")
    unpromised = [removal.files for removal in removals if removal.earliest is None]
    return frozenset((partition, name) for files in unpromised for partition in files for name in files[partition])


def load_being_taken(storage: Storage, view: View) -> dict[tuple[str, str], InstantTime]:
    """Partitions and names of the files that pending cleans, and those that the view does not know, are to take or have
    taken, with the clean. Lists the timeline and reads what they say; of one that is damaged nothing is known.
    """
    found: dict[tuple[str, str], InstantTime] = {}
    known = {instant.requested for instant in view.timeline.completed() if instant.action == CLEAN}
    for clean in _cleans_now(storage, view):
        with suppress(Corrupt):
            removal = None if clean.requested in known else _load_removal(storage, view, clean)
            for partition, names in () if removal is None else removal.files.items():
                found |= {(partition, name): clean.requested for name in names}
    return found


def load_cleaned(storage: Storage, view: View, begin: InstantTime) -> dict[GroupId, tuple[InstantTime, ...]]:
    """The instants in names of files that cleans after `begin` took, by file group, in order. An older slice of the
    group may be there still, for a savepoint: it is not what such a file held. Reads what these cleans say.

    Raises:
        Corrupt: metadata of a clean cannot be read.
    """
    found: defaultdict[GroupId, set[InstantTime]] = defaultdict(set)
    for removal in _load_removals(storage, view, begin):
        for partition, names in removal.files.items():
            for name in names:
                known = parse_base_file_name(name) or parse_log_file_name(name)
                if known is not None:
                    found[partition, known.file_id].add(known.instant)
    return {group_id: tuple(sorted(instants)) for group_id, instants in found.items()}


def _load_removals(storage: Storage, view: View, as_of: InstantTime) -> Iterator[Removal]:
    profile, cleans = view.timeline.profile, _cleans_now(storage, view)
    for clean in cleans:
        if clean.requested > as_of:
            removal = _load_removal(storage, view, clean)
            if removal is not None:
                yield removal
    is_known = any(clean.is_completed and clean.requested <= as_of for clean in cleans)
    if not is_known and has_history(storage, profile):
        for done in load_archived_cleans(storage, profile, as_of):
            files = {cleaned.partition: cleaned.deleted for cleaned in done.partitions.values()}
            yield Removal(done.start_time, done.earliest or None, files)


def _cleans_now(storage: Storage, view: View) -> tuple[Instant, ...]:
    """The cleans of the timeline as it is now."""
    timeline = load_timeline(storage, view.timeline.profile)
    return tuple(instant for instant in timeline.instants if instant.action == CLEAN)


def _load_removal(storage: Storage, view: View, clean: Instant) -> Removal | None:
    """What a clean of the active timeline took; None where it died before it had written what it does."""
    profile = view.timeline.profile
    if clean.is_completed:
        data, path = load_instant(storage, profile, clean), instant_path(profile, clean)
        if data:
            done = parse_clean_metadata(data, path)
            files = {cleaned.partition: cleaned.deleted for cleaned in done.partitions.values()}
            return Removal(clean.requested, done.earliest or None, files)
    requested = replace(clean, state=State.REQUESTED, completed=None)
    data = load_requested(storage, profile, clean)
    if not data:
        return None
    plan = parse_clean_plan(data, instant_path(profile, requested))
    names = {partition: tuple(path.rpartition("/")[2] for path in paths) for partition, paths in plan.files.items()}
    earliest = None if plan.earliest is None else plan.earliest.requested
    return Removal(clean.requested, earliest, names, is_done=False)


def _lost_spans(
    view: View, removals: Iterable[Removal], choice: PartitionChoice | None
) -> Iterator[tuple[InstantTime, InstantTime]]:
    """From when until before when the table is not whole, for each slice that lost a file."""
    later: defaultdict[GroupId, list[InstantTime]] = defaultdict(list)
    for group in view.groups:
        later[group.group_id] = [part.base_instant for part in group.slices]
    for group_id, replaced in view.replaced.items():
        later[group_id].append(replaced)
    there = {file.path.rpartition("/")[2] for found in view.files for file in found.everything}
    for removal in removals:
        partitions = removal.files if choice is None else choice.of(removal.files)
        for partition in sorted(partitions):
            names = removal.files[partition]
            for name in set(names) - there if removal.is_done else names:
                known = parse_base_file_name(name) or parse_log_file_name(name)
                if known is not None:
                    ends = (end for end in later[partition, known.file_id] if end > known.instant)
                    yield known.instant, min(ends, default=removal.instant)
