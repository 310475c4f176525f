"""Cleans of chosen partitions, and cleans while others are pending."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie.config import Config, resolve
from hoodie.engine import LocalEngine
from hoodie.errors import Invalid
from hoodie.services.archiving.archive import archive
from hoodie.services.cleaning.clean import clean, preview_clean
from hoodie.services.cleaning.facts import load_last_clean
from hoodie.services.rollback.savepoint import create_savepoint, delete_savepoint
from hoodie.spec import CLEAN, V9, CleanPlan, FormatProfile, State, encode_clean_plan
from hoodie.state.handle import TableHandle, load_handle
from hoodie.testing.counting_storage import CountingStorage, Crash
from hoodie.testing.hand_table import HandTable, at
from hoodie.testing.lake import Awake, Lake, row

ENGINE = LocalEngine(2)
FULL = {"hoodie.clean.commits.retained": 2, "hoodie.clean.incremental.enabled": False}
KEEP_2 = resolve({"hoodie.clean.commits.retained": 2})
MULTIPLE = resolve({"hoodie.clean.commits.retained": 2, "hoodie.clean.multiple.enabled": True})
ONLY_P = resolve({**FULL, "hoodie.clean.partition.filter.selected": "p"})
BY_VERSIONS = {**FULL, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
LIMITS = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
BY_HAND = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.metadata.enable": "false"}


def matching(pattern: str) -> Config:
    return resolve({**FULL, "hoodie.clean.partition.filter.regex": pattern})


def write(table: HandTable, second: int, part: str, replaces: dict[str, tuple[str, ...]] | None = None) -> None:
    """A commit that rewrites the one file group of a partition, or replaces groups."""
    rows = {(part, f"f-{part.replace('/', '-')}"): [{"id": part, "part": part, "qty": second}]}
    stats = {"prev_commit": at(second - 1)}
    table.commit(at(second), rows, stats=stats, replaces=replaces, completed=at(second, 500))


def partitions(profile: FormatProfile, commits: int = 8) -> HandTable:
    """Commits 1 to n, in turns to p and q."""
    table = HandTable(profile)
    for second in range(1, commits + 1):
        write(table, second, "pq"[(second + 1) % 2])
    return table


def base_files(table: HandTable, part: str) -> list[str]:
    return [file.path for file in table.storage.list(part) if file.path.endswith(".parquet")]


def cleans(table: HandTable) -> int:
    return sum(one.action == CLEAN and one.is_completed for one in table.timeline().instants)


def pending(table: HandTable, profile: FormatProfile, second: int, name: str, state: State = State.REQUESTED) -> None:
    """A clean somebody planned, of one file of partition p."""
    plan = CleanPlan("KEEP_LATEST_COMMITS", files={"p": (table.storage.absolute(name),)})
    content = {State.REQUESTED: encode_clean_plan(plan, profile.avro_generation)}
    table.instant(at(second, 900), CLEAN, state=state, content=content)


def test_several_pending_cleans_are_all_finished_and_no_other_is_planned(profile: FormatProfile) -> None:
    table = partitions(profile)
    first, second = table.path_of(at(1), "p", "f-p"), table.path_of(at(3), "p", "f-p")
    pending(table, profile, 7, first, State.INFLIGHT)
    pending(table, profile, 8, second)
    planned = preview_clean(table.handle, KEEP_2)
    assert [step.paths for step in planned.steps] == [(first,), (second,)]
    assert "another clean is planned by the next call" in planned.notes
    done = clean(table.handle, KEEP_2, ENGINE)
    assert done is not None
    assert (done.instant, done.finished, done.files) == (at(8, 900), (at(7, 900),), 2)
    assert not table.timeline().pending()
    assert len(base_files(table, "q")) == 4
    write(table, 20, "p")
    after = clean(table.handle, KEEP_2, ENGINE)
    assert after is not None
    assert not after.finished
    assert len(base_files(table, "q")) < 4


def test_where_several_cleans_are_allowed_another_is_planned_in_the_same_call(profile: FormatProfile) -> None:
    table = partitions(profile)
    first = table.path_of(at(1), "p", "f-p")
    pending(table, profile, 8, first)
    planned = preview_clean(table.handle, MULTIPLE)
    done = clean(table.handle, MULTIPLE, ENGINE)
    assert done is not None
    assert done.finished == (at(8, 900),)
    assert cleans(table) == 2
    assert planned.files == done.files
    named = [path for step in planned.steps for path in step.paths]
    assert first in named
    assert len(named) == len(set(named))


def test_only_chosen_partitions_are_cleaned(profile: FormatProfile) -> None:
    both = resolve({**ONLY_P.explicit, "hoodie.clean.partition.filter.regex": "q"})
    for config in (ONLY_P, matching("p"), matching("[op]"), both):
        table = partitions(profile)
        planned = preview_clean(table.handle, config)
        done = clean(table.handle, config, ENGINE)
        assert done is not None
        assert done.partitions == ("p",)
        assert {step.partition for step in planned.steps} == {"p"}
        assert planned.files == done.files == 2
        assert len(base_files(table, "q")) == 4
        table.storage.forget()


def test_a_pattern_has_to_match_the_whole_path(profile: FormatProfile) -> None:
    table = HandTable(profile)
    for second in range(1, 7):
        write(table, second, "2026/01" if second % 2 else "2026/011")
    assert clean(table.handle, matching("01"), ENGINE) is None
    done = clean(table.handle, matching(r"2026/\d\d"), ENGINE)
    assert done is not None
    assert done.partitions == ("2026/01",)


def test_partitions_that_are_not_there_leave_no_trace(profile: FormatProfile) -> None:
    table = partitions(profile)
    config = resolve({**FULL, "hoodie.clean.partition.filter.selected": "nowhere, .hoodie, ../p"})
    assert clean(table.handle, config, ENGINE) is None
    assert cleans(table) == 0


def test_after_a_clean_of_some_partitions_the_next_looks_at_all_of_its_own(profile: FormatProfile) -> None:
    table = partitions(profile)
    clean(table.handle, ONLY_P, ENGINE)
    last = load_last_clean(table.handle, table.timeline())
    assert last is not None
    assert last.chosen == "p"
    assert clean(table.handle, ONLY_P, ENGINE) is None, "no write came since"
    other = clean(table.handle, matching("q"), ENGINE)
    assert other is not None
    assert (other.partitions, other.files) == (("q",), 2)
    write(table, 9, "p")
    for second in (10, 11):
        write(table, second, "r")
    write(table, 12, "p")
    done = clean(table.handle, KEEP_2, ENGINE)
    assert done is not None
    assert done.partitions == ("p", "q")
    last = load_last_clean(table.handle, table.timeline())
    assert last is not None
    assert not last.chosen


def test_choosing_needs_full_cleans_and_a_regular_expression() -> None:
    table = partitions(V9)
    both = {"hoodie.clean.partition.filter.selected": "p", "hoodie.clean.commits.retained": 2}
    with pytest.raises(Invalid, match="so does incremental cleaning"):
        clean(table.handle, resolve(both), ENGINE)
    with pytest.raises(Invalid, match="no regular expression"):
        clean(table.handle, matching("p("), ENGINE)


def replaced_in_q(profile: FormatProfile) -> HandTable:
    """Commit 3 replaced the group of partition q; p is rewritten by all others."""
    table = HandTable(profile)
    write(table, 1, "p")
    write(table, 2, "q")
    rows = {("q", "new"): [{"id": "n", "part": "q", "qty": 3}]}
    table.commit(at(3), rows, replaces={"q": ("f-q",)}, completed=at(3, 500))
    for second in range(4, 10):
        write(table, second, "p")
    return table


def test_what_was_replaced_in_other_partitions_holds_a_clean_of_some_back(profile: FormatProfile) -> None:
    table = replaced_in_q(profile)
    assert clean(table.handle, ONLY_P, ENGINE) is None, "commit 3 needs the first version of p"
    everything = clean(table.handle, KEEP_2, ENGINE)
    assert everything is not None
    assert everything.earliest == at(8)
    assert base_files(table, "q") == [table.path_of(at(3), "q", "new")]
    write(table, 10, "p")
    some = clean(table.handle, ONLY_P, ENGINE)
    assert some is not None
    assert some.earliest == at(9)


def test_versions_of_some_partitions_are_not_counted_while_others_have_replaced_groups(profile: FormatProfile) -> None:
    table = replaced_in_q(profile)
    only_p = resolve({**BY_VERSIONS, "hoodie.clean.partition.filter.selected": "p"})
    with pytest.raises(Invalid, match="partitions that are not chosen"):
        clean(table.handle, only_p, ENGINE)
    assert clean(table.handle, resolve(BY_VERSIONS), ENGINE) is not None
    write(table, 10, "p")
    done = clean(table.handle, only_p, ENGINE)
    assert done is not None
    assert done.files == 1


def handle_of(lake: Lake) -> TableHandle:
    return load_handle(lake.storage, Awake())


@pytest.mark.parametrize("saved", [False, True])
def test_replaced_rows_do_not_come_back_when_archiving_follows_a_clean_of_other_partitions(
    version: int, *, saved: bool
) -> None:
    lake = Lake(version, BY_HAND)
    lake.upsert(row("a"), row("old", part="q"))
    point = create_savepoint(handle_of(lake), Config(), None).instant if saved else None
    lake.write("insert_overwrite", [row("new", part="q")])
    for turn in range(2, 6):
        lake.upsert(row("a", f"a{turn}", turn))
    if point is not None:
        assert clean(handle_of(lake), KEEP_2, ENGINE) is not None
        delete_savepoint(handle_of(lake), point)
    for turn in range(6, 10):
        lake.upsert(row("a", f"a{turn}", turn))
        clean(handle_of(lake), replace_commits(ONLY_P), ENGINE)
        archive(handle_of(lake), resolve(LIMITS), ENGINE)
        assert lake.values() == {"a": f"a{turn}", "new": "a"}
    lake.upsert(row("a", "end", 10))
    assert clean(handle_of(lake), KEEP_2, ENGINE) is not None
    for turn in range(11, 14):
        lake.upsert(row("a", f"a{turn}", turn))
    assert clean(handle_of(lake), KEEP_2, ENGINE) is not None
    assert archive(handle_of(lake), resolve(LIMITS), ENGINE) is not None
    assert lake.values() == {"a": "a13", "new": "a"}
    assert [path for path in lake.base_files() if path.startswith("q/")] == [
        one.base.path for one in lake.table.files() if one.partition == "q" and one.base is not None
    ]


def replace_commits(config: Config) -> Config:
    """The same with one commit retained."""
    return replace(config, explicit={**config.explicit, "hoodie.clean.commits.retained": "1"})


def test_a_clean_of_some_partitions_that_dies_is_finished_as_what_it_was(profile: FormatProfile) -> None:
    reference = partitions(profile)
    counted = CountingStorage(reference.storage)
    clean(replace(reference.handle, storage=counted), ONLY_P, ENGINE)
    for call in range(1, counted.count + 1, 3):
        table = partitions(profile)
        dying = CountingStorage(table.storage, crash_at=call)
        with pytest.raises(Crash):
            clean(replace(table.handle, storage=dying), ONLY_P, LocalEngine(1))
        clean(table.handle, ONLY_P, ENGINE)
        last = load_last_clean(table.handle, table.timeline())
        assert last is not None, call
        assert last.chosen == "p", call
        assert base_files(table, "p") == base_files(reference, "p"), call
        assert base_files(table, "q") == base_files(reference, "q"), call
        table.storage.forget()
