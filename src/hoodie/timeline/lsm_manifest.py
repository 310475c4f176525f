"""Which files make the history of a version 8+ table now, and how that changes.

1. `_version_` says which manifest is current; where it is missing, damaged or names none that is there, the greatest
   one is. Without any manifest there is no history.
2. A change is: the new file, then the next manifest, then `_version_`. Until the last step nothing has happened: what
   an archiver left that died before it is not part of the history, and the next one overwrites it.
3. `_version_` is replaced as a whole, so readers never miss it (Hudi deletes it and makes it anew).

Writers hold the table lock. Bytes: `docs/format/history.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hoodie.errors import Corrupt
from hoodie.spec import HISTORY_VERSION_FILE, MANIFEST_PREFIX, HistoryFile, encode_manifest, parse_manifest
from hoodie.storage import Storage

MAX_MANIFEST_BYTES = 64 * 1024 * 1024

_REMEDY = "Restore the file from a copy"


@dataclass(frozen=True, slots=True)
class CurrentManifest:
    """The current manifest: its number (0 when there is none) and its files. `sizes` has everything in the folder."""

    version: int
    files: tuple[HistoryFile, ...]
    sizes: Mapping[str, int]

    @property
    def versions(self) -> tuple[int, ...]:
        """Numbers of all manifests in the folder, ascending."""
        return tuple(sorted(_versions(self.sizes)))


def load_manifest(storage: Storage, folder: str) -> CurrentManifest:
    """The current manifest. Lists the folder and reads two files.

    Raises:
        Corrupt: the manifest is damaged. Missing: it was cleaned since the folder was listed.
    """
    sizes = {file.path.rpartition("/")[2]: file.size_bytes for file in storage.list_dir(folder).files}
    known = _versions(sizes)
    if not known:
        return CurrentManifest(0, (), sizes)
    version = max(known)
    if HISTORY_VERSION_FILE in sizes:
        said = storage.read_range(f"{folder}/{HISTORY_VERSION_FILE}", 0, 20).strip()
        version = int(said) if said.isdigit() and int(said) in known else version
    return CurrentManifest(version, load_manifest_files(storage, folder, version, sizes), sizes)


def load_manifest_files(
    storage: Storage, folder: str, version: int, sizes: Mapping[str, int]
) -> tuple[HistoryFile, ...]:
    """The files that one manifest names. Raises as `load_manifest`."""
    name = _versions(sizes)[version]
    path = f"{folder}/{name}"
    if sizes[name] > MAX_MANIFEST_BYTES:
        raise Corrupt(f"{path} is {sizes[name]} bytes large, no manifest is", remedy=_REMEDY, path=path)
    return parse_manifest(storage.read(path), path)


def publish(
    storage: Storage, folder: str, current: CurrentManifest, added: HistoryFile, removed: Collection[str] = ()
) -> CurrentManifest:
    """The manifest after `added` came to the history and the files named in `removed` left it. Deletes nothing."""
    kept = tuple(file for file in current.files if file.name not in removed and file.name != added.name)
    files = (*kept, added)
    version = current.version + 1
    data = encode_manifest(files)
    name = f"{MANIFEST_PREFIX}{version}"
    storage.put(f"{folder}/{name}", data)
    storage.put(f"{folder}/{HISTORY_VERSION_FILE}", str(version).encode())
    sizes = {**current.sizes, name: len(data), added.name: added.size_bytes, HISTORY_VERSION_FILE: len(str(version))}
    return CurrentManifest(version, files, sizes)


def _versions(names: Collection[str]) -> dict[int, str]:
    texts = (name.removeprefix(MANIFEST_PREFIX) for name in names if name.startswith(MANIFEST_PREFIX))
    return {int(text): f"{MANIFEST_PREFIX}{text}" for text in texts if text.isascii() and text.isdigit()}
