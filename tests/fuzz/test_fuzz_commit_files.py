"""Damaged properties, commits, plans, markers and names: a typed error that names the file, or a right answer.

Files that Hudi wrote get their bytes damaged. Beyond that the values behind the bytes are exchanged for others, of
types nobody expects and with paths that lead out of the table: damage of bytes seldom leaves a container with those.

`HOODIE_FUZZ_SECONDS=n` makes each test run that long.
"""

from __future__ import annotations

import io
import json
import random
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import fastavro
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hoodie.errors import Corrupt, HudiError, Invalid, Unsupported
from hoodie.metadata.index_definitions import parse_index_definitions
from hoodie.metadata.keys import parse_secondary_key, secondary_key
from hoodie.spec import (
    V6,
    V9,
    CommitMetadata,
    Marker,
    RequestedReplace,
    RollbackMetadata,
    RollbackPlan,
    encode_container,
    encode_properties_text,
    encode_requested_replace,
    encode_rollback_metadata,
    encode_rollback_plan,
    parse_base_file_name,
    parse_commit,
    parse_compaction_plan,
    parse_container,
    parse_earliest_retained,
    parse_log_file_name,
    parse_marker_list,
    parse_partition_metafile,
    parse_properties_text,
    parse_requested_replace,
    parse_rollback_metadata,
    parse_rollback_plan,
    parse_table_config,
    parse_write_token,
    profile_of,
)
from hoodie.spec.avro_container import MAGIC, MAX_INFLATED_BYTES, encode_long
from hoodie.spec.bootstrap_index import parse_bootstrap_partition
from hoodie.spec.schema_history import parse_schema_history
from hoodie.spec.typed_values import is_plain_path
from hoodie.testing.fuzzing import damaged_bytes, fuzz_seeds

PATH = ".hoodie/timeline/a-file"
TABLES = Path(__file__).parents[1] / "golden" / "tables"
SAMPLE = 150
LONGEST_SECONDS = 20.0

Answer = TypeVar("Answer")
Parse = Callable[[bytes, str], Any]

PARSERS: dict[str, Parse] = {
    "commit": parse_commit,
    "replace": parse_requested_replace,
    "compaction": parse_compaction_plan,
    "rollback_plan": parse_rollback_plan,
    "rollback": parse_rollback_metadata,
    "clean": parse_earliest_retained,
    "properties": parse_table_config,
    "metafile": parse_partition_metafile,
    "markers": parse_marker_list,
    "index": parse_index_definitions,
    "bootstrap": parse_bootstrap_partition,
}
AVRO = ("commit", "replace", "compaction", "rollback_plan", "rollback", "clean", "bootstrap")


def kind_of(name: str) -> str | None:
    """Which parser reads a file of a table, by its path below the table."""
    endings = {
        ".requested": "replace" if ".replacecommit" in name or ".clustering" in name else None,
        ".compaction.requested": "compaction",
        ".rollback.requested": "rollback_plan",
        ".rollback": "rollback",
        ".clean": "clean",
        "commit": "commit",
        "commit.inflight": "commit",
        "hoodie.properties": "properties",
        ".hoodie_partition_metadata": "metafile",
        "index.json": "index",
    }
    found = [kind for ending, kind in endings.items() if name.endswith(ending) and kind is not None]
    return found[-1] if found and "/metadata/" not in name and not name.endswith(".crc") else None


