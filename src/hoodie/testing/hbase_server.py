"""A real HBase for tests: one process with its own ZooKeeper, master and region server, and a Thrift gateway beside it.

The jars are those that `scripts/hbase_jars.py` lays into a folder. All of it listens on this machine only.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from hoodie.testing.java import OPENED, free_ports, java_command

_START_S = 180
_LOCAL = "127.0.0.1"


@dataclass(frozen=True)
class RunningHBase:
    """Where the ZooKeeper of an HBase listens, and its Thrift gateway."""

    zookeeper_port: int
    gateway_port: int

    @property
    def options(self) -> dict[str, str]:
        """Options of an index in it, for Hudi and for us; the table is left out."""
        return {
            "hoodie.index.type": "HBASE",
            "hoodie.index.hbase.zkquorum": _LOCAL,
            "hoodie.index.hbase.zkport": str(self.zookeeper_port),
            "hoodie.index.hbase.thrift.address": f"{_LOCAL}:{self.gateway_port}",
        }

    def connection(self) -> Any:
        """A connection of happybase to the gateway."""
        import happybase  # noqa: PLC0415 - optional

        return happybase.Connection(_LOCAL, self.gateway_port, timeout=60_000)

    def make_table(self, name: str) -> None:
        """Makes a table for an index."""
        connection = self.connection()
        try:
            connection.create_table(name, {"_s": {"max_versions": 3}})
        finally:
            connection.close()


@contextmanager
def running_hbase(jars: Path, folder: Path) -> Iterator[RunningHBase]:
    """An HBase that runs inside the block, with its data below `folder`; a table could be listed in it."""
    zookeeper, master, region, gateway = free_ports(4)
    _store_settings(folder, zookeeper, master, region)
    java = [java_command(), "-Djava.net.preferIPv4Stack=true", *OPENED, "-cp", f"{folder / 'conf'}:{jars}/*"]
    hbase = [*java, "-Xmx512m", "org.apache.hadoop.hbase.master.HMaster", "start"]
    thrift = [*java, "-Xmx256m", "org.apache.hadoop.hbase.thrift.ThriftServer"]
    thrift += ["-b", _LOCAL, "-p", str(gateway), "--infoport", "-1", "start"]
    running = RunningHBase(zookeeper, gateway)
    with _started(hbase, folder / "hbase.log") as server, _started(thrift, folder / "gateway.log") as front:
        _await(running, (server, front), folder)
        yield running


def _store_settings(folder: Path, zookeeper: int, master: int, region: int) -> None:
    settings = {
        "hbase.rootdir": f"file://{folder}/root",
        "hbase.tmp.dir": folder / "tmp",
        "hbase.cluster.distributed": "false",
        "hbase.unsafe.stream.capability.enforce": "false",
        "hbase.wal.provider": "filesystem",
        "hbase.zookeeper.quorum": _LOCAL,
        "hbase.zookeeper.property.clientPort": zookeeper,
        "hbase.zookeeper.property.clientPortAddress": _LOCAL,
        "hbase.zookeeper.property.dataDir": folder / "zookeeper",
        "hbase.zookeeper.property.admin.enableServer": "false",
        "hbase.master.hostname": _LOCAL,
        "hbase.regionserver.hostname": _LOCAL,
        "hbase.master.ipc.address": _LOCAL,
        "hbase.regionserver.ipc.address": _LOCAL,
        "hbase.master.port": master,
        "hbase.regionserver.port": region,
        "hbase.master.info.port": -1,
        "hbase.regionserver.info.port": -1,
        "hbase.thrift.info.port": -1,
        "hbase.localcluster.assign.random.ports": "false",
        "hbase.master.start.timeout.localHBaseCluster": _START_S * 1000,
    }
    said = (
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
        for name, value in settings.items()
    )
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "hbase-site.xml").write_text(f"<configuration>{''.join(said)}</configuration>")


@contextmanager
def _started(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("wb") as told,
        subprocess.Popen(command, stdout=told, stderr=told, stdin=subprocess.DEVNULL) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _await(running: RunningHBase, processes: tuple[subprocess.Popen[bytes], ...], folder: Path) -> None:
    """Returns when a table was made: ports are open long before the master has begun its work."""
    import happybase  # noqa: F401, PLC0415 - optional, and makes the next module
    import Hbase_thrift  # noqa: PLC0415 - optional
    from thriftpy2.thrift import TException  # noqa: PLC0415 - optional

    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s and all(process.poll() is None for process in processes):
        try:
            running.make_table("ready")
            return
        except Hbase_thrift.AlreadyExists:  # an answer was lost
            return
        except (OSError, TException, Hbase_thrift.IOError):
            time.sleep(0.2)
    raise RuntimeError(f"HBase did not start: {(folder / 'hbase.log').read_bytes()[-600:].decode(errors='replace')}")
