"""What the instant in a log file's name is: of its slice in version 6, of its write since version 8."""

import pytest

from hoodie.spec import (
    DELTA_COMMIT,
    NAMED_BY_SLICE,
    NAMED_BY_WRITE,
    V6,
    V8,
    V9,
    BaseFileName,
    Instant,
    LogFileName,
    State,
)
from hoodie.spec.markers import MarkerKind

LOG = LogFileName("f", "20", 3, "0-1-2")
CHANGES = LogFileName("f", "30", 1, "0-1-2", ".cdc")
WRITES = [Instant(time, DELTA_COMMIT, State.COMPLETED) for time in ("10", "20", "25", "40")]


def test_each_version_has_its_naming() -> None:
    assert (V6.log_naming, V8.log_naming, V9.log_naming) == (NAMED_BY_SLICE, NAMED_BY_WRITE, NAMED_BY_WRITE)


def test_version_6_puts_the_next_version_beside_the_files_of_a_slice() -> None:
    assert V6.log_naming.instant_and_version("20", "40", [1, 3]) == ("20", 4)
    assert V6.log_naming.instant_and_version("20", "40", []) == ("20", 1)
    assert V6.log_naming.marker is MarkerKind.APPEND


@pytest.mark.parametrize("profile", [V8, V9])
def test_since_version_8_a_write_names_its_own_file(profile) -> None:
    assert profile.log_naming.instant_and_version("20", "40", [1, 3]) == ("40", 1)
    assert profile.log_naming.marker is MarkerKind.CREATE


def test_only_since_version_8_does_a_name_say_who_wrote_a_log_file() -> None:
    assert V6.log_naming.writer_of(LOG) is None
    assert V8.log_naming.writer_of(LOG) == "20"


@pytest.mark.parametrize("profile", [V6, V8, V9])
def test_base_files_and_change_files_are_named_by_their_write_in_every_version(profile) -> None:
    assert profile.log_naming.writer_of(BaseFileName("f", "0-1-2", "20")) == "20"
    assert profile.log_naming.writer_of(CHANGES) == "30"


def test_every_write_since_a_slice_may_have_appended_in_version_6_and_one_write_since_version_8() -> None:
    named = {"20", "30"}
    assert [one.requested for one in V6.log_naming.writers_of(named, WRITES)] == ["20", "25", "40"]
    assert [one.requested for one in V8.log_naming.writers_of(named, WRITES)] == ["20"]


@pytest.mark.parametrize(("profile", "holds"), [(V6, False), (V8, True), (V9, True)])
def test_a_file_of_one_write_finds_its_slice_when_that_completes(profile, holds) -> None:
    assert profile.log_naming.has_one_write_per_file is holds
    assert profile.log_naming.finds_slice_by_completion is holds
