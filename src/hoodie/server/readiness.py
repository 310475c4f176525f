"""Whether a service can answer: its roots can be reached. Asked often, so it is looked at once in a while."""

from __future__ import annotations

import threading

from hoodie.server.roots import trouble_of
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
                self._unreachable = sum(
                    trouble_of(root, self._service.storage_at) != "" for root in self._service.roots
                )
                self._looked_s = now_s
            return self._unreachable
