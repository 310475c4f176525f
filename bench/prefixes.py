"""What prefixes are worth, and what they cost: makespans on a store that limits requests by prefix (simulated); places
of paths, a repair, a plan, and operations on a local disk beside a table without them, in seconds of processor.

make bench-prefixes
"""

from __future__ import annotations

import random
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from statistics import median
from typing import Final

import pyarrow as pa

import hoodie
from hoodie.layout import Layout, LayoutVersion
from hoodie.layout.places import places_of
from hoodie.layout.strategy import parse_strategy
from hoodie.testing.many_files import ManyFiles, twins
from hoodie.testing.throttled_store import ThrottledStore

NEWEST: Final = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


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


def repair(files: int) -> float:
    """Seconds of a whole repair: listings with 20 ms a page, a check of all commits, and the metadata table anew."""
    many = ManyFiles(files, 1_000, page_s=0.02)
    start = time.perf_counter()
    many.table().indexes.rebuild("files")
    return time.perf_counter() - start


def conversions(files: int) -> dict[str, float]:
    """Microseconds of processor for the place of a path."""
    made, named = layout("bits:8"), paths(files, 1_000)
    few = named[: files // 10]
    return {
        "many at once, groups not seen before": _cpu_s(lambda: places_of(layout("bits:8"), named)) / len(named) * 1e6,
        "one by one, groups not seen before": _cpu_s(lambda: [*map(layout("bits:8").place, few)]) / len(few) * 1e6,
        "one by one, groups known": _cpu_s(lambda: [*map(made.place, few)]) / len(few) * 1e6,
    }


def operations(rows: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Seconds of processor of operations on a local disk: in the table's own folder, and under 256 prefixes."""
    taken: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for _ in range(rounds):
        for number, strategy in enumerate(("", "bits:8")):
            with tempfile.TemporaryDirectory() as folder:
                for what, seconds in _lifetime(folder, strategy, rows):
                    taken[what][number].append(seconds)
    return {what: (min(plain), min(laid)) for what, (plain, laid) in taken.items()}


def _lifetime(folder: str, strategy: str, count: int) -> Iterator[tuple[str, float]]:
    rows = _rows(0, count)
    table = hoodie.Table.create(f"{folder}/table", schema=rows.schema, options=_options(folder, strategy))
    yield "bulk insert", _cpu_s(lambda: table.bulk_insert(rows), 1)
    yield "upsert of 10 %", _cpu_s(lambda: table.upsert(_rows(1, count).slice(0, count // 10)), 1)
    yield "upsert of 100 rows", _cpu_s(lambda: table.upsert(_rows(2, 100)), 1)
    yield "snapshot with logs", _cpu_s(lambda: table.scan().read_all())
    yield "compaction", _cpu_s(table.services.compact, 1)
    yield "full scan", _cpu_s(lambda: table.scan().read_all())


def _options(folder: str, strategy: str) -> dict[str, str]:
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline": "false",
    }
    if strategy:
        options |= {"hoodie.storage.path": f"{folder}/root", "hoodie.storage.strategy": strategy}
    return options


def cleans(old: int, rounds: int) -> tuple[float, float]:
    """Seconds of processor of a clean of 16 times so many files, as a median: it is over too soon for the least of few
    to say anything.
    """
    taken: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for number, strategy in enumerate(("", "bits:8")):
            with tempfile.TemporaryDirectory() as folder:
                options = _options(folder, strategy) | {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
                table = hoodie.Table.create(f"{folder}/table", schema=_rows(0, 1).schema, options=options)
                for v in range(old + 1):
                    table.upsert(_rows(v, 160))
                taken[number].append(_cpu_s(lambda table=table: table.services.clean(**NEWEST), 1))  # type: ignore[misc]
    return median(taken[0]), median(taken[1])


def _rows(v: int, count: int) -> pa.Table:
    ids = range(count)
    columns = {"id": list(ids), "p": [f"p{one % 16}" for one in ids], "v": [v] * count}
    return pa.table(columns | {f"c{number}": [one * number % 977 for one in ids] for number in range(6)})


def plans(files: int) -> tuple[float, float]:
    """Seconds of processor to plan a query over so many files: in the table's own folder, and under 256 prefixes."""
    laid, plain = twins(files, 1_000)
    taken = [(_cpu_s(plain.table().read_plan, 1), _cpu_s(laid.table().read_plan, 1)) for _ in range(3)]
    return min(one for one, _ in taken), min(two for _, two in taken)


def _cpu_s(work: Callable[[], object], times: int = 3) -> float:
    """The least seconds of processor, of all threads, that it took."""
    least = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least


def main() -> None:
    """What was measured, as tables."""
    makespans()
    print("\n| place of a path | µs |\n|---|---|")
    for what, taken in conversions(100_000).items():
        print(f"| {what} | {taken:.1f} |")
    print(f"\nrepair of 100 000 files under 256 prefixes, 20 ms a page: {repair(91_000):.1f} s")
    plain, laid = plans(91_000)
    print(f"plan of a query over 100 000 files in 1 000 partitions: {laid / plain:.2f} of the time without prefixes")
    print("\n| operation on a local disk | its own folder, s | 256 prefixes, s | ratio |\n|---|---|---|---|")
    for what, (one, two) in operations(400_000, 3).items():
        print(f"| {what} | {one:.2f} | {two:.2f} | {two / one:.2f} |")
    for old in (3, 30):
        one, two = cleans(old, 15)
        print(f"| clean of {16 * old} files | {one:.3f} | {two:.3f} | {two / one:.2f} |")


if __name__ == "__main__":
    main()
