"""What every store of views promises."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hoodie.server.stores.packed import FileChange, PackedFiles, pack
from hoodie.server.stores.store import Edit, Stores, ViewStore


def base(file_id: str, instant: int = 1) -> str:
    """The name of a base file."""
    return f"{file_id}_0-1-2_{instant}.parquet"


def log(file_id: str, instant: int = 1, more: str = "") -> str:
    """The name of a log file."""
    return f".{file_id}_{instant}.log.1_0-1-2{more}"


def shown(store: ViewStore) -> dict[str, dict[str, int]]:
    """All that a store has."""
    found = {name: store.files(name) for name in store.partitions()}
    return {name: dict(files.items()) for name, files in found.items() if files is not None}


class ViewStoreContract:
    """Subclasses give the fixture `stores`."""

    @pytest.fixture
    def stores(self) -> Iterator[Stores]:
        raise NotImplementedError

    @pytest.fixture
    def store(self, stores: Stores) -> ViewStore:
        files = {base("a"): 1, base("a", 2): 2, log("a"): 3, base("ab"): 4, log("ab", more=".cdc"): 5}
        more = {base("a"): 6}
        return stores.open("/t").changed(Edit(loaded={"p": pack(files.items()), "p/q": pack(more.items())}))

    def test_a_new_one_has_nothing(self, stores: Stores) -> None:
        store = stores.open("/t")
        assert (store.partitions(), store.has("p"), store.files("p")) == ((), False, None)
        assert list(store.of_group("p", "a")) == []
        assert store.parts() == {}

    def test_what_is_loaded_is_there_sorted_by_name(self, store: ViewStore) -> None:
        assert store.partitions() == ("p", "p/q")
        assert store.has("p")
        assert not store.has("")
        files = store.files("p")
        assert files is not None
        names = [log("ab", more=".cdc"), log("a"), base("a"), base("a", 2), base("ab")]
        assert files.names().to_pylist() == sorted(names)
        assert dict(files.items()) == dict(zip(names, [5, 3, 1, 2, 4], strict=True))
        assert dict(zip(files.names().to_pylist(), files.sizes().to_pylist(), strict=True)) == dict(files.items())

    def test_the_files_of_one_group_are_found(self, store: ViewStore) -> None:
        assert dict(store.of_group("p", "a")) == {log("a"): 3, base("a"): 1, base("a", 2): 2}
        assert dict(store.of_group("p", "ab")) == {log("ab", more=".cdc"): 5, base("ab"): 4}
        assert list(store.of_group("p", "b")) == list(store.of_group("nowhere", "a")) == []

    def test_a_partition_without_files_is_loaded(self, store: ViewStore) -> None:
        store = store.changed(Edit(loaded={"empty": pack(())}))
        files = store.files("empty")
        assert (store.has("empty"), files is not None and len(files)) == (True, 0)

    def test_the_table_itself_may_be_a_partition(self, store: ViewStore) -> None:
        store = store.changed(Edit(loaded={"": pack([(base("a"), 1)])}))
        assert store.partitions()[0] == ""
        assert dict(store.of_group("", "a")) == {base("a"): 1}
        assert set(shown(store.changed(Edit(dropped=[""])))) == {"p", "p/q"}

    def test_files_come_and_go(self, store: ViewStore) -> None:
        change = FileChange({base("a", 2): 20, base("c"): 7}, [log("a"), base("unheard of")])
        now = store.changed(Edit(changes={"p": change}))
        assert shown(now) == {
            "p": {base("a"): 1, base("a", 2): 20, base("ab"): 4, log("ab", more=".cdc"): 5, base("c"): 7},
            "p/q": {base("a"): 6},
        }

    def test_partitions_are_dropped_and_all_is_emptied(self, store: ViewStore) -> None:
        assert shown(store.changed(Edit(dropped=["p", "unheard of"]))) == {"p/q": {base("a"): 6}}

    def test_all_is_emptied_before_the_rest_of_an_edit(self, store: ViewStore) -> None:
        now = store.changed(Edit(is_emptied=True, loaded={"p": pack([(base("z"), 1)])}))
        assert shown(now) == {"p": {base("z"): 1}}

    def test_a_value_stays_as_it_is(self, store: ViewStore) -> None:
        before = shown(store)
        now = store.changed(Edit(changes={"p": FileChange({base("c"): 7})}, dropped=["p/q"]))
        gone = now.changed(Edit(is_emptied=True))
        assert shown(store) == before
        assert set(shown(now)) == {"p"}
        assert shown(gone) == {}

    def test_tables_do_not_see_each_other(self, stores: Stores, store: ViewStore) -> None:
        other = stores.open("/t2").changed(Edit(loaded={"p": pack([(base("z"), 1)])}))
        assert shown(other) == {"p": {base("z"): 1}}
        assert set(shown(store)) == {"p", "p/q"}
        other.changed(Edit(is_emptied=True))
        assert set(shown(store)) == {"p", "p/q"}

    @pytest.mark.parametrize("name", ["p\u00e4rt=\u65e5\u672c", "a b/c%20d", "\udcff", "z" * 300])
    def test_any_name_will_do(self, store: ViewStore, name: str) -> None:
        now = store.changed(Edit(loaded={name: pack([(f"{name[:1]}id_0-0-0_1.parquet", 1)])}))
        assert name in now.partitions()
        assert dict(now.of_group(name, f"{name[:1]}id")) == {f"{name[:1]}id_0-0-0_1.parquet": 1}

    def test_large_sizes_are_kept(self, store: ViewStore) -> None:
        now = store.changed(Edit(changes={"p": FileChange({base("big"): 1 << 40})}))
        assert dict(now.of_group("p", "big")) == {base("big"): 1 << 40}

    @pytest.mark.parametrize("seed", range(4))
    def test_whatever_is_done_it_has_what_a_dict_has(self, stores: Stores, seed: int) -> None:
        chance = random.Random(seed)
        store, model = stores.open("/t"), dict[str, dict[str, int]]()
        for _ in range(40):
            edit, model = _some_edit(chance, model)
            store = store.changed(edit)
            assert shown(store) == model
            for name in model:
                mine = {file: size for file, size in model[name].items() if file.removeprefix(".").startswith("f1_")}
                assert dict(store.of_group(name, "f1")) == mine


def _some_edit(chance: random.Random, model: dict[str, dict[str, int]]) -> tuple[Edit, dict[str, dict[str, int]]]:
    names = [f"p{number}" for number in range(4)]
    now = {} if (is_emptied := chance.random() < 0.05) else {name: dict(files) for name, files in model.items()}
    changes: dict[str, Any] = {}
    loaded: dict[str, PackedFiles] = {}
    dropped = [name for name in names if name in now and chance.random() < 0.1]
    for name in dropped:
        del now[name]
    for name in names:
        if name in now and chance.random() < 0.5:
            added = {_some_name(chance): chance.randrange(100) for _ in range(chance.randrange(4))}
            known = sorted(now[name].keys() - added.keys())
            removed = chance.sample(known, min(len(known), chance.randrange(3)))
            changes[name] = FileChange(added, removed)
            now[name] = {file: size for file, size in (now[name] | added).items() if file not in removed}
        elif name not in now and chance.random() < 0.4:
            now[name] = {_some_name(chance): chance.randrange(100) for _ in range(chance.randrange(9))}
            loaded[name] = pack(now[name].items())
    return Edit(is_emptied, loaded, changes, dropped), now


def _some_name(chance: random.Random) -> str:
    kind = chance.choice((base, log))
    return kind(f"f{chance.randrange(12)}", chance.randrange(1, 4))
