"""Whether a service can answer: its roots can be reached. Asked often, so it is looked at once in a while."""

from __future__ import annotations

import os
import threading

from hoodie.errors import HudiError
from hoodie.server.service import Service

LOOK_EVERY_S = 10.0


class Readiness:
    """Whether the roots of a service can be listed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._looked_s: float | None = None
        self._unreachable = 0
        self._lock = threading.Lock()

    def said(self) -> dict[str, object]:
        """What `/health` says: `ready`, or `unready` with the reason. It names no root: anybody may ask."""
        count = self._look()
        if not count:
            return {"status": "ready"}
        return {"status": "unready", "reason": f"{count} of {len(self._service.roots)} roots cannot be reached"}

    def _look(self) -> int:
        with self._lock:
            now_s = self._service.env.monotonic()
            if self._looked_s is None or now_s - self._looked_s > LOOK_EVERY_S:
                self._unreachable = sum(not self._is_reachable(root) for root in self._service.roots)
                self._looked_s = now_s
            return self._unreachable

    def _is_reachable(self, root: str) -> bool:
        """One look at a folder, or the first page of a listing."""
        if root.startswith("/"):
            return os.path.isdir(root)
        try:
            next(self._service.storage_at(root).list(""), None)
        except HudiError:
            return False
        return True
