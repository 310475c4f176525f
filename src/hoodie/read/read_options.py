"""What a reader asks of a table, before anything was looked up.

The three groups: which table state, which rows and columns, and how the work is done. Texts of times are as the user
gave them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from hoodie.errors import Invalid, Unsupported

Query = Literal["snapshot", "read_optimized", "incremental"]
HollowCommits = Literal["FAIL", "BLOCK", "USE_TRANSITION_TIME"]

EARLIEST = ("earliest", "000")
"""Texts that begin an incremental query before the first commit."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadOptions:
    """Options of one read.

    State: `query`; `as_of` (time travel, a snapshot as of a requested time); `begin` (exclusive) and `end` (inclusive)
    of an incremental query, instants or dates: requested times in tables of version 6, completion times in later ones.

    Rows: `columns` in result order (None: all), `filter` as SQL text or Arrow expression.

    Incremental behaviour: `full_scan_fallback` reads the newest files instead of ones a clean took away (Hudi 1.x's
    default); `hollow_commits` says what happens in version 6 when an earlier write is still running; `schema_at_end`
    gives the schema as of `end` rather than the newest.

    Performance: `batch_rows`, the most rows of one batch; raise it for few columns, lower it for wide rows.
    """

    query: Query = "snapshot"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None

    columns: tuple[str, ...] | None = None
    filter: Any = None
    filter_timezone: str = "UTC"

    full_scan_fallback: bool = True
    hollow_commits: HollowCommits = "FAIL"
    schema_at_end: bool = False

    batch_rows: int = 65_536


def ensure_consistent(options: ReadOptions) -> None:
    """Nothing, when the options go together.

    Raises:
        Invalid: an unknown query, no `begin` for an incremental one, or time travel in an incremental one.
        Unsupported: change data capture.
    """
    query: str = options.query
    if query == "cdc":
        raise Unsupported("Change data capture queries are not there yet", remedy="Use query='incremental'")
    if query not in get_args(Query):
        raise Invalid(
            f"Unknown query type {options.query!r}",
            remedy=f"Use one of: {', '.join(get_args(Query))}",
            query=options.query,
        )
    if options.query == "incremental" and not options.begin:
        raise Invalid(
            "An incremental query needs a begin",
            remedy="Give hoodie.datasource.read.begin.instanttime, or 'earliest' to start at the first commit",
        )
    if options.query == "incremental" and options.as_of:
        raise Invalid("An incremental query cannot travel in time", remedy="Give `end` instead of `as_of`")
