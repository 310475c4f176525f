"""An opened table as a value: where it lives, how it is configured, which format it speaks.

The handle is what packages above `view` pass around instead of a façade. It holds no timeline: whoever needs one loads
it, so that no decision is taken on an old picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.env import Env, SystemEnv
from hoodie.errors import HudiError
from hoodie.spec import FormatProfile, TableConfig, profile_of
from hoodie.storage import Storage, open_storage
from hoodie.timeline import Timeline, load_table_config, load_timeline


@dataclass(frozen=True, slots=True)
class TableHandle:
    """Storage rooted at the base path, table config as stored, the profile of its version, and the outside world."""

    storage: Storage
    config: TableConfig
    profile: FormatProfile
    env: Env


def open_handle(uri: str, options: Mapping[str, str], env: Env | None = None) -> TableHandle:
    """The table at `uri`; options without the `hoodie.` prefix go to the storage, `hoodie.storage.allowed.roots` says
    where else it may keep files.

    Raises:
        Invalid: no such table, or not a Hudi table. Corrupt: its properties are damaged.
        Unsupported: a table version `hoodie` does not know, or no storage for this URI.
    """
    return load_handle(_opened_storage(uri, options), env or SystemEnv())


def load_handle(storage: Storage, env: Env) -> TableHandle:
    """The table in `storage`, with its config as it is stored now. Raises as `open_handle`."""
    config = load_table_config(storage, env)
    return TableHandle(storage_of(storage, config), config, profile_of(config), env)


def load_handle_again(handle: TableHandle) -> TableHandle:
    """The table as it is now: others may have taken it to another version, where its timeline lies elsewhere. Asked for
    once more where that fails, by who takes away its own: what is left behind then nobody would find.
    """
    try:
        return load_handle(handle.storage, handle.env)
    except HudiError:
        return load_handle(handle.storage, handle.env)


def timeline_of(handle: TableHandle) -> Timeline:
    """The active timeline as it is on storage now."""
    return load_timeline(handle.storage, handle.profile, handle.config.timezone)


def storage_of(storage: Storage, config: TableConfig) -> Storage:
    """The storage of a table by its properties. Raises as `hoodie.layout.laid_out`."""
    if not config.is_federated and getattr(storage, "layout", None) is None:  # it may be that of a table that was here
        return storage
    from hoodie.layout import laid_out  # noqa: PLC0415 - tables without storage paths need none of it

    return laid_out(storage, config)


def _opened_storage(uri: str, options: Mapping[str, str]) -> Storage:
    if not any(key.startswith("hoodie.storage.") for key in options):
        return open_storage(uri, {key: value for key, value in options.items() if not key.startswith("hoodie.")})
    from hoodie.layout import open_table_storage  # noqa: PLC0415 - as above

    return open_table_storage(uri, options)
