"""What a table whose files lie under storage paths never does: go on without its metadata table.

Folders of the table path hold no data files, and a prefix that cannot be reached looks like one without files: a
listing in its place could lose rows without a word. So an error is raised, by readers and writers alike.
"""

from __future__ import annotations

from hoodie.errors import Corrupt, Invalid


def metadata_is_off(uri: str) -> Invalid:
    """The error for who turns the metadata table off."""
    return Invalid(
        f"{uri}: a table with storage paths needs its metadata table; its folders are never listed instead",
        remedy="Leave out hoodie.metadata.enable=false",
        key="hoodie.metadata.enable",
    )


def metadata_is_damaged(uri: str, damage: Corrupt) -> Corrupt:
    """The error for who finds one that cannot be read."""
    return Corrupt(
        f"{uri}: the metadata table is damaged, and a table with storage paths is never listed instead. {damage.cause}",
        remedy=f"Make it anew from the files under all storage paths: hoodie doctor {uri} --fix",
        **damage.facts,
    )


def metadata_is_missing(uri: str) -> Corrupt:
    """The error for who finds none. Somebody may be making it anew, and be through in a moment."""
    return Corrupt(
        f"{uri}: the metadata table is not there, and a table with storage paths is never listed instead",
        remedy=f"Make it anew from the files under all storage paths: hoodie doctor {uri} --fix",
        path=".hoodie/metadata",
        made_anew=True,
    )
