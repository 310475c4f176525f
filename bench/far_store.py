"""Small upserts on an S3 server that is far away: each request waits 30 ms before the server sees it.

1. The server (moto, or the one `HOODIE_TEST_S3` names) and the proxy that delays run on this machine; both peers reach
   the store through it and nothing else.
2. All sessions are warm and live side by side; they take turns upsert by upsert, each round beginning with another.
   All get the same 10 000 rows in three partitions and the same hundred changes, and must end with the same rows.
3. The proxy tells how many requests an upsert made, and how many of them at most can have waited for one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hoodie.testing.fault_proxy import FaultProxy, running_fault_proxy
from hoodie.testing.s3_server import S3Server, running_s3_server

DELAY_SECONDS = 0.030
CHANGES = 10
LANES = {"hudi": ("far",), "ours": ("far", "far_local")}
"""Families of steps by peer, one table each: with its Spark and, ours, with the local engine."""
Measure = dict[str, Any]


class Peer(Protocol):
    """A running peer: `run.Worker`."""

    def step(self, name: str, **arguments: Any) -> dict[str, Any]: ...
    def stop(self) -> None: ...


def measure_far_store(start: Callable[[str, Mapping[str, str]], Peer], names: list[str], repeats: int) -> list[Measure]:
    """Measures of all lanes of the peers; `start` starts a peer with these settings of its Spark session."""
    lanes = [(name, lane) for name in names for lane in LANES.get(name, ())]
    if not lanes:
        return []
    with running_s3_server() as server, running_fault_proxy(server.endpoint, delay_seconds=DELAY_SECONDS) as proxy:
        bucket, settings = server.new_bucket(), _settings(server, proxy)
        peers = {name: start(name, settings) for name in {name for name, _ in lanes}}
        try:
            return _in_turns(peers, lanes, bucket, proxy, repeats)
        finally:
            for peer in peers.values():
                peer.stop()


def _in_turns(
    peers: Mapping[str, Peer], lanes: list[tuple[str, str]], bucket: str, proxy: FaultProxy, repeats: int
) -> list[Measure]:
    found = []

    def step(name: str, lane: str, what: str, **arguments: Any) -> Measure:
        proxy.begin(None)
        answer = peers[name].step(f"{lane}_{what}", table=f"s3a://{bucket}/{name}_{lane}", **arguments)
        return {"peer": name, "step": f"{lane}_{what}", **answer, **_requests(proxy)}

    found += [step(name, lane, "load") for name, lane in lanes]
    for number in range(repeats):
        turn = number % len(lanes)
        for name, lane in lanes[turn:] + lanes[:turn]:
            measure = step(name, lane, "upsert", number=(number + 3) % CHANGES)
            shown = measure.get("seconds") or measure.get("error")
            print(f"  {name:8} {measure['step']:18} {shown} {_requests(proxy)}", flush=True)
            found.append(measure)
    return found + [step(name, lane, "rows") for name, lane in lanes]


def _requests(proxy: FaultProxy) -> dict[str, int]:
    return {
        "requests": len(proxy.requests),
        "one_after_the_other": proxy.one_after_the_other,
        "connections": proxy.connections,
    }


def _settings(server: S3Server, proxy: FaultProxy) -> dict[str, str]:
    """How Hadoop, and so both peers, are told of the store."""
    options = {
        "endpoint": proxy.endpoint,
        "endpoint.region": "us-east-1",
        "access.key": server.key,
        "secret.key": server.secret,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "connection.maximum": "1000",  # with Hadoop's own 96 Hudi runs out of connections after a few commits
    }
    return {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()}
