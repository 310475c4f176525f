"""Hudi 1.2.0 on S3: the jars it needs for that, and its client of locks there.

`HOODIE_HUDI_AWS_JAR` names a jar with Hudi's own client (`hudi-aws` or `hudi-aws-bundle` of 1.2.0). Without it the one
in `java/` is compiled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

from peer_jars import find_jar

from hoodie.testing.s3_server import S3Server

from .process import HERE, Peer, hudi_peer

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
HUDI_AWS = "HOODIE_HUDI_AWS_JAR"


class NoS3(Exception):
    """Hudi cannot reach S3 on this machine, for the reason that is said."""


def s3_peer(python: Path, s3_jars: Path, scratch: Path, server: S3Server) -> Peer:
    """A Hudi 1.2.0 that works on an S3 server, with the jars of a folder.

    Raises:
        NoS3: jars are missing, or a compiler.
    """
    jars = sorted(s3_jars.glob("*.jar"))
    if not jars:
        raise NoS3(f"no jars in {s3_jars} (scripts/s3_jars.py)")
    given = os.environ.get(HUDI_AWS)
    client = Path(given).resolve(strict=True) if given else compiled_client(jars, scratch)
    peer = hudi_peer(python, "1.2.0", scratch, [*jars, client])
    peer.ask(
        "java",
        properties={
            "aws.endpointUrlS3": server.endpoint,
            "aws.region": "us-east-1",
            "aws.accessKeyId": server.key,
            "aws.secretAccessKey": server.secret,
        },
    )
    peer.ask(
        "hadoop",
        conf={
            "fs.s3a.endpoint": server.endpoint,
            "fs.s3a.path.style.access": "true",
            # Hudi leaves streams of log files open: after some fifty commits the 96 of the default are all taken.
            "fs.s3a.connection.maximum": "2000",
            "fs.s3a.access.key": server.key,
            "fs.s3a.secret.key": server.secret,
        },
    )
    return peer


def compiled_client(jars: list[Path], scratch: Path) -> Path:
    """A jar with the client of `java/`, compiled with these jars and Hudi's.

    Raises:
        NoS3: there is no compiler, or no jar of Hudi's that it could take.
    """
    home = os.environ.get("JAVA_HOME")
    compiler = shutil.which("javac", path=f"{home}/bin" if home else None)
    bundle = find_jar(BUNDLE)
    if compiler is None or bundle is None:
        missing = "Java compiler (javac)" if compiler is None else f"jar of {BUNDLE}"
        raise NoS3(f"no {missing} to compile a client of the lock with, and no jar in {HUDI_AWS}")
    classes = scratch / "classes"
    source = HERE / "java" / "S3StorageLockClient.java"
    command = [compiler, "-d", str(classes), "-cp", os.pathsep.join(map(str, [bundle, *jars])), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    jar = scratch / "lock_client.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for found in classes.rglob("*.class"):
            archive.write(found, found.relative_to(classes))
    return jar
