"""All that is wrong with a table: its files and timeline, and what its indexes say otherwise than its rows.

Indexes are compared when the files are in order: where files are damaged or gone, what indexes should say is not known.
"""

from __future__ import annotations

from hoodie.engine import Engine, LocalEngine
from hoodie.errors import HudiError
from hoodie.fileview import FolderView
from hoodie.metadata_writer import index_troubles
from hoodie.query import Finding, validate_table
from hoodie.query.validate import CHECKING_THREADS
from hoodie.state.handle import TableHandle, timeline_of

_HARMLESS = frozenset({"orphan", "pending", "properties", "uncommitted"})
"""Kinds of findings that leave no doubt about which rows there are."""


def validate(handle: TableHandle, engine: Engine | None = None, *, deep: bool = False) -> list[Finding]:
    """All findings, ordered by kind and path; empty when the table is in order. Nothing is repaired. `deep` decodes
    every file, too.

    Cost: as `validate_table`, and as `index_troubles` where there are indexes.
    """
    engine = engine or LocalEngine(CHECKING_THREADS)
    findings = validate_table(handle, engine, deep=deep)
    if all(one.kind in _HARMLESS for one in findings) and handle.config.is_metadata_table_ready:
        findings += _contents(handle, engine)
    return sorted(findings, key=lambda one: (one.kind, one.path))


def _contents(handle: TableHandle, engine: Engine) -> list[Finding]:
    try:
        timeline = timeline_of(handle)
        slices = FolderView(handle.storage, timeline, engine).load().slices_at()
    except HudiError as error:
        return [Finding("unreadable", str(error.facts.get("path", "")), error.cause)]
    return [Finding("index", path, what) for path, what in index_troubles(handle, timeline, slices, engine)]
