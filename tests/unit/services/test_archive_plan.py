"""Which instants leave the timeline: the counts, and each thing that keeps an instant there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hoodie.config import resolve
from hoodie.services.archiving.options import ArchiveOptions, parse_archive_options
from hoodie.services.archiving.plan import ArchiveFacts, may_archive, plan_archive
from hoodie.services.cleaning.facts import LastClean
from hoodie.services.cleaning.options import CleanOptions
from hoodie.spec import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    SAVEPOINTS_KEY,
    V6,
    V9,
    CleanMetadata,
    FormatProfile,
    Instant,
    State,
)
from hoodie.testing.hand_table import at
from hoodie.timeline import Timeline

FACTS = ArchiveFacts(datetime(2026, 1, 3, tzinfo=UTC), "UTC", is_merge_on_read=False)
ON_READ = replace(FACTS, is_merge_on_read=True)
FEW = ArchiveOptions(min_commits=4, max_commits=6, clean=CleanOptions(commits=1))
NO_PROMISE = replace(FEW, clean=CleanOptions(policy="KEEP_LATEST_FILE_VERSIONS"))
"""The same where the cleaner keeps no commits, so that pending writes do not raise the counts."""


def done(second: int, action: str = COMMIT) -> Instant:
    return Instant(at(second), action, State.COMPLETED, at(second, 500))


def pending(second: int, action: str = COMMIT, millis: int = 700) -> Instant:
    return Instant(at(second, millis), action, State.INFLIGHT)


def commits(count: int, action: str = COMMIT) -> list[Instant]:
    return [done(second, action) for second in range(1, count + 1)]


def timeline_of(profile: FormatProfile, *instants: Instant) -> Timeline:
    return Timeline(profile, tuple(sorted(instants)))


def going(timeline: Timeline, options: ArchiveOptions = FEW, facts: ArchiveFacts = FACTS) -> list[str]:
    return [one.requested for one in plan_archive(timeline, options, facts).instants]


def times(*seconds: int) -> list[str]:
    return [at(second) for second in seconds]


def cleaned(second: int, earliest: str, savepoints: str = "") -> LastClean:
    extra = {SAVEPOINTS_KEY: savepoints} if savepoints else {}
    return LastClean(done(second, CLEAN), CleanMetadata(at(second), 1, 1, earliest, extra_metadata=extra))


def test_nothing_goes_up_to_the_most_commits_and_then_all_but_the_fewest(profile: FormatProfile) -> None:
    six, seven = timeline_of(profile, *commits(6)), timeline_of(profile, *commits(7))
    assert going(six) == []
    assert not may_archive(six, FEW)
    assert going(seven) == times(1, 2, 3)
    assert may_archive(seven, FEW)


def test_counts_are_raised_above_what_the_cleaner_keeps(profile: FormatProfile) -> None:
    keeps_more = replace(FEW, clean=CleanOptions(commits=5))  # 4 after the earliest, and 2: 6 at least, 8 at most
    assert going(timeline_of(profile, *commits(8)), keeps_more) == []
    assert going(timeline_of(profile, *commits(9)), keeps_more) == times(1, 2, 3)


@pytest.mark.parametrize("action", [COMMIT, COMPACTION, CLUSTERING, DELTA_COMMIT])
def test_the_completed_write_before_a_pending_one_stays(action: str) -> None:
    assert going(timeline_of(V9, *commits(9), pending(3, action)), NO_PROMISE) == times(1, 2)
    assert going(timeline_of(V9, *commits(9), pending(0, action)), NO_PROMISE) == []


def test_pending_cleans_and_rollbacks_keep_nothing(profile: FormatProfile) -> None:
    timeline = timeline_of(profile, *commits(7), pending(1, CLEAN), pending(2, ROLLBACK))
    assert going(timeline) == times(1, 2, 3)


def test_delta_commits_that_count_for_the_next_compaction_stay() -> None:
    deltas = commits(9, DELTA_COMMIT)
    options = replace(FEW, delta_commits=7)
    assert going(timeline_of(V9, *deltas), options, ON_READ) == times(1, 2)
    assert going(timeline_of(V9, *deltas), replace(FEW, delta_commits=20), ON_READ) == []
    assert going(timeline_of(V9, *deltas), replace(FEW, delta_commits=None), ON_READ) == times(1, 2, 3, 4, 5)
    compacted = [done(3) if one.requested == at(3) else one for one in deltas]
    assert going(timeline_of(V9, *compacted), replace(FEW, delta_commits=20), ON_READ) == times(1, 2)
    assert going(timeline_of(V9, *compacted), replace(FEW, delta_commits=2), ON_READ) == times(1, 2, 3, 4, 5)


def test_a_replacing_commit_stays_until_its_files_are_cleaned(profile: FormatProfile) -> None:
    timeline = timeline_of(profile, *commits(2), done(3, REPLACE_COMMIT), *commits(12)[3:])
    assert going(timeline) == times(1, 2)
    assert going(timeline, facts=replace(FACTS, last_clean=cleaned(13, at(3)))) == times(1, 2)
    assert going(timeline, facts=replace(FACTS, last_clean=cleaned(13, at(4)))) == times(1, 2, 3, 4, 5, 6, 7, 8)


def test_a_pending_clustering_keeps_a_commit_before_it() -> None:
    timeline = timeline_of(V9, *commits(12), pending(3, CLUSTERING))
    assert going(timeline, NO_PROMISE) == times(1, 2)


def test_a_savepoint_that_kept_replaced_files_keeps_the_replacing_commit() -> None:
    timeline = timeline_of(V9, *commits(4), done(5, REPLACE_COMMIT), *commits(12)[5:])
    facts = replace(FACTS, last_clean=cleaned(13, at(9), savepoints=at(4)))
    assert going(timeline, facts=facts) == times(1, 2, 3, 4)


def test_so_does_one_that_was_requested_before_the_saved_commit_and_completed_after_it() -> None:
    late = replace(done(3, REPLACE_COMMIT), completed=at(7))
    timeline = timeline_of(V9, *commits(2), late, *commits(12)[3:])
    for earliest in (at(4), at(9), ""):  # empty: it counts versions
        saved = replace(FACTS, last_clean=cleaned(13, earliest, savepoints=at(5)))
        assert going(timeline, facts=saved) == times(1, 2)
        unsaved = replace(FACTS, last_clean=cleaned(13, earliest))
        assert len(going(timeline, facts=unsaved)) > 2


def test_a_clean_by_versions_has_removed_what_was_replaced_before_it() -> None:
    timeline = timeline_of(V9, *commits(2), done(3, REPLACE_COMMIT), *commits(8)[3:], done(7, CLEAN))
    facts = replace(FACTS, last_clean=cleaned(7, ""))
    assert going(timeline, NO_PROMISE, facts) == times(1, 2, 3, 4)


@pytest.mark.parametrize("earliest", ["", at(6)])
def test_a_replacing_commit_that_completed_after_the_clean_was_planned_stays(
    profile: FormatProfile, earliest: str
) -> None:
    late = replace(done(3, REPLACE_COMMIT), completed=at(7, 800))
    timeline = timeline_of(profile, *commits(2), late, *commits(8)[3:], done(7, CLEAN))
    facts = replace(FACTS, last_clean=cleaned(7, earliest))
    assert going(timeline, NO_PROMISE, facts) == times(1, 2)


def test_what_the_metadata_table_has_not_compacted_stays(profile: FormatProfile) -> None:
    timeline = timeline_of(profile, *commits(12))
    never = plan_archive(timeline, FEW, replace(FACTS, compacted=""))
    assert never.instants == ()
    assert "never compacted" in never.notes[0]
    assert going(timeline, facts=replace(FACTS, compacted=at(4, 100))) == times(
        1, 2, 3, *([4] if profile is V6 else [])
    )


def test_a_metadata_table_keeps_what_its_table_has() -> None:
    timeline = timeline_of(V9, *commits(12, DELTA_COMMIT))
    options = replace(FEW, delta_commits=None)
    around = timeline_of(V9, *commits(12)[4:])
    assert going(timeline, options, replace(ON_READ, data_timeline=around)) == times(1, 2, 3, 4)
    unfinished = timeline_of(V9, *commits(12)[4:], pending(2, CLEAN))
    assert going(timeline, options, replace(ON_READ, data_timeline=unfinished)) == times(1, 2)
    only_cleans = timeline_of(V9, done(1, CLEAN), *commits(12)[4:])
    assert going(timeline, options, replace(ON_READ, data_timeline=only_cleans)) == times(1, 2, 3, 4)


def test_a_savepoint_stops_it_unless_it_may_go_beyond(profile: FormatProfile) -> None:
    timeline = timeline_of(profile, *commits(9), done(3, SAVEPOINT))
    assert going(timeline) == times(1, 2)
    assert going(timeline, replace(FEW, beyond_savepoint=True)) == times(1, 2, 4, 5, 6)


def test_what_the_last_clean_kept_stays_where_that_is_asked_for(profile: FormatProfile) -> None:
    timeline = timeline_of(profile, *commits(12))
    facts = replace(FACTS, last_clean=cleaned(13, at(5)))
    assert going(timeline, replace(FEW, block_on_clean=True), facts) == times(1, 2, 3, 4)
    assert going(timeline, FEW, facts) == times(1, 2, 3, 4, 5, 6, 7, 8)


def test_cleans_and_rollbacks_go_with_the_commits_around_them() -> None:
    services = [Instant(at(n, 600), CLEAN, State.COMPLETED, at(n, 700)) for n in range(1, 8)]
    rollback = Instant(at(2, 800), ROLLBACK, State.COMPLETED, at(2, 900))
    saved = [done(1, RESTORE), Instant(at(1, 650), "indexing", State.COMPLETED, at(1, 660))]
    timeline = timeline_of(V9, *commits(7), *services, rollback, *saved)
    assert going(timeline) == [at(1), at(1, 600), at(2), at(2, 600), at(2, 800), at(3)]


def test_in_version_6_cleans_and_rollbacks_are_counted_each_for_itself() -> None:
    cleans = [Instant(at(n, 600), CLEAN, State.COMPLETED, at(n, 700)) for n in range(1, 8)]
    rollbacks = [Instant(at(n, 800), ROLLBACK, State.COMPLETED, at(n, 900)) for n in range(1, 7)]
    timeline = timeline_of(V6, *commits(3), *cleans, *rollbacks)
    assert going(timeline) == [at(1, 600), at(2, 600), at(3, 600)]
    assert may_archive(timeline, FEW)
    assert going(timeline, facts=replace(FACTS, compacted=f"{at(2)}001")) == [at(1, 600)]


def test_notes_say_what_keeps_more_from_going() -> None:
    plan = plan_archive(timeline_of(V9, *commits(9), done(3, SAVEPOINT)), FEW, FACTS)
    assert plan.notes == (f"writes from {at(3)} on stay: it has a savepoint",)


def test_options_come_from_the_keys_of_hudi() -> None:
    assert parse_archive_options(resolve({})) == ArchiveOptions()
    config = resolve(
        {
            "hoodie.keep.min.commits": 3,
            "hoodie.keep.max.commits": 5,
            "hoodie.archive.beyond.savepoint": True,
            "hoodie.archive.merge.enable": True,
            "hoodie.timeline.compaction.batch.size": 4,
        }
    )
    options = parse_archive_options(config)
    assert (options.min_commits, options.max_commits, options.beyond_savepoint) == (3, 5, True)
    assert options.merge is not None
    assert options.history.batch_files == 4
