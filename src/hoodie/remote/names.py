"""Names in answers: a partition, or a file in one, that lies in the table. What leads elsewhere is a wrong answer."""

from __future__ import annotations

from hoodie.remote.json_values import not_understood, short
from hoodie.spec.typed_values import is_plain_path

_META_FOLDER = ".hoodie"


def ensure_partition_name(name: str) -> str:
    """`name`, which is a path from the table's root without a step up or an empty part; "" is the table itself.

    Raises:
        Unavailable: it is none.
    """
    is_elsewhere = name != "" and (not is_plain_path(name) or name.partition("/")[0] == _META_FOLDER)
    if is_elsewhere or not _has_whole_characters(name):
        raise not_understood(f"{short(name)} is no partition of a table")
    return name


def ensure_file_name(name: str) -> str:
    """`name`, which names a file in a folder.

    Raises:
        Unavailable: it does not.
    """
    if not is_plain_path(name) or "/" in name or not _has_whole_characters(name):
        raise not_understood(f"{short(name)} is no name of a file")
    return name


def _has_whole_characters(name: str) -> bool:
    """JSON may have halves of characters, which no storage can be asked for."""
    return not any("\ud800" <= sign <= "\udfff" for sign in name)
