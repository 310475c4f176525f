"""Bad input, bad options, bad tables, bad disks: a typed error that names cause and remedy, and nothing written."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import Corrupt, HudiError, Invalid, Unavailable, Unsupported
from hoodie.spec import V6, V8, V9
from hoodie.table import Table, as_source, write
from hoodie.testing.hand_table import HandTable, at
from hoodie.testing.lake import ROWS, Lake, row, table_of

PARTITIONS = "hoodie.datasource.write.partitionpath.field"
KEY = "hoodie.datasource.write.recordkey.field"
PROPERTIES = ".hoodie/hoodie.properties"
WRITES = ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"]


@contextlib.contextmanager
def refused(lake: Lake, kind: type[HudiError], cause: str, remedy: str = "") -> Iterator[None]:
    """The block fails with `kind`; cause and remedy hold these words; nothing on storage changes, rows can be read."""
    before = lake.files()
    rows = lake.rows() if before else []
    with pytest.raises(kind) as caught:
        yield
    assert type(caught.value) is kind
    assert cause in caught.value.cause
    assert caught.value.remedy
    assert remedy in caught.value.remedy
    assert lake.files() == before
    if before:
        assert lake.rows() == rows


def filled(version: int = 9, **options: Any) -> Lake:
    lake = Lake(version, options)
    lake.upsert(row("a"), row("b", part="q"))
    return lake


# --- tables


def test_no_such_table() -> None:
    lake = Lake()
    with pytest.raises(Invalid, match=f"no table at {lake.uri}.*Check the path"):
        Table.open(lake.uri)
    assert lake.files() == {}


def test_folder_that_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b")
    with pytest.raises(Invalid, match="not a Hudi table.*the folder that holds the folder .hoodie"):
        Table.open(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 3],
        lambda data: data.replace(b"hoodie.table.name=lake", b"hoodie.table.name=pond"),
        lambda data: data.replace(b"hoodie.table.checksum=", b"hoodie.table.checksum=1"),
        lambda data: b"\\u00zz=1\n",
    ],
    ids=["empty", "cut", "other name", "checksum", "text"],
)
def test_damaged_properties(damage: Callable[[bytes], bytes]) -> None:
    lake = filled()
    good = lake.storage.read(PROPERTIES)
    table = lake.table
    lake.storage.put(PROPERTIES, damage(good))
    before = lake.files()
    for act in (lambda: lake.table, lambda: lake.save([row("c")]), lambda: table.upsert(table_of([row("c")]))):
        with pytest.raises(Corrupt, match=r"hoodie\.properties.*copy") as caught:
            act()
        assert caught.value.facts["path"] == PROPERTIES
    with pytest.raises(Corrupt):
        lake.save([row("c")], "overwrite")
    assert lake.files() == before
    lake.storage.put(PROPERTIES, good)
    assert lake.values() == {"a": "a", "b": "a"}


def test_newer_table_version() -> None:
    lake = filled()
    good = lake.storage.read(PROPERTIES)
    lake.storage.put(PROPERTIES, good.replace(b"hoodie.table.version=9", b"hoodie.table.version=10"))
    before = lake.files()
    for act in (lambda: lake.table, lambda: lake.save([row("c")]), lambda: lake.save([row("c")], "overwrite")):
        with pytest.raises(Unsupported, match="version 10"):
            act()
    assert lake.files() == before


def hand(profile: Any, **choices: Any) -> Lake:
    made = HandTable(profile, choices=choices)
    made.commit(at(1), {("p0", "a"): [{"id": "k1", "part": "p0", "qty": 1}]})
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64())])
    options = {"hoodie.table.name": "hand", "hoodie.table.ordering.fields": None}
    lake = Lake(made.profile.table_version, options, uri=made.storage.uri, schema=schema)
    lake.rows = lambda *a, **k: []  # type: ignore[method-assign]
    return lake


@pytest.mark.parametrize("profile", [V6, V8, V9], ids=["v6", "v8", "v9"])
@pytest.mark.parametrize(
    ("choices", "cause"),
    [
        ({"base_file_format": "ORC"}, "has ORC base files"),
        ({"base_file_format": "HFILE"}, "has HFILE base files"),
        ({"cdc_enabled": True, "populate_meta_fields": False}, "logs changes"),
    ],
)
def test_tables_of_kinds_to_come(profile: Any, choices: dict[str, Any], cause: str) -> None:
    lake = hand(profile, **choices)
    new = {"id": "k2", "part": "p0", "qty": 2}
    for operation in (*WRITES, "delete"):
        with refused(lake, Unsupported, cause):
            lake.write(operation, [new])
    with refused(lake, Unsupported, cause):
        lake.table.delete_partition("p0")


METADATA = "hoodie.metadata.enable"


def with_metadata_table(version: int) -> Lake:
    lake = filled(version)
    data = lake.storage.read(PROPERTIES)
    # Only reads that ask for statistics would open it: what lies there is no metadata table.
    more = b"hoodie.table.metadata.partitions=column_stats\nhoodie.table.metadata.partitions.inflight=\n"
    lake.storage.put(PROPERTIES, data + more)
    lake.storage.put(".hoodie/metadata/.hoodie/hoodie.properties", b"x=y")
    lake.storage.put(".hoodie/metadata/files/files-0000-0_0-0-0_1.hfile", b"?")
    lake.storage.put(".hoodie/.index_defs/index.json", b'{"indexDefinitions": {}}')
    return lake


@pytest.mark.own_folder("with storage paths a damaged metadata table is refused, not made anew")
@pytest.mark.parametrize("said", [{}, {METADATA: "true"}], ids=["unsaid", "true"])
def test_metadata_table_is_never_left_stale(version: int, said: dict[str, str]) -> None:
    lake = with_metadata_table(version)
    for operation in (*WRITES, "delete"):
        lake.write(operation, [row("c")], said)  # the first one makes what is no metadata table anew
        assert "files" in lake.table.config.metadata_partitions
        lake.ensure_sound()
    lake.save([row("c")], "overwrite", **said)
    lake.ensure_sound()


@pytest.mark.own_folder("it turns the metadata table off")
def test_metadata_table_is_dropped_when_told_to(version: int) -> None:
    lake = with_metadata_table(version)
    lake.upsert(row("c"), **{METADATA: "false"})
    raw = lake.table.config.raw
    # As Hudi 1.2.0 leaves it: the properties empty, the folder gone, index definitions still there.
    assert raw["hoodie.table.metadata.partitions"] == raw["hoodie.table.metadata.partitions.inflight"] == ""
    assert not lake.table.config.has_metadata_table
    assert [path for path in lake.files() if path.startswith(".hoodie/metadata")] == []
    assert ".hoodie/.index_defs/index.json" in lake.files()
    lake.upsert(row("d"))
    assert sorted(lake.values()) == ["a", "b", "c", "d"]
    lake.ensure_sound()


@pytest.mark.own_folder("the metadata table it begins with is damaged")
def test_metadata_table_survives_bad_rows_as_far_as_they_are_known_before(version: int) -> None:
    lake = with_metadata_table(version)
    with refused(lake, Invalid, "Column `v`"):
        lake.write("upsert", table_of([row("c")]).drop_columns(["v"]), {METADATA: "false"})


# --- rows


@pytest.mark.parametrize("operation", [*WRITES, "delete"])
@pytest.mark.parametrize("bad", [None, ""], ids=["null", "empty"])
def test_null_record_key(version: int, operation: str, bad: str | None) -> None:
    lake = filled(version)
    with refused(lake, Invalid, "1 of 3 rows has a key that is null or empty", "recordkey.field"):
        lake.write(operation, [row("c"), row(bad), row("d")])  # type: ignore[arg-type]


@pytest.mark.parametrize("operation", [*WRITES, "delete"])
@pytest.mark.parametrize(("column", "role"), [("id", "record key"), ("part", "partition"), ("ts", "ordering")])
def test_missing_key_partition_or_ordering_column(version: int, operation: str, column: str, role: str) -> None:
    lake = filled(version)
    rows = table_of([row("c")]).drop_columns([column])
    if (operation, column) == ("delete", "ts"):
        lake.write(operation, rows)
        return
    with refused(lake, Invalid, f"no column '{column}', the {role} column", "Add it to the rows"):
        lake.write(operation, rows)


@pytest.mark.parametrize("column", ["id", "part", "ts"])
def test_missing_column_of_a_first_write_leaves_no_table(version: int, column: str) -> None:
    lake = Lake(version)
    with refused(lake, Invalid, f"'{column}'", "Columns are"):
        lake.save(table_of([row("c")]).drop_columns([column]))


@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize(
    "value", ["../out", "..", "a/../../b", "/etc", "a//b", "a/", ".", "x\x00y", "a\nb", "\x7f", ".hoodie", ".hoodie/x"]
)
def test_partition_values_that_leave_the_base_path(operation: str, value: str) -> None:
    lake = filled()
    with refused(lake, Invalid, "makes the partition path", "Change the value"):
        lake.write(operation, [row("c"), row("d", part=value)])
    with refused(lake, Invalid, "makes the partition path"):
        lake.write("delete", [row("c"), row("d", part=value)])


@pytest.mark.parametrize("named", ["../q", "/", "q/..", ".hoodie", "q/../q"])
def test_partition_deletes_match_partitions_only(named: str) -> None:
    lake = filled()
    kept = set(lake.base_files())
    lake.table.delete_partition(named)
    assert (lake.values(), set(lake.base_files())) == ({"a": "a", "b": "a"}, kept)


def test_no_columns_at_all() -> None:
    with refused(lake := filled(), Invalid, "no columns"):
        lake.write("upsert", pa.table({"_hoodie_record_key": ["a"]}))


@pytest.mark.parametrize("data", ["text", 5, [1, 2], {"a": [1]}, None])
def test_data_of_another_kind(data: Any) -> None:
    lake = filled()
    with refused(lake, Invalid, "", ""):
        lake.table.upsert(data)


# --- options


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("hoodie.table.name", "other"),
        (KEY, "v"),
        (KEY, "id,v"),
        (PARTITIONS, "v"),
        (PARTITIONS, ""),
        ("hoodie.table.ordering.fields", "v"),
        ("hoodie.datasource.write.precombine.field", "v"),
        ("hoodie.datasource.write.hive_style_partitioning", "true"),
        ("hoodie.datasource.write.partitionpath.urlencode", "true"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.populate.meta.fields", "false"),
        ("hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.ComplexKeyGenerator"),
        ("hoodie.datasource.write.keygenerator.type", "NON_PARTITION"),
    ],
)
def test_options_that_contradict_the_table(version: int, option: str, value: str) -> None:
    lake = filled(version)
    given = {**lake.options, option: value}
    if "precombine" in option:
        del given["hoodie.table.ordering.fields"]
    with refused(lake, Invalid, "contradict table lake", "Leave them out"):
        write(as_source(table_of([row("c")])), lake.uri, given, "append")
    table = Table.open(lake.uri)
    with refused(lake, Invalid, "contradict table lake"):
        table.upsert(table_of([row("c")]), **{option: value})


@pytest.mark.parametrize("asked", ["6", "8", "9"])
def test_another_table_version_is_no_upgrade(version: int, asked: str) -> None:
    lake = filled(version)
    if int(asked) == version:
        lake.upsert(row("c"), **{"hoodie.write.table.version": asked})
        return
    with refused(lake, Unsupported, f"has version {version}, the options ask for {asked}", "hoodie upgrade"):
        lake.upsert(row("c"), **{"hoodie.write.table.version": asked})


def test_another_table_type_asked_for() -> None:
    lake = filled()
    with refused(lake, Invalid, "'MERGE_ON_READ' but the table has 'COPY_ON_WRITE'"):
        lake.upsert(row("c"), **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})


def test_unknown_key_names_the_nearest() -> None:
    lake = filled()
    for spelled in ("hoodie.upsert.shufle.parallelism", "hoodie.datasource.write.recordkey.fields"):
        with refused(lake, Invalid, spelled, "ean"):
            lake.upsert(row("c"), **{spelled: "1"})


def test_unknown_operation() -> None:
    lake = filled()
    with refused(lake, Invalid, "upsrt"):
        lake.table.write("upsrt", table_of([row("c")]))
    with refused(lake, Invalid, "upsrt"):
        lake.save([row("c")], **{"hoodie.datasource.write.operation": "upsrt"})


def test_options_of_a_call_win_over_those_of_the_table_however_spelled() -> None:
    lake = filled()
    table = Table.open(lake.uri, options={"hoodie.datasource.write.insert.drop.duplicates": "true"})
    table.insert(table_of([row("a", "twin")]))
    assert lake.values() == {"a": "a", "b": "a"}
    table.insert(table_of([row("a", "twin")]), **{"hoodie.datasource.write.insert.drop.duplicates": "false"})
    assert lake.rows()[:2] == [("a", "a"), ("a", "twin")]


# --- files


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-20], lambda data: b"PAR1" + data[4:-8] + b"\xff" * 8]
)
def test_damaged_base_file_is_named(version: int, damage: Callable[[bytes], bytes]) -> None:
    lake = filled(version)
    (path,) = [one.base.path for one in lake.table.files() if one.base and one.partition == "p"]
    good = lake.storage.read(path)
    lake.storage.put(path, damage(good))
    lake_rows, lake.rows = lake.rows, lambda *a, **k: []  # type: ignore[method-assign]
    for index in ("SIMPLE", "BLOOM"):
        with refused(lake, Corrupt, path):
            lake.upsert(row("a", "a2", 2), **{"hoodie.index.type": index})
    lake.upsert(row("b", "b2", 2, "q"))  # other partitions are well
    lake.storage.put(path, good)
    assert dict(lake_rows()) == {"a": "a", "b": "b2"}


# --- disks


@pytest.mark.parametrize("operation", WRITES)
def test_write_limit_in_the_middle_of_a_file(tmp_path: Path, operation: str) -> None:
    """A real limit of the operating system: the second base file is larger than files may be."""
    lake = Lake(9, {"hoodie.parquet.bloom.filter.enabled": "false"}, uri=str(tmp_path / "table"))
    lake.upsert(row("a"))
    big = table_of([row(f"k{n}", os.urandom(50).hex(), part="big") for n in range(20_000)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with refused(lake, Unavailable, "big/", ""):
            lake.write(operation, big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    lake.write("upsert", big.slice(0, 10))
    assert len(lake.values()) == 11
    lake.ensure_sound()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "disk"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("needs the right to mount")
    try:
        yield mount
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=False)


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_full_disk(small_disk: Path, operation: str) -> None:
    lake = Lake(9, {"hoodie.parquet.bloom.filter.enabled": "false"}, uri=str(small_disk / "table"))
    lake.upsert(row("a"))
    big = table_of([row(f"k{n}", os.urandom(100).hex(), part="big") for n in range(20_000)])
    with refused(lake, Unavailable, "no space is left", "Free space"):
        lake.write(operation, big)
    lake.upsert(row("b"))
    lake.ensure_sound()


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert", "delete"])
def test_folder_that_may_not_be_written(tmp_path: Path, operation: str) -> None:
    lake = Lake(9, uri=str(tmp_path / "table"))
    lake.upsert(row("a"))
    folder = tmp_path / "table" / "p"
    with not_writable(folder), refused(lake, Unavailable, f"{folder}", ""):
        lake.write(operation, [row("a", "a2", 2)])
    lake.upsert(row("b"))
    lake.ensure_sound()


@contextlib.contextmanager
def not_writable(folder: Path) -> Iterator[None]:
    """`folder` refuses new files: by its mode, or (for root, whom modes do not stop) as immutable."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(0o755)
        return
    if subprocess.run(["chattr", "+i", str(folder)], check=False, capture_output=True).returncode:
        pytest.skip("needs a file system with attributes")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(folder)], check=True)


