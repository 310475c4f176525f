"""An opened table as a value: where it lives, how it is configured, which format it speaks.

The handle is what packages above `view` pass around instead of a façade. It holds no timeline: whoever needs one loads
it, so that no decision is taken on an old picture.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.env import Env
from hoodie.spec import FormatProfile, TableConfig
from hoodie.storage import Storage


@dataclass(frozen=True, slots=True)
class TableHandle:
    """Storage rooted at the base path, table config as stored, the profile of its version, and the outside world."""

    storage: Storage
    config: TableConfig
    profile: FormatProfile
    env: Env
