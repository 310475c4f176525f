"""Definitions of indexes: what `.hoodie/.index_defs/index.json` says about the partitions of the metadata table.

1. A definition's name is that of its partition. Tables of version 6 and below have none.
2. `version` decides how statistics hold values (column statistics) and what is hashed (secondary indexes).
3. Unknown members are left alone; a definition that lacks what it needs is damage.

Grammar and example: docs/format/index-definitions.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.errors import Corrupt, Invalid, Missing
from hoodie.spec import TableConfig, keys, parse_json
from hoodie.storage import Storage, checked_path

DEFAULT_PATH = ".hoodie/.index_defs/index.json"
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index. `kind` is Hudi's word (`column_stats`, `secondary_index`, `bloom_filters` ...) in small letters: Hudi
    writes capitals, too, and does not tell them apart. `function` is what is applied to the source fields (`identity`
    or empty: nothing).
    """

    name: str
    kind: str
    function: str = ""
    source_fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str = "V1"

    @property
    def is_partitioned(self) -> bool:
        """Whether a record index is cut by partitions of the data table."""
        return self.options.get("isPartitioned", "").lower() == "true"


def parse_index_definitions(data: bytes, path: str) -> dict[str, IndexDefinition]:
    """Definitions by name.

    Raises:
        Corrupt: not such a document.
    """
    try:
        document = parse_json(data)
        definitions = document["indexDefinitions"]
        return {name: _definition(name, one) for name, one in definitions.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"{path} is damaged: {error}",
            remedy="Restore the file from a copy; without one, hoodie doctor PATH --fix makes the metadata table anew, "
            "but for secondary and expression indexes, which only this file knows",
            path=path,
            written_in_place=True,
        ) from error


def load_index_definitions(storage: Storage, config: TableConfig) -> dict[str, IndexDefinition]:
    """Definitions of a table's indexes by name; none when there is no file.

    Raises:
        Corrupt: the file is damaged, or said to lie outside the table.
    """
    path = _path(config.raw.get(keys.INDEX_DEFS_PATH) or DEFAULT_PATH)
    try:
        data = storage.read_range(path, 0, MAX_BYTES + 1)
    except Missing:
        return {}
    if len(data) > MAX_BYTES:
        raise Corrupt(f"{path} has more than {MAX_BYTES} bytes", remedy="Restore it from a copy", path=path)
    return parse_index_definitions(data, path)


def _path(said: str) -> str:
    """Where the file is. Hudi 1.0 wrote full names, which are stale once a table was moved: the usual place counts."""
    if said.endswith(f"/{DEFAULT_PATH}"):
        return DEFAULT_PATH
    try:
        return checked_path(said)
    except Invalid as error:
        raise Corrupt(
            f"{keys.INDEX_DEFS_PATH} names {said!r}, which is not below the table",
            remedy=f"Correct it in {keys.PROPERTIES_FILE}",
            path=keys.PROPERTIES_FILE,
        ) from error


def _definition(name: str, found: Mapping[str, Any]) -> IndexDefinition:
    fields = found.get("sourceFields") or ()
    options = found.get("indexOptions") or {}
    if not isinstance(fields, list | tuple) or not all(isinstance(one, str) for one in fields):
        raise ValueError(f"source fields of {name} are {fields!r}")
    if not all(isinstance(value, str) for value in options.values()):
        raise ValueError(f"options of {name} are not text")
    return IndexDefinition(
        name=name,
        kind=_text(found["indexType"]).lower(),
        function=_text(found.get("indexFunction") or ""),
        source_fields=tuple(fields),
        options=dict(options),
        version=_text(found.get("version") or "V1"),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value
