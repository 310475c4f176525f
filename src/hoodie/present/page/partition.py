"""The page about one partition of a table: its file groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie.present.page.document import FOOT, document
from hoodie.present.page.markup import element
from hoodie.present.page.parts import Place, section, tile
from hoodie.present.page.sizes import file_groups
from hoodie.services.overview.group_sizes import GroupSizes
from hoodie.units import size_text


@dataclass(frozen=True, slots=True)
class OnePartition:
    """A partition of the table `table_name`, with its file groups."""

    table_name: str
    partition: str
    groups: Sequence[GroupSizes]


def partition_page(entry: OnePartition, place: Place, up: str, *, order: str = "size", number: int = 1) -> str:
    """The page. `place` is itself, `up` the address of the table's page; `order` and `number`: which part of the list,
    in which order.
    """
    name, groups = entry.partition or "(not partitioned)", entry.groups
    logs, old = sum(group.log_files for group in groups), sum(group.old_versions for group in groups)
    tiles = element(
        "ul",
        tile("file groups", f"{len(groups):,}"),
        tile("base files", size_text(sum(group.base_bytes for group in groups))),
        tile("log files", size_text(sum(group.log_bytes for group in groups)), f"{logs:,} files"),
        tile("old versions", size_text(sum(group.old_bytes for group in groups)), f"{old:,} slices, for time travel"),
        class_="tiles",
    )
    listed = section("groups", "File groups", file_groups(groups, order, number, place))
    crumbs = (element("a", "All tables", href="/"), " / ", element("a", entry.table_name, href=up))
    return document(
        f"{name} – {entry.table_name}",
        element("header", element("p", crumbs, class_="crumbs"), element("h1", name)),
        element("main", tiles, listed, id="content"),
        FOOT,
    )
