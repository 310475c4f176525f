"""For every clean on the timeline of a golden table: planned by us on the table as it was then, it is Hudi's plan.

Tables carried along always run; the full set runs too where HOODIE_GOLDEN_DIR names it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hoodie.services.cleaning.facts import load_protected
from hoodie.services.cleaning.options import CleanOptions
from hoodie.services.cleaning.plan import Protected, plan_clean
from hoodie.services.cleaning.retention import earliest_retained
from hoodie.spec import (
    CLEAN,
    COMPLETED_WRITE_ACTIONS,
    REPLACE_COMMIT,
    CleanPlan,
    Instant,
    InstantTime,
    State,
    parse_base_file_name,
    parse_clean_plan,
    parse_log_file_name,
)
from hoodie.state.handle import TableHandle, open_handle, timeline_of
from hoodie.state.pending_plans import PendingPlans
from hoodie.testing.golden import GoldenTable, golden_tables
from hoodie.timeline import (
    Timeline,
    load_archived_metadata,
    load_commit_metadata,
    load_history,
    load_requested,
)
from hoodie.view import BaseFile, LogFile, PartitionFiles, list_files, replaced_groups, view_of

ROOT = Path(__file__).parents[3]
FULL = os.environ.get("HOODIE_GOLDEN_DIR")
CARRIED = ROOT / "tests" / "golden" / "tables"
CLEANED = ("clean", "archived", "kept", "kitchen", "upgraded", "walk")
TABLES = [
    table
    for table in golden_tables((ROOT / FULL).resolve() if FULL else CARRIED)
    if any(word in table.scenario for word in CLEANED)
]
VERSIONS_KEPT = 1
File = BaseFile | LogFile


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_our_plan_is_the_one_hudi_recorded(table: GoldenTable, tmp_path: Path) -> None:
    handle = open_handle(str(table.unpack(tmp_path)), {})
    timeline = timeline_of(handle)
    plans = {
        one.requested: parse_clean_plan(load_requested(handle.storage, handle.profile, one), table.name)
        for one in timeline.completed()
        if one.action == CLEAN
    }
    for requested, theirs in plans.items():
        then = timeline_then(handle, timeline, requested)
        ours = planned(handle, then, files_then(handle, plans, requested), theirs)
        assert bare_names(ours) == bare_names(theirs), requested
        assert replace(ours, files={}) == replace(theirs, files={}), requested


def planned(handle: TableHandle, timeline: Timeline, files: tuple[PartitionFiles, ...], theirs: CleanPlan) -> CleanPlan:
    # How many commits were to be kept is not in the plan: as many as were kept.
    since = theirs.earliest.requested if theirs.earliest else ""
    kept = sum(one.requested >= since for one in timeline.completed_writes())
    options = CleanOptions(policy=theirs.policy, commits=kept, versions=VERSIONS_KEPT)
    earliest = earliest_retained(timeline, options, datetime.now(UTC), handle.config.timezone)
    replaced = replaced_groups(replacing(handle, timeline))
    protected = (
        load_protected(handle, PendingPlans(handle.storage, timeline_of(handle))) if theirs.savepoints else Protected()
    )
    return plan_clean(view_of(timeline, files, replaced, {}), earliest, options, protected).stored(
        handle.storage.absolute
    )


def timeline_then(handle: TableHandle, timeline: Timeline, when: InstantTime) -> Timeline:
    """The timeline as it was when a clean was requested, with what has been archived since (and before)."""
    known = {one.instant.logical: one.instant for one in load_history(handle.storage, handle.profile)}
    known |= {one.logical: one for one in timeline.instants}
    return Timeline(handle.profile, tuple(sorted(_then(one, when) for one in known.values() if one.requested < when)))


def _then(instant: Instant, when: InstantTime) -> Instant:
    if instant.completed is None or instant.completed < when:
        return instant
    return replace(instant, state=State.INFLIGHT, completed=None)


def files_then(
    handle: TableHandle, plans: dict[InstantTime, CleanPlan], when: InstantTime
) -> tuple[PartitionFiles, ...]:
    """What lay in the partitions: what is there now and what this clean and later ones removed."""
    found: dict[str, dict[str, File]] = {}
    for files in list_files(handle.storage):
        found[files.partition] = {file.path: file for file in (*files.everything, *files.changes)}
    for requested, plan in plans.items():
        if requested >= when:
            for partition, names in plan.files.items():
                found.setdefault(partition, {}).update(_removed(partition, names))
    return tuple(_listed(partition, files, when) for partition, files in sorted(found.items()))


def _removed(partition: str, names: tuple[str, ...]) -> Iterator[tuple[str, File]]:
    for name in (full.rpartition("/")[2] for full in names):
        path = f"{partition}/{name}" if partition else name
        base, log = parse_base_file_name(name), parse_log_file_name(name)
        assert base or log
        yield path, BaseFile(path, base, 1) if base else LogFile(path, log, 1)


def _listed(partition: str, files: dict[str, File], when: InstantTime) -> PartitionFiles:
    then = [file for _, file in sorted(files.items()) if file.name.instant < when]
    logs = [file for file in then if isinstance(file, LogFile)]
    return PartitionFiles(
        partition,
        tuple(file for file in then if isinstance(file, BaseFile)),
        tuple(file for file in logs if not file.name.is_cdc),
        tuple(file for file in logs if file.name.is_cdc),
    )


def replacing(handle: TableHandle, timeline: Timeline) -> Iterator[tuple[InstantTime, object]]:
    active = {one.logical for one in timeline_of(handle).completed()}
    archived = [one for one in load_history(handle.storage, handle.profile) if one.action in COMPLETED_WRITE_ACTIONS]
    then = load_archived_metadata(handle.storage, archived)
    for one in timeline.completed_writes():
        if one.action == REPLACE_COMMIT:
            is_active = one.logical in active
            yield (
                one.requested,
                (load_commit_metadata(handle.storage, handle.profile, one) if is_active else then[one.requested]),
            )


def bare_names(plan: CleanPlan) -> dict[str, list[str]]:
    return {
        partition: sorted(name.rpartition("/")[2] for name in names) for partition, names in plan.files.items() if names
    }
