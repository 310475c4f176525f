"""`hoodie config` explains keys."""

from __future__ import annotations

import json

import pytest

from hoodie.cli import main
from hoodie.config import all_keys, differences_markdown, reference_markdown


def _shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["config", *arguments]) == 0
    return capsys.readouterr().out


def test_a_key_is_explained_with_default_difference_and_other_names(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys, "hoodie.parquet.compression.codec")
    assert "zstd" in shown
    assert "gzip" in shown
    assert "ten times slower" in shown
    assert "implemented" in shown


def test_an_older_name_says_what_it_stands_for(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys, "hoodie.datasource.write.precombine.field")
    assert "stands for" in shown
    assert "hoodie.table.ordering.fields" in shown


def test_a_key_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(_shown(capsys, "hoodie.index.type", "--json"))
    assert found["key"] == "hoodie.index.type"
    assert found["default"] == "SIMPLE"
    assert found["kind"] == "implemented"
    assert "FLINK_STATE" in found["later"]


def test_a_part_of_a_key_lists_all_that_contain_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys, "bloom.fpp")
    assert shown.splitlines()[0] == "hoodie.index.bloom.fpp = 0.000000001"


def test_all_keys_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(json.loads(_shown(capsys, "--json"))) == len(all_keys())


def test_the_reference_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert _shown(capsys, "--markdown") == reference_markdown()
    assert _shown(capsys, "--differences") == differences_markdown()


def test_an_unknown_key_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "hoodie.tabel.name"]) == 2
    assert capsys.readouterr().err == "Invalid: Unknown option hoodie.tabel.name\n  Did you mean hoodie.table.name?\n"
