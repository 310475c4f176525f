"""Figures of a service for Prometheus: requests and how long they took, and what is kept of tables.

1. Labels come from short lists: what somebody asks for that is not there is `other`, so nobody makes figures grow.
2. No figure names a table, but the one that says whose store failed: who is to mend it must know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hoodie.server.routes import COMMANDS, FILES, ROUTES, VIEW
from hoodie.server.service import Service
from hoodie.server.tally import Counted
from hoodie.server.turns import Turns

CONTENT_TYPE = CONTENT_TYPE_LATEST

_MARKERS = "/v1/hoodie/marker"
_PATHS = frozenset({"/", "/table", "/partition", "/health", "/metrics"})
_METHODS = frozenset({"GET", "HEAD", "POST"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 240.0)
_DID: Mapping[Counted, str] = {
    "opened": "Views of tables that were opened, or opened anew",
    "looks": "Looks at a timeline that had not changed",
    "synced": "Views that were brought to a later timeline",
    "loaded": "Times partitions of a table were loaded",
    "failed": "Questions that failed because a table could not be read",
}


class Metrics:
    """The figures of one service."""

    def __init__(self, service: Service, turns: Turns) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "hoodie_requests", "Requests that were answered", ("endpoint", "method", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "hoodie_request_seconds",
            "Seconds until a request was answered",
            ("endpoint",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.registry.register(_OfService(service, turns))
        ProcessCollector(registry=self.registry)

    def counted(self, endpoint: str, method: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._requests.labels(endpoint, method if method in _METHODS else "other", str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def text(self) -> bytes:
        """All figures in the text format of Prometheus."""
        return generate_latest(self.registry)


class Measured:
    """Counts every request, refused ones, too."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = asyncio.get_running_loop().time(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            seconds = asyncio.get_running_loop().time() - began
            self.metrics.counted(endpoint_of(scope["path"]), scope["method"], status, seconds)


def endpoint_of(path: str) -> str:
    """What a path asks for, as one of a short list of words."""
    if path in _PATHS:
        return path
    name = path.removeprefix(VIEW).rstrip("/")
    if path.startswith(VIEW) and any(name in routes for routes in (ROUTES, FILES, COMMANDS)):
        return f"view/{name}"
    return "markers" if path.startswith(_MARKERS) else "other"


class _OfService(Collector):
    """What the service itself counts, at the moment it is asked."""

    def __init__(self, service: Service, turns: Turns) -> None:
        self._service = service
        self._turns = turns

    def collect(self) -> Iterator[Metric]:
        kept = self._service.kept()
        yield GaugeMetricFamily("hoodie_tables", "Tables whose views are kept", kept.tables)
        yield GaugeMetricFamily("hoodie_partitions", "Partitions of kept views that are loaded", kept.partitions)
        failed = GaugeMetricFamily(
            "hoodie_view_store_failed",
            "Tables whose views are kept in memory since their store failed",
            labels=("table",),
        )
        for place in kept.failed:
            failed.add_metric((place,), 1)
        yield failed
        yield GaugeMetricFamily("hoodie_questions", "Questions that wait for an answer now", self._turns.users())
        counts = self._service.tally.read()
        for what, about in _DID.items():
            yield CounterMetricFamily(f"hoodie_views_{what}", about, counts.get(what, 0))
