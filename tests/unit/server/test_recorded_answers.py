"""The service answers each request about golden tables as the real timeline server did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie.server.routes import ROUTES, VIEW
from hoodie.server.service import Service
from hoodie.testing.golden import GoldenTable
from hoodie.testing.recorded_answers import comparable, load_recorded, recorded_names

GOLDEN = Path(__file__).parents[2] / "golden"
FOLDER = GOLDEN / "timeline_server"


@pytest.mark.parametrize("name", recorded_names(FOLDER))
def test_answers_are_those_of_the_real_server(name: str, tmp_path: Path) -> None:
    base = str(GoldenTable(GOLDEN / "tables" / name).unpack(tmp_path))
    service = Service([str(tmp_path)])
    compared = 0
    for one in load_recorded(FOLDER, name):
        answer = service.answer("GET", VIEW + one.path, {**one.parameters, "basepath": base, "refreshoff": "true"})
        assert answer.status == 200, answer.body
        if one.is_comparable:
            found = json.loads(answer.body.decode().replace(base, "{base}"))
            assert comparable(found) == comparable(one.answer), (one.path, one.parameters)
            compared += 1
    assert compared > 50


def test_every_route_is_compared() -> None:
    asked = {
        one.path.rstrip("/")
        for name in recorded_names(FOLDER)
        for one in load_recorded(FOLDER, name)
        if one.is_comparable
    }
    assert asked == set(ROUTES)
