"""From a table's URL, properties and the caller's options to the storage that knows where its files are.

Before the properties are known only the table's own folder is touched, which is the same in every layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from hoodie.layout.access import OPTIONS, Access, parse_access
from hoodie.layout.federated import FederatedStorage
from hoodie.layout.properties import parse_layout
from hoodie.layout.roots import ensure_roots
from hoodie.spec import TableConfig
from hoodie.storage import Storage, open_storage
from hoodie.storage.fence import HasFences, with_fence


def open_table_storage(uri: str, options: Mapping[str, str]) -> Storage:
    """The storage at a table path; with what `options` (all of a call) allow outside it. Nothing is contacted.

    Raises as `open_storage`; and Invalid: a class of a storage strategy cannot be made.
    """
    given = storage_options(options)
    storage = open_storage(uri, given)
    access = parse_access(options, given)
    return storage if access is None else FederatedStorage(storage, access)


def storage_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those of `options` that are meant for storages: credentials, endpoints and the like."""
    return {key: value for key, value in options.items() if not key.startswith("hoodie.")}


def options_for_others(options: Mapping[str, str]) -> dict[str, str]:
    """Those of `options` by which another (a service in this process) opens the same table: for storages, and what they
    allow outside the table path.
    """
    return {key: value for key, value in options.items() if not key.startswith("hoodie.") or key in OPTIONS}


def laid_out(storage: Storage, config: TableConfig) -> Storage:
    """The storage of a table by its properties: itself, where they ask for nothing else than it does.

    Raises:
        Corrupt, Unsupported: the properties describe no layout, or one that is not known here.
        Invalid: they lead to places that the caller does not allow. Nothing was touched there.
    """
    known = storage if isinstance(storage, FederatedStorage) else None
    access = access_of(storage)
    layout = parse_layout(config.raw, access.own) if config.is_federated else None
    if known is not None and known.layout == layout:
        return storage
    if layout is None:
        return FederatedStorage(known.outer, access) if known is not None else storage
    ensure_roots(layout.roots, storage.uri, access.allowed)
    outer = storage if known is None else known.outer
    fences = outer.fences if isinstance(outer, HasFences) else ()
    roots = (reduce(with_fence, fences, access.open_root(root)) for root in layout.roots)
    return FederatedStorage(outer, access, layout, tuple(roots))


def access_of(storage: Storage) -> Access:
    """What goes with a storage; the options it was opened with open roots in its own bucket."""
    if isinstance(storage, FederatedStorage):
        return storage.access
    return Access(options=getattr(storage, "options", {}))
