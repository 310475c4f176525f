"""Each entry of peer_limits.py is shown on a table that Hudi itself wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from peer_limits import LIMITS, PeerLimit
from peers import PeerFailed, difference


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_the_peer_cannot_do_it_on_hudis_own_table(
    limit: PeerLimit, request: pytest.FixtureRequest, golden: Callable[[str], tuple[Path, Path]]
) -> None:
    peer = request.getfixturevalue(limit.peer)
    table, expected = golden(limit.shown_by)
    facts = expected / f"{limit.query}.json"
    asked = json.loads(facts.read_text()) if facts.exists() else {"query": "snapshot"}
    arguments = {key: asked[key] for key in ("begin", "end", "as_of") if asked.get(key)}
    try:
        rows = peer.read(table, asked["query"], **arguments)
    except PeerFailed:
        return
    assert difference(rows, pq.read_table(expected / f"{limit.query}.parquet")) is not None
