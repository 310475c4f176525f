"""A real ZooKeeper for tests, from the jars that PySpark brings: one server on this machine, its data in a folder."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hoodie.testing.java import free_ports, java_command, pyspark_jars

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_START_S = 120
_SESSION_S = 30


@contextmanager
def running_zookeeper(folder: Path) -> Iterator[str]:
    """The address (`host:port`) of a server that runs inside the block."""
    (port,) = free_ports()
    address = f"127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "tickTime": 500,
        "dataDir": folder / "data",
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
        "maxClientCnxns": 0,
        # Nothing of a test has to outlive the machine: no session waits for a busy disk.
        "forceSync": "no",
        "preAllocSize": 64,
    }
    config = folder / "zoo.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [java_command(), "-Xmx128m", "-cp", f"{pyspark_jars()}/*", _MAIN, str(config)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(address, process)
            yield address
        finally:
            process.kill()


def _await(address: str, process: subprocess.Popen[bytes]) -> None:
    """Returns when a session was made: a server that only takes connections may take longer than a lock waits for."""
    from kazoo.client import KazooClient  # noqa: PLC0415 - optional
    from kazoo.handlers.threading import KazooTimeoutError  # noqa: PLC0415 - optional

    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s and process.poll() is None:
        client = KazooClient(address, timeout=_START_S)
        try:
            client.start(_SESSION_S)
            return
        except KazooTimeoutError:
            time.sleep(0.05)
        finally:
            client.stop()
            client.close()
    raise RuntimeError("ZooKeeper did not start")
