"""The table services there are, by name. A module is loaded when its service is asked for.

After a commit they follow in this order, so cleaning, then archiving come before compactions, and the metadata table is
last.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hoodie.arguments import checked_text
from hoodie.errors import Invalid

if TYPE_CHECKING:
    from hoodie.services.service import Service


@dataclass(frozen=True, slots=True)
class Registered:
    """A service by name: what it does, in a few words, and the module whose `SERVICE` it is; `short_command`: its name
    on the command line where that is another.
    """

    name: str
    summary: str
    module: str
    short_command: str = ""

    @property
    def command(self) -> str:
        """Its name on the command line."""
        return self.short_command or self.name.replace("_", "-")

    def described(self) -> str:
        """The summary as a sentence."""
        return f"{self.summary[0].upper()}{self.summary[1:]}."


REGISTERED: Final = {
    one.name: one
    for one in (
        Registered("clean", "remove file versions that no retained commit needs", "hoodie.services.cleaning.clean"),
        Registered("archive", "move old instants to the archived timeline", "hoodie.services.archiving.archive"),
        Registered("compact", "merge log files into base files", "hoodie.services.compaction.compact"),
        Registered("compact_logs", "merge small log blocks into one", "hoodie.services.compaction.log_compact"),
        Registered("cluster", "rewrite small files as large ones, sorted", "hoodie.services.clustering.cluster"),
        Registered(
            "compact_base_files",
            "join small base files, rows as they are",
            "hoodie.services.clustering.base_files",
            "compact-base",
        ),
        Registered("ttl", "delete partitions past their time to live", "hoodie.services.ttl"),
        Registered("resize", "split large and merge small buckets of a hash index", "hoodie.services.resizing.resize"),
        Registered("rollback", "roll back one instant", "hoodie.services.rollback.rollback"),
        Registered("restore", "restore a table to a commit or savepoint", "hoodie.services.rollback.restore"),
        Registered("upgrade", "upgrade or downgrade a table to another version", "hoodie.services.upgrading.upgrade"),
        Registered("relayout", "change where new files lie, or all files", "hoodie.services.relayout.relayout"),
        Registered("orphans", "find or remove files that no commit knows", "hoodie.services.rollback.orphans"),
        Registered("metadata", "compact, clean and archive the metadata table", "hoodie.services.metadata_upkeep"),
    )
}


def load_service(name: str) -> Service:
    """The service of that name.

    Raises:
        Invalid: there is none.
    """
    found = REGISTERED.get(checked_text("The name of a service", name, f"There are {', '.join(REGISTERED)}"))
    if found is None:
        near = next(iter(difflib.get_close_matches(name, REGISTERED, n=1)), None)
        known = f"Did you mean {near}?" if near else f"There are {', '.join(REGISTERED)}"
        raise Invalid(f"There is no service {name!r}", remedy=known)
    service: Service = importlib.import_module(found.module).SERVICE
    return service
