"""How a metadata table times its own actions: behind those of its table in version 6, by themselves since version 8."""

from itertools import islice

import pytest

from hoodie.spec import COMMIT, V6, V8, V9, Instant, State

DONE = [Instant(time, COMMIT, State.COMPLETED, time) for time in ("20260101000000001", "20260101000000005")]
PENDING = [Instant("20260101000000003", COMMIT, State.INFLIGHT)]
SINCE_8 = pytest.mark.parametrize("profile", [V8, V9], ids=["v8", "v9"])


def test_in_version_6_actions_sort_right_behind_those_of_the_table() -> None:
    instants = V6.metadata_instants
    assert list(islice(instants.initialisations(DONE), 2)) == ["20260101000000005010", "20260101000000005011"]
    assert instants.compaction("20260101000000005") == "20260101000000005001"
    assert instants.clean("20260101000000005001") == "20260101000000005002"
    assert instants.rollback("20260101000000006") == "20260101000000006006"


def test_a_new_table_of_version_6_begins_with_zeros() -> None:
    assert next(V6.metadata_instants.initialisations(())) == "00000000000000010"


def test_in_version_6_nothing_is_begun_while_an_action_of_the_table_is_pending() -> None:
    assert V6.metadata_instants.has_to_wait(PENDING)
    assert not V6.metadata_instants.has_to_wait(())


@SINCE_8
def test_since_version_8_partitions_begin_before_everything_and_other_actions_have_times_like_any(profile) -> None:
    instants = profile.metadata_instants
    assert list(islice(instants.initialisations(DONE), 2)) == ["00000000000000000", "00000000000000001"]
    assert instants.compaction("20260101000000005") is None
    assert instants.clean("20260101000000005") is None
    assert instants.rollback("20260101000000006") == "20260101000000006"
    assert not instants.has_to_wait(PENDING)
