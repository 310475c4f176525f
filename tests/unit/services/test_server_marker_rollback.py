"""A write that announced its files in lists is rolled back like one with direct markers, whatever lists look like."""

from __future__ import annotations

import pytest
from undo_world import ENGINE, last_delta, small_table

from hoodie.services.rollback.plan import load_rollback_plan
from hoodie.spec import V9, RollbackPlan, State, marker_dir, marker_name
from hoodie.storage import Storage
from hoodie.testing.hand_logs import HandLogTable, at
from hoodie.timeline.marker_lists import ListedMarkers

FOLDER = marker_dir(at(3))


def plan_of(table: HandLogTable) -> RollbackPlan:
    timeline = table.timeline()
    (target,) = (one for one in timeline.instants if one.requested == at(3))
    return load_rollback_plan(table.handle, timeline, target, ENGINE)


def lists(storage: Storage, files: list[str], form: str) -> None:
    """The markers of `files` as lists, in one of several forms."""
    names = [marker_name(path, V9.log_naming.marker) for path in files]
    storage.put(f"{FOLDER}/MARKERS.type", b"OTHER" if form == "unknown" else b"TIMELINE_SERVER_BASED")
    match form:
        case "joined":  # as Hudi leaves it that was started anew
            storage.put(f"{FOLDER}/MARKERS0", (",".join(names) + "\n").encode())
        case "torn":
            storage.put(f"{FOLDER}/MARKERS0", ("\n".join(names) + "\np0/.x_1.log.1_0-0-0.mark").encode())
        case "damaged":
            storage.put(f"{FOLDER}/MARKERS0", f"{names[0]}\nnonsense\n".encode())
        case _:
            storage.put(f"{FOLDER}/MARKERS0", f"{names[0]}\n".encode())
            storage.put(f"{FOLDER}/MARKERS17", "".join(f"{name}\n" for name in names).encode())
    if form == "without type":
        storage.delete(f"{FOLDER}/MARKERS.type")


@pytest.mark.parametrize("form", ["whole", "joined", "torn", "damaged", "unknown", "without type"])
def test_the_plan_is_that_of_direct_markers(form: str) -> None:
    direct, listed = small_table(V9), small_table(V9)
    last_delta(direct, State.INFLIGHT)
    files = last_delta(listed, State.INFLIGHT, markers=False)
    lists(listed.storage, files, form)
    wanted, found = plan_of(direct), plan_of(listed)

    def deleted(plan: RollbackPlan, table: HandLogTable) -> list[str]:
        base = table.storage.absolute("")
        return sorted(path.removeprefix(base) for one in plan.requests for path in one.files_to_delete)

    assert deleted(found, listed) == deleted(wanted, direct)
    assert len(deleted(wanted, direct)) == 2


def test_direct_markers_and_lists_are_one() -> None:
    table = small_table(V9)
    first, second = last_delta(table, State.INFLIGHT, markers=False)
    table.storage.put(f"{FOLDER}/{marker_name(first, V9.log_naming.marker)}", b"")
    ListedMarkers(table.storage, at(3)).create(second, V9.log_naming.marker)
    assert len(plan_of(table).requests) == 2


@pytest.mark.parametrize(
    "strange",
    ["p0/notes.txt", "x", " ", "p0/.hoodie_partition_metadata", f"p0/f-0_0-1-2_{at(2)}.parquet"],
)
def test_a_marker_that_somebody_else_made_holds_up_no_rollback(strange: str) -> None:
    table = small_table(V9)
    files = last_delta(table, State.INFLIGHT)
    table.storage.put(f"{FOLDER}/{strange}.marker.CREATE", b"")
    deleted = {path for one in plan_of(table).requests for path in one.files_to_delete}
    assert {table.storage.absolute(path) for path in files} <= deleted
    assert not any(at(3) not in path for path in deleted)