@cache
def real_files() -> dict[str, list[bytes]]:
    """Files that Hudi wrote, by the parser that reads them."""
    tables = (
        *("0.15.0/cow_clustering_pending", "0.15.0/mor_compaction_pending", "0.15.0/cow_failed_rolled_back"),
        *("0.15.0/cow_cleaned", "0.15.0/mor_part", "1.2.0/cow_insert_overwrite", "1.2.0/mor_compaction_pending"),
        *("1.2.0/cow_failed_rolled_back", "1.2.0/cow_cleaned", "1.2.0/cow_clustering_pending", "1.2.0/mor_part"),
        *("1.2.0/cow_secondary_index", "1.2.0/cow_cdc_data_before_after"),
    )
    found: dict[str, list[bytes]] = {kind: [] for kind in PARSERS}
    for table in tables:
        with tarfile.open(TABLES / table / "table.tar.gz") as tar:
            for member in tar:
                kind = kind_of(member.name) if member.isfile() and member.size else None
                file = tar.extractfile(member) if kind is not None else None
                if kind is not None and file is not None:
                    found[kind].append(file.read())
    found["markers"] = [b"p/f-0_0-1-2_20261121052208873.parquet.marker.CREATE\n" * 3 + b"x.log.marker.APPEND\n"]
    status = {"path": {"uri": "file:/source/p=1/x.parquet"}}
    sources = {"f-0": status, "f-1": status}
    record = {"bootstrapPath": "/s", "bootstrapPartitionPath": "p=1", "partitionPath": "p", "x": sources}
    record["fileIdToBootstrapFile"] = record.pop("x")
    found["bootstrap"] = [container(record)]
    return found


