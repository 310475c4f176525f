"""The worked examples of file-slices.md, bootstrap.md and upgrade-names.md are what the code makes of Hudi's tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from format_pages import block, page, rows

from hoodie.fileview import FolderView
from hoodie.hfile import open_hfile
from hoodie.services.upgrading.logs import plan_renames, store_renames
from hoodie.spec import keys, parse_base_file_name, parse_container, parse_log_file_name
from hoodie.spec.bootstrap_index import BOOTSTRAP_PARTITIONS_FILE, parse_bootstrap_partition, partition_key
from hoodie.state.handle import open_handle, timeline_of
from hoodie.state.log_renames import load_renames
from hoodie.storage import MemoryStorage
from hoodie.view import BaseFile, FileSlice, LogFile, View

SLICES, BOOTSTRAP, NAMES = page("file-slices"), page("bootstrap"), page("upgrade-names")
Golden = Callable[[str], Path]


def view_at(base: Path) -> View:
    handle = open_handle(str(base), {})
    return FolderView(handle.storage, timeline_of(handle)).load()


def shown_as(shortened: str, name: str) -> bool:
    """Whether a name is the one that the page shows with a `…`."""
    return re.fullmatch(".*".join(re.escape(part) for part in shortened.split("…")), name) is not None


def all_shown(shortened: Sequence[str], names: Sequence[str]) -> bool:
    return all(shown_as(*pair) for pair in zip(shortened, names, strict=True))


def test_base_files_of_the_table_are_those_shown(golden: Golden) -> None:
    base = golden("1.2.0/cow_insert_overwrite")
    shown = [line.split("  ") for line in block(SLICES, "## Worked example: base files").splitlines()[1:]]
    timeline = {path.name for path in (base / ".hoodie/timeline").iterdir()}
    assert {cells[0] for cells in shown if cells[0].startswith("2")} <= timeline
    listed = sorted(path.relative_to(base).as_posix() for path in base.glob("p*/*.parquet"))
    told = sorted(cells[-1].strip() for cells in shown if cells[-1].strip())
    assert all_shown(told, listed)
    (replacing,) = view_at(base).replaced
    (partition, group) = re.findall(r"partitionToReplaceFileIds \{(\w+): \[(\S+)\]\}", SLICES)[0]
    assert (partition, shown_as(group, replacing[1])) == (replacing[0], True)


@pytest.mark.parametrize("line", range(3))
def test_slices_of_a_snapshot_are_those_of_the_table(golden: Golden, line: int) -> None:
    view = view_at(golden("1.2.0/cow_insert_overwrite"))
    start = SLICES.index("| asked |")
    header = re.findall(r"`(\w+)/(\w+)`", SLICES[start:].partition("\n")[0])
    asked, *told = rows(SLICES, "| asked |")[line]
    as_of = None if asked == "now" else asked.removeprefix("as of ")
    live = {(one.partition, one.file_id[:4]): f"…{one.base_instant[-6:]}" for one in view.slices_at(as_of)}
    replaced = {
        (partition, group[:4]) for partition, group in view.replaced if view.is_replaced((partition, group), as_of)
    }
    assert told == [live.get(one, "replaced" if one in replaced else "–") for one in header]


@pytest.mark.parametrize("column", [0, 1], ids=["version 6", "version 9"])
def test_slice_of_a_pending_compaction(golden: Golden, column: int) -> None:
    lines = block(SLICES, "## Worked example: log files and a pending compaction").splitlines()
    version, plan, *files = [re.split(r" {2,}", line)[column] for line in lines]
    view = view_at(golden(f"{'0.15.0' if version == 'version 6' else '1.2.0'}/mor_compaction_pending"))
    compaction = re.findall(r"C = (\d+) \(requested\)", plan)[0]
    (group,) = [one for one in view.groups if one.partition == "p2" and one.pending_compaction]
    newest, before = group.slices[:2]
    names = {part: [path.rpartition("/")[2] for path in part.paths] for part in (newest, before)}
    assert (group.pending_compaction, newest.base_instant, newest.base) == (compaction, compaction, None)
    assert all_shown(files[:3], names[before])
    assert all_shown(files[3:], names[newest])
    (read,) = [one for one in view.slices_at() if one.group_id == group.group_id]
    assert read.paths == before.paths + newest.paths
    if version == "version 9":
        completed = re.findall(r"its delta commit completed at (\d+), after C", SLICES)[0]
        written = view.timeline.find(newest.logs[0].name.instant)
        assert written is not None
        assert written.completed == completed > compaction


def test_index_of_a_bootstrapped_table_has_the_value_shown(golden: Golden) -> None:
    data = (golden("1.2.0/cow_bootstrap_metadata_only") / BOOTSTRAP_PARTITIONS_FILE).read_bytes()
    index = open_hfile(lambda start, size: data[start : start + size], len(data), "page")
    key = re.findall(r"The value of key `(.*?)`", BOOTSTRAP)[0]
    assert key.encode() == partition_key("part=p0")
    found = index.lookup([key.encode()])
    value = bytes(found.data[found.starts[0] : found.ends[0]])
    name, record = parse_container(value, "page")
    assert f"`{name}`" in BOOTSTRAP
    shown = block(BOOTSTRAP, "## Worked example")
    assert re.findall(r"^(\w+Path) +(\S+)$", shown, re.MULTILINE) == [
        (field, record[field]) for field in ("bootstrapPartitionPath", "partitionPath")
    ]
    file_id, uri, length = re.findall(r"(\S+) → path\.uri file:/data/src/(\S+)\s+length (\d+), isDir false", shown)[0]
    status = record["fileIdToBootstrapFile"][file_id]
    assert shown_as(f"…/{uri}", status["path"]["uri"])
    assert (status["length"], status["isDir"]) == (int(length), False)
    one = parse_bootstrap_partition(value, "page")
    assert (one.partition, one.sizes[file_id], shown_as(uri, one.sources[file_id])) == ("part=p0", int(length), True)


def test_skeleton_and_source_have_the_columns_and_rows_of_the_table(golden: Golden) -> None:
    base = golden("1.2.0/cow_bootstrap_metadata_only")
    source = Path(open_handle(str(base), {}).config.raw["hoodie.bootstrap.base.path"])
    for folder, (file, columns, count) in zip(
        (base, source), rows(BOOTSTRAP, "| file | columns | rows |"), strict=False
    ):
        name = file.split("`")[1]
        (path,) = [one for one in folder.rglob("*.parquet") if shown_as(name, one.relative_to(folder).as_posix())]
        read = pq.ParquetFile(path)
        names, told = read.schema_arrow.names, re.findall(r"`(\w+)`", columns)
        assert told == ([names[0], names[-1]] if "…" in columns else names)
        assert read.metadata.num_rows == int(count)


def test_names_of_logs_are_planned_stored_and_read_as_shown() -> None:
    text = block(NAMES, "## Worked example").rstrip("\n")
    base_instant = re.findall(r"base file has the instant `(\d+)`", NAMES)[0]
    olds = re.findall(r'"([^"]+)": ', text)
    base = parse_base_file_name(f"2151-0_2-761-2003_{base_instant}.parquet")
    logs = [parse_log_file_name(old.rpartition("/")[2]) for old in olds]
    assert base is not None
    slice_ = FileSlice(
        "p2",
        "2151-0",
        base_instant,
        BaseFile(f"p2/{base.text}", base, 1),
        tuple(LogFile(old, log, 1) for old, log in zip(olds, logs, strict=True) if log is not None),
    )
    storage = MemoryStorage("docs-upgrade-names")
    store_renames(storage, plan_renames([slice_]))
    assert storage.read(keys.LOG_RENAMES_FILE).decode() == text
    assert load_renames(storage) == plan_renames([slice_])
    assert f'list    = "{keys.LOG_RENAMES_FILE}"' in NAMES