def test_operating_system_refuses_by_errno(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same as seen by the storage, wherever modes and mounts cannot be had."""
    lake = Lake(9, uri=str(tmp_path / "table"))
    lake.upsert(row("a"))
    real = os.write
    for code, words in (
        (errno.ENOSPC, "no space is left"),
        (errno.EDQUOT, "quota"),
        (errno.EACCES, "permission is denied"),
    ):

        def fails(file: int, data: Any, code: int = code) -> int:
            if os.readlink(f"/proc/self/fd/{file}").endswith(".parquet"):
                raise OSError(code, os.strerror(code))
            return real(file, data)

        monkeypatch.setattr(os, "write", fails)
        with refused(lake, Unavailable, words):
            lake.upsert(row("a", "a2", 2))
        with refused(lake, Unavailable, words):
            lake.write("bulk_insert", [row("c")])
        monkeypatch.setattr(os, "write", real)


# --- secrets


SECRET = "s3cr3t-value"
SECRETS = {
    "fs.s3a.secret.key": SECRET,
    "aws_secret_access_key": SECRET,
    "azure_storage_sas_token": SECRET,
    "hoodie.write.lock.zookeeper.password": SECRET,
}


@pytest.mark.own_folder("its secrets open nothing")
def test_secrets_are_in_no_log_error_file_or_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    lake = Lake()
    given = {key: value for key, value in SECRETS.items() if not key.startswith("hoodie.")}
    lake.options = {**lake.options, **given}
    lake.upsert(row("a"))
    table = Table.open(lake.uri, options=given)
    errors = []
    for act in (
        lambda: lake.upsert(row("b"), **{PARTITIONS: "v"}),
        lambda: lake.upsert(row("b"), **{"hoodie.nonsense": SECRET}),
        lambda: lake.upsert(row(None)),  # type: ignore[arg-type]
        lambda: table.upsert(None),
    ):
        with pytest.raises(HudiError) as caught:
            act()
        errors.append(f"{caught.value!s} {caught.value!r} {caught.value.facts}")
    lake.save([row("x")], "overwrite", **{PARTITIONS: "v"})
    texts = [caplog.text, repr(table), str(table), *errors, *(str(data) for data in lake.files().values())]
    assert not [text for text in texts if SECRET in text]


def test_result_of_a_failed_write_is_readable_without_reopening() -> None:
    lake = filled()
    table = lake.table
    with pytest.raises(Invalid):
        table.upsert(table_of([row("")]))
    assert table.scan(columns=["id"]).read_all().num_rows == 2
    table.upsert(table_of([row("c")], ROWS))
    assert table.scan(columns=["id"]).read_all().num_rows == 3
