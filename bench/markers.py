"""How many markers a second a service makes durable that is asked over HTTP.

    python bench/markers.py [seconds] [connections]

`hoodie serve --markers` runs in a process of its own, on the disk of this machine; one process asks over kept
connections, each for one marker at a time. Every answer means that the marker is durable, which is looked after. How
many that are for a second of processor is said of service and asker apart: the clock on the wall is others', too.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import pyarrow as pa

from hoodie import Table
from hoodie.storage import LocalStorage
from hoodie.timeline.markers import load_markers

INSTANT = "20260101000000000"


class _Asker(asyncio.Protocol):
    """A connection that asks for one marker after the other."""

    def __init__(self, number: int, folder: str, latencies: list[float]) -> None:
        self.number, self.folder, self.latencies = number, folder, latencies
        self.count = 0
        self.began = 0.0
        self.heard = b""
        self.is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        name = f"region%3D{self.count % 9}%2F{self.number}-{self.count}-0_1-2-3_{INSTANT}.parquet.marker.CREATE"
        self.began = time.perf_counter()
        self.transport.write(
            f"POST /v1/hoodie/marker/create?markerdirpath={self.folder}&markername={name} HTTP/1.1\r\n"
            "Host: 127.0.0.1\r\nContent-Length: 0\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self.heard += data
        if not self.heard.endswith(b"true"):
            return
        self.heard = b""
        self.latencies.append(time.perf_counter() - self.began)
        self.count += 1
        if self.is_over:
            self.transport.close()
        else:
            self._ask()


async def asked(port: int, folder: str, seconds: float, connections: int, first: int = 0) -> list[float]:
    loop, latencies = asyncio.get_running_loop(), list[float]()
    askers = [_Asker(first + number, folder, latencies) for number in range(connections)]
    for asker in askers:
        await loop.create_connection(lambda asker=asker: asker, "127.0.0.1", port)  # type: ignore[misc]
    await asyncio.sleep(seconds)
    for asker in askers:
        asker.is_over = True
    await asyncio.sleep(1)
    return latencies


def measure_requests(seconds: float, connections: int) -> None:
    """Prints how many markers a second were made durable, and how long each took."""
    with tempfile.TemporaryDirectory() as root:
        table = Path(root) / "t"
        options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
        Table.create(str(table), schema=pa.schema([("id", pa.string())]), options=options)
        command = [sys.executable, "-m", "hoodie.cli", "serve", "--root", root, "--port", "0", "--markers"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
            assert served.stdout is not None
            port = int(served.stdout.readline().rsplit(":", 1)[1])
            folder = urllib.parse.quote(f"{table}/.hoodie/.temp/{INSTANT}", safe="")
            warm = asyncio.run(asked(port, folder, 1, 1, first=connections))  # it loads what it needs when it is asked
            idle, before = _cpu_of(served.pid), time.process_time()
            latencies = sorted(asyncio.run(asked(port, folder, seconds, connections)))
            own, of_service = time.process_time() - before, _cpu_of(served.pid) - idle
            served.terminate()
        found = load_markers(LocalStorage(str(table)), INSTANT) or ()
        assert len(found) == len(latencies) + len(warm), (len(found), len(latencies), len(warm))
        half, last = latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100]
        print(
            f"{connections} connections: {len(latencies) / seconds:.0f} markers/s durable, "
            f"p50 {half * 1000:.1f} ms, p99 {last * 1000:.1f} ms, {len(latencies)} in all; for a second of processor "
            f"{len(latencies) / of_service:.0f} of the service, {len(latencies) / own:.0f} of who asks"
        )


def _cpu_of(process: int) -> float:
    """Seconds of processor a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    measure_requests(*(float(one) for one in sys.argv[1:2] or ["5"]), *(int(one) for one in sys.argv[2:] or ["256"]))
