"""Keeping `hoodie.properties`: read it through its backup, replace it without a moment in which both are gone.

1. Reading takes the main file if it is whole, else the backup; a damaged pair is tried a few times, because a writer
   may be between two steps. A table that is not there is reported at once.
2. Replacing follows Hudi's order, so that Hudi's readers and its recovery understand every state in between: backup the
   old, replace the main file, read it back, drop the backup. The main file is replaced in one step here, where Hudi
   deletes and creates it.
3. The caller holds the table: two updates at once are not safe, in Hudi neither.

States and what each reader makes of them: `docs/format/properties.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from hoodie.env import Env, SystemEnv
from hoodie.errors import Conflict, Corrupt, HudiError, Invalid, Missing, Unavailable
from hoodie.spec import TableConfig, encode_table_config, parse_table_config, profile_of
from hoodie.spec.keys import (
    CHECKSUM,
    HOODIE_DIR,
    LOCKS_DIR,
    OVERWRITE_SUFFIX,
    PROPERTIES_BACKUP_FILE,
    PROPERTIES_FILE,
    TEMP_DIR,
)
from hoodie.spec.properties import MAX_BYTES
from hoodie.storage import Snapshot, Storage, snapshot_of

_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2


def is_table(storage: Storage) -> bool:
    """Whether a table's properties (or their backup) are there, readable or not."""
    return any(_exists(storage, path) for path in (PROPERTIES_FILE, PROPERTIES_BACKUP_FILE))


def load_table_config(storage: Storage, env: Env | None = None) -> TableConfig:
    """The table's config, of a version that is read.

    Raises:
        Invalid: there is no table, or the folder is something else.
        Corrupt: the properties are damaged and there is no whole backup.
        Unavailable: an overwrite by a table of another kind is not finished.
        Unsupported: the table has another version.
    """
    clock = env or SystemEnv()
    for attempt in range(_ATTEMPTS):
        config, damage = _read_once(storage)
        if config is not None:
            profile_of(config)
            return config
        if damage is None:
            _ensure_initialised(storage)
        if attempt + 1 < _ATTEMPTS:
            clock.sleep(_PAUSE_SECONDS)
    if damage is None and any(one.path.endswith(OVERWRITE_SUFFIX) for one in storage.list_dir(TEMP_DIR).files):
        raise Unavailable(
            f"The table at {storage.uri} is being overwritten by one of another kind, or the writer that did so died",
            remedy="If no writer is at work, write to it with hoodie: that finishes the overwrite. No row is lost",
            path=PROPERTIES_FILE,
        )
    raise damage or Corrupt(
        f"{PROPERTIES_FILE} is missing at {storage.uri}, though the folder {HOODIE_DIR} is there",
        remedy=f"Restore {PROPERTIES_FILE} from a copy; if no table was ever finished here, delete {HOODIE_DIR}",
        path=PROPERTIES_FILE,
    )


def store_table_config(storage: Storage, old: TableConfig | None, new: TableConfig, env: Env) -> TableConfig:
    """The config as it now stands on storage. With `old` None the table is created, else its properties are replaced.

    Raises:
        Conflict: there is a table already, or the stored config is not `old` any more.
    """
    data = encode_table_config(new, env.now())
    if old is None:
        storage.create(PROPERTIES_FILE, data)
        return parse_table_config(data, PROPERTIES_FILE)
    recover_table_config(storage)
    before = _load(storage, PROPERTIES_FILE)
    if _without_checksum(parse_table_config(before, PROPERTIES_FILE)) != _without_checksum(old):
        raise Conflict("The table's properties were changed by another", remedy="Open the table again and retry")
    storage.create(PROPERTIES_BACKUP_FILE, before)
    storage.put(PROPERTIES_FILE, data)
    stored = parse_table_config(storage.read(PROPERTIES_FILE), PROPERTIES_FILE)
    storage.delete(PROPERTIES_BACKUP_FILE)
    return stored


