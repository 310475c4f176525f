"""One place says when a write is valid and visible, and two take away what failed: who does so by himself is named."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src" / "hoodie"

COMPLETING = {"complete", "complete_and_look"}
MAY_COMPLETE = {
    "timeline/transitions.py": "where both are",
    "transaction/transaction.py": "completes writes",
    "write/overwrite.py": "completes a write in a table that has no properties yet; its transaction let it through",
    "metadata_writer": "completes instants of the metadata table, which are steps of a write, and indexing",
    "services/cleaning": "a clean: it writes no data file, and its plan is run again",
    "services/rollback": "rollbacks, restores and savepoints: they write no data file, and their plans are run again",
}

RULES = {"AlsoNew", "ConflictRule", "GroupsUnchanged", "NobodyElse", "PlanSetAside", "StillPending"}

TAKING_AWAY = {"undo_update", "remove_losers", "remove_strays", "remove_fenced", "delete_states"}
MAY_TAKE_AWAY = {
    "transaction": "a living writer's own write",
    "metadata_writer": "entries of the metadata table",
    "services/rollback": "what dead writers left",
    "services/clustering/admin.py": "a plan that is taken off the timeline by hand",
    "services/compaction/admin.py": "a plan that is taken off the timeline by hand",
    "services/rewrite/executor.py": "a run whose plan was taken off the timeline meanwhile: nobody rolls it back",
    "services/rewrite/abandoned.py": "a plan that is taken off the timeline because its executor is dead",
}

LOCKING = {"held_table", "held_lock"}


def calling(names: set[str]) -> Iterator[str]:
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        called = {one.id if isinstance(one, ast.Name) else getattr(one, "attr", "") for one in calls}
        if not name.startswith("testing/") and called & names:
            yield name


def ensure_known(names: set[str], homes: dict[str, str], what: str) -> None:
    found = list(calling(names))
    assert [one for one in found if not any(one.startswith(home) for home in homes)] == [], what
    assert [home for home in homes if not any(one.startswith(home) for one in found)] == [], "it does not need this"


def test_writes_complete_by_a_transaction() -> None:
    ensure_known(COMPLETING, MAY_COMPLETE, "let a hoodie.transaction complete it: it asks who else was at work")


def test_what_failed_is_taken_away_by_its_transaction_or_by_a_rollback() -> None:
    ensure_known(TAKING_AWAY, MAY_TAKE_AWAY, "leave the block of the transaction by an error")


def test_conflict_rules_stand_in_one_place() -> None:
    homes = set()
    for path in SOURCE.rglob("*.py"):
        classes = (one for one in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(one, ast.ClassDef))
        for found in classes:
            methods = [one for one in found.body if isinstance(one, ast.FunctionDef) and one.name == "check"]
            takes = {ast.unparse(arg.annotation) for one in methods for arg in one.args.args if arg.annotation}
            if "PendingCommit" in takes:
                homes.add((path.relative_to(SOURCE).as_posix(), found.name))
    of_writers = {("transaction/overlaps.py", "GroupsApart"), ("transaction/revived_keys.py", "NoneRevived")}
    assert homes == {*of_writers, *(("transaction/conflicts.py", name) for name in RULES)}


@pytest.mark.parametrize("name", ["write/operations.py", "write/overwrite.py", "services/ingest.py"])
def test_how_long_the_lock_is_held_is_not_the_business_of_a_write(name: str) -> None:
    assert name not in set(calling(LOCKING))
