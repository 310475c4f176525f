"""What a client says about its timeline is what Hudi's client says: hashes that the real server accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie.remote.known_timeline import hash_of, told, told_instants
from hoodie.spec import V9, Instant, State
from hoodie.state.handle import open_handle, timeline_of
from hoodie.testing.golden import GoldenTable
from hoodie.timeline import Timeline

TABLES = Path(__file__).parents[2] / "golden" / "tables"
ACCEPTED = [
    ("1.2.0/cow_part", "8acf70cc3cf53211eb2d097d07617d553885eaa36efe00b31e5f2e651b985ffa"),
    ("1.2.0/mor_compaction_pending", "79bdfb7997f56155fdbe53c0b520b7eb5aed1da5dd15cc919a97dbf79b044538"),
    ("0.15.0/mor_part", "a6ba1e4340e748b37f1e876caa798d42d351e95ac8b5c9496b98acbd57f03a82"),
]


@pytest.mark.parametrize(("name", "accepted"), ACCEPTED)
def test_hashes_are_those_that_the_real_server_accepted(name: str, accepted: str, tmp_path: Path) -> None:
    timeline = timeline_of(open_handle(str(GoldenTable(TABLES / name).unpack(tmp_path)), {}))
    assert told(timeline)["timelinehash"] == accepted
    assert told(timeline)["lastinstantts"] == told_instants(timeline)[-1].requested


def test_an_empty_timeline_has_the_hash_of_nothing_and_no_last_instant() -> None:
    assert told(Timeline(V9, ())) == {"timelinehash": hash_of(())}
    assert hash_of(()) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_pending_compactions_are_told_and_other_pending_instants_are_not() -> None:
    instants = tuple(
        Instant(f"2026010100000000{place}", action, state)
        for place, (action, state) in enumerate(
            [
                ("commit", State.COMPLETED),
                ("compaction", State.INFLIGHT),
                ("logcompaction", State.REQUESTED),
                ("clustering", State.REQUESTED),
                ("deltacommit", State.INFLIGHT),
                ("clean", State.COMPLETED),
            ]
        )
    )
    assert [one.action for one in told_instants(Timeline(V9, instants))] == ["commit", "compaction", "clean"]
