"""A folder of jars that Maven lays, with what they depend on or without."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ALL_LEFT_OUT = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def lay_jars(folder: Path, name: str, version: str, wanted: Mapping[str, bool]) -> None:
    """Lays the jars into the folder, unless they are there already. `wanted`: coordinates, and whether what they need
    comes, too. `version` marks a folder that is complete.

    Raises:
        SystemExit: there is no Maven, or it could not get them.
    """
    if (folder / f".{version}").exists():
        return
    if shutil.which("mvn") is None:
        sys.exit(f"the jars of {name} come by Maven, and there is no `mvn`: tests that need them will be skipped")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(_pom(wanted))
    print(f"fetching {name} {version}", flush=True)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder.resolve()}", "-DincludeScope=runtime"]
    done = subprocess.run(["mvn", "-q", "-B", "-ntp", "-f", str(folder / "pom.xml"), *goal], check=False)
    if done.returncode != 0:
        sys.exit(f"the jars of {name} could not be fetched: is the Maven registry reachable?")
    (folder / f".{version}").touch()


def _pom(wanted: Mapping[str, bool]) -> str:
    """A project of Maven's that depends on what is wanted."""
    found = []
    for coordinate, whole in wanted.items():
        group, artifact, version = coordinate.split(":")
        named = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        found.append(f"<dependency>{named}{'' if whole else ALL_LEFT_OUT}</dependency>")
    head = "<modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>jars</artifactId><version>1</version>"
    return f"<project>{head}<dependencies>{''.join(found)}</dependencies></project>"
