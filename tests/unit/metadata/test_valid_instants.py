"""Which writes of the metadata table count."""

from hoodie.metadata.valid_instants import valid_instants
from hoodie.spec import COMMIT, DELTA_COMMIT, ROLLBACK, V6, V9, Instant, State
from hoodie.testing.hand_table import at
from hoodie.timeline import Timeline


def done(requested, action=DELTA_COMMIT, completed=None):
    return Instant(requested, action, State.COMPLETED, completed or requested)


def valid(table, metadata, profile=V9):
    return valid_instants(Timeline(profile, tuple(sorted(table))), Timeline(profile, tuple(sorted(metadata))))


def test_write_counts_when_it_is_complete_on_the_table():
    running = Instant(at(3), COMMIT, State.INFLIGHT)
    found = valid([done(at(1), COMMIT), done(at(2), COMMIT), running], [done(at(2)), done(at(3))])
    assert found == {at(1), at(2)}


def test_write_that_is_archived_on_the_table_counts_by_the_metadata_tables_own_timeline():
    assert at(1) in valid([done(at(2), COMMIT)], [done(at(1)), done(at(2))])


def test_initialisations_and_rollbacks_of_the_metadata_table_count():
    first = "00000000000000010"
    own = [done(first), done(f"{at(3)}006", ROLLBACK)]
    assert {first, f"{at(3)}006"} <= valid([done(at(2), COMMIT)], own, V6)


def test_write_after_the_tables_timeline_was_loaded_does_not_count():
    table = [done(at(2), COMMIT, at(2, 500))]
    assert valid(table, [done(at(2)), done(at(3))]) == {at(2)}
    assert at(2, 300) in valid(table, [done(at(2, 300))])


def test_digits_behind_an_instant_are_part_of_its_write():
    assert f"{at(2)}001" in valid([done(at(2), COMMIT)], [done(f"{at(2)}001")], V6)
