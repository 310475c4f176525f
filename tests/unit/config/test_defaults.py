"""`hudi-defaults.conf`: what of it holds, beneath what, and whose fault an option of it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie import Table
from hoodie.config.defaults import FOLDER_VARIABLE, load_defaults, options_among, over
from hoodie.errors import Invalid, Unsupported
from hoodie.given_options import resolve_given
from hoodie.testing.lake import Lake, row

PRECOMBINE, ORDERING = "hoodie.datasource.write.precombine.field", "hoodie.table.ordering.fields"


def folder(place: Path, text: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / "hudi-defaults.conf").write_text(text, encoding="utf-8")
    return place


def test_lines_are_read_as_hudi_reads_them(tmp_path: Path) -> None:
    text = """# Default system properties

hoodie.datasource.write.table.type      MERGE_ON_READ
hoodie.keep.min.commits = 7
hoodie.keep.max.commits=\t9
nothing
include=more.properties
"""
    (tmp_path / "more.properties").write_text("hoodie.table.name=t\n", encoding="utf-8")
    found = load_defaults({FOLDER_VARIABLE: str(folder(tmp_path, text))}, "/nowhere")
    assert found.options == {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.keep.min.commits": "7",
        "hoodie.keep.max.commits": "9",
        "hoodie.table.name": "t",
    }
    assert found.files == (str(tmp_path / "hudi-defaults.conf"),)


def test_the_named_folder_goes_before_the_usual_one_which_may_lack(tmp_path: Path) -> None:
    usual = folder(tmp_path / "etc", f"{PRECOMBINE}=a\nhoodie.table.name=usual\n")
    own = folder(tmp_path / "own", f"{ORDERING}=b\n")
    assert load_defaults({}, str(tmp_path / "nowhere")).options == {}
    assert load_defaults({}, str(usual)).options == {PRECOMBINE: "a", "hoodie.table.name": "usual"}
    both = load_defaults({FOLDER_VARIABLE: f"file://{own}"}, str(usual))
    assert both.options == {ORDERING: "b", "hoodie.table.name": "usual"}
    assert load_defaults({FOLDER_VARIABLE: str(usual)}, str(usual)).options["hoodie.table.name"] == "usual"


def test_what_is_no_option_is_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = folder(tmp_path, "className org.apache.hudi\nhoodie.table.name t\nspark.hoodie.keep.min.commits 3\n")
    with caplog.at_level("WARNING", logger="hoodie"):
        found = load_defaults({FOLDER_VARIABLE: str(place)}, "/nowhere")
    assert found.options == {"hoodie.table.name": "t", "hoodie.keep.min.commits": "3"}
    assert "className" in caplog.text


@pytest.mark.parametrize(
    ("prepare", "error", "said"),
    [
        (str, Invalid, "cannot be read: No such file"),
        (lambda place: "s3://bucket/conf", Unsupported, "no local folder"),
        (lambda place: str(folder(place, "include=hudi-defaults.conf\n")), Invalid, "includes itself"),
        (lambda place: str(folder(place, "include=missing\n")), Invalid, "missing cannot be read"),
    ],
)
def test_a_folder_that_cannot_be_followed_is_an_error(tmp_path: Path, prepare, error, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=said):
        load_defaults({FOLDER_VARIABLE: prepare(tmp_path)}, "/nowhere")


def test_options_of_the_call_go_before_those_of_the_table_and_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{PRECOMBINE}=machine\nhoodie.keep.min.commits=7\nhoodie.metrics.on=true\n"
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder(tmp_path, text)))
    off = {"hoodie.metrics.on": "false"}
    assert resolve_given(off).list(ORDERING) == ("machine",)
    assert resolve_given({}, {ORDERING: "table", **off}).list(ORDERING) == ("table",)
    config = resolve_given({PRECOMBINE: "call", **off}, {ORDERING: "table"})
    assert config.list(ORDERING) == ("call",)
    assert config.integer("hoodie.keep.min.commits") == 7


def test_one_rule_holds_for_options_wherever_they_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder(tmp_path, "hoodie.metrics.on=true\nhoodie.keep.min.commits=7\n")
    monkeypatch.setenv(FOLDER_VARIABLE, str(place))
    with pytest.raises(Unsupported, match=r"hoodie\.metrics\.on=true .as .*hudi-defaults\.conf would have it"):
        resolve_given({})
    assert resolve_given({}, purpose="read").integer("hoodie.keep.min.commits") == 7
    with pytest.raises(Unsupported) as caught:  # the caller's own fault names no file
        resolve_given({"hoodie.prewrite.validators": "x", "hoodie.metrics.on": "false"})
    assert "hudi-defaults" not in str(caught.value)
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder(tmp_path / "b", "hoodie.tabel.name=t\n")))
    with pytest.raises(Invalid, match=r"Unknown option hoodie\.tabel\.name .as "):
        resolve_given({})


def test_tables_are_made_written_and_read_with_the_options_of_the_machine(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "hoodie.datasource.write.table.type"
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder(tmp_path, f"{kind}=MERGE_ON_READ\nhoodie.metadata.enable=false\n")))
    lake = Lake(version)
    lake.upsert(row("a"))
    assert lake.table.config.is_merge_on_read
    assert lake.table.config.metadata_partitions == ()
    other = Lake(version, {kind: "COPY_ON_WRITE"})
    other.upsert(row("a"))
    assert not other.table.config.is_merge_on_read
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder(tmp_path / "late", "as.of.instant=20000101000000\n")))
    assert Table.open(lake.uri).scan().read_all().num_rows == 0


def test_two_spellings_are_one_setting_and_members_of_a_family_are_many() -> None:
    assert over({PRECOMBINE: "a"}, {ORDERING: "b", "hoodie.table.name": "t"}) == {
        PRECOMBINE: "a",
        "hoodie.table.name": "t",
    }
    glue = "hoodie.meta.sync.glue."
    assert over({glue + "a": "1"}, {glue + "b": "2"}) == {glue + "a": "1", glue + "b": "2"}
    assert over({"hoodie.table.name": None}, {"hoodie.table.name": "t"})["hoodie.table.name"] is None


def test_settings_of_spark_lose_its_prefix_and_give_way_to_the_plain_ones() -> None:
    assert options_among({"hoodie.a": "1", "spark.hoodie.a": "2", "spark.hoodie.b": "3", "spark.app.name": "x"}) == {
        "hoodie.a": "1",
        "hoodie.b": "3",
    }
