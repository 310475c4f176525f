"""A layout as `hoodie.storage.*` properties, and back.

1. What is parsed is input of whoever could write the file: every part has its form and its limit.
2. The properties are written from the value and give it back; other keys of a table are left alone.
3. With guard `strict` the table type ends in `_FEDERATED`, which makes Hudi refuse the table (`docs/format/
   storage-layout.md` has what each release says). That suffix without versions is damage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final, cast

from hoodie.errors import Corrupt, Invalid
from hoodie.layout.layout import Guard, Layout, LayoutVersion
from hoodie.layout.strategy import StorageStrategy, parse_strategy
from hoodie.spec import keys
from hoodie.spec.typed_values import is_plain_path

MAX_VERSIONS: Final = 100
MAX_ROOTS: Final = 64
MAX_TEXT: Final = 1 << 20
_RFC60_CLASS: Final = "org.apache.hudi.common.storage.HoodieObjectStoreStorageStrategy"
_FOLDER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+ -]{0,199}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGITS: Final = re.compile(r"[0-9]{1,17}")
_MEMBERS: Final = {"v", "since", "strategy", "root", "folder", "partitions"}


def parse_layout(
    raw: Mapping[str, str], own: Mapping[str, StorageStrategy], path: str = keys.PROPERTIES_FILE
) -> Layout | None:
    """The layout that properties of a table describe; None where all its files lie at the table path.

    Raises:
        Corrupt: a value is wrong. Unsupported: a strategy that is not known, or a member of a newer version.
    """
    text = raw.get(keys.STORAGE_VERSIONS)
    if text is None:
        if raw.get(keys.TYPE, "").upper().endswith(keys.FEDERATED_SUFFIX):
            raise _wrong(keys.TYPE, raw[keys.TYPE], path, f"has the suffix, but {keys.STORAGE_VERSIONS} is missing")
        return None
    roots = tuple(filter(None, (one.strip() for one in raw.get(keys.STORAGE_PATH, "").split(","))))
    if not 1 <= len(roots) <= MAX_ROOTS or len(set(roots)) < len(roots):
        raise _wrong(keys.STORAGE_PATH, ",".join(roots), path, f"must name 1 to {MAX_ROOTS} different storage paths")
    guard, uuid = raw.get(keys.STORAGE_GUARD, "strict"), raw.get(keys.STORAGE_UUID, "")
    if guard not in ("strict", "open"):
        raise _wrong(keys.STORAGE_GUARD, guard, path, "must be strict or open")
    if not _UUID.fullmatch(uuid):
        raise _wrong(keys.STORAGE_UUID, uuid, path, "must be a UUID")
    return Layout(roots, parse_versions(text, len(roots), own, path), uuid, cast(Guard, guard))


def parse_versions(
    text: str, roots: int, own: Mapping[str, StorageStrategy], path: str = keys.PROPERTIES_FILE
) -> tuple[LayoutVersion, ...]:
    """The versions in JSON, of a layout with so many roots. Raises as `parse_layout`."""
    try:
        if len(text) > MAX_TEXT:
            raise ValueError("too long")
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(keys.STORAGE_VERSIONS, text, path, "is no JSON list of versions") from error
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_VERSIONS:
        raise _wrong(keys.STORAGE_VERSIONS, text, path, f"must be a list of 1 to {MAX_VERSIONS} versions")
    versions = tuple(_version(one, roots, own, path) for one in found)
    # One for some partitions may count from earlier than those before it: after a move of these.
    times = [one.since for one in versions if not one.partitions]
    if any(one.number >= two.number for one, two in pairwise(versions)) or times != sorted(times):
        raise _wrong(keys.STORAGE_VERSIONS, text, path, "must have its versions in order, each with its own number")
    return versions


def ensure_folder(folder: str) -> str:
    """The folder of a new table in its storage paths.

    Raises:
        Invalid: it cannot be one.
    """
    if not _FOLDER.fullmatch(folder):
        raise Invalid(
            f"{folder[:220]!r} cannot be a folder of storage paths",
            remedy="Name one by hoodie.storage.folder: up to 200 ASCII letters, digits, blanks and ._=+-",
            key="hoodie.storage.folder",
        )
    return folder


def encode_versions(versions: tuple[LayoutVersion, ...]) -> str:
    """The one-line JSON of versions."""
    return json.dumps([_members(one) for one in versions], separators=(",", ":"))


def layout_properties(layout: Layout, table_type: str) -> dict[str, str]:
    """The properties that say `layout`, of a table of a type (with or without the suffix)."""
    bare = table_type.upper().removesuffix(keys.FEDERATED_SUFFIX)
    is_prototype = all(one.text == "rfc60" for one in layout.versions)
    return {
        keys.TYPE: bare + keys.FEDERATED_SUFFIX if layout.guard == "strict" else bare,
        keys.STORAGE_PATH: ",".join(layout.roots),
        keys.STORAGE_VERSIONS: encode_versions(layout.versions),
        keys.STORAGE_UUID: layout.uuid,
        keys.STORAGE_GUARD: layout.guard,
        **({keys.STORAGE_STRATEGY_CLASS: _RFC60_CLASS} if is_prototype else {}),
    }


def _version(said: Any, roots: int, own: Mapping[str, StorageStrategy], path: str) -> LayoutVersion:
    if not isinstance(said, dict) or not {"v", "since", "strategy"} <= said.keys() or said.keys() - _MEMBERS:
        raise _wrong(keys.STORAGE_VERSIONS, said, path, f"has a version whose members are not of {sorted(_MEMBERS)}")
    number, since, text = said["v"], said["since"], said["strategy"]
    numbers = said.get("root", [])
    numbers = [numbers] if isinstance(numbers, int) else numbers
    folder, partitions = said.get("folder", ""), said.get("partitions", "")
    is_hive = text == "hive"
    good = (
        (isinstance(number, int) and not isinstance(number, bool) and 1 <= number < 2**31)
        and (isinstance(since, str) and _DIGITS.fullmatch(since))
        and isinstance(text, str)
        and (isinstance(numbers, list) and all(type(one) is int and 0 <= one < roots for one in numbers))
        and (len(set(numbers)) == len(numbers) and is_hive == (not numbers))
        and (isinstance(folder, str) and (folder == "" if is_hive else _FOLDER.fullmatch(folder)))
        and (isinstance(partitions, str) and (not partitions or is_plain_path(partitions)) and len(partitions) < 1000)
    )
    if not good:
        raise _wrong(keys.STORAGE_VERSIONS, said, path, "has a version with a wrong member")
    return LayoutVersion(number, since, text, tuple(numbers), folder, partitions, parse_strategy(text, own))


def _members(version: LayoutVersion) -> dict[str, object]:
    found: dict[str, object] = {"v": version.number, "since": version.since, "strategy": version.text}
    if version.roots:
        found["root"] = version.roots[0] if len(version.roots) == 1 else list(version.roots)
        found["folder"] = version.folder
    return found | ({"partitions": version.partitions} if version.partitions else {})


def _wrong(key: str, value: object, path: str, what: str) -> Corrupt:
    return Corrupt(
        f"{path}: {key} {what}; it is {str(value)[:120]!r}",
        remedy="Restore the file from a copy, or correct the value",
        path=path,
        key=key,
    )
