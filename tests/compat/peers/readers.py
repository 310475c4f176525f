"""`Readers`: every peer that can read a table of some version, compared with our own reading of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from peer_limits import BY_NAME

from .ours import read_rows
from .process import Peer
from .rows import ensure_same_rows


@dataclass(frozen=True, slots=True)
class Readers:
    """The three peers."""

    hudi_12: Peer
    hudi_015: Peer
    hudi_rs: Peer

    def able(self, version: int, limits: Collection[str] = ()) -> list[Peer]:
        """Peers that can read tables of `version`, without those that an entry of peer_limits.py excuses."""
        excused = {BY_NAME[name].peer for name in limits}
        named = {"hudi_12": self.hudi_12, "hudi_rs": self.hudi_rs}
        named |= {"hudi_015": self.hudi_015} if version == 6 else {}
        return [peer for name, peer in named.items() if name not in excused]

    def ensure_agree(self, path: Path, version: int, limits: Collection[str] = (), **query: Any) -> pa.Table:
        """Our rows of a query, after every able peer gave exactly the same."""
        asked = {"query": query.pop("query", "snapshot"), **query}
        ours = read_rows(path, **_ours(asked))
        for peer in self.able(version, limits):
            ensure_same_rows(ours, peer.read(path, **asked), called=("ours", f"{peer.name} {asked}"))
        return ours


def _ours(asked: dict[str, Any]) -> dict[str, Any]:
    """Our `scan` knows time travel as a snapshot with `as_of`."""
    return {**asked, "query": "snapshot"} if asked["query"] == "time_travel" else asked
