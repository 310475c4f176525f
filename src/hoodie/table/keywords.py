"""Keywords of the façade's calls: acted on, or an error that names the one that was meant.

Python would take any name for options of a write and give its own error for those of a read.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from hoodie.arguments import checked_flag, checked_mapping, checked_text, checked_texts, checked_whole, kind_of
from hoodie.config import find, meant, nearest
from hoodie.errors import Invalid
from hoodie.query import ReadOptions
from hoodie.slices import MergeOptions
from hoodie.spec import TimeZone
from hoodie.timeline import instant_text

_TIMES = ("as_of", "begin", "end")


def _checked_merge(name: str, value: Any) -> MergeOptions:
    if not isinstance(value, MergeOptions):
        raise Invalid(f"{name} says how log files are merged, not {kind_of(value)}", remedy="Pass MergeOptions(…)")
    return value


_FLAGS = ("full_scan_fallback", "schema_at_end", "use_metadata", "skip_data", "prune_buckets")
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("columns", "conditions", "skip_operations"), checked_texts),
    **dict.fromkeys(("query", "timezone", "path_glob", "hollow_commits", *_TIMES), checked_text),
    **dict.fromkeys(_FLAGS, checked_flag),
    "batch_rows": partial(checked_whole, least=1),
    "merge": _checked_merge,
}
_MAY_BE_NONE = ("columns", "filter", "path_glob", *_TIMES)
_OF_OTHERS = {
    "where": "filter",
    "predicate": "filter",
    "condition": "filter",
    "timestamp": "as_of",
    "version": "as_of",
    "instant": "as_of",
    "start": "begin",
    "since": "begin",
    "until": "end",
    "type": "query",
    "query_type": "query",
    "select": "columns",
}
_INSTEAD = {
    "limit": "Take as many rows as needed from .reader, or slice what .read_all() gives",
    "mode": "Use upsert or insert to add rows, insert_overwrite_table to replace them all",
    "engine": "Pass it to Table.open",
    "spark": "Pass it to Table.open",
    "overwrite": "Use insert_overwrite_table, or insert_overwrite for partitions",
}


def read_keywords(given: Mapping[str, Any], timezone: TimeZone, said: str | None = None) -> dict[str, Any]:
    """Fields of `ReadOptions` by keywords: times as texts, in the zone of the table's instants.

    With `begin` or `end` the query is an incremental one unless another is asked for; `said` is the one that options
    ask for.

    Raises:
        Invalid: an unknown keyword, a value of another type, what is no time, or a range of another query.
    """
    known = [field.name for field in fields(ReadOptions)]
    for name in given:
        if name not in known:
            raise _unknown(name, _OF_OTHERS.get(name.lower()) or _near(name, [*known]))
    found = dict(given)
    for name in _TIMES:
        value = found.get(name)
        if value is not None and not isinstance(value, str):
            found[name] = instant_text(value, timezone)
    for name, value in found.items():
        if value is not None and name in _CHECKS:
            found[name] = _CHECKS[name](name, value)
    has_range = found.get("begin") is not None or found.get("end") is not None
    query = found.get("query") or said
    if has_range and query is None:
        found["query"] = "incremental"
    if has_range and query in ("snapshot", "read_optimized"):
        raise Invalid(
            f"begin and end belong to incremental queries, not to {query} ones",
            remedy="Leave the query type out, or use as_of for the table at a time",
        )
    return {name: value for name, value in found.items() if value is not None or name in _MAY_BE_NONE}


def call_options(given: Mapping[str, object]) -> dict[str, object]:
    """Options of a call, those in a keyword `options` among them.

    Raises:
        Invalid: a keyword that is no option.
    """
    found = dict(checked_options(given))
    more = found.pop("options", None)
    if more is not None:
        found = {**checked_options(more), **found}
    for name in found:
        if "." not in name and find(name) is None:
            dotted = name.replace("__", ".").replace("_", ".")
            raise _unknown(name, meant(name) or (dotted if find(dotted) else nearest(dotted)), is_option=True)
    return found


def checked_options(given: Any) -> Mapping[str, Any]:
    """`given`, which is a mapping of keys to values. Raises: Invalid: it is none."""
    return checked_mapping("Options", given, "Pass options={'hoodie.…': value}")


def _unknown(name: str, near: str | None, *, is_option: bool = False) -> Invalid:
    known = "Options have Hudi's keys: **{'hoodie.…': value}" if is_option else "`help(Table.scan)` lists the keywords"
    remedy = _INSTEAD.get(name) or (f"Did you mean {near}?" if near else known)
    return Invalid(f"Unknown keyword {name}", remedy=remedy, key=name, nearest=near)


def _near(name: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.lower(), known, n=1)), None)
