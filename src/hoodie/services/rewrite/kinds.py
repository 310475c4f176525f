"""The kinds of plans there are. A new one is its module and a line here."""

from __future__ import annotations

from typing import Final

from hoodie.services.clustering.base_files import BASE_FILE_COMPACTIONS
from hoodie.services.clustering.cluster import CLUSTERINGS
from hoodie.services.compaction.compact import COMPACTIONS
from hoodie.services.compaction.log_compact import LOG_COMPACTIONS
from hoodie.services.resizing.resize import RESIZES

KINDS: Final = (COMPACTIONS, LOG_COMPACTIONS, CLUSTERINGS, BASE_FILE_COMPACTIONS, RESIZES)
