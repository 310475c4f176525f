"""Which storage a URI names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType

from hoodie.errors import Invalid, Unsupported
from hoodie.storage.contract import Storage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OBJECT_SCHEMES = ("s3", "s3a", "s3n", "gs", "az", "azure", "abfs", "abfss", "wasb", "wasbs")
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def open_storage(uri: str | os.PathLike[str], options: Mapping[str, str] = _NO_OPTIONS) -> Storage:
    """The storage rooted at `uri`: a path, `file:`, `memory:`, or an object store's URL. Nothing is contacted yet.

    `options` configure an object store: see `object_config`. Names that belong to others are ignored.

    Raises:
        Unsupported: no storage for this scheme.
        Invalid: the URI or an option is wrong.
    """
    if not isinstance(uri, str | os.PathLike):
        raise Invalid(
            f"{uri!r} is no path of a table", remedy="Pass a text or a path, as /data/trips or s3://lake/trips"
        )
    text = os.fspath(uri)
    match = _URL.match(text)
    scheme = match[1].lower() if match else "file"
    if scheme == "file":
        return LocalStorage(text)
    if scheme == "memory":
        return MemoryStorage(text[len("memory://") :].rstrip("/"))
    if scheme in _OBJECT_SCHEMES:
        # Optional import: workers on local tables need not load the client.
        from hoodie.storage.object import ObjectStorage  # noqa: PLC0415

        return ObjectStorage(text, options)
    raise Unsupported(
        f"There is no storage for {scheme}:// URLs",
        remedy="Use a path, file://, s3://, s3a://, gs://, abfss:// or az://",
        scheme=scheme,
    )
