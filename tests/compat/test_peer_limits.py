"""Each entry of peer_limits.py is shown on a table that Hudi itself wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peer_limits import LIMITS, PeerLimit
from peers import Peer, PeerFailed, ancient_rows, as_stored, difference, is_meta, table_options, typed_rows

NO_UPGRADE = {"hoodie.write.auto.upgrade": "false"}


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_the_peer_cannot_do_it_on_hudis_own_table(
    limit: PeerLimit, request: pytest.FixtureRequest, golden: Callable[[str], tuple[Path, Path]], tmp_path: Path
) -> None:
    peer: Peer = request.getfixturevalue(limit.peer)
    if limit.shown_by.startswith("written/"):
        table, recorded = WRITTEN[limit.shown_by](request.getfixturevalue("hudi_12"), tmp_path)
        arguments = {"query": "snapshot"}
    else:
        table, expected = golden(limit.shown_by)
        recorded = pq.read_table(expected / f"{limit.query}.parquet")
        facts = expected / f"{limit.query}.json"
        asked = json.loads(facts.read_text()) if facts.exists() else {"query": "snapshot"}
        arguments = {key: asked[key] for key in ("query", "begin", "end", "as_of") if asked.get(key)}
    try:
        rows = peer.read(table, **arguments)
    except PeerFailed:
        return
    assert difference(rows, recorded, [name for name in rows.column_names if is_meta(name)]) is not None


def _zoneless_timestamps(hudi_12: Peer, folder: Path) -> tuple[Path, pa.Table]:
    rows = typed_rows(range(2, 8))
    hudi_12.write(folder / "table", "insert", rows, table_options(6, "id", "region") | NO_UPGRADE, mode="overwrite")
    return folder / "table", as_stored(rows)


def _ancient_dates(hudi_12: Peer, folder: Path) -> tuple[Path, pa.Table]:
    options = table_options(6, "id", "region") | NO_UPGRADE
    hudi_12.write(folder / "table", "insert", ancient_rows(), options, mode="overwrite")
    return folder / "table", ancient_rows()


WRITTEN: dict[str, Callable[[Peer, Path], tuple[Path, pa.Table]]] = {
    "written/zoneless_timestamps": _zoneless_timestamps,
    "written/ancient_dates": _ancient_dates,
}
