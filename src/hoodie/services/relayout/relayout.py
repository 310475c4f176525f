"""`hoodie relayout`: other places for the files of a table, for new ones only or for all.

1. A switch is one replacement of the properties. Before it, folders of new roots are claimed and tried out; after it,
   whoever takes the lock writes by the new version, and files of earlier instants are found where they are.
2. A move goes `copying`, flip (one replacement of the properties), `flipped`, and is continued by the next call:

   | it dies | what counts | the next call |
   |---|---|---|
   | while it copies | the old places | copies what is missing or of another size |
   | after the flip, before that is noted | the new places | notes it: the properties decide |
   | after that | the new places; old copies stay for those who read by old properties | deletes them after the grace |

3. An old copy is deleted only if the new one has the same bytes, or the table does not know the file any more.
4. What else lies in the new places and is no file of the table goes before these count.
5. Failed writes are rolled back first, and a move waits for all that is pending: a writer or an executor of a plan that
   began before the flip writes to the old place, which would not count any more. The caller holds the table lock, so
   nobody begins meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hoodie.config import Config
from hoodie.engine import Engine
from hoodie.errors import Conflict, Corrupt, Invalid, Missing
from hoodie.fileview.listed import not_in_metadata
from hoodie.layout import FederatedStorage, Layout, LayoutVersion, laid_out
from hoodie.layout.access import parse_access
from hoodie.layout.apart import ensure_outside
from hoodie.layout.move import MOVE_FILE, Move, encode_move, parse_move, plan_moves
from hoodie.layout.opening import access_of, storage_options
from hoodie.layout.properties import layout_properties
from hoodie.layout.required import metadata_is_missing
from hoodie.metadata import FILES
from hoodie.metadata_writer import rebuild_partitions
from hoodie.notebook import Displayed
from hoodie.services.preview import PreviewStep, ServicePreview
from hoodie.services.relayout.copies import copy_file, delete_at, delete_copy, delete_old
from hoodie.services.relayout.plan import is_one_place, newest_for, plan_switch, plan_target, strategy_of
from hoodie.services.rollback.failed_writes import roll_back_failed_writes
from hoodie.services.service import Argument, Service
from hoodie.spec import keys
from hoodie.spec.typed_values import is_plain_path
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import FileInfo, Storage
from hoodie.storage.fence import ensure_held
from hoodie.timeline import new_instant_time, store_table_config
from hoodie.view import list_files
from hoodie.write.layout_options import named_roots

log = logging.getLogger(__name__)

GRACE_HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class RelayoutResult(Displayed):
    """What was done. `steps` are sentences; files and bytes are those that were copied, `deleted` old copies that went.
    `waits`: old copies are left for readers that opened the table before; the same call deletes them later.
    """

    steps: tuple[str, ...]
    files: int
    size_bytes: int
    deleted: int
    waits: bool


def relayout(  # noqa: PLR0917
    handle: TableHandle,
    config: Config,
    engine: Engine,
    to: str = "",
    move: bool = False,
    undo: bool = False,
    grace_hours: float = GRACE_HOURS,
    partition: str = "",
    claim: bool = False,
) -> RelayoutResult | None:
    """What it took to switch to the strategy `to` and, with `move`, to bring all files there; None when all is so. A
    move that is under way is gone on with; with `undo` it is given up instead, and its copies go. With `partition` all
    that is about that one and those below it, or with `*` at the end those that begin so. `claim` comes first: the
    table is where it is now, and the storage paths are its own again.

    Raises:
        Invalid: no storage path, or one that is not allowed; `to` while a move is under way; `undo` after the flip.
        Unsupported: no such strategy. Conflict: a folder of a root is another table's.
    """
    steps: list[str] = []
    if claim:
        if not (handle.config.is_federated and isinstance(handle.storage, FederatedStorage)):
            raise Invalid(f"{handle.config.name} has no storage paths to claim", remedy="Leave it out", key="claim")
        ensure_held(handle.storage)
        handle.storage.claim(was_moved=True)
        steps.append(f"the storage paths know the table at {handle.storage.uri}")
    roll_back_failed_writes(handle, engine, config=config)
    pending = load_move(handle)
    if undo:
        return None if pending is None else _given_up(handle, engine, pending)
    _ensure_partition(handle, partition)
    if pending is not None and ((to and to != _target(pending)) or (partition and partition != pending.partition)):
        of = f" of {pending.partition}" if pending.partition else ""
        raise Invalid(
            f"A move{of} to {_target(pending)} is under way",
            remedy="Finish it first: hoodie relayout --move, which deletes the old copies once readers had their hours "
            "(--grace-hours 0: now)",
        )
    if pending is None and to and not _is_there(handle, config, to, partition):
        handle = _switched(handle, config, engine, to, partition)
        of = f" of {partition}" if partition else ""
        steps.append(f"new files{of} go to {to} from instant {_layout(handle).versions[-1].since} on")
    copied: Mapping[str, int] = {}
    if pending is None and move and handle.config.is_federated:
        pending = _begun(handle, partition)
    if pending is not None and not pending.flipped_ms:
        handle, copied, pending = _flipped(handle, engine, pending)
        steps.append(f"{len(copied)} files were copied, and count in their new places")
    deleted, waits = 0, pending is not None
    if pending is not None and handle.env.now().timestamp() * 1000 >= pending.flipped_ms + grace_hours * 3_600_000:
        deleted, waits = _swept(handle, engine, pending), False
        steps.append(f"{deleted} old copies were deleted")
    if not steps:
        return None
    return RelayoutResult(tuple(steps), len(copied), sum(copied.values()), deleted, waits)


def preview_relayout(  # noqa: PLR0917
    handle: TableHandle,
    config: Config,
    engine: Engine,
    to: str = "",
    move: bool = False,
    undo: bool = False,
    grace_hours: float = GRACE_HOURS,
    partition: str = "",
    claim: bool = False,
) -> ServicePreview:
    """A step for each partition whose files a move would copy. Nothing is claimed or written. Raises as `relayout`."""
    del undo, grace_hours
    pending = load_move(handle)
    layout = handle.storage.layout if isinstance(handle.storage, FederatedStorage) else None
    planned = layout
    _ensure_partition(handle, partition)
    if pending is None and to and not _is_there(handle, config, to, partition):
        planned = _planned(handle, config, to, partition)
        laid = laid_out(_allowing(handle.storage, config), handle.config.with_changes(_properties(handle, planned)))
        if isinstance(laid, FederatedStorage):
            laid.ensure_free()
    if planned is None or not (move or pending):
        return ServicePreview("relayout", (), (f"new files would go to {to or 'where they go now'}",))
    now = layout or replace(planned, versions=planned.versions[:-1])
    target = Move((), plan_target(planned, partition), {}, partition=partition) if pending is None else pending
    then = replace(planned, versions=target.after)
    steps = []
    for files in list_files(handle.storage, engine=engine):
        sizes = {file.path: file.size_bytes for file in (*files.everything, *files.changes)}
        if found := plan_moves(sizes, now, then):
            to_where = f"to {_target(target)}"
            steps.append(PreviewStep("move", files.partition, None, tuple(found), sum(found.values()), to_where))
    return ServicePreview("relayout", tuple(steps))


def load_move(handle: TableHandle) -> Move | None:
    """The move of the table that is under way; None where there is none.

    Raises:
        Corrupt: its file is damaged.
    """
    try:
        data = handle.storage.read(MOVE_FILE)
    except Missing:
        return None
    layout = _layout(handle)
    return parse_move(data, len(layout.roots), access_of(handle.storage).own)


# The switch


def _ensure_partition(handle: TableHandle, partition: str) -> None:
    if partition and (not handle.config.partition_fields or not is_plain_path(partition)):
        raise Invalid(
            f"{partition!r} cannot be a partition of the table",
            remedy="Name one by its path, as 2024/01 or day=2024-01-01; a '*' at the end stands for any text",
        )


def _is_there(handle: TableHandle, config: Config, to: str, partition: str) -> bool:
    """Whether new files go where it is asked for already."""
    layout = handle.storage.layout if isinstance(handle.storage, FederatedStorage) else None
    newest = None if layout is None else newest_for(layout.versions, partition)
    if layout is None or newest is None:
        elsewhere = () if layout is None or partition else layout.versions
        return to == "hive" and not any(one.roots for one in elsewhere)
    asked = named_roots(config)
    same = not asked or asked == tuple(layout.roots[number] for number in newest.roots)
    later = layout.versions[layout.versions.index(newest) + 1 :]
    return newest.text == to and same and (bool(partition) or all(is_one_place(one, newest) for one in later))


def _planned(handle: TableHandle, config: Config, to: str, partition: str) -> Layout:
    layout = handle.storage.layout if isinstance(handle.storage, FederatedStorage) else None
    roots = named_roots(config) or (() if layout is None else layout.roots)
    if not roots and to != "hive":
        raise Invalid(
            "The table has no storage path yet",
            remedy=f"Say where files should go: --option {keys.STORAGE_PATH}=s3://bucket",
            key=keys.STORAGE_PATH,
        )
    folder = config.text("hoodie.storage.folder") or handle.config.name
    own = access_of(_allowing(handle.storage, config)).own
    known = [timeline_of(handle).last_time() or "", *(one.since for one in (layout.versions if layout else ()))]
    since = new_instant_time(handle.env, handle.config.timezone, max(known) or None)
    uuid = handle.env.uuid()
    return plan_switch(layout, strategy_of(to, own), roots if to != "hive" else (), folder, since, uuid, partition)


def _switched(handle: TableHandle, config: Config, engine: Engine, to: str, partition: str) -> TableHandle:
    """The handle of the table whose new files go to `to`."""
    if not handle.config.is_metadata_table_ready:
        if handle.config.is_federated and timeline_of(handle).instants:
            raise metadata_is_missing(handle.storage.uri)
        handle = rebuild_partitions(handle, (FILES,), engine)
        if not handle.config.is_metadata_table_ready:
            _ensure_nothing_pending(handle)
            raise metadata_is_missing(handle.storage.uri)
    is_first = not handle.config.is_federated
    layout = _planned(handle, config, to, partition)
    changed = handle.config.with_changes(_properties(handle, layout))
    laid = laid_out(_allowing(handle.storage, config), changed)
    if isinstance(laid, FederatedStorage):
        laid.ensure_free()
        laid.claim(is_new=is_first)
        for root in laid.roots:
            _try_out(root, layout.uuid)
    ensure_held(laid)
    stored = store_table_config(handle.storage, handle.config, changed, handle.env)
    log.info("files of %s go to %s from %s on", handle.config.name, to, layout.versions[-1].since)
    return replace(handle, storage=laid, config=stored)


def _try_out(root: Storage, uuid: str) -> None:
    """Writes and deletes a probe: who may not do so is told before anything counts on it."""
    probe = f".hoodie_owners/.probe-{uuid}"
    root.put(probe, b"")
    root.delete(probe)


def _properties(handle: TableHandle, layout: Layout) -> dict[str, str]:
    return layout_properties(layout, handle.config.table_type)


def _allowing(storage: Storage, config: Config) -> FederatedStorage:
    """The storage with what options of this call allow besides those the table was opened with."""
    known = access_of(storage)
    more = parse_access(config.explicit, storage_options(dict(config.passed)))
    if more is not None:
        known = replace(
            known,
            allowed=(*known.allowed, *more.allowed),
            own={**known.own, **more.own},
            options={**known.options, **more.options},
        )
    if isinstance(storage, FederatedStorage):
        return replace(storage, access=known)
    return FederatedStorage(storage, known)


# The move


def _begun(handle: TableHandle, partition: str) -> Move | None:
    """The move of all files that do not lie where new ones go, noted; None when there are none."""
    layout = _layout(handle)
    after = plan_target(layout, partition)
    if after == layout.versions:
        return None
    ensure_outside(replace(layout, versions=after), handle.storage.uri)
    _ensure_nothing_pending(handle)
    move = Move(layout.versions, after, _elsewhere(handle, after), partition=partition)
    handle.storage.put(MOVE_FILE, encode_move(move))
    return move


def _flipped(handle: TableHandle, engine: Engine, move: Move) -> tuple[TableHandle, Mapping[str, int], Move]:
    """The handle of the table whose files count in their new places, what was copied, and the move as it is noted.

    Raises:
        Conflict: something is pending on the timeline.
    """
    layout = _layout(handle)
    files: Mapping[str, int] = {}
    if layout.versions != move.after:
        _ensure_nothing_pending(handle)
        target = replace(layout, versions=move.after)
        changed = handle.config.with_changes(_properties(handle, target))
        there = laid_out(handle.storage, changed)
        files = _elsewhere(handle, move.after)
        gone = {*(path for path in move.files if path not in files), *_left_over(handle, there)}
        engine.run(delete_copy, [(handle.storage, there, path) for path in gone], "drop copies of what is gone")
        move = replace(move, files=files)
        handle.storage.put(MOVE_FILE, encode_move(move))
        engine.run(copy_file, [(handle.storage, there, path, size) for path, size in files.items()], "copy files")
        ensure_held(handle.storage)
        stored = store_table_config(handle.storage, handle.config, changed, handle.env)
        handle = replace(handle, storage=there, config=stored)
    move = replace(move, flipped_ms=int(handle.env.now().timestamp() * 1000))
    handle.storage.put(MOVE_FILE, encode_move(move))
    return handle, files, move


def _given_up(handle: TableHandle, engine: Engine, move: Move) -> RelayoutResult:
    """What was done to forget a move. Raises Invalid where the new places count already."""
    layout = _layout(handle)
    if layout.versions == move.after:
        raise Invalid(
            "The files count in their new places already",
            remedy="Finish the move (hoodie relayout --move; --grace-hours 0 does not wait for readers of the old "
            "copies), then move them back: hoodie relayout --to … --move",
        )
    target = replace(layout, versions=move.after)
    there = laid_out(handle.storage, handle.config.with_changes(_properties(handle, target)))
    ensure_held(handle.storage)
    done = sum(engine.run(delete_at, [(there, path) for path in move.files], "drop copies"))
    handle.storage.delete(MOVE_FILE)
    return RelayoutResult(("the move was given up; new files go on to the new places",), 0, 0, done, waits=False)


def _swept(handle: TableHandle, engine: Engine, move: Move) -> int:
    """How many old copies are gone; the move is over then."""
    layout = replace(_layout(handle), versions=move.before)
    old = laid_out(handle.storage, handle.config.with_changes(_properties(handle, layout)))
    if not handle.config.is_metadata_table_ready:  # nobody could say which files are the table's
        raise metadata_is_missing(handle.storage.uri)
    unknown = set(not_in_metadata(handle, move.files))
    tasks = [(handle.storage, old, path, path in unknown) for path in move.files]
    done = sum(engine.run(delete_old, tasks, "delete old copies"))
    handle.storage.delete(MOVE_FILE)
    return done


def _ensure_nothing_pending(handle: TableHandle) -> None:
    pending = [f"{one.requested}.{one.action}" for one in timeline_of(handle).pending()]
    if pending:
        raise Conflict(
            f"Files cannot get another place while something is pending: {', '.join(pending[:5])}",
            remedy="Carry plans out or drop them (hoodie compact, hoodie cluster), wait for writers, then try again",
            pending=tuple(pending),
        )


def _elsewhere(handle: TableHandle, after: tuple[LayoutVersion, ...]) -> dict[str, int]:
    """Sizes of the table's files whose place is another then. What its metadata table does not know, as a file of a
    writer that was rolled back, is none of them: it stays where nobody looks any more. Without that table all are.
    """
    layout = _layout(handle)
    sizes = {file.path: file.size_bytes for file in _data_files(handle.storage)}
    unknown = set(not_in_metadata(handle, sizes)) if handle.config.is_metadata_table_ready else set()
    known = {path: size for path, size in sizes.items() if path not in unknown}
    return plan_moves(known, layout, replace(layout, versions=after))


def _left_over(handle: TableHandle, there: Storage) -> tuple[str, ...]:
    """Files in places that are about to count, left there by a move that nobody knows of any more or by another table:
    whoever makes the metadata table anew would take them for files of this one.
    """
    here = {file.path for file in _data_files(handle.storage)}
    return not_in_metadata(handle, [file.path for file in _data_files(there) if file.path not in here])


def _data_files(storage: Storage) -> tuple[FileInfo, ...]:
    return storage.data_files() if isinstance(storage, FederatedStorage) else ()


def _target(move: Move) -> str:
    """The strategy by which the files of a move lie when it is done, as text."""
    found = newest_for(move.after, move.partition)
    return "" if found is None else found.text


def _layout(handle: TableHandle) -> Layout:
    layout = handle.storage.layout if isinstance(handle.storage, FederatedStorage) else None
    if layout is None:
        raise Corrupt(f"{MOVE_FILE} is there, but the table has no storage paths", remedy="Delete it", path=MOVE_FILE)
    return layout


SERVICE: Final = Service(
    name="relayout",
    nothing="all files lie where they should",
    run=relayout,
    preview=preview_relayout,
    arguments=(
        Argument("to", "strategy of new files, as bits:8 (hoodie.storage.path says the buckets)", str, ""),
        Argument("move", "bring all other files there as well, or go on with that", bool, default=False),
        Argument("undo", "give a move up that has not reached its flip", bool, default=False),
        Argument("grace_hours", "leave old copies for so many hours (default 24)", float, GRACE_HOURS),
        Argument(
            "partition", "only this partition and those below it, or with * at the end those that begin so", str, ""
        ),
        Argument(
            "claim", "the table was moved here, or what says whose the storage paths are was lost", bool, default=False
        ),
    ),
)
