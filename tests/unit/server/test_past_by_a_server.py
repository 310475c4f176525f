"""A read of the past by a server that has heard of a clean before the reader asks, and forgives him that he has not: it
gives the rows from before the clean, or what a read after it gives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie.errors import HudiError
from hoodie.remote.remote_view import RemoteView
from hoodie.server import Service
from hoodie.table import Table
from hoodie.testing.lake import Lake, logged_lake, row
from hoodie.testing.running_server import running_server

pytestmark = [pytest.mark.deep, pytest.mark.sampled(3)]

CLEAN = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
OPTIONS = {
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "false",
}


def outcome(table: Table, query: dict[str, Any]) -> object:
    try:
        found = table.scan(columns=["id", "v"], **query).read_all().to_pylist()
    except HudiError as error:
        return str(error)
    return sorted((one["id"], one["v"]) for one in found)


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("is_logged", [False, True], ids=["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("asked", ["as_of", "incremental"])
def test_a_clean_that_the_server_knows_takes_no_rows_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, is_logged: bool, asked: str
) -> None:
    lake = logged_lake(version, **OPTIONS) if is_logged else Lake(version, OPTIONS)
    lake.uri = str(tmp_path / "t")
    commits = []
    for seq, value in enumerate("abc", 1):
        commits.append(lake.upsert(row("1", value, seq), *([row("2", value)] if seq == 1 else [])))
        if is_logged and seq > 1:
            lake.table.services.compact()
    first, second = commits[0].instant, commits[1].instant
    query = {"as_of": first} if asked == "as_of" else {"begin": first, "end": second}

    with running_server(Service([lake.uri])) as port:

        def table() -> Table:
            return Table.open(lake.uri, server=f"127.0.0.1:{port}")

        before, cleaned, ask = outcome(table(), query), [], RemoteView._ask_files

        def asked_late(self: RemoteView, *args: Any, **more: Any) -> Any:
            if not cleaned:
                cleaned.append(lake.table.services.clean(**CLEAN).files)
                table().scan().read_all()  # the server is past the clean
            return ask(self, *args, **more)

        monkeypatch.setattr(RemoteView, "_ask_files", asked_late)
        raced = outcome(table(), query)
        assert cleaned[0]
        assert raced in (before, outcome(table(), query))
        assert before != outcome(table(), query)
