"""The harness itself: the peers read Hudi's own golden tables and give the rows that were recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peers import Peer, PeerFailed, difference, ensure_same_rows, without_meta

Golden = Callable[..., tuple[Path, Path]]


@pytest.mark.parametrize("name", ["cow_part", "cow_all_types", "cow_delete_partition"])
def test_hudi_12_gives_the_recorded_rows_of_its_golden_tables(name: str, hudi_12: Peer, golden: Golden) -> None:
    table, expected = golden(f"1.2.0/{name}")
    ensure_same_rows(hudi_12.read(table), pq.read_table(expected / "snapshot.parquet"), called=("read", "recorded"))
    for query in sorted(expected.glob("*_[0-9].json")):
        facts = json.loads(query.read_text())
        if query.with_suffix(".parquet").exists() and facts["query"] in {"incremental", "time_travel"}:
            asked = {key: facts[key] for key in ("begin", "end", "as_of") if facts.get(key)}
            got = hudi_12.read(table, facts["query"], **asked)
            ensure_same_rows(got, pq.read_table(query.with_suffix(".parquet")), called=("read", "recorded"))


@pytest.mark.parametrize("name", ["cow_part", "cow_all_types"])
def test_hudi_015_gives_the_recorded_rows_of_its_golden_tables(name: str, hudi_015: Peer, golden: Golden) -> None:
    table, expected = golden(f"0.15.0/{name}")
    ensure_same_rows(hudi_015.read(table), pq.read_table(expected / "snapshot.parquet"), called=("read", "recorded"))


@pytest.mark.parametrize("name", ["1.2.0/cow_part", "0.15.0/cow_part"])
def test_hudi_rs_gives_the_recorded_rows_of_golden_tables(name: str, hudi_rs: Peer, golden: Golden) -> None:
    table, expected = golden(name)
    ensure_same_rows(hudi_rs.read(table), pq.read_table(expected / "snapshot.parquet"), called=("read", "recorded"))


def test_a_peer_continues_a_golden_table_without_upgrading_it(hudi_12: Peer, hudi_015: Peer, golden: Golden) -> None:
    table, expected = golden("0.15.0/cow_part")
    rows = without_meta(pq.read_table(expected / "snapshot.parquet"))
    answer = hudi_12.write(table, "upsert", rows.slice(0, 5))
    assert answer["table_version"] == "6"
    ensure_same_rows(hudi_12.read(table), hudi_015.read(table), called=("1.2.0", "0.15.0"))


def test_an_error_of_a_peer_arrives_with_its_causes_and_the_peer_goes_on(hudi_12: Peer, tmp_path: Path) -> None:
    with pytest.raises(PeerFailed) as raised:
        hudi_12.read(tmp_path / "nothing")
    assert "Hudi 1.2.0 could not read" in str(raised.value)
    assert hudi_12.ask("ping")["version"] == "1.2.0"


def test_rows_differ_by_type_count_column_and_value() -> None:
    rows = pa.table({"a": [1, 2], "b": [float("nan"), None]})
    assert difference(rows, rows.take([1, 0])) is None
    assert difference(rows, rows.slice(1)) is not None
    assert difference(rows, pa.table({"a": [1.0, 2.0], "b": [float("nan"), None]})) is not None
    assert "only in right: ['c']" in str(difference(rows, rows.append_column("c", pa.array([0, 0]))))
