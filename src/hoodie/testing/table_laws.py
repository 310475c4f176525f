"""What always holds of a table whose history is known: laws that random histories are held to.

1. A snapshot holds the rows of the newest commit; time travel those of its commit, or is refused once a clean ran.
2. Changes between two commits are the rows of the later one that the earlier one has not so; change data, applied to
   the earlier rows, gives the later ones. In one commit a replaced row may show as inserted before it is deleted.
3. Looking keys up, filtering by them and scanning give the same rows.
4. `validate` finds nothing but what waits: the metadata table and its indexes hold what the data says.

`COUNTS` says how often each was asked.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import Invalid, Unavailable
from hoodie.table import Table
from hoodie.testing.table_model import Kept, Rows, changed, rows_of

COLUMNS: Final = ["id", "part", "ts", "v"]
COUNTS: Final = dict.fromkeys(
    (
        "snapshots",
        "time travels",
        "refused time travels",
        "incremental pulls",
        "change queries",
        "refused change queries",
        "look-ups",
        "validations",
    ),
    0,
)


Reader = Callable[..., pa.Table]
"""Rows of a query with the words `query`, `as_of`, `begin`, `end` and `filter`: of this engine, of Spark, of a peer."""


def local_reader(table: Table) -> Reader:
    """Reads with the local engine."""

    def read(**query: Any) -> pa.Table:
        return table.scan(**query).read_all()

    return read


def ensure_snapshot(read: Reader, rows: Rows) -> None:
    COUNTS["snapshots"] += 1
    found = rows_of(read())
    assert found == rows, f"missing or other: {changed(found, rows)}, wrong: {changed(rows, found)}"


def ensure_state(read: Reader, instant: str, rows: Rows, *, may_refuse: bool) -> None:
    """The rows as of a commit."""
    try:
        found = rows_of(read(as_of=instant))
    except Invalid:
        if not may_refuse:
            raise
        COUNTS["refused time travels"] += 1
        return
    COUNTS["time travels"] += 1
    assert found == rows, f"as of {instant}"


def ensure_changes(
    read: Reader, table: Table, begin: str, end: str | None, states: Mapping[str, Rows], *, losers_too: bool = False
) -> None:
    """An incremental query between two commits gives the rows that are new or other at the end.

    Where the rows as of `end` are lost, cleaned, it answers with the newest ones: they are not compared.
    `losers_too`: in a merge-on-read table ordered by event time it also gives rows that came in the range and lost
    against a row from before it, as Hudi's does: it merges what the range brought, not what was there.
    """
    bounds = [_completion(table, at) for at in (begin, end) if at is not None]
    if None in bounds:  # archived
        return
    if end is not None and not _has_state(read, end):
        return
    COUNTS["incremental pulls"] += 1
    since, until = bounds[0], bounds[1] if end is not None else None
    found = rows_of(read(query="incremental", begin=since, end=until))
    newest = states[max(states)] if end is None else states[end]
    expected = changed(states[begin], newest)
    if losers_too:
        found = {key: row for key, row in found.items() if key not in newest or row.ts >= newest[key].ts}
    assert found == expected, f"since {begin} until {end}"


def ensure_change_data(read: Reader, table: Table, begin: str, states: Mapping[str, Rows], *, may_refuse: bool) -> None:
    """Change data since a commit, applied to its rows commit by commit, gives the newest rows. It may be refused since
    one that only a savepoint keeps on the timeline: commits after it may be archived.
    """
    since = _completion(table, begin)
    if since is None:
        return
    may_refuse = may_refuse or table.timeline().is_before_start(begin)
    try:
        events = read(query="cdc", begin=since).to_pylist()
    except (Invalid, Unavailable):  # the latter where a clean died after it had begun to delete
        if not may_refuse:
            raise
        COUNTS["refused change queries"] += 1
        return
    COUNTS["change queries"] += 1
    held = {(row.part, key): row for key, row in states[begin].items()}
    for _, of_commit in itertools.groupby(events, key=lambda event: event["ts_ms"]):
        changes = list(of_commit)
        for place, row in _images(changes, "before", ("u", "d")):
            assert held.pop(place, None) == row, f"{place} was {row}"
        for place, row in _images(changes, "after", ("i", "u")):
            assert place not in held, f"{place} is {row}"
            held[place] = row
    newest = states[max(states)]
    assert held == {(row.part, key): row for key, row in newest.items()}, f"change data since {begin}"


def ensure_look_ups(table: Table, keys: Collection[str], rows: Rows) -> None:
    """Looking up, filtering by key and scanning agree on `keys`, known or not."""
    COUNTS["look-ups"] += 1
    read = local_reader(table)
    expected = {key: row for key, row in rows.items() if key in keys}
    assert rows_of(table.lookup(sorted(keys), columns=COLUMNS).read_all()) == expected
    quoted = ", ".join(f"'{key}'" for key in sorted(keys))
    assert rows_of(read(filter=f"id IN ({quoted})")) == expected
    texts = ", ".join(f"'{row.text}'" for row in expected.values()) or "''"
    assert rows_of(read(filter=f"v IN ({texts})")) == expected


def ensure_valid(table: Table, *, left: Collection[str] = ()) -> None:
    """Checks that nothing is wrong. `left`: findings that an action that died may leave until the next."""
    COUNTS["validations"] += 1
    harmless = {"pending", *left}
    findings = [finding for finding in table.validate() if finding.kind not in harmless]
    assert findings == [], "\n".join(map(str, findings))


def _has_state(read: Reader, instant: str) -> bool:
    try:
        read(as_of=instant)
    except Invalid:
        return False
    return True


def _completion(table: Table, instant: str) -> str | None:
    """The time by which queries of changes know a commit; None when it is archived."""
    timeline = table.timeline()
    found = next((one for one in timeline.completed_writes() if one.requested == instant), None)
    if found is None:
        return None
    return timeline.profile.clock.of(found)


def _images(changes: list[dict[str, Any]], side: str, ops: tuple[str, ...]) -> Iterator[tuple[tuple[str, str], Kept]]:
    """Partition and key with the row before or after, of the changes that have one."""
    for change in changes:
        if change["op"] in ops:
            row = json.loads(change[side])
            yield (row["part"], row["id"]), Kept(row["part"], row["v"], row["ts"])