def recover_table_config(storage: Storage) -> None:
    """Removes what an update that died left. Without a whole main file the backup was the truth.

    The caller holds the table.
    """
    try:
        backup = _load(storage, PROPERTIES_BACKUP_FILE)
    except Missing:
        return
    try:
        parse_table_config(_load(storage, PROPERTIES_FILE), PROPERTIES_FILE)
    except (Missing, Corrupt):
        parse_table_config(backup, PROPERTIES_BACKUP_FILE)
        storage.put(PROPERTIES_FILE, backup)
    storage.delete(PROPERTIES_BACKUP_FILE)


def load_held_config(storage: Storage, env: Env) -> TableConfig:
    """The table's config, once what an update that died left is removed. Two calls at the same time where none died.

    The caller holds the table. Raises as `load_table_config`.
    """
    backup, main = _at_once(
        partial(_loaded, storage, PROPERTIES_BACKUP_FILE), partial(_loaded, storage, PROPERTIES_FILE)
    )
    return _healed(storage, env, main, is_updated=backup is not None)


def load_held_snapshot(storage: Storage, env: Env) -> tuple[TableConfig, Snapshot]:
    """The same, and what lay in the table's own folder at that moment: two calls at the same time, too."""
    below, main = _at_once(partial(snapshot_of, storage, HOODIE_DIR), partial(_loaded, storage, PROPERTIES_FILE))
    is_updated = below.may_have(PROPERTIES_BACKUP_FILE) and _loaded(storage, PROPERTIES_BACKUP_FILE) is not None
    return _healed(storage, env, main, is_updated=is_updated), below


def _at_once(*calls: Callable[[], Any]) -> tuple[Any, ...]:
    from hoodie.engine import side_by_side  # noqa: PLC0415 - loads pyarrow, without which properties are read

    return side_by_side(*calls)


def _healed(storage: Storage, env: Env, main: bytes | None, *, is_updated: bool) -> TableConfig:
    """The config of the main file, if it is whole and no update of it is unfinished; else what is left of both."""
    if main is not None and not is_updated:
        with suppress(Corrupt):
            config = parse_table_config(main, PROPERTIES_FILE)
            profile_of(config)
            return config
    recover_table_config(storage)
    return load_table_config(storage, env)


def _loaded(storage: Storage, path: str) -> bytes | None:
    try:
        return _load(storage, path)
    except Missing:
        return None


def _load(storage: Storage, path: str) -> bytes:
    """The bytes of a properties file, or as many as tell that it is larger than one may be."""
    return storage.read_range(path, 0, MAX_BYTES + 1)


def _read_once(storage: Storage) -> tuple[TableConfig | None, HudiError | None]:
    """The config of the main file or else of the backup, and what is wrong with the first damaged one."""
    damage: HudiError | None = None
    for path in (PROPERTIES_FILE, PROPERTIES_BACKUP_FILE):
        try:
            return parse_table_config(_load(storage, path), path), damage
        except Missing:
            continue
        except Corrupt as error:
            damage = damage or error
    return None, damage


def _without_checksum(config: TableConfig) -> dict[str, str]:
    return {key: value for key, value in config.raw.items() if key != CHECKSUM}


def _ensure_initialised(storage: Storage) -> None:
    """Checks that there is something of a table: more than the lock of somebody who found none.

    Raises:
        Invalid: there is not.
    """
    inside = storage.list_dir(HOODIE_DIR)
    if inside.files or set(inside.dirs) - {LOCKS_DIR}:
        return
    base = storage.list_dir("")
    if base.files or set(base.dirs) - {HOODIE_DIR}:
        raise Invalid(
            f"{storage.uri} is not a Hudi table: it has no folder {HOODIE_DIR}, or an empty one",
            remedy="Give the table's base path, the folder that holds the folder .hoodie",
            path=storage.uri,
        )
    raise Invalid(
        f"There is no table at {storage.uri}",
        remedy="Check the path, or create the table by writing to it",
        path=storage.uri,
    )


def _exists(storage: Storage, path: str) -> bool:
    try:
        storage.head(path)
    except Missing:
        return False
    return True
