"""What prefixes are worth, and what they cost: makespans on a store that limits requests by prefix (simulated); places
of paths, a repair, a plan, and operations on a local disk beside a table without them, in seconds of processor.

    python bench/prefixes.py [--files 91000] [--rows 400000] [--rounds 3] [--out FILE]

The page is printed, and kept as a file that `bench/report.py` puts into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
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


def makespans() -> Iterator[str]:
    """Rows of 5 000 writes by 64 clients to a store that limits requests by prefix."""
    written = sorted(paths(5_000, 8))
    mixed = random.Random(2).sample(written, len(written))
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
        yield f"| {name} | {done.makespan_s:.1f} s | {done.refused:,} | {done.given_up:,} |"


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


def page(files: int, rows: int, rounds: int) -> Iterator[str]:
    """Lines of what was measured: on a table of so many files (and a tenth more log files), and of so many rows."""
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield f"* Run of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {machine}. Seconds of the processor, unless said."
    yield "\n| 5 000 writes to a simulated store that limits requests by prefix | makespan | 503s | after 5 retries |"
    yield "|---|---|---|---|"
    yield from makespans()
    yield ""
    yield "| place of a path | µs |\n|---|---|"
    for what, taken in conversions(files).items():
        yield f"| {what} | {taken:.1f} |"
    plain, laid = plans(files)
    yield "\n| | its own folder, s | 256 prefixes, s | ratio |\n|---|---|---|---|"
    yield f"| plan of a query over {files:,} base files in 1 000 partitions | {_row(plain, laid)}"
    for what, (one, two) in operations(rows, rounds).items():
        yield f"| {what} | {_row(one, two)}"
    for old, times in ((3, 5 * rounds), (30, 2 * rounds)):
        yield f"| clean of {16 * old} files | {_row(*cleans(old, times))}"
    yield f"\nRepair of {files:,} base files under 256 prefixes, 20 ms a page: {repair(files):.1f} s by the clock."


def _row(plain: float, laid: float) -> str:
    return f"{plain:.3f} | {laid:.3f} | {laid / plain:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=91_000)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/bench/storage-paths.md"))
    said = parser.parse_args()
    lines = []
    for line in page(said.files, said.rows, said.rounds):
        print(line, flush=True)
        lines.append(line)
    said.out.parent.mkdir(parents=True, exist_ok=True)
    said.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
