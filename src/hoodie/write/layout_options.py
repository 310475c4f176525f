"""The storage layout that options ask for, of a table that is about to exist, and whether options fit that of a table.

1. A table has a layout when options name storage paths (`hoodie.storage.path`) or a strategy.
2. Roots are claimed before the properties exist, so that no table ever names a folder that is another's. Who dies
   between leaves claims, which the next creation at the same table path takes over.
3. The metadata table is required: its files are not found by listing one folder.
"""

from __future__ import annotations

from typing import Final

from hoodie.config import Config
from hoodie.env import Env
from hoodie.errors import Invalid, Unsupported
from hoodie.layout import FederatedStorage, Layout, LayoutVersion, laid_out
from hoodie.layout.layout import Guard
from hoodie.layout.opening import access_of
from hoodie.layout.properties import ensure_folder, layout_properties, parse_layout, parse_versions
from hoodie.layout.required import metadata_is_off
from hoodie.layout.strategy import parse_strategy
from hoodie.spec import TableConfig, keys
from hoodie.storage import Storage

STRATEGY: Final = "hoodie.storage.strategy"
FOLDER: Final = "hoodie.storage.folder"
_FIRST: Final = "0"


def plan_layout(storage: Storage, config: Config, name: str, env: Env) -> Layout | None:
    """The layout that options ask for, of a new table of a name; None when they ask for none.

    Raises:
        Invalid: a strategy without a storage path, the metadata table is off, or a value is wrong.
        Unsupported: a strategy that is not known, or that the caller did not name a class for.
    """
    if not any(config.is_set(key) for key in (keys.STORAGE_PATH, STRATEGY, keys.STORAGE_VERSIONS)):
        return None
    roots = named_roots(config)
    if not roots:
        raise Invalid(
            "A storage strategy needs a storage path",
            remedy=f"Set {keys.STORAGE_PATH} to a bucket or folder outside the table",
            key=keys.STORAGE_PATH,
        )
    if not config.flag("hoodie.metadata.enable"):
        raise metadata_is_off(storage.uri)
    own = access_of(storage).own
    if config.is_set(keys.STORAGE_VERSIONS):
        versions = parse_versions(config.text(keys.STORAGE_VERSIONS), len(roots), own, "options")
    else:
        text = config.text(STRATEGY)
        folder = ensure_folder(config.text(FOLDER) if config.is_set(FOLDER) else name)
        versions = (LayoutVersion(1, _FIRST, text, tuple(range(len(roots))), folder, "", parse_strategy(text, own)),)
    guard: Guard = "open" if config.text(keys.STORAGE_GUARD) == "open" else "strict"
    layout = Layout(roots, versions, env.uuid(), guard)
    parse_layout(layout_properties(layout, "COPY_ON_WRITE"), own, "options")
    return layout


def named_roots(config: Config) -> tuple[str, ...]:
    """The storage paths that options name, in their order; empty where they name none."""
    given = config.list(keys.STORAGE_PATH) if config.is_set(keys.STORAGE_PATH) else ()
    return tuple(root.rstrip("/") or root for root in given)


def claimed(storage: Storage, planned: TableConfig, layout: Layout) -> TableConfig:
    """The properties of a new table with its layout, whose roots are claimed.

    Raises:
        Invalid: the caller does not allow a root. Conflict: a folder of a root is another table's, or could be met.
    """
    config = planned.with_changes(layout_properties(layout, planned.table_type))
    laid = laid_out(storage, config)
    if isinstance(laid, FederatedStorage):
        laid.ensure_free()
        laid.claim(is_new=True)
    return config


def ensure_same_layout(config: Config, table: TableConfig) -> None:
    """Checks that options of a write ask for the layout the table has, where they say something.

    Raises:
        Unsupported: they ask for another.
    """
    asked = named_roots(config)
    stored = tuple(filter(None, table.raw.get(keys.STORAGE_PATH, "").split(",")))
    if not set(asked) <= set(stored):
        raise Unsupported(
            f"{keys.STORAGE_PATH} is {','.join(asked)} but the table has {','.join(stored) or 'none'}",
            remedy="Leave it out, or change where files go with hoodie relayout",
            key=keys.STORAGE_PATH,
        )
