"""A real Hive metastore for tests, from the jars that PySpark brings: Thrift on this machine, its tables in Derby.

Run as a program (`python -m hoodie.testing.metastore_server PORT FOLDER`) it is the server: a process of Java that this
one talks to, and that ends with it. The metastore's own main program would listen on every address.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hoodie.testing.java import OPENED, free_ports, java_command, pyspark_jars

_START_S = 180
_LOCAL = "127.0.0.1"


@dataclass
class RunningMetastore:
    """A metastore, which may be started anew: it keeps its port and what it knows."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def uris(self) -> str:
        return f"thrift://{_LOCAL}:{self.port}"

    def start(self) -> None:
        """Returns when it has answered a question."""
        command = [sys.executable, "-m", "hoodie.testing.metastore_server", str(self.port), str(self.folder)]
        with (self.folder / "metastore.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        end_s = time.monotonic() + _START_S
        while time.monotonic() < end_s and self.process.poll() is None:
            if self._answers():
                return
            time.sleep(0.1)
        raise RuntimeError(f"The metastore did not start: {(self.folder / 'metastore.log').read_text()[-600:]}")

    def stop(self) -> None:
        """Returns when it has ended: its process of Java follows this one as soon as it notices."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        end_s = time.monotonic() + _START_S
        while self._listens() and time.monotonic() < end_s:
            time.sleep(0.05)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((_LOCAL, self.port)) == 0

    def _answers(self) -> bool:
        from pymetastore.hive_metastore import ThriftHiveMetastore  # noqa: PLC0415 - optional
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol  # noqa: PLC0415 - optional
        from thrift.Thrift import TException  # noqa: PLC0415 - optional
        from thrift.transport import TSocket, TTransport  # noqa: PLC0415 - optional

        if not self._listens():
            return False
        transport = TTransport.TBufferedTransport(TSocket.TSocket(_LOCAL, self.port))
        try:
            transport.open()
            return bool(ThriftHiveMetastore.Client(TBinaryProtocol(transport)).get_all_databases())
        except TException:
            return False
        finally:
            transport.close()


@contextmanager
def running_metastore(folder: Path) -> Iterator[RunningMetastore]:
    """A metastore that runs inside the block, with its data below `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports()
    server = RunningMetastore(port, folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def serve(port: int, folder: Path) -> None:
    """Runs a metastore until this process ends."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway  # noqa: PLC0415 - optional

    jars = pyspark_jars()
    _store_settings(folder)
    gateway_port, token = launch_gateway(
        jarpath=next(str(jar) for jar in Path(jars).glob("py4j*.jar")),
        classpath=f"{folder}/conf:{jars}/*",
        java_path=java_command(),
        die_on_exit=True,
        enable_auth=True,
        javaopts=[
            "-Xmx256m",
            "-Djava.net.preferIPv4Stack=true",
            f"-Dderby.stream.error.file={folder}/derby.log",
            *OPENED,
        ],
        redirect_stdout=sys.stdout,
        redirect_stderr=sys.stderr,
    )
    parameters = GatewayParameters(port=gateway_port, auth_token=token, auto_convert=True)
    java: Any = JavaGateway(gateway_parameters=parameters).jvm
    metastore, thrift = java.org.apache.hadoop.hive.metastore, java.org.apache.thrift
    conf = java.org.apache.hadoop.hive.conf.HiveConf()
    metastore.txn.TxnDbUtil.setConfValues(conf)
    if not (folder / "locks").exists():
        metastore.txn.TxnDbUtil.prepDb(conf)
        (folder / "locks").touch()
    handler = metastore.RetryingHMSHandler.getProxy(
        conf, metastore.HiveMetaStore.HMSHandler("metastore", conf, False), False
    )
    place = thrift.transport.TServerSocket(java.java.net.InetSocketAddress(_LOCAL, port))
    arguments = (
        getattr(thrift.server, "TThreadPoolServer$Args")(place)
        .processor(metastore.TSetIpAddressProcessor(handler))
        .transportFactory(thrift.transport.TTransportFactory())
        .protocolFactory(getattr(thrift.protocol, "TBinaryProtocol$Factory")())
        .minWorkerThreads(4)
        .maxWorkerThreads(64)
    )
    thrift.server.TThreadPoolServer(arguments).serve()


def _store_settings(folder: Path) -> None:
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        # PySpark has no BoneCP, which is the default.
        "datanucleus.connectionPoolingType": "hikaricp",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        "hive.metastore.event.db.notification.api.auth": "false",
        "hive.stats.autogather": "false",
    }
    said = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    (folder / "conf" / "hive-site.xml").write_text(f"<configuration>{said}</configuration>")


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    serve(int(sys.argv[1]), Path(sys.argv[2]))
