"""The metadata table as a table of its own: its properties, its handle, what of it is unfinished.

1. It lies in `.hoodie/metadata`, is merge-on-read with HFiles and of the version of the data table.
2. Whoever writes the data table holds it too: there is one writer.
3. It exists for others when the table's properties list its partitions; a folder without that is a leftover.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hoodie.engine import side_by_side
from hoodie.errors import Corrupt, Invalid, Unsupported
from hoodie.metadata.damage import REBUILD, naming_metadata_table
from hoodie.spec import TableConfig, keys, profile_of
from hoodie.spec.new_table import metadata_table_properties
from hoodie.state.handle import TableHandle, timeline_of
from hoodie.storage import Listable, NestedStorage, Storage
from hoodie.timeline import Timeline, load_table_config, load_timeline, store_table_config
from hoodie.view import list_files


def nested_storage(handle: TableHandle) -> NestedStorage:
    """The metadata table's folder as a storage."""
    return NestedStorage(handle.storage, keys.METADATA_TABLE_DIR)


def open_metadata_handle(handle: TableHandle) -> TableHandle:
    """The handle of the metadata table.

    Raises:
        Corrupt: it is not there, or its properties are damaged.
    """
    storage = nested_storage(handle)
    with naming_metadata_table():
        try:
            config = load_table_config(storage, handle.env)
            profile = profile_of(config)
        except (Invalid, Unsupported) as error:
            raise Corrupt(f"it is not there: {error.cause}", remedy=REBUILD) from error
    return TableHandle(storage, _in_zone(config, handle), profile, handle.env)


def load_metadata_handle(handle: TableHandle, listed: Listable | None = None) -> tuple[TableHandle, Timeline]:
    """The handle of the metadata table and its timeline as it is now: two calls at the same time, as it has the layout
    of the data table. `listed`: its folder, where somebody has looked.

    Raises:
        Corrupt: as `open_metadata_handle`.
    """
    listing = partial(load_timeline, listed or nested_storage(handle), handle.profile, handle.config.timezone)
    metadata, timeline = side_by_side(partial(open_metadata_handle, handle), listing)
    return metadata, timeline if metadata.profile.loads_like(handle.profile) else timeline_of(metadata)


def create_metadata_handle(handle: TableHandle) -> TableHandle:
    """The handle of the new, empty metadata table. What lay in its folder is gone."""
    storage = nested_storage(handle)
    handle.storage.delete_dir(keys.METADATA_TABLE_DIR)
    config = store_table_config(storage, None, TableConfig(metadata_table_properties(handle.config)), handle.env)
    return TableHandle(storage, _in_zone(config, handle), profile_of(config), handle.env)


def _in_zone(config: TableConfig, handle: TableHandle) -> TableConfig:
    """The config with the zone of the data table, in which its times are: its own properties do not say it."""
    return replace(config, raw={**config.raw, keys.TIMELINE_TIMEZONE: handle.config.timezone})


def listed_file_ids(metadata: Storage, partition: str) -> list[str]:
    """File ids of the groups that lie in a partition of the metadata table, also those that writers have added."""
    return sorted({file.name.file_id for files in list_files(metadata, [partition]) for file in files.everything})
