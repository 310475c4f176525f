"""The jars of a standalone HBase with its Thrift gateway, by Maven, for the tests that run beside one.

    python scripts/hbase_jars.py FOLDER      lays them there, unless they are there already

The gateway's own dependencies are left out: they would bring a Hadoop of another age beside the server's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "2.6.1"
WANTED = {
    f"org.apache.hbase:hbase-server:{VERSION}-hadoop3": True,
    f"org.apache.hbase:hbase-http:{VERSION}-hadoop3": True,
    f"org.apache.hbase:hbase-thrift:{VERSION}": False,
    "org.apache.thrift:libthrift:0.14.1": False,
    "org.slf4j:slf4j-nop:1.7.36": True,
}
"""Coordinates, and whether what they need comes, too."""

ALL_LEFT_OUT = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def pom() -> str:
    """A project of Maven's that depends on what is wanted."""
    wanted = []
    for coordinate, whole in WANTED.items():
        group, artifact, version = coordinate.split(":")
        named = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        wanted.append(f"<dependency>{named}{'' if whole else ALL_LEFT_OUT}</dependency>")
    head = "<modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>hbase</artifactId><version>1</version>"
    return f"<project>{head}<dependencies>{''.join(wanted)}</dependencies></project>"


def fetch(folder: Path) -> None:
    """Lays the jars into the folder.

    Raises:
        SystemExit: there is no Maven, or it could not get them.
    """
    if (folder / f".{VERSION}").exists():
        return
    if shutil.which("mvn") is None:
        sys.exit("the jars of HBase come by Maven, and there is no `mvn`: tests beside HBase will be skipped")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(pom())
    print(f"fetching HBase {VERSION}", flush=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder.resolve()}", "-DincludeScope=runtime"]
    done = subprocess.run(["mvn", "-q", "-B", "-ntp", "-f", str(folder / "pom.xml"), *goal], check=False)
    if done.returncode != 0:
        sys.exit("the jars of HBase could not be fetched: is the Maven registry reachable?")
    (folder / f".{VERSION}").touch()


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
