"""What a reader asks of a table, before anything was looked up.

The three groups: which table state, which rows and columns, and how the work is done. Texts of times are as the user
gave them. `parse_read_options` says which keys stand for which field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from hoodie.errors import Invalid
from hoodie.slices import READ_BATCH_ROWS, MergeOptions, parse_merge_options

if TYPE_CHECKING:
    from hoodie.config import Config

Query = Literal["snapshot", "read_optimized", "incremental", "cdc"]
HollowCommits = Literal["FAIL", "BLOCK", "USE_TRANSITION_TIME"]

EARLIEST = ("earliest", "000")
"""Texts that begin an incremental query before the first commit."""

_SKIPS = {
    "hoodie.datasource.read.incr.skip_compact": "COMPACT",
    "hoodie.datasource.read.incr.skip_cluster": "CLUSTER",
}


@dataclass(frozen=True, slots=True, eq=False)
class ReadOptions:
    """Options of one read.

    State: `query`; `as_of` (time travel, a snapshot as of a requested time); `begin` (exclusive) and `end` (inclusive)
    of an incremental query or a query of changes (`cdc`), instants or dates: requested times in tables of version 6,
    completion times in later ones.

    Rows: `columns` in result order (None: all), `filter` as SQL text or Arrow expression; `timezone` is that of
    timestamps in SQL which name none.

    Incremental behaviour: `conditions`, SQL like `filter`, all of which must hold; `path_glob` limits the files (see
    `PathGlob`); `full_scan_fallback` reads the newest files instead of ones a clean took away (Hudi 1.x's default);
    `hollow_commits` says what happens in version 6 when an earlier write is still running; `schema_at_end` gives the
    schema as of `end` rather than the newest; `skip_operations` leaves out commits of some operations (`COMPACT`,
    `CLUSTER`). Other queries leave these alone.

    Performance: `use_metadata`: files are listed by the table's metadata table where it has one; `skip_data`: its
    statistics and indexes leave out files, and so do, with `prune_buckets`, the buckets of keys. `batch_rows`, the most
    rows of one batch; raise it for few columns, lower it for wide rows. `merge` says how log files are merged.
    """

    query: Query = "snapshot"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None

    columns: tuple[str, ...] | None = None
    filter: Any = None
    timezone: str = "UTC"

    conditions: tuple[str, ...] = ()
    path_glob: str | None = None
    full_scan_fallback: bool = True
    hollow_commits: HollowCommits = "FAIL"
    schema_at_end: bool = False
    skip_operations: tuple[str, ...] = ()

    use_metadata: bool = True
    skip_data: bool = True
    prune_buckets: bool = True
    batch_rows: int = READ_BATCH_ROWS
    merge: MergeOptions = field(default_factory=MergeOptions)

    @property
    def is_ranged(self) -> bool:
        """Whether the query is about commits in a range."""
        return self.query in ("incremental", "cdc")


def parse_read_options(config: Config) -> ReadOptions:
    """The read that reader options (Hudi's keys) ask for: all columns and, but for incremental queries, all rows."""
    query = config.text("hoodie.datasource.query.type")
    if query == "incremental" and config.text("hoodie.datasource.query.incremental.format") == "cdc":
        query = "cdc"
    return ReadOptions(
        query=cast(Query, query),
        as_of=_given(config, "as.of.instant"),
        begin=_given(config, "hoodie.datasource.read.begin.instanttime"),
        end=_given(config, "hoodie.datasource.read.end.instanttime"),
        conditions=_split_conditions(config.text("hoodie.datasource.read.incr.filters")),
        path_glob=config.text("hoodie.datasource.read.incr.path.glob") or None,
        full_scan_fallback=config.flag("hoodie.datasource.read.incr.fallback.fulltablescan.enable"),
        hollow_commits=cast(HollowCommits, config.text("hoodie.query.timeline.holes.resolution.policy")),
        schema_at_end=config.flag("hoodie.datasource.read.schema.use.end.instanttime"),
        skip_operations=tuple(operation for key, operation in _SKIPS.items() if config.flag(key)),
        use_metadata=not config.is_set("hoodie.metadata.enable") or config.flag("hoodie.metadata.enable"),
        skip_data=config.flag("hoodie.enable.data.skipping"),
        prune_buckets=config.flag("hoodie.bucket.index.query.pruning"),
        merge=parse_merge_options(config),
    )


def ensure_consistent(options: ReadOptions) -> None:
    """Checks that the options go together.

    Raises:
        Invalid: an unknown query or policy, no `begin` for one that has a range, a range for another one, or time
            travel in one that has a range.
    """
    if options.query not in get_args(Query):
        raise Invalid(
            f"Unknown query type {options.query!r}",
            remedy=f"Use one of: {', '.join(get_args(Query))}",
            query=options.query,
        )
    if options.hollow_commits not in get_args(HollowCommits):
        raise Invalid(
            f"Unknown policy of hollow commits {options.hollow_commits!r}",
            remedy=f"Use one of: {', '.join(get_args(HollowCommits))}",
        )
    if options.is_ranged and not options.begin:
        raise Invalid(
            "An incremental query needs a begin",
            remedy="Give hoodie.datasource.read.begin.instanttime, or 'earliest' to start at the first commit",
        )
    if not options.is_ranged and (options.begin or options.end):
        raise Invalid(
            f"begin and end belong to incremental queries, not to {options.query} ones",
            remedy="Set hoodie.datasource.query.type=incremental, or as.of.instant for the table at a time",
        )
    if options.is_ranged and options.as_of:
        raise Invalid("An incremental query cannot travel in time", remedy="Give `end` instead of `as_of`")


def _given(config: Config, key: str) -> str | None:
    return config.text(key) if config.is_set(key) else None


def _split_conditions(text: str) -> tuple[str, ...]:
    """The parts of a comma list of SQL conditions. Commas inside quotes and parentheses do not count."""
    parts = [""]
    depth = 0
    quote = ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"`":
            quote = sign
        else:
            depth += (sign == "(") - (sign == ")")
        if sign == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return tuple(part.strip() for part in parts if part.strip())
