"""Deleting a table with all its files.

Data goes first and the properties last: who dies in between leaves a table that can be dropped again. The lock is held
to the end, and goes with it: nobody makes a new table meanwhile, whose files would go as well.
"""

from __future__ import annotations

from hoodie.engine import LocalEngine
from hoodie.env import Env
from hoodie.layout import FederatedStorage
from hoodie.layout.move import copies_that_do_not_count
from hoodie.locks import LockOptions, held_lock
from hoodie.spec import keys
from hoodie.state.held import load_held_handle
from hoodie.storage import Storage
from hoodie.transaction.deletion import DELETING_THREADS, delete_files

_PROPERTIES = (keys.PROPERTIES_FILE, keys.PROPERTIES_BACKUP_FILE)


def drop_table(storage: Storage, env: Env, options: LockOptions) -> None:
    """Deletes the table and its folder. `options` say how long to wait for a writer.

    Raises:
        Conflict: a writer is at work. Corrupt: its properties are damaged, or where a move under way has copies cannot
            be read. Invalid: it has files where the caller allows none.
    """
    with held_lock(storage, "drop", options=options, env=env) as held:
        storage = held.fenced(storage)
        own = storage.list_dir(keys.HOODIE_DIR)
        if any(file.path in _PROPERTIES for file in own.files):  # a drop that died may have left none
            storage = load_held_handle(storage, env).storage  # files may have moved since the caller looked
        for place, paths in copies_that_do_not_count(storage):
            held.ensure_held()
            delete_files(place, LocalEngine(DELETING_THREADS), paths, "drop")
        top = storage.list_dir("")
        held.ensure_held()
        delete_files(storage, LocalEngine(DELETING_THREADS), [file.path for file in top.files], "drop")
        for folder in (*top.dirs, *own.dirs):
            if folder not in (keys.HOODIE_DIR, keys.LOCKS_DIR):
                held.ensure_held()
                storage.delete_dir(folder)
        instants = [file.path for file in own.files if file.path not in _PROPERTIES]
        held.ensure_held()
        delete_files(storage, LocalEngine(DELETING_THREADS), instants, "drop")
        if isinstance(storage, FederatedStorage):
            # Without properties there is no table: what is claimed then is taken over by the next one here.
            storage.ensure_owned()
            delete_files(storage, LocalEngine(DELETING_THREADS), list(_PROPERTIES), "drop")
            storage.disclaim()
            storage = storage.outer
        storage.delete_dir("")
