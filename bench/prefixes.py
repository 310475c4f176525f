"""What prefixes are worth: makespans on a store that limits requests by prefix (simulated), cost of a path, a repair.

python bench/prefixes.py
"""

from __future__ import annotations

import random
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from hoodie.layout import FederatedStorage, Layout, LayoutVersion
from hoodie.layout.access import Access
from hoodie.layout.owner import OWNERS_DIR
from hoodie.layout.strategy import parse_strategy
from hoodie.storage import FileInfo, MemoryStorage
from hoodie.testing.throttled_store import ThrottledStore

PAGE = 1000
PAGE_S = 0.02


def layout(text: str) -> Layout:
    version = LayoutVersion(1, "0", text, (0,), "orders", "", parse_strategy(text, {}))
    return Layout(("memory://data",), (version,), str(uuid.UUID(int=3)))


def paths(files: int, partitions: int) -> list[str]:
    chance = random.Random(5)
    ids = (str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(files))
    return [f"day={n % partitions:04d}/{one}-0_0-1-2_20240105000000000.parquet" for n, one in enumerate(ids)]


def makespans() -> None:
    written = sorted(paths(5_000, 8))
    mixed = random.Random(2).sample(written, len(written))
    print("| layout | makespan | 503s | requests beyond 5 retries |\n|---|---|---|---|")
    cases = [
        ("Hive, one partition after the other", written, lambda key: "hot"),
        ("Hive, 8 partitions at once, each a range of its own", mixed, lambda key: key.partition("/")[0]),
    ]
    for bits in (0, 4, 6, 8):
        made = layout(f"bits:{bits}") if bits else None
        keys = [made.place(path).key if made else path for path in mixed]  # type: ignore[union-attr]
        cases.append((f"{1 << bits} prefixes", keys, (lambda key: key.partition("/")[0]) if bits else lambda key: ""))
    made = layout("bits:8")
    cases.append(("256 prefixes in a bucket not split yet", [made.place(path).key for path in mixed], lambda key: ""))  # type: ignore[union-attr]
    for name, keys, parts in cases:
        done = ThrottledStore(parts).run(keys)
        print(f"| {name} | {done.makespan_s:.1f} s | {done.refused:,} | {done.given_up:,} |")


@dataclass
class PagedRoot:
    """A root that lists by pages, each of which takes as long as a request to an object store."""

    scheme: str = "memory"
    uri: str = "memory://data"
    below: dict[str, list[FileInfo]] = field(default_factory=lambda: defaultdict(list))
    owner: bytes = b""

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[FileInfo]:
        del start_after
        found = self.below.get(prefix, [])
        for at in range(0, max(len(found), 1), PAGE):
            time.sleep(PAGE_S)
            yield from found[at : at + PAGE]

    def read(self, path: str) -> bytes:
        assert path.startswith(OWNERS_DIR)
        return self.owner


def repair(files: int) -> None:
    made, root = layout("bits:8"), PagedRoot()
    root.owner = f'{{"uuid": "{made.uuid}", "table": "t"}}'.encode()
    for path in paths(files, 1_000):
        key = made.place(path).key  # type: ignore[union-attr]
        root.below["/".join(key.split("/")[:2])].append(FileInfo(key, 1, 0))
    storage = FederatedStorage(MemoryStorage("prefixes"), Access(), made, (root,))  # type: ignore[arg-type]
    start = time.perf_counter()
    found = storage.data_files()
    print(f"\n{len(found):,} files listed under 256 prefixes, 20 ms a page: {time.perf_counter() - start:.1f} s")


def conversion(files: int) -> None:
    made, named = layout("bits:8"), paths(files, 1_000)
    for what in ("first", "again"):
        start = time.perf_counter()
        for path in named:
            made.place(path)
        print(f"place of a path, {what}: {(time.perf_counter() - start) / files * 1e6:.1f} µs")


if __name__ == "__main__":
    makespans()
    conversion(50_000)
    repair(100_000)
