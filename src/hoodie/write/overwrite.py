"""Put a table of another kind (keys, partitioning, version ...) in the place of one that exists, without a moment in
which a crash loses both.

1. The new rows are written first, as a pending write of the *old* table: its readers do not see them, and a writer that
   dies leaves what every writer knows how to roll back.
2. When all new files are durable, the switch is written down: a file with everything that is left to do.
3. Removing the old `hoodie.properties` is the point of no return. From here on opening the table fails, and says that
   an overwrite was interrupted; nobody can take a half-removed table for a table. The next write finishes the switch.
4. Then the old table goes, the new one gets its partition metafiles and its completed instant, and last of all its
   `hoodie.properties`: with it the new table appears as a whole.

The note is found in a folder without `hoodie.properties`, so it may be anybody's: it is believed only if it is whole
and the rows it names are there (`load_switch`), and what is deleted for it is what tables consist of, no other file.

Where files lie under storage paths, both tables have the same layout: whoever rolls the pending write back looks for
its files where the old table says.

What remains: while the old files are being deleted the table cannot be read, and its history is gone afterwards. (An
overwrite by a table of the same kind is one commit, and has neither limit.)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from hoodie.engine import LocalEngine, TaskId
from hoodie.env import Env
from hoodie.errors import CommitUnknown, Conflict, Corrupt, HudiError
from hoodie.layout import FederatedStorage, laid_out
from hoodie.layout.move import copies_that_do_not_count
from hoodie.spec import (
    BaseFileName,
    Instant,
    State,
    TableConfig,
    is_partition_metafile,
    keys,
    parse_data_file_name,
    profile_of,
)
from hoodie.state.handle import TableHandle
from hoodie.storage import Storage, checked_path
from hoodie.timeline import Timeline, complete, create_requested, store_table_config, to_inflight
from hoodie.transaction import Outcome, StillPending, Transaction
from hoodie.transaction.partition_metafiles import create_partition_metafiles

_SYNC_FILE = f"{keys.HOODIE_DIR}/.switching"
_DELETING_THREADS = 16


@dataclass(frozen=True, slots=True)
class Switch:
    """What is left to do once the new files are durable. `payload` is the content of the completed instant."""

    path: str
    instant: str
    properties: dict[str, str]
    files: tuple[str, ...]
    partitions: tuple[str, ...]
    payload: bytes

    @property
    def config(self) -> TableConfig:
        return TableConfig(self.properties)


def finish_overwrite(transaction: Transaction, new: TableHandle, planned_on: Timeline, outcome: Outcome) -> Instant:
    """The completed instant of the new table, which has taken the place of the old one, the transaction's.

    Raises:
        Conflict: another writer removed the pending write; the old table stands.
        CommitUnknown: the switch was begun and could not be finished.
    """
    with transaction.committing(outcome, planned_on, StillPending()) as pending:
        switch = Switch(
            path=f"{keys.TEMP_DIR}/{transaction.instant}{keys.OVERWRITE_SUFFIX}",
            instant=transaction.instant,
            properties=dict(new.config.raw),
            files=outcome.files,
            partitions=outcome.partitions,
            payload=new.profile.commit_codec.encode(outcome.metadata, pending.inflight.action),
        )
        new.storage.create(switch.path, encode_switch(switch))
        try:
            return run_switch(new.storage, switch, new.env)
        except (Exception, KeyboardInterrupt) as error:  # whatever stops it: the old table is going, nobody aborts it
            raise CommitUnknown(
                f"The overwrite {switch.instant} stopped half-way: {str(error) or 'it was interrupted'}",
                remedy="All new rows are stored. Remove the cause and write again: that finishes this overwrite first, "
                "or rolls it back if the old table still stands",
                instant=switch.instant,
            ) from error


def load_switch(storage: Storage) -> Switch | None:
    """The switch that was begun at a base path that has no `hoodie.properties`; None when there is none.

    Raises:
        Corrupt: its file is damaged, or names rows that are not there.
        Invalid: its files lie under storage paths that the caller does not allow.
    """
    found = [file.path for file in storage.list_dir(keys.TEMP_DIR).files if file.path.endswith(keys.OVERWRITE_SUFFIX)]
    if not found:
        return None
    switch = parse_switch(storage.read(max(found)), max(found))
    storage = laid_out(storage, switch.config)
    if isinstance(storage, FederatedStorage):
        stored = {file.path for file in storage.data_files()}
    else:
        stored = {file.path for partition in switch.partitions for file in storage.list_dir(partition).files}
    missing = next((path for path in switch.files if path not in stored), None)
    if missing is not None:
        raise _damaged(switch.path, f"it names {missing!r}, which is not there")
    return switch


def run_switch(storage: Storage, switch: Switch, env: Env) -> Instant:
    """The completed instant of the new table. Every step may be done again: who dies in between is continued here."""
    storage = laid_out(storage, switch.config)
    for path in (keys.PROPERTIES_BACKUP_FILE, keys.PROPERTIES_FILE):
        storage.delete(path)
    storage.put(_SYNC_FILE, b"")  # deletions in a folder are durable after the next file in it
    _delete_all_but(storage, {*switch.files, switch.path})
    config = switch.config
    handle = TableHandle(storage, config, profile_of(config), env)
    instant = Instant(switch.instant, config.write_action, State.INFLIGHT)
    create_partition_metafiles(handle, switch.partitions, switch.instant)
    with suppress(Conflict):
        create_requested(storage, handle.profile, switch.instant, instant.action)
    with suppress(Conflict):
        to_inflight(storage, handle.profile, instant)
    done = complete(storage, handle.profile, instant, switch.payload, env, config.timezone)
    store_table_config(storage, None, config, env)
    storage.delete(switch.path)
    return done


def encode_switch(switch: Switch) -> bytes:
    """JSON of the switch, all but its path."""
    return json.dumps(
        {
            "instant": switch.instant,
            "properties": switch.properties,
            "files": switch.files,
            "partitions": switch.partitions,
            "payload": base64.b64encode(switch.payload).decode(),
        }
    ).encode()


def parse_switch(data: bytes, path: str) -> Switch:
    """The switch in the bytes of the file `path`.

    Raises:
        Corrupt: they are something else.
    """
    try:
        values = json.loads(data)
        switch = Switch(
            path=path,
            instant=values["instant"],
            properties=values["properties"],
            files=tuple(values["files"]),
            partitions=tuple(values["partitions"]),
            payload=base64.b64decode(values["payload"], validate=True),
        )
        _ensure_sane(switch)
    except (ValueError, KeyError, TypeError, AttributeError, HudiError) as error:
        raise _damaged(path, str(error)) from error
    return switch


def _ensure_sane(switch: Switch) -> None:
    """Raises ValueError, or an error of the table's config, for what no writer of switches writes."""
    if switch.path.rpartition("/")[2] != f"{switch.instant}{keys.OVERWRITE_SUFFIX}":
        raise ValueError(f"it is of another instant, {switch.instant!r}")
    for partition in switch.partitions:
        if _is_hidden(checked_path(partition, root_allowed=True)):
            raise ValueError(f"{partition!r} is no partition")
    for file in switch.files:
        folder, _, name = file.rpartition("/")
        parsed = parse_data_file_name(name)
        if folder not in switch.partitions or not isinstance(parsed, BaseFileName) or parsed.instant != switch.instant:
            raise ValueError(f"{file!r} is no file of it")
    profile_of(switch.config)


