"""All that is wrong with a table: its files and timeline, and what its indexes say otherwise than its rows; a deep look
asks whether rows lie in their buckets, too.

Indexes are compared when the files are in order: where files are damaged or gone, what indexes should say is not known.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.engine import Engine, LocalEngine
from hoodie.errors import HudiError
from hoodie.fileview import FolderView
from hoodie.metadata_writer import index_troubles
from hoodie.query import Finding, validate_table
from hoodie.query.validate import CHECKING_THREADS
from hoodie.services.bucket_contents import strays_of_buckets
from hoodie.spec import keys
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.state.log_renames import load_renames

_RENAMED = "version"
_HARMLESS = frozenset({"orphan", "pending", "properties", "uncommitted", _RENAMED})
"""Kinds of findings that leave no doubt about which rows there are."""


def validate(handle: TableHandle, engine: Engine | None = None, *, deep: bool = False) -> list[Finding]:
    """All findings, ordered by kind and path; empty when the table is in order. Nothing is repaired. `deep` decodes
    every file, and compares the keys of a table with a bucket index with their buckets.

    Cost: as `validate_table`, and as `index_troubles` where there are indexes.
    """
    engine = engine or LocalEngine(CHECKING_THREADS)
    findings = [*_without_renamed(handle, validate_table(handle, engine, deep=deep))]
    if all(one.kind in _HARMLESS for one in findings) and (deep or handle.config.is_metadata_table_ready):
        findings += _contents(handle, engine, deep=deep)
    return sorted(findings, key=lambda one: (one.kind, one.path))


def _without_renamed(handle: TableHandle, findings: Iterable[Finding]) -> Iterable[Finding]:
    """One finding about a downgrade that died, in place of those about log files that it gave other names: commits and
    metadata table may know the other of the two names.
    """
    try:
        names = load_renames(handle.storage)
    except HudiError as error:
        return [*findings, Finding("unreadable", keys.LOG_RENAMES_FILE, error.cause)]
    if not names:
        return findings
    both = {*names, *names.values()}
    what = (
        f"says that a downgrade died when it gave names of version 6 to {len(names)} log files: readers find their "
        f"rows, restores are refused. Finish it (hoodie upgrade {handle.storage.uri} --to 6), or give it up (--to "
        f"{handle.config.table_version})"
    )
    others = [finding for finding in findings if finding.path not in both]
    return [*others, Finding(_RENAMED, keys.LOG_RENAMES_FILE, what)]


def _contents(handle: TableHandle, engine: Engine, *, deep: bool) -> list[Finding]:
    try:
        timeline = timeline_of(handle)
        slices = FolderView(handle.storage, timeline, engine).load().slices_at()
        found = []
        if handle.config.is_metadata_table_ready:
            found += [Finding("index", path, what) for path, what in index_troubles(handle, timeline, slices, engine)]
        if deep:
            found += [Finding("bucket", *one) for one in strays_of_buckets(handle, timeline, slices, engine)]
        return found
    except HudiError as error:
        return [Finding("unreadable", str(error.facts.get("path", "")), error.cause)]
