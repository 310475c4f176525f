"""Where bytes lie: sizes of base files, partitions, file groups with log files to merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from hoodie.present.page.markup import Html, element
from hoodie.present.page.parts import Cell, Page, Place, bar, choices, pager, table
from hoodie.present.page.words import percent
from hoodie.present.sheet import Column
from hoodie.services.health import LogDebt, PartitionSizes
from hoodie.services.overlaps import ColumnOverlap
from hoodie.services.overview.group_sizes import GroupSizes
from hoodie.units import size_text

PAGE_ROWS = 50
SHOWN_DEBTS = 15
ORDERS: Mapping[str, str] = {
    "size": "largest",
    "small": "most small files",
    "logs": "most logs",
    "old": "most old versions",
    "name": "name",
}
_SMALLEST = 1 << 10
_Sized = PartitionSizes | GroupSizes


def _all_bytes(entry: _Sized) -> int:
    return entry.base_bytes + entry.log_bytes + entry.old_bytes


def _parts(entry: _Sized) -> tuple[tuple[str, int], ...]:
    return ("base", entry.base_bytes), ("log", entry.log_bytes), ("old", entry.old_bytes)


_PARTITION_KEYS: Mapping[str, Callable[[PartitionSizes], float]] = {
    "size": lambda entry: -_all_bytes(entry),
    "small": lambda entry: -entry.small_files,
    "logs": lambda entry: -entry.log_bytes,
    "old": lambda entry: -entry.old_bytes,
    "name": lambda entry: 0,
}
_GROUP_KEYS: Mapping[str, Callable[[GroupSizes], float]] = {
    "size": lambda entry: -_all_bytes(entry),
    "small": lambda entry: entry.base_bytes,
    "logs": lambda entry: -entry.log_bytes,
    "old": lambda entry: -entry.old_bytes,
    "name": lambda entry: 0,
}


def base_sizes(sizes: Sequence[int], small_limit: int) -> Html:
    """How many base files have which size, in steps of powers of two."""
    if not sizes:
        return element("p", "There are no base files.")
    steps = Counter(max(size, _SMALLEST).bit_length() - 1 for size in sizes)
    total = Counter[int]()
    for size in sizes:
        total[max(size, _SMALLEST).bit_length() - 1] += size
    most = max(steps.values())
    rows: list[list[Cell]] = []
    for step in range(min(steps), max(steps) + 1):
        low, high = 1 << step, 2 << step
        kind = "small" if high <= small_limit else "base"
        name = f"below {size_text(high)}" if low == _SMALLEST else f"{size_text(low)} to {size_text(high)}"
        rows.append([name, steps[step], size_text(total[step]), bar([(kind, steps[step])], most)])
    columns = (
        Column("size"),
        Column("base files", is_number=True),
        Column("bytes", is_number=True),
        Column("", wraps=True),
    )
    small = sum(size < small_limit for size in sizes)
    said = (
        f"{small:,} of {len(sizes):,} base files ({percent(small, len(sizes))}) are smaller than "
        f"{size_text(small_limit)}: inserts fill such files first (hoodie.parquet.small.file.limit)."
    )
    return Html(element("p", said) + table(columns, rows, label="Sizes of base files"))


def partitions(
    found: Sequence[PartitionSizes], order: str, number: int, place: Place | None, link: Callable[[str], str] | None
) -> Html:
    """A page of the list of partitions. `link`: the address of the page about one."""
    order = order if order in ORDERS else "size"
    ordered = sorted(sorted(found, key=lambda entry: entry.partition), key=_PARTITION_KEYS[order])
    page = Page(number, PAGE_ROWS, len(ordered))
    most = max(map(_all_bytes, found), default=0)
    rows: list[list[Cell]] = []
    for entry in ordered[page.shown]:
        name = entry.partition or "(not partitioned)"
        rows.append(
            [
                element("a", name, href=link(entry.partition)) if link else name,
                entry.file_groups,
                entry.base_files,
                entry.small_files,
                size_text(entry.base_bytes),
                entry.log_files,
                size_text(entry.log_bytes),
                size_text(entry.old_bytes),
                bar(_parts(entry), most),
            ]
        )
    more = pager(place, page, "partitions")
    return Html(
        choices(place, "order", ORDERS, order) + _LEGEND + table(_PARTITION_COLUMNS, rows, label="Partitions") + more
    )


def file_groups(found: Sequence[GroupSizes], order: str, number: int, place: Place | None) -> Html:
    """A page of the list of file groups of a partition."""
    order = order if order in ORDERS else "size"
    ordered = sorted(found, key=_GROUP_KEYS[order])
    page = Page(number, PAGE_ROWS, len(ordered))
    most = max(map(_all_bytes, found), default=0)
    rows: list[list[Cell]] = [
        [
            [entry.file_id, element("br"), element("small", f"compaction {entry.compaction} is pending")]
            if entry.compaction
            else entry.file_id,
            entry.base_instant,
            entry.written,
            size_text(entry.base_bytes) if entry.base_bytes else None,
            entry.log_files,
            size_text(entry.log_bytes) if entry.log_files else None,
            entry.old_versions,
            size_text(entry.old_bytes) if entry.old_bytes else None,
            bar(_parts(entry), most),
        ]
        for entry in ordered[page.shown]
    ]
    more = pager(place, page, "file groups")
    return Html(
        choices(place, "order", ORDERS, order) + _LEGEND + table(_GROUP_COLUMNS, rows, label="File groups") + more
    )


def overlaps(found: Sequence[ColumnOverlap]) -> Html | None:
    """Of how many base files the ranges of a column hold one value, on average; None where nobody looked."""
    if not found:
        return None
    is_told = any(entry.reads_before is not None for entry in found)
    most = max(max(entry.files, entry.files_before or 0) for entry in found)
    rows: list[list[Cell]] = [
        [
            entry.column + (" (sorted by)" if entry.is_clustered else ""),
            entry.files,
            f"{entry.reads:,.1f}",
            _reads_bar("base", entry.reads, entry.files, most),
            *(_before(entry, most) if is_told else ()),
        ]
        for entry in found
    ]
    columns = [
        Column("column"),
        Column("base files", is_number=True),
        Column("hold one value", is_number=True),
        Column("", wraps=True),
        *([Column("before the newest clustering", is_number=True), Column("", wraps=True)] if is_told else ()),
    ]
    said = "Files whose range of a column holds a value have to be read for it; a clustering by the column parts them."
    return Html(element("p", said) + table(columns, rows, label="Files that a look-up reads"))


def _reads_bar(kind: str, reads: float, files: int, most: int) -> Html:
    """Of `files` on a scale of `most` those that hold one value, in red where they are more than half."""
    return bar([(kind if reads <= files / 2 else "small", reads)], most)


def _before(entry: ColumnOverlap, most: int) -> list[Cell]:
    """The same before the newest clustering, in words and as a bar."""
    if entry.reads_before is None or entry.files_before is None:
        return [None, None]
    told = f"{entry.reads_before:,.1f} of {entry.files_before:,}"
    return [told, _reads_bar("old", entry.reads_before, entry.files_before, most)]


def log_debts(debts: Sequence[LogDebt]) -> Html:
    """The file groups with most bytes of log files, largest first as they are given."""
    shown = debts[:SHOWN_DEBTS]
    most = max((entry.base_bytes + entry.log_bytes for entry in shown), default=0)
    rows: list[list[Cell]] = [
        [
            entry.partition or "(not partitioned)",
            entry.file_id,
            size_text(entry.base_bytes),
            entry.log_files,
            size_text(entry.log_bytes),
            bar((("base", entry.base_bytes), ("log", entry.log_bytes)), most),
        ]
        for entry in shown
    ]
    return table(_DEBT_COLUMNS, rows, label="File groups with log files")


_LEGEND = element(
    "ul",
    [
        element("li", element("svg", element("rect", width=10, height=10, class_=kind), width=10, height=10), text)
        for kind, text in (("base", "base files"), ("log", "log files"), ("old", "old versions, for time travel"))
    ],
    class_="legend",
)
_PARTITION_COLUMNS = (
    Column("partition", wraps=True),
    Column("file groups", is_number=True),
    Column("base files", is_number=True),
    Column("small", is_number=True),
    Column("base bytes", is_number=True),
    Column("log files", is_number=True),
    Column("log bytes", is_number=True),
    Column("old bytes", is_number=True),
    Column("", wraps=True),
)
_GROUP_COLUMNS = (
    Column("file group", wraps=True),
    Column("base instant"),
    Column("last written"),
    Column("base file", is_number=True),
    Column("logs", is_number=True),
    Column("log bytes", is_number=True),
    Column("old versions", is_number=True),
    Column("old bytes", is_number=True),
    Column("", wraps=True),
)
_DEBT_COLUMNS = (
    Column("partition", wraps=True),
    Column("file group", wraps=True),
    Column("base file", is_number=True),
    Column("logs", is_number=True),
    Column("log bytes", is_number=True),
    Column("", wraps=True),
)