def _damaged(path: str, why: str) -> Corrupt:
    return Corrupt(
        f"{path} does not say how to finish the overwrite: {why}",
        remedy="The new rows are in the base files that its instant names; copy them away and make the table anew",
        path=path,
    )


@dataclass(frozen=True, slots=True)
class _Deletion:
    storage: Storage
    path: str
    is_folder: bool


def _delete_all_but(storage: Storage, kept: Collection[str]) -> None:
    """Remove what tables consist of below the base path, but the files `kept` and the locks. Folders that hold nothing
    else go as a whole.
    """
    engine = LocalEngine(_DELETING_THREADS)
    copies = [_Deletion(place, path, False) for place, paths in copies_that_do_not_count(storage) for path in paths]
    engine.run(_delete, copies, "overwrite")  # before the file that names them
    needed = {path[:at] for path in kept for at, char in enumerate(path) if char == "/"}
    doomed: list[_Deletion] = []
    folders = [""]
    if isinstance(storage, FederatedStorage):  # a folder would be listed under every prefix
        outside = [file.path for file in storage.data_files() if file.path not in kept]
        doomed = [_Deletion(storage, path, False) for path in outside if _is_of_a_table(path)]
        folders = [keys.HOODIE_DIR]
    while folders:
        found = storage.list_dir(folders.pop())
        doomed.extend(
            _Deletion(storage, file.path, False)
            for file in found.files
            if file.path not in kept and _is_of_a_table(file.path)
        )
        for folder in found.dirs:
            if folder == keys.LOCKS_DIR:
                continue
            own = [_is_of_a_table(file.path) for file in storage.list(folder)]
            if folder in needed or not all(own):
                folders.append(folder)
            elif own:  # an empty folder may be anybody's
                doomed.append(_Deletion(storage, folder, True))
    engine.run(_delete, doomed, "overwrite")


def _is_hidden(path: str) -> bool:
    return path == keys.HOODIE_DIR or path.startswith(f"{keys.HOODIE_DIR}/")


def _is_of_a_table(path: str) -> bool:
    name = path.rpartition("/")[2]
    if name.startswith(".") and name.endswith(".crc"):
        name = name[1:-4]
    return _is_hidden(path) or is_partition_metafile(name) or parse_data_file_name(name) is not None


def _delete(_: TaskId, task: _Deletion) -> None:
    if task.is_folder:
        task.storage.delete_dir(task.path)
    else:
        task.storage.delete(task.path)
