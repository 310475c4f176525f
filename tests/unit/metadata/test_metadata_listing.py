"""Files of a table by its metadata table: merged, settled, damaged."""

import pytest

from hoodie.engine import LocalEngine
from hoodie.errors import Corrupt, Invalid
from hoodie.metadata import open_metadata_table
from hoodie.spec import COMMIT, NAMED_BY_SLICE, V6, V9, State, keys
from hoodie.testing.hand_metadata import FIRST as INIT
from hoodie.testing.hand_metadata import files_record as files
from hoodie.testing.hand_table import at
from hoodie.timeline import load_table_config

A = "aaaaaaaa-0000-0000-0000-000000000000-0_0-1-2_20260102000001000.parquet"
B = "bbbbbbbb-0000-0000-0000-000000000000-0_0-1-2_20260102000001000.parquet"
LOG = ".aaaaaaaa-0000-0000-0000-000000000000-0_20260102000002000.log.1_0-1-2"


def names(listing):
    return {found.partition: {one.name.text: one.size_bytes for one in found.everything} for found in listing}


@pytest.fixture(params=[V6, V9], ids=["v6", "v9"])
def filled(request, lake):
    made = lake(request.param)
    made.table.commit(at(2), {})
    made.metadata.log(
        "files",
        "files-0000-0",
        at(2),
        [files("__all_partitions__", {"p": 0, "q": 0}), files("p", {A: 10, LOG: 7})],
        **base_of(made),
    )
    made.metadata.commit(at(2))
    return made


def base_of(made):
    return {"base_instant": INIT} if made.table.profile.log_naming == NAMED_BY_SLICE else {}


def write(made, second, records, version=2, **more):
    made.metadata.log("files", "files-0000-0", at(second), records, version=version, **base_of(made), **more)
    made.metadata.commit(at(second))


def test_base_file_and_logs_are_united(filled):
    assert names(filled.opened().files()) == {"p": {A: 10, LOG: 7}, "q": {}}


def test_tombstone_removes_and_greater_size_wins(filled):
    filled.table.commit(at(3), {})
    write(filled, 3, [files("p", {A: 8, LOG: 9, B: 1}), files("q", {}, (A,))])
    filled.table.commit(at(4), {})
    write(filled, 4, [files("p", {}, (A,))], version=3)
    assert names(filled.opened().files()) == {"p": {LOG: 9, B: 1}, "q": {}}


def test_file_comes_back_after_its_tombstone(filled):
    for second, record in ((3, files("p", {}, (A,))), (4, files("p", {A: 3}))):
        filled.table.commit(at(second), {})
        write(filled, second, [record], version=second)
    assert names(filled.opened().files())["p"] == {A: 3, LOG: 7}


def test_deleted_record_takes_all_older_entries_along(filled):
    filled.table.commit(at(3), {})
    write(filled, 3, [], deleted=["p"])
    assert names(filled.opened().files())["p"] == {}


def test_write_that_is_not_complete_on_the_table_does_not_count(filled):
    filled.table.instant(at(3), COMMIT, state=State.INFLIGHT)
    write(filled, 3, [files("p", {B: 1})])
    assert names(filled.opened().files())["p"] == {A: 10, LOG: 7}


def test_only_partitions_asked_for_are_given_known_or_not(filled):
    found = filled.opened().files(["p", "nowhere"])
    assert names(found) == {"nowhere": {}, "p": {A: 10, LOG: 7}}


def test_root_of_a_table_without_partitions_is_a_dot_in_keys(lake):
    made = lake(partition_fields=())
    made.table.commit(at(2), {})
    write(made, 2, [files("__all_partitions__", {".": 0}), files(".", {A: 10})])
    (found,) = made.opened().files()
    assert (found.partition, found.bases[0].path) == ("", A)


@pytest.mark.parametrize("name", ["notes.txt", f"{LOG}.cdc", ".hoodie_partition_metadata", ".x.crc"])
def test_names_that_are_no_data_files_are_left_out(filled, name):
    filled.table.commit(at(3), {})
    write(filled, 3, [files("p", {name: 5})])
    assert names(filled.opened().files())["p"] == {A: 10, LOG: 7}


@pytest.mark.parametrize("partition", ["../other", "/etc", "a//b", ""])
def test_partition_that_leaves_the_table_is_corrupt(filled, partition):
    filled.table.commit(at(3), {})
    write(filled, 3, [files("__all_partitions__", {partition: 0})])
    if partition == "":
        assert "" in names(filled.opened().files())
        return
    with pytest.raises(Corrupt) as error:
        filled.opened().files()
    assert error.value.facts["path"] == ".hoodie/metadata/files"


def test_table_that_lists_no_ready_partition_has_no_metadata_table(filled):
    storage = filled.table.storage
    config = load_table_config(storage).with_changes(
        {keys.METADATA_PARTITIONS: "", keys.METADATA_PARTITIONS_INFLIGHT: "files"}
    )
    assert open_metadata_table(storage, config, filled.table.timeline()) is None


def test_partition_that_is_not_ready_is_refused_by_name(filled):
    with pytest.raises(Invalid, match="column_stats"):
        filled.opened().column_stats("qty")


def test_listed_partition_without_files_is_corrupt(filled):
    storage = filled.table.storage
    config = load_table_config(storage).with_changes({keys.METADATA_PARTITIONS: "column_stats,files"})
    table = open_metadata_table(storage, config, filled.table.timeline())
    with pytest.raises(Corrupt) as error:
        table.column_stats("qty")
    assert error.value.facts["path"] == ".hoodie/metadata/column_stats"


def test_metadata_table_that_is_gone_is_corrupt(filled):
    filled.table.storage.delete_dir(".hoodie/metadata")
    with pytest.raises(Corrupt) as error:
        filled.opened()
    assert error.value.facts["path"] == ".hoodie/metadata"


def test_damaged_base_file_is_corrupt_and_named_from_the_tables_root(filled):
    path = f".hoodie/metadata/files/files-0000-0_0-0-0_{INIT}.hfile"
    storage = filled.table.storage
    storage.put(path, storage.read(path)[:-1])
    with pytest.raises(Corrupt) as error:
        filled.opened().files()
    assert error.value.facts["path"] == path


def test_records_without_the_list_of_partitions_are_corrupt(lake):
    made = lake()
    made.metadata.base("files", "files-0000-0", INIT, [files("p", {A: 1})])
    with pytest.raises(Corrupt, match="__all_partitions__"):
        made.opened().files()


class Counting(LocalEngine):
    """Notes what it is asked to run."""

    def __init__(self) -> None:
        super().__init__(1)
        self.labels: list[str] = []

    def run(self, work, tasks, label):
        self.labels.append(label)
        return super().run(work, tasks, label)


@pytest.mark.parametrize(("small_bytes", "asked"), [(16 << 20, []), (10, ["read metadata"])])
def test_few_bytes_are_read_without_the_engine(filled, monkeypatch, small_bytes, asked):
    monkeypatch.setattr("hoodie.metadata.store._SMALL_BYTES", small_bytes)
    storage, engine = filled.table.storage, Counting()
    store = open_metadata_table(storage, load_table_config(storage), filled.table.timeline(), engine).store
    store.groups("files")
    engine.labels.clear()
    assert [len(parts) for parts in store.read("files")] == [2]
    assert engine.labels == asked
