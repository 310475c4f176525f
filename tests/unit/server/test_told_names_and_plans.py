"""Who asks with the hash of a timeline that did not change is not answered from a view whose log files have other names
by now, or whose plans were rewritten at their instants.
"""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest

from hoodie.engine import LocalEngine
from hoodie.remote.known_timeline import NAMES, told
from hoodie.server.routes import VIEW
from hoodie.server.service import UNTOLD_S, Service
from hoodie.services.compaction.admin import unschedule_compaction
from hoodie.spec import COMPACTION, Instant, State
from hoodie.state.handle import timeline_of
from hoodie.testing.env import FakeEnv
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.timeline import instant_path

OFF = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}


class Asked:
    """A service with a clock of its own, as clients ask it."""

    def __init__(self, lake: Lake) -> None:
        self.env = FakeEnv()
        self.lake = lake
        self.service = Service([lake.uri], env=self.env)

    def slices(self, service: Service | None = None, **about: str) -> object:
        parameters = {"basepath": self.lake.uri, "partition": "p", **about}
        answer = (service or self.service).answer("GET", f"{VIEW}slices/all", parameters)
        return orjson.loads(answer.body) if answer.status == 200 else (answer.status, answer.body.decode())

    def told(self) -> dict[str, str]:
        handle = self.lake.handle()
        return told(timeline_of(handle), handle.config)

    def untold(self) -> dict[str, str]:
        return told(timeline_of(self.lake.handle()))

    def fresh(self, **about: str) -> object:
        return self.slices(Service([self.lake.uri]), **about)


def compacted(version: int) -> Lake:
    lake = logged_lake(version, **OFF)
    lake.upsert(row("a"), row("b"))
    lake.upsert(row("a", "log", 2))
    lake.table.services.compact()
    lake.write("insert_overwrite", [row("c", part="q")])
    return lake


@pytest.mark.parametrize(("version", "to"), [(6, 9), (6, 8), (8, 6), (9, 6)])
def test_after_a_change_of_version_files_are_told_by_their_new_names(version: int, to: int) -> None:
    lake = compacted(version)
    asked = Asked(lake)
    before, known = asked.slices(**asked.told()), asked.told()
    lake.table.services.upgrade(to)
    assert asked.untold() == {name: value for name, value in known.items() if name in asked.untold()}  # the same hash
    now = asked.slices(**asked.told())
    assert now == asked.fresh(**asked.told())
    assert (now != before) == (to == 6)  # else the names are told by the version that wrote them
    stale = asked.slices(**known)
    assert stale[0] == 400
    assert "other names" in stale[1]


@pytest.mark.parametrize(("version", "to"), [(6, 9), (9, 6)])
def test_who_does_not_tell_by_what_names_it_goes_is_answered_by_a_look_once_in_a_second(version: int, to: int) -> None:
    lake = compacted(version)
    asked = Asked(lake)
    before = asked.slices(**asked.untold())
    lake.table.services.upgrade(to)
    asked.env.advance(timedelta(seconds=UNTOLD_S + 0.1))
    now = asked.slices(**asked.untold())
    assert now == asked.fresh(**asked.untold())
    assert (now != before) == (to == 6)
    counts = asked.service.tally.read()
    for _ in range(5):
        asked.slices(**asked.untold())
    assert asked.service.tally.read() == counts


def planned(version: int) -> tuple[Lake, str]:
    lake = logged_lake(version, **OFF)
    lake.upsert(row("a"), row("b", part="q"))
    lake.upsert(row("a", "log", 2), row("b", "log", 2, part="q"))
    plan = lake.table.services.schedule_compaction()
    assert plan is not None
    return lake, plan.requested


def test_a_plan_that_lost_a_file_group_is_followed(version: int) -> None:
    lake, plan = planned(version)
    asked = Asked(lake)
    before = asked.slices(**asked.told())
    (group,) = (one.group_id for one in lake.table.files() if one.partition == "p")
    unschedule_compaction(lake.handle(), LocalEngine(1), plan, group)
    assert asked.slices(**asked.told()) == asked.fresh(**asked.told()) != before


def test_log_files_on_top_of_a_plan_that_was_rewritten_are_shown_once_it_is_put_back() -> None:
    lake, plan = planned(6)
    path = instant_path(lake.handle().profile, Instant(plan, COMPACTION, State.REQUESTED))
    whole = lake.storage.read(path)
    (group,) = (one.group_id for one in lake.table.files() if one.partition == "p")
    unschedule_compaction(lake.handle(), LocalEngine(1), plan, group)
    without = lake.storage.read(path)
    lake.storage.put(path, whole)
    lake.upsert(row("a", "on top", 3))
    lake.storage.put(path, without)
    asked = Asked(lake)
    before = asked.slices(**asked.told())
    lake.storage.put(path, whole)
    assert asked.slices(**asked.told()) == asked.fresh(**asked.told()) != before


def test_an_answer_that_is_given_again_is_one_for_who_tells_the_same() -> None:
    lake = compacted(9)
    asked = Asked(lake)
    asked.slices(**asked.told())
    path, parameters = f"{VIEW}slices/partition/latest/", {"basepath": lake.uri, "partition": "p", **asked.told()}
    at_once = asked.service.answer_at_once(path, parameters)
    assert at_once is not None
    assert at_once.is_still is not None
    assert at_once.is_still()
    assert asked.service.answer_at_once(path, {**parameters, NAMES: "6"}) is None
    untold = {name: value for name, value in parameters.items() if name not in asked.told() or name in asked.untold()}
    found = asked.service.answer_at_once(path, untold)
    assert found is not None
    assert found.is_still is not None
    asked.env.advance(timedelta(seconds=UNTOLD_S + 0.1))
    assert at_once.is_still()
    assert not found.is_still()
    assert asked.service.answer_at_once(path, untold) is None