def container(record: dict[str, Any], codec: str = "null") -> bytes:
    """A container with a schema guessed from the values."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, guessed(record, iter(range(1 << 20))), [record], codec=codec)
    return buffer.getvalue()


def guessed(value: Any, numbers: Iterator[int]) -> Any:
    """An Avro type for a value. Every record has a name of its own."""
    match value:
        case dict():
            fields = [{"name": f"{name}", "type": guessed(one, numbers)} for name, one in value.items()]
            return {"type": "record", "name": f"r{next(numbers)}", "fields": fields}
        case list():
            return {"type": "array", "items": guessed(value[0], numbers) if value else "string"}
        case None:
            return ["null", "string"]
        case bool():
            return "boolean"
        case int():
            return "long"
        case float():
            return "double"
        case bytes():
            return "bytes"
        case _:
            return "string"


ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, "", "x", "../x", "/etc/passwd", "a//b", "a\0b", ".", "a/..", b"x", [], ["x"], [1], {}),
    *({"x": 1}, [{"x": "y"}], 2**63 - 1, "9" * 5000, "🙂"),
)


def exchanged(value: Any, chance: random.Random) -> Any:
    """The value with one part of it, or itself, exchanged for something odd; parts may also go, or get the odd name."""
    inside = isinstance(value, dict | list) and len(value) > 0 and chance.random() < 0.85
    if not inside:
        return chance.choice(ODD)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        return [*value[:at], exchanged(value[at], chance), *value[at + 1 :]]
    name = chance.choice(sorted(value))
    rest = {other: one for other, one in value.items() if other != name}
    match chance.randrange(8):
        case 0:
            return rest
        case 1:
            return rest | {chance.choice([one for one in ODD if isinstance(one, str)]): value[name]}
        case _:
            return value | {name: exchanged(value[name], chance)}


def answer_of(work: Callable[..., Answer], *arguments: Any, path: str = PATH) -> Answer | None:
    """What `work` gives; None when it raised an error that names the file. In bounded time."""
    start = time.monotonic()
    try:
        return work(*arguments)
    except (Corrupt, Unsupported) as error:
        assert error.facts.get("path") == path, error
        assert isinstance(error.facts.get("offset"), int | None)
        return None
    finally:
        assert time.monotonic() - start < LONGEST_SECONDS


def ensure_sound(found: object) -> None:
    """What a parser gave has the types it claims and no path that leaves the table."""
    match found:
        case CommitMetadata():
            paths = [stat.path for _, stat in found.write_stats() if stat.path]
            paths += [name for _, stat in found.write_stats() for name in stat.cdc_stats or ()]
            partitions = {*found.partition_to_write_stats, *(found.partition_to_replace_file_ids or ())}
            assert all(map(is_plain_path, [*paths, *filter(None, partitions)]))
            for codec in (V6.commit_codec, V9.commit_codec):
                try:
                    data = codec.encode(found, "replacecommit")
                except Invalid:  # numbers that fit into 64 bits and not into the 32 of the schema
                    continue
                again = codec.parse(data, PATH)
                assert again.replaced_file_groups() == found.replaced_file_groups()
                assert [stat.path for _, stat in again.write_stats()] == [stat.path for _, stat in found.write_stats()]
                assert again.extra_metadata == found.extra_metadata
        case RequestedReplace():
            assert all(is_plain_path(partition) for partition, _ in found.group_ids if partition)
            slices = () if found.clustering_plan is None else found.clustering_plan.slices
            paths = [path for part in slices for path in (part.base_path, *part.log_paths) if path]
            assert all(map(is_plain_path, paths))
            with suppress(Invalid):  # numbers that fit into 64 bits and not into the 32 of the schema
                assert parse_requested_replace(encode_requested_replace(found), PATH) == found
        case RollbackPlan():
            assert all(is_plain_path(one.partition_path) for one in found.requests if one.partition_path)
            with suppress(Invalid):  # numbers that fit into 64 bits and not into the 32 of the schema
                assert parse_rollback_plan(encode_rollback_plan(found), PATH) == found
        case RollbackMetadata():
            with suppress(Invalid):
                assert parse_rollback_metadata(encode_rollback_metadata(found), PATH) == found
        case tuple() if found and isinstance(found[0], Marker):
            assert all(is_plain_path(marker.data_path) for marker in found)
        case tuple():
            assert all(is_plain_path(partition) for partition, _ in found if partition)


def test_undamaged_files_are_read() -> None:
    for kind, files in real_files().items():
        assert files, kind
        for data in files:
            found = PARSERS[kind](data, PATH)
            ensure_sound(found)


def test_damaged_files_of_the_real_hudi() -> None:
    kinds = sorted(PARSERS)
    for seed in fuzz_seeds(4 * SAMPLE):
        kind = kinds[seed % len(kinds)]
        files = real_files()[kind]
        data = damaged_bytes(files[seed // len(kinds) % len(files)], seed)
        ensure_sound(answer_of(PARSERS[kind], data, PATH))


def test_containers_with_odd_values() -> None:
    for seed in fuzz_seeds(4 * SAMPLE):
        chance = random.Random(seed)
        kind = chance.choice(AVRO)
        files = [data for data in real_files()[kind] if data.startswith(MAGIC)]
        record: Any = parse_container(chance.choice(files), PATH)[1]
        for _ in range(chance.randint(1, 3)):
            record = exchanged(record, chance)
        data = b""
        # A value that has no one Avro schema; another seed will do.
        with suppress(Exception):
            data = container(record, chance.choice(["null", "deflate"]))
        if data:
            ensure_sound(answer_of(PARSERS[kind], data, PATH))


def test_json_commits_with_odd_values() -> None:
    commits = [data for data in real_files()["commit"] if not data.startswith(MAGIC)]
    for seed in fuzz_seeds(2 * SAMPLE):
        chance = random.Random(seed)
        values = json.loads(chance.choice(commits))
        for _ in range(chance.randint(1, 3)):
            values = exchanged(values, chance)
        with suppress(TypeError):
            ensure_sound(answer_of(parse_commit, json.dumps(values).encode(), PATH))


def test_index_definitions_with_odd_values() -> None:
    for seed in fuzz_seeds(SAMPLE):
        chance = random.Random(seed)
        values = exchanged(json.loads(chance.choice(real_files()["index"])), chance)
        with suppress(TypeError):
            for name, one in (answer_of(parse_index_definitions, json.dumps(values).encode(), PATH) or {}).items():
                texts = [name, one.kind, one.function, one.version, *one.source_fields, *one.options.values()]
                assert all(isinstance(text, str) for text in texts)


# What was found: bytes that once ended the process, an error of another kind, or a path out of the table.


def bare_container(schema: Any, body: bytes, count: int = 1, codec: bytes = b"null") -> bytes:
    def text(value: bytes) -> bytes:
        return encode_long(len(value)) + value

    head = encode_long(2) + text(b"avro.schema") + text(json.dumps(schema).encode()) + text(b"avro.codec") + text(codec)
    return MAGIC + head + b"\0" + bytes(16) + encode_long(count) + text(body) + bytes(16)


def record_of(name: str, *types: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{at}", "type": one} for at, one in enumerate(types)]}


def doubled(levels: int) -> dict[str, Any]:
    """A record that takes no bytes and has 2 ** levels empty ones inside."""
    types = [record_of("t0")]
    types += [record_of(f"t{at}", f"t{at - 1}", f"t{at - 1}") for at in range(1, levels)]
    return record_of("r", "int", *types)


@pytest.mark.parametrize(
    "data",
    [
        bare_container(record_of("r", ["null", "r"]), b"\2" * 3_000_000 + b"\0"),
        bare_container(
            record_of("r", "int", ["null", record_of("n.r", "int")], ["null", "r"]), b"\0\0" + b"\2\0\0" * 10**6
        ),
        bare_container(doubled(40), b"\0"),
        bare_container(record_of("r", "string"), zlib.compress(bytes(MAX_INFLATED_BYTES + 10))[2:-4], 1, b"deflate"),
        bare_container(record_of("r", "string"), b"\0", 1, b"bzip2"),
    ],
    ids=["type-in-itself", "type-in-itself-under-another-name", "doubled-nothing", "bomb", "codec"],
)
@pytest.mark.parametrize("kind", ["commit", "bootstrap"])
def test_containers_that_would_end_the_process_are_refused(kind: str, data: bytes) -> None:
    assert answer_of(PARSERS[kind], data, PATH) is None


@pytest.mark.parametrize(
    "data", [b"[" * 200_000, b'{"a":' * 200_000, b'{"operationType":"\\ud800"}', b"\xed\xa0\x80", b"{}\xff"]
)
@pytest.mark.parametrize("parse", [parse_commit, parse_schema_history, parse_index_definitions])
def test_json_that_is_too_deep_or_no_text_is_refused(parse: Parse, data: bytes) -> None:
    assert answer_of(parse, data, PATH) is None


OUT = ("../x", "a/../../x", "/etc/x", "a//b", "./a", "a/", "a\0b")


@pytest.mark.parametrize("out", OUT)
def test_paths_out_of_the_table_are_refused(out: str) -> None:
    stat = {"fileId": "f", "path": "p/f"}
    commits = [
        {"partitionToWriteStats": {out: [stat]}},
        {"partitionToWriteStats": {"p": [stat | {"path": out}]}},
        {"partitionToWriteStats": {"p": [stat | {"cdcStats": {out: 1}}]}},
        {"partitionToWriteStats": {"p": [stat | {"partitionPath": "p"}]}, "partitionToReplaceFileIds": {out: ["f"]}},
    ]
    for values in commits:
        with pytest.raises(Corrupt, match="no path below the table"):
            parse_commit(json.dumps(values).encode(), PATH)
    operation = {"partitionPath": out, "fileId": "f"}
    request: dict[str, Any] = operation | {"filesToBeDeleted": []}
    rollback = {"instantToRollback": {"commitTime": "1", "action": "commit"}, "RollbackRequests": [request]}
    done = {"partitionPath": out, "successDeleteFiles": [], "failedDeleteFiles": []}
    result = {"startRollbackTime": "1", "commitsRollback": ["1"]}
    plans: list[tuple[Parse, dict[str, Any]]] = [
        (parse_compaction_plan, {"operations": [operation]}),
        (parse_rollback_plan, rollback),
        (parse_requested_replace, {"clusteringPlan": {"inputGroups": [{"slices": [operation]}]}}),
        (parse_bootstrap_partition, bootstrap_record(out)),
    ]
    for parse, record in plans:
        with pytest.raises(Corrupt, match="no path below"):
            parse(container(record), PATH)
    metadata = encode_container(
        "HoodieRollbackMetadata",
        result | {"timeTakenInMillis": 1, "totalFilesDeleted": 0, "partitionMetadata": {"p": done}},
    )
    with pytest.raises(Corrupt, match="no path below the table"):
        parse_rollback_metadata(metadata, PATH)
    with pytest.raises(Corrupt, match="no marker"):
        parse_marker_list(f"{out}.marker.CREATE\n".encode(), PATH) if not out.endswith("/") else parse_marker_list(
            f"../{out}x.marker.CREATE\n".encode(), PATH
        )


def bootstrap_record(folder: str) -> dict[str, Any]:
    status = {"path": {"uri": "file:/source/x.parquet"}}
    return {"bootstrapPartitionPath": folder, "partitionPath": "p", "fileIdToBootstrapFile": {"f": status}}


@pytest.mark.parametrize("out", OUT)
@pytest.mark.parametrize(
    ("version", "key"),
    [(6, "hoodie.archivelog.folder"), (9, "hoodie.timeline.path"), (9, "hoodie.timeline.history.path")],
)
def test_folders_out_of_the_table_are_refused(version: int, key: str, out: str) -> None:
    if "\0" in out:
        out = "a\\u0000b"
    text = f"hoodie.table.name=t\nhoodie.table.version={version}\n{key}={out}\n"
    config = parse_table_config(text.encode(), PATH)
    assert answer_of(profile_of, config, path=".hoodie/hoodie.properties") is None


def test_a_list_of_markers_tells_where_it_is_damaged() -> None:
    with pytest.raises(Corrupt) as told:
        parse_marker_list("ü/x.parquet.marker.CREATE\n\nnonsense\n".encode(), PATH)
    assert told.value.facts["offset"] == 28


def test_numbers_with_more_digits_than_python_reads_are_none() -> None:
    many = "9" * 5000
    text = f"hoodie.table.name=t\nhoodie.table.version={many}\nhoodie.table.checksum={many}\n"
    assert answer_of(parse_table_config, text.encode(), PATH) is None
    assert parse_log_file_name(f".f_1.log.{many}") is None
    assert parse_write_token(f"1-{many}-1") is None
    stat = {"partitionToWriteStats": {"p": [{"numWrites": 0, "path": "p/f"}]}}
    assert answer_of(parse_commit, json.dumps(stat).replace("0", many).encode(), PATH) is None
    assert answer_of(parse_commit, json.dumps(stat).replace("0", "9" * 20).encode(), PATH) is None


def test_long_continued_lines_take_time_in_proportion() -> None:
    data = b"a=" + b"xxxxxxxxxx\\\n" * 300_000
    assert len(parse_properties_text(data, PATH)["a"]) == 3_000_000
    with pytest.raises(Corrupt, match="more than"):
        parse_properties_text(b"#" * (17 << 20), PATH)


@given(st.dictionaries(st.text(), st.text(), max_size=8))
@settings(max_examples=80, deadline=None)
@example({"\\": "\\\\", "#a": "!b", " ": " x ", "a=b": "c:d", "🙂": "\ufeff\x00\r\n"})
def test_properties_survive_their_text(values: dict[str, str]) -> None:
    assert parse_properties_text(encode_properties_text(values), PATH) == values


@given(st.text(alphabet="._-0123456789abcdefinloprqtuvwx\\/$\0\n", max_size=60))
@settings(max_examples=150, deadline=None)
@example("20261121052208873_20261121052208874.commit")
@example("1.inflight")
@example("f-0_0-1-2_3.parquet")
@example(".f-0_3.log.1_0-1-2.cdc")
def test_names_are_those_of_what_they_parse_to_or_of_nothing(name: str) -> None:
    for profile in (V6, V9):
        instant = profile.instant_names.parse(name)
        assert instant is None or profile.instant_names.file_name(instant) == name
    base, log = parse_base_file_name(name), parse_log_file_name(name)
    assert base is None or base.text == name
    assert log is None or log.text == name or ".0" in name
    parse_write_token(name)


NAMES = st.sampled_from(
    ["partitionToWriteStats", "partitionToReplaceFileIds", "extraMetadata", "path", "cdcStats", "schemas"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10) | NAMES, inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_refused_with_an_error_of_ours(data: bytes) -> None:
    for parse in (*PARSERS.values(), parse_schema_history):
        for start in (b"", MAGIC):
            try:
                found = parse(start + data, PATH)
            except HudiError as error:
                assert isinstance(error, Corrupt | Unsupported)
                assert error.facts["path"] == PATH
            else:
                ensure_sound(found)


@given(st.none() | st.text(max_size=30), st.text(max_size=30), st.text(alphabet="\\$\0ab", max_size=20))
@settings(max_examples=80, deadline=None)
def test_secondary_keys_survive_and_any_text_is_one_or_refused(value: str | None, key: str, any_text: str) -> None:
    if value != "\0":
        assert parse_secondary_key(secondary_key(value, key), PATH) == (value, key)
    answer_of(parse_secondary_key, any_text, PATH)
