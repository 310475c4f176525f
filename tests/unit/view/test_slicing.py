"""Which files belong together and which count: the two slicing rules over names and facts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hoodie.spec import NAMED_BY_SLICE, NAMED_BY_WRITE, BaseFileName, LogFileName
from hoodie.view import SLICING_RULES, BaseFile, FileGroup, LogFile, PartitionFiles

by_base_instant = SLICING_RULES[NAMED_BY_SLICE]
by_completion = SLICING_RULES[NAMED_BY_WRITE]


@dataclass
class Commits:
    """Completed instants with their completion times; what is older than `start` is committed, too."""

    completions: dict[str, str]
    start: str = "0"
    archived: dict[str, str] = field(default_factory=dict)

    def is_committed(self, requested: str) -> bool:
        return requested in self.completions or requested < self.start

    def completion_of(self, requested: str) -> str | None:
        return self.completions.get(requested) or self.archived.get(requested)


def base(instant: str, file_id: str = "f", *, token: str = "0-1-1", size: int = 10) -> BaseFile:
    name = BaseFileName(file_id, token, instant)
    return BaseFile(f"p/{name.text}", name, size)


def log(instant: str, version: int = 1, file_id: str = "f", token: str = "0-1-1") -> LogFile:
    name = LogFileName(file_id, instant, version, token)
    return LogFile(f"p/{name.text}", name, 5)


def files(*found: BaseFile | LogFile) -> PartitionFiles:
    bases = tuple(one for one in found if isinstance(one, BaseFile))
    return PartitionFiles("p", bases, tuple(one for one in found if isinstance(one, LogFile)))


def outline(groups: tuple[FileGroup, ...]) -> dict[str, list[tuple[str, bool, list[str]]]]:
    """File id → slices newest first: base instant, whether there is a base file, `instant.version` of its log files."""
    return {
        group.file_id: [
            (
                part.base_instant,
                part.base is not None,
                [f"{one.name.instant}.{one.name.version}" for one in part.logs],
            )
            for part in group.slices
        ]
        for group in groups
    }


@pytest.mark.parametrize("rule", [by_base_instant, by_completion])
def test_base_files_of_instants_that_are_not_committed_do_not_count(rule):
    commits = Commits({"1": "1c", "3": "3c"})
    groups = rule(files(base("1"), base("2"), base("3"), base("2", "only-failed")), commits, {})
    assert outline(groups) == {"f": [("3", True, []), ("1", True, [])]}


@pytest.mark.parametrize("rule", [by_base_instant, by_completion])
def test_base_files_from_before_the_active_timeline_count(rule):
    groups = rule(files(base("1"), base("5")), Commits({"5": "5c"}, start="4"), {})
    assert outline(groups) == {"f": [("5", True, []), ("1", True, [])]}


@pytest.mark.parametrize("rule", [by_base_instant, by_completion])
def test_of_two_files_of_one_instant_the_one_with_bytes_wins_then_the_greater_name(rule):
    commits = Commits({"1": "1c"})
    empty = files(base("1", token="0-1-1"), base("1", token="0-9-9", size=0))
    assert rule(empty, commits, {})[0].slices[0].base.name.write_token == "0-1-1"
    both = files(base("1", token="0-1-1"), base("1", token="0-9-9"))
    assert rule(both, commits, {})[0].slices[0].base.name.write_token == "0-9-9"


@pytest.mark.parametrize("rule", [by_base_instant, by_completion])
def test_base_file_of_a_pending_compaction_does_not_count_but_its_slice_stands(rule):
    commits = Commits({"1": "1c"})
    groups = rule(files(base("1"), base("3")), commits, {("p", "f"): "3"})
    assert outline(groups) == {"f": [("3", False, []), ("1", True, [])]}
    assert groups[0].pending_compaction == "3"


def test_base_instant_rule_puts_logs_where_their_name_says():
    commits = Commits({"1": "1c", "4": "4c"})
    found = files(base("1"), base("4"), log("4"), log("1", 2), log("1", 1), log("1", 10))
    assert outline(by_base_instant(found, commits, {})) == {
        "f": [("4", True, ["4.1"]), ("1", True, ["1.1", "1.2", "1.10"])]
    }


def test_base_instant_rule_leaves_out_logs_of_a_slice_that_is_not_committed():
    commits = Commits({"1": "1c"})
    assert outline(by_base_instant(files(base("1"), base("2"), log("2")), commits, {})) == {"f": [("1", True, [])]}


def test_completion_rule_puts_a_late_finisher_of_before_a_compaction_into_the_new_slice():
    # Delta commits 20 and 30 were requested before the compaction 40; only 20 completed before it.
    commits = Commits({"10": "15", "20": "25", "30": "55", "40": "60"})
    found = files(base("10"), base("40"), log("20"), log("30"))
    assert outline(by_completion(found, commits, {})) == {"f": [("40", True, ["30.1"]), ("10", True, ["20.1"])]}


def test_completion_rule_compares_times_of_another_length_by_request():
    # Initialising commits have times of another length than what completes them.
    commits = Commits({"0010": "0011", "002": "9"})
    found = files(base("0010"), log("002"))
    assert outline(by_completion(found, commits, {})) == {"f": [("0010", True, ["002.1"])]}


def test_completion_rule_leaves_out_logs_of_delta_commits_that_are_not_completed():
    commits = Commits({"1": "1c", "3": "3c"})
    found = files(base("1"), log("2"), log("3"))
    assert outline(by_completion(found, commits, {})) == {"f": [("1", True, ["3.1"])]}


def test_completion_rule_starts_a_slice_of_logs_only_at_the_first_committed_delta_commit():
    commits = Commits({"2": "2c", "3": "3c"})
    found = files(log("1"), log("2"), log("3"))
    assert outline(by_completion(found, commits, {})) == {"f": [("2", False, ["2.1", "3.1"])]}


def test_completion_rule_attaches_logs_after_a_planned_compaction_to_its_slice():
    commits = Commits({"1": "1c", "2": "2c", "4": "4c"})
    found = files(base("1"), log("2"), log("4"))
    assert outline(by_completion(found, commits, {("p", "f"): "3"})) == {
        "f": [("3", False, ["4.1"]), ("1", True, ["2.1"])]
    }


def test_completion_rule_orders_logs_by_request_then_version_then_token_text():
    commits = Commits({"1": "1c", "2": "2c", "3": "3c"})
    found = files(base("1"), log("3"), log("2", 2), log("2", 1, token="10-1-1"), log("2", 1, token="9-1-1"))
    names = [one.name for one in by_completion(found, commits, {})[0].slices[0].logs]
    assert [(one.instant, one.version, one.write_token) for one in names] == [
        ("2", 1, "10-1-1"),
        ("2", 1, "9-1-1"),
        ("2", 2, "0-1-1"),
        ("3", 1, "0-1-1"),
    ]


def test_completion_rule_takes_the_requested_time_of_archived_delta_commits_nobody_looked_up():
    commits = Commits({"5": "5c"}, start="5")
    found = files(base("1"), base("3"), log("2"), log("4"))
    assert outline(by_completion(found, commits, {})) == {"f": [("3", True, ["4.1"]), ("1", True, ["2.1"])]}
