"""What the repair of a table with storage paths looks at: whether all is there, and what is there too much.

The metadata table itself is made anew by its own writer, from a listing of all prefixes of all roots that is filtered
by the timeline (`metadata_writer.rebuild_partitions`). Nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from hoodie.engine import Engine
from hoodie.errors import HudiError, Missing, Unavailable
from hoodie.layout import FederatedStorage
from hoodie.layout.federated import COPY
from hoodie.query import Finding
from hoodie.query.validate import missing_files
from hoodie.services.relayout.relayout import load_move
from hoodie.state.handle import TableHandle
from hoodie.state.log_renames import load_renames


def ensure_whole(handle: TableHandle, engine: Engine) -> None:
    """Checks that every file that commits of the active timeline wrote is under some prefix, where there are prefixes.

    Raises:
        Unavailable: some are nowhere, or a root does not answer, or does not say that it is this table's.
    """
    if not isinstance(handle.storage, FederatedStorage):
        return
    names = load_renames(handle.storage)
    others = {**names, **{new: old for old, new in names.items()}}
    missing = [one for one in missing_files(handle, engine) if not _is_there(handle, others.get(one.path))]
    if missing:
        raise Unavailable(
            f"{len(missing)} files that commits wrote are under no storage path, as {missing[0].path}",
            remedy="See that all of them are reached, then try again; if the files are lost, go on without them by "
            "hoodie doctor --fix --accept-missing",
            missing=tuple(one.path for one in missing),
        )


def _is_there(handle: TableHandle, other: str | None) -> bool:
    """Whether a log file lies under the other name that a downgrade, which died, gave it or was about to."""
    with suppress(Missing):
        return other is not None and handle.storage.head(other).path == other
    return False


def unreached(handle: TableHandle) -> Iterator[Finding]:
    """Storage paths that do not answer, or do not say that they are this table's: with each what happened."""
    if isinstance(handle.storage, FederatedStorage):
        for root, error in handle.storage.unreached():
            yield Finding("unreachable", root, error.cause)


def strays(handle: TableHandle) -> Iterator[Finding]:
    """Files in folders of the table that nobody looks at. Old copies of a move that is under way are none."""
    storage = handle.storage
    if not isinstance(storage, FederatedStorage):
        return
    try:
        is_moving = load_move(handle) is not None
        found = storage.strays()
    except HudiError as error:
        yield Finding("unreadable", str(error.facts.get("root", storage.uri)), error.cause)
        return
    for name, what in found:
        if not (is_moving and what == COPY):
            yield Finding("stray", name, what)
